//! Reads a dump as its bytes arrive.

use std::borrow::Cow;

use super::{Section, Skipped};
use crate::error::{Error, Result, SplitError};
use crate::json::properties;
use crate::json::scanner::Scanner;

/// Under this name attachments are counted among what was skipped.
const ATTACHMENTS: &str = "Attachments";
/// What an item of documents has in its metadata when it is no document.
const EXPORT_TYPE: &str = "@export-type";

/// What [`DumpReader::step`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum DumpStep<'a> {
    /// An item of a section, or the value of one that is no array.
    Item {
        /// Which section; never [`Section::Other`].
        section: &'a Section,
        /// Where in the decompressed dump it begins.
        offset: u64,
        /// Its JSON text.
        text: &'a [u8],
    },
    /// More must arrive first.
    NeedMore,
    /// That was all.
    End,
}

/// Cuts a decompressed dump into items, as its bytes arrive. One item at a time is held; raw bytes and other sections are passed over, and counted.
pub struct DumpReader {
    scanner: Scanner,
    place: Place,
    section: Section,
    /// Raw bytes still to be passed over before JSON goes on.
    raw: u64,
    skipped: Skipped,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The opening brace.
    Start,
    /// A name, a comma, or the closing brace.
    Between,
    /// The colon behind a name.
    Colon,
    /// The value of a section.
    Value,
    /// More of a value that is passed over.
    Skipped,
    /// An item, a comma, or the closing bracket of a section.
    Items,
    /// Nothing.
    End,
}

impl DumpReader {
    /// A reader that refuses items of more than `item_size_max` bytes.
    #[must_use]
    pub fn new(item_size_max: usize) -> DumpReader {
        DumpReader {
            scanner: Scanner::new(item_size_max),
            place: Place::Start,
            section: Section::Other(String::new()),
            raw: 0,
            skipped: Skipped::new(),
        }
    }

