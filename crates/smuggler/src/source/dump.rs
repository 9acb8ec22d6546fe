//! A dump as a source: its documents in blocks, and what else it holds in its place between them.

use std::io::Read;

use super::{BLOCK_SIZE, Block, Other, Records, Source};
use crate::dump::reader::{DumpReader, DumpStep};
use crate::dump::{Section, Skipped};
use crate::error::{Error, Result};
use crate::import::options::DumpOptions;
use crate::json::properties;
use crate::report::{Place, Refusal};

/// Other items of a block at most.
const OTHERS_MAX: usize = 1024;

/// Cuts a decompressed dump into blocks.
pub(crate) struct Dump<R> {
    input: R,
    reader: DumpReader,
    options: DumpOptions,
    /// Items that were found while a block of the other kind was being filled.
    next: Collected,
    /// What was not asked for.
    left_out: Skipped,
    /// What ended the input, once the items before it have been handed over.
    failed: Option<Error>,
    ended: bool,
}

#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    ends: Vec<(usize, u64)>,
    others: Vec<Other>,
    refused: Vec<Refusal>,
}

impl<R: Read + Send> Dump<R> {
    pub(crate) fn new(input: R, options: DumpOptions, item_size_max: usize) -> Dump<R> {
        Dump {
            input,
            reader: DumpReader::new(item_size_max),
            options,
            next: Collected::default(),
            left_out: Skipped::new(),
            failed: None,
            ended: false,
        }
    }