    /// Takes the bytes that arrived next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.scanner.push(bytes);
    }

    /// Room to read bytes into, never empty; [`DumpReader::filled`] must follow.
    pub fn room(&mut self) -> &mut [u8] {
        self.scanner.room()
    }

    /// Says that the first `count` bytes of the room were read into.
    pub fn filled(&mut self, count: usize) {
        self.scanner.filled(count);
    }

    /// Says that nothing more will arrive.
    pub fn end(&mut self) {
        self.scanner.end();
    }

    /// What was passed over so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.scanner.allocated()
    }

    /// The next item.
    ///
    /// # Errors
    ///
    /// [`Error::Split`] where the dump is not what it should be or ends too early; [`Error::Item`] when an item that should announce raw bytes is malformed. None of these can be
    /// read past.
    pub fn step(&mut self) -> Result<DumpStep<'_>> {
        loop {
            if self.raw > 0 {
                self.raw -= self.scanner.raw(self.raw).len() as u64;
                if self.raw > 0 {
                    return self.pause();
                }
            }
            if self.place == Place::Skipped {
                if !self.scanner.skip_value()? {
                    return self.pause();
                }
                self.place = Place::Between;
            }
            let Some(byte) = self.scanner.peek() else {
                return self.pause();
            };
            match (self.place, byte) {
                (Place::Start, b'{') => self.pass(Place::Between),
                (Place::Start, _) => return Err(self.unexpected(byte, "'{'")),
                (Place::Between, b'}') => self.pass(Place::End),
                // Several servers leave commas where they do not belong; they separate nothing here.
                (Place::Between, b',') => self.pass(Place::Between),
                (Place::Between, b'"') => {
                    let Some((offset, name)) = self.scanner.value()? else {
                        return self.pause();
                    };
                    let name = properties::text(name)
                        .ok_or_else(|| wrong(offset, "the name of a section is malformed"))?;
                    self.section = Section::of(&name);
                    self.place = Place::Colon;
                }
                (Place::Between, _) => return Err(self.unexpected(byte, "the name of a section")),
                (Place::Colon, b':') => self.pass(Place::Value),
                (Place::Colon, _) => return Err(self.unexpected(byte, "':'")),
                (Place::Value, b'[') => self.pass(Place::Items),
                (Place::Value, _)
                    if matches!(self.section, Section::BuildVersion | Section::DatabaseRecord) =>
                {
                    // The borrow of a value that is returned would last over the whole loop: look for it first.
                    if !self.scanner.has_value()? {
                        return self.pause();
                    }
                    self.place = Place::Between;
                    return self.item();
                }
                (Place::Value | Place::Skipped, _) => {
                    self.skip_item();
                    self.place = Place::Skipped;
                }
                (Place::Items, b']') => self.pass(Place::Between),
                (Place::Items, b',') => self.pass(Place::Items),
                (Place::Items, _) => {
                    if !self.scanner.has_value()? {
                        return self.pause();
                    }
                    if self.raw_behind()? {
                        continue;
                    }
                    if let Section::Other(_) = self.section {
                        self.skip_item();
                        self.scanner.value()?;
                        continue;
                    }
                    return self.item();
                }
                (Place::End, _) => return Err(self.unexpected(byte, "the end of the dump")),
            }
        }
    }

    /// Nothing more can be found in what arrived.
    fn pause(&self) -> Result<DumpStep<'static>> {
        match (self.scanner.has_ended(), self.place) {
            (false, _) => Ok(DumpStep::NeedMore),
            (true, Place::End) => Ok(DumpStep::End),
            (true, _) => Err(self.scanner.unexpected_end().into()),
        }
    }

    fn pass(&mut self, next: Place) {
        self.scanner.skip_byte();
        self.place = next;
    }

    #[cold]
    fn unexpected(&self, found: u8, expected: &'static str) -> Error {
        SplitError::into(self.scanner.unexpected(found, expected))
    }

    /// Returns the item whose end was found.
    fn item(&mut self) -> Result<DumpStep<'_>> {
        match self.scanner.value()? {
            Some((offset, text)) => Ok(DumpStep::Item { section: &self.section, offset, text }),
            None => Ok(DumpStep::NeedMore),
        }
    }

    fn skip_item(&mut self) {
        *self.skipped.entry(self.section.name().to_owned()).or_default() += 1;
    }

    /// Passes over the item whose end was found, if raw bytes follow it. True: it did.
    fn raw_behind(&mut self) -> Result<bool> {
        let (offset, text) = self.scanner.peek_value();
        let found = match &self.section {
            Section::Documents => attachment(text).transpose(),
            Section::Other(_) => segment(text).transpose(),
            _ => None,
        };
        let Some(found) = found else {
            return Ok(false);
        };
        self.raw = found.map_err(|reason| wrong(offset, reason))?;
        let name = match &self.section {
            Section::Documents => ATTACHMENTS,
            section => section.name(),
        };
        *self.skipped.entry(name.to_owned()).or_default() += 1;
        self.scanner.value()?;
        Ok(true)
    }
}

fn wrong(offset: u64, reason: &str) -> Error {
    Error::Item { what: "item of a dump", offset, reason: reason.to_owned() }
}

/// The size of the attachment that an item of documents announces, if it does.
fn attachment(text: &[u8]) -> Result<Option<u64>, &'static str> {
    // Most documents do not hold the word at all.
    if memchr::memmem::find(text, EXPORT_TYPE.as_bytes()).is_none() {
        return Ok(None);
    }
    let (mut is_export, mut size) = (false, None);
    for property in properties::properties(text) {
        match property? {
            (name, value) if name == "@metadata" => is_export = has_property(value, EXPORT_TYPE)?,
            (name, value) if name == "Size" => size = Some(value),
            _ => {}
        }
    }
    if !is_export {
        return Ok(None);
    }
    size.and_then(number).ok_or("an attachment does not say its Size").map(Some)
}

/// The size of the blob that an item announces, if it does: a segment of a time series.
fn segment(text: &[u8]) -> Result<Option<u64>, &'static str> {
    const BLOB_SIZE: &str = "-blob-size";
    if memchr::memmem::find(text, BLOB_SIZE.as_bytes()).is_none() {
        return Ok(None);
    }
    for property in properties::properties(text) {
        let (name, value) = property?;
        if name.starts_with('@') && name.ends_with(BLOB_SIZE) {
            return number(value).ok_or("the size of a blob is no number").map(Some);
        }
    }
    Ok(None)
}