    fn fill(&mut self, block: &mut Collected) -> Result<()> {
        while block.bytes.len() < BLOCK_SIZE && block.others.len() < OTHERS_MAX {
            match self.reader.step()? {
                DumpStep::Item { section: Section::Documents, offset, text } => {
                    if !self.options.documents {
                        *self.left_out.entry(Section::Documents.to_string()).or_default() += 1;
                        continue;
                    }
                    // Documents and others never share a block, so that their order stays.
                    let target = if block.others.is_empty() { &mut *block } else { &mut self.next };
                    target.bytes.extend_from_slice(text);
                    target.ends.push((target.bytes.len(), offset));
                    if !block.others.is_empty() {
                        break;
                    }
                }
                DumpStep::Item { section, offset, text } => {
                    let found = match other(section, text) {
                        Ok(Some(found)) if is_wanted(&found, self.options) => Ok(found),
                        Ok(Some(_)) => {
                            *self.left_out.entry(section.to_string()).or_default() += 1;
                            continue;
                        }
                        Ok(None) => continue,
                        Err(reason) => Err(Refusal {
                            place: Place::Byte(offset),
                            reason: format!("{section}: {reason}"),
                        }),
                    };
                    let target = if block.ends.is_empty() { &mut *block } else { &mut self.next };
                    match found {
                        Ok(found) => target.others.push(found),
                        Err(refusal) => target.refused.push(refusal),
                    }
                    if !block.ends.is_empty() {
                        break;
                    }
                }
                DumpStep::NeedMore => {
                    let read = self.input.read(self.reader.room());
                    match read.map_err(Error::io("the input cannot be read"))? {
                        0 => self.reader.end(),
                        read => self.reader.filled(read),
                    }
                }
                DumpStep::End => {
                    self.ended = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// The last block: what was passed over.
    fn summary(&mut self) -> Option<Block> {
        let mut skipped = std::mem::take(&mut self.left_out);
        for (section, count) in self.reader.skipped() {
            *skipped.entry(section.clone()).or_default() += count;
        }
        let others = vec![Other::Skipped(skipped)];
        Some(Block { records: Records::Others(others), refused: Vec::new() })
    }
}

impl<R: Read + Send> Source for Dump<R> {
    fn next_block(&mut self) -> Result<Option<Block>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut block = std::mem::take(&mut self.next);
        let was_ended = self.ended;
        let outcome = if was_ended { Ok(()) } else { self.fill(&mut block) };
        let Collected { bytes, ends, others, refused } = block;
        if ends.is_empty() && others.is_empty() && refused.is_empty() {
            outcome?;
            // Once.
            return Ok(if was_ended { None } else { self.summary() });
        }
        self.failed = outcome.err();
        // The summary comes when a block stays empty.
        self.ended = false;
        let records = if ends.is_empty() { Records::Others(others) } else { Records::Values { bytes, ends } };
        Ok(Some(Block { records, refused }))
    }
}

fn is_wanted(found: &Other, options: DumpOptions) -> bool {
    match found {
        Other::Index { .. } => options.indexes,
        Other::Identity { .. } => options.identities,
        Other::CompareExchange { .. } => options.compare_exchange,
        Other::Tombstone { .. } => options.tombstones,
        Other::DatabaseRecord(_) => options.database_record,
        Other::Skipped(_) => true,
    }
}

/// What an item of another section than documents holds; none if it is of no use here.
fn other(section: &Section, text: &[u8]) -> Result<Option<Other>, String> {
    let (mut key, mut value, mut kind) = (None, None, None);
    match section {
        Section::DatabaseRecord => {
            return Ok(Some(Other::DatabaseRecord(String::from_utf8_lossy(text).into_owned())));
        }
        Section::Indexes => return index(text).map(Some),
        Section::Identities | Section::CompareExchange | Section::Tombstones => {}
        Section::BuildVersion | Section::Documents | Section::Other(_) => return Ok(None),
    }
    for property in properties::properties(text) {
        match property? {
            (name, text) if name == "Key" => key = Some(text),
            (name, text) if name == "Value" => value = Some(text),
            (name, text) if name == "Type" => kind = Some(text),
            _ => {}
        }
    }
    let key = key.and_then(properties::text).ok_or("it has no Key that is text")?.into_owned();
    Ok(match section {
        Section::Identities => {
            // Official servers write the number as text.
            let value =
                value.map(|value| properties::text(value).map_or(value, |_| &value[1..value.len() - 1]));
            let value = value.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
            Some(Other::Identity { name: key, value: value.ok_or("it has no Value that is a number")? })
        }
        Section::CompareExchange => {
            let value = value.ok_or("it has no Value")?;
            // The value is a text that holds JSON.
            let value = properties::text(value).ok_or("its Value is no text")?.into_owned();
            Some(Other::CompareExchange { key, value })
        }
        _ => {
            let kind = kind.and_then(properties::text);
            // Those of attachments, counters and revisions have no document here.
            kind.is_none_or(|kind| kind == "Document").then_some(Other::Tombstone { id: key })
        }
    })
}

fn index(text: &[u8]) -> Result<Other, String> {
    let (mut kind, mut definition) = (String::new(), None);
    for property in properties::properties(text) {
        match property? {
            (name, text) if name == "Type" => {
                kind = properties::text(text).ok_or("its Type is no text")?.into_owned();
            }
            (name, text) if name == "IndexDefinition" => definition = Some(text),
            _ => {}
        }
    }
    let definition = definition.ok_or("it has no IndexDefinition")?;
    let definition = std::str::from_utf8(definition).map_err(|_| "it is not UTF-8")?.to_owned();
    Ok(Other::Index { kind, definition })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str, options: DumpOptions) -> (Vec<String>, Option<String>) {
        let mut source = Dump::new(std::io::Cursor::new(input.as_bytes().to_vec()), options, 1 << 20);
        let mut found = Vec::new();
        loop {
            match source.next_block() {
                Ok(Some(block)) => {
                    found.extend(block.refused.iter().map(|refusal| format!("refused {refusal}")));
                    match block.records {
                        Records::Values { bytes, .. } => {
                            found.push(String::from_utf8_lossy(&bytes).into_owned())
                        }
                        Records::Others(others) => {
                            found.extend(others.iter().map(|other| format!("{other:?}")))
                        }
                        _ => unreachable!("dumps hold neither lines nor rows"),
                    }
                }
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn order_stays_and_what_was_passed_over_comes_last() {
        let dump = r#"{"Docs":[{"a":1},{"a":2}],"Identities":[{"Key":"users|","Value":"5"},{"Key":"x|","Value":7},{"Key":"y|"}],
            "Docs":[{"a":3}],"Indexes":[{"Type":"Map","IndexDefinition":{"Name":"X"}},{"Type":7}],"Other":[{}],"CompareExchange":[{"Key":"k","Value":"{\"Object\":1}"}],
            "Tombstones":[{"Key":"users/1","Type":"Document"},{"Key":"z","Type":"Attachment"}]}"#;
        let (found, error) = read(dump, DumpOptions { tombstones: true, ..DumpOptions::default() });
        assert_eq!(error, None);
        assert_eq!(
            found,
            [
                r#"{"a":1}{"a":2}"#,
                "refused byte 92: Identities: it has no Value that is a number",
                r#"Identity { name: "users|", value: 5 }"#,
                r#"Identity { name: "x|", value: 7 }"#,
                r#"{"a":3}"#,
                "refused byte 193: Indexes: its Type is no text",
                r#"Index { kind: "Map", definition: "{\"Name\":\"X\"}" }"#,
                r#"CompareExchange { key: "k", value: "{\"Object\":1}" }"#,
                r#"Tombstone { id: "users/1" }"#,
                r#"Skipped({"Other": 1})"#,
            ]
        );
        let none = DumpOptions {
            database_record: false,
            documents: false,
            indexes: false,
            identities: false,
            compare_exchange: false,
            tombstones: false,
        };
        let (found, _) = read(dump, none);
        let summary = r#"Skipped({"CompareExchange": 1, "Docs": 3, "Identities": 2, "Indexes": 1, "Other": 1, "Tombstones": 1})"#;
        assert_eq!(found.last().map(String::as_str), Some(summary));
    }

    #[test]
    fn what_came_before_a_fault_is_handed_over() {
        let (found, error) = read(r#"{"Docs":[{"a":1},{"a":"#, DumpOptions::default());
        assert_eq!(found, [r#"{"a":1}"#]);
        assert!(error.is_some_and(|error| error.contains("ends too early")));
    }
}