fn has_property(object: &[u8], wanted: &str) -> Result<bool, &'static str> {
    for property in properties::properties(object) {
        let (name, _): (Cow<'_, str>, _) = property?;
        if name == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8], size: usize) -> (Vec<(String, String)>, Skipped, Option<String>) {
        let mut reader = DumpReader::new(1 << 20);
        let mut pieces = input.chunks(size);
        let mut found = Vec::new();
        let failed = loop {
            match reader.step() {
                Ok(DumpStep::Item { section, text, .. }) => {
                    found.push((section.to_string(), String::from_utf8_lossy(text).into_owned()));
                }
                Ok(DumpStep::NeedMore) => match pieces.next() {
                    Some(piece) => reader.push(piece),
                    None => reader.end(),
                },
                Ok(DumpStep::End) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        (found, reader.skipped().clone(), failed)
    }

    fn check(input: &[u8], expected: &[(&str, &str)], skipped: &[(&str, u64)], fault: Option<&str>) {
        let expected: Vec<_> =
            expected.iter().map(|(section, text)| ((*section).to_owned(), (*text).to_owned())).collect();
        let skipped: Skipped = skipped.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        for size in [1, 3, 10, 64, 1000] {
            let found = read(input, size);
            assert_eq!((&found.0, &found.1, found.2.as_deref()), (&expected, &skipped, fault));
        }
    }

    const DUMP: &[u8] = br#"{"BuildVersion":71028,"DatabaseRecord":{"Settings":[{"a":"b"}]},
        "Docs":[{"Name":"a","@metadata":{"@id":"users/1"}},
          {"@metadata":{"@export-type":"Attachment"},"Hash":"x","Size":5,"Tag":"t"}]},[{,
          {"Text":"\"@export-type\" is a word"}],
        "Docs":[],"Surprise":{"deep":[1,{"b":"]}"}]},"Indexes":[{"Type":"AutoMap","IndexDefinition":{"a":[{"b":1,}]}},{}],
        "TimeSeries":[{"@raven-data":{"DocId":"a"},"@raven-blob-size":3}{{{,{"DocId":"b","Segment":""}],
        "Identities":[{"Key":"users|","Value":"5"}],"CompareExchange":[{"Key":"k","Value":"{\"Object\":1}"}],
        "Tombstones":[{"Key":"users/9","Type":"Document"}]}"#;

    #[test]
    fn sections_in_any_order_with_raw_bytes_between() {
        check(
            DUMP,
            &[
                ("BuildVersion", "71028"),
                ("DatabaseRecord", r#"{"Settings":[{"a":"b"}]}"#),
                ("Docs", r#"{"Name":"a","@metadata":{"@id":"users/1"}}"#),
                ("Docs", r#"{"Text":"\"@export-type\" is a word"}"#),
                ("Indexes", r#"{"Type":"AutoMap","IndexDefinition":{"a":[{"b":1,}]}}"#),
                ("Indexes", "{}"),
                ("Identities", r#"{"Key":"users|","Value":"5"}"#),
                ("CompareExchange", r#"{"Key":"k","Value":"{\"Object\":1}"}"#),
                ("Tombstones", r#"{"Key":"users/9","Type":"Document"}"#),
            ],
            &[("Attachments", 1), ("Surprise", 1), ("TimeSeries", 2)],
            None,
        );
        check(b"{}", &[], &[], None);
    }

    #[test]
    fn every_truncation_is_an_error() {
        for size in 0..DUMP.len() {
            let (_, _, failed) = read(&DUMP[..size], 17);
            assert!(failed.is_some_and(|error| error.contains("ends too early")), "{size}");
        }
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        check(b"[]", &[], &[], Some("expected '{', found '[' at byte 0"));
        check(b"{1:2}", &[], &[], Some("expected the name of a section, found '1' at byte 1"));
        check(b"{\"Docs\" []}", &[], &[], Some("expected ':', found '[' at byte 8"));
        check(b"{\"Docs\":[x]}", &[], &[], Some("expected a value, found 'x' at byte 9"));
        check(b"{} {", &[], &[], Some("expected the end of the dump, found '{' at byte 3"));
        check(
            br#"{"Docs":[{"@metadata":{"@export-type":"Attachment"},"Size":-1}]}"#,
            &[],
            &[],
            Some("item of a dump at byte 9: an attachment does not say its Size"),
        );
    }
}
