//! The stream of a bulk insert: one JSON array of commands, sent while the application runs, with raw bytes behind the commands that announce attachments.
//!
//! The reader holds one command at a time and parses none of the documents: it finds their text, and whoever stores them parses it.

use std::borrow::Cow;

use jackdaw_database::{Database, Pending};

use crate::error::{Error, Result};
use crate::import::options::Existing;
use crate::import::prepare::{Batch, Preparer};
use crate::import::store::{self, StoredBatch};
use crate::json::properties;
use crate::json::splitter::{Form, Splitter, Step};
use crate::report::Place;

/// Bytes of one command at most: a document as large as a document may be, and what stands around it.
pub const COMMAND_SIZE_MAX: usize = (512 << 20) + (64 << 10);

/// Bytes of text after which a batch is full: some hundred documents, parsed in about a millisecond.
const BATCH_TEXT_SIZE: u64 = 256 << 10;

/// A command of a bulk insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// Store a document.
    Put {
        /// Its id as the client gave it.
        id: Cow<'a, str>,
        /// Its JSON text.
        document: &'a [u8],
        /// Where in the stream the command begins.
        offset: u64,
    },
    /// The client is alive and has nothing to say.
    HeartBeat,
}

/// What [`BulkInsertReader::next`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<'a> {
    /// A command.
    Command(Command<'a>),
    /// More must arrive first.
    NeedMore,
    /// The stream is over.
    End,
}

/// Cuts the stream of a bulk insert into commands, as its bytes arrive. The stream may end without the closing bracket: that is how some
/// clients leave one that they abort or never filled.
pub struct BulkInsertReader {
    splitter: Splitter,
}

impl Default for BulkInsertReader {
    fn default() -> BulkInsertReader {
        BulkInsertReader::new(COMMAND_SIZE_MAX)
    }
}

impl BulkInsertReader {
    /// A reader that refuses commands of more than `command_size_max` bytes.
    #[must_use]
    pub fn new(command_size_max: usize) -> BulkInsertReader {
        BulkInsertReader { splitter: Splitter::new(Form::OpenArray, command_size_max) }
    }

    /// Takes the bytes that arrived next, decompressed.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// Says that nothing more will arrive.
    pub fn end(&mut self) {
        self.splitter.end();
    }

    /// Where in the stream the next unused byte lies.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.splitter.offset()
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.splitter.allocated()
    }

    /// The next command.
    ///
    /// # Errors
    ///
    /// [`Error::Split`] when the stream is no array of values or ends inside one; [`Error::Item`] when a command is malformed, of unknown type, or lacks what it needs;
    /// [`Error::NotSupported`] for counters, time series and attachments. None of these can be read past.
    #[expect(clippy::should_implement_trait, reason = "what it returns borrows from the reader")]
    pub fn next(&mut self) -> Result<Next<'_>> {
        match self.splitter.step()? {
            Step::Value { offset, text } => command(offset, text).map(Next::Command),
            // None is ever announced: an attachment ends the stream with an error.
            Step::Raw(_) | Step::NeedMore => Ok(Next::NeedMore),
            Step::End => Ok(Next::End),
        }
    }
}

fn command(offset: u64, text: &[u8]) -> Result<Command<'_>> {
    let wrong = |reason: String| Error::Item { what: "bulk insert command", offset, reason };
    let (mut id, mut kind, mut document) = (None, None, None);
    for property in properties::properties(text) {
        let (name, value) = property.map_err(|reason| wrong(reason.to_owned()))?;
        match &*name {
            "Id" => id = Some(value),
            "Type" => kind = Some(value),
            "Document" => document = Some(value),
            _ => {}
        }
    }
    let kind = kind.and_then(properties::text).ok_or_else(|| wrong("it has no Type that is text".into()))?;
    match &*kind {
        "PUT" => {}
        "HeartBeat" => return Ok(Command::HeartBeat),
        "Counters" => return Err(Error::NotSupported { what: "counters", offset }),
        "TimeSeries" | "TimeSeriesBulkInsert" | "TimeSeriesWithIncrements" => {
            return Err(Error::NotSupported { what: "time series", offset });
        }
        "AttachmentPUT" => return Err(Error::NotSupported { what: "attachments", offset }),
        other => return Err(wrong(format!("its Type {other:?} is unknown"))),
    }
    let id = id.and_then(properties::text).ok_or_else(|| wrong("it has no Id that is text".into()))?;
    let document = document
        .filter(|document| document.starts_with(b"{"))
        .ok_or_else(|| wrong(format!("the document {id:?} is missing or no object")))?;
    Ok(Command::Put { id, document, offset })
}

/// A bulk insert under way: takes the bytes of its stream, and makes batches of documents of them.
///
/// It does no waiting of its own, so one thread can serve many; [`BulkInsert::parse`] takes as long as parsing takes.
pub struct BulkInsert {
    reader: BulkInsertReader,
    preparer: Preparer,
    database: Database,
    existing: Existing,
    batch: Batch,
    is_over: bool,
    /// Bytes pushed since [`BulkInsert::parse`] last looked at all of them.
    unread: usize,
}

/// A batch on its way into the database: a future of what was stored.
pub struct SubmittedBatch {
    /// What is awaited.
    pub pending: Pending<StoredBatch>,
    /// Bytes of its documents, which memory holds until it is durable.
    pub size: usize,
}

impl BulkInsert {
    /// A bulk insert into a database. [`Existing::SkipUnchanged`] is what clients call `skipOverwriteIfUnchanged`.
    #[must_use]
    pub fn new(database: &Database, existing: Existing) -> BulkInsert {
        BulkInsert {
            reader: BulkInsertReader::default(),
            preparer: Preparer::for_bulk_insert(database),
            database: database.clone(),
            existing,
            batch: Batch::default(),
            is_over: false,
            unread: 0,
        }
    }

    /// Takes the bytes that arrived next, decompressed.
    pub fn push(&mut self, bytes: &[u8]) {
        self.unread += bytes.len();
        self.reader.push(bytes);
    }

    /// Says that nothing more will arrive.
    pub fn end(&mut self) {
        self.reader.end();
    }

    /// Bytes that arrived and were not looked at yet.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// Whether the last command was seen: the array was closed, or nothing more will arrive.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether there is a batch to submit.
    #[must_use]
    pub fn has_batch(&self) -> bool {
        !self.batch.documents.is_empty()
    }

    /// Parses what has arrived, until the batch is full or more must arrive. True: it is full.
    ///
    /// # Errors
    ///
    /// As [`BulkInsertReader::next`]; [`Error::Item`] for a document that cannot be stored. The batch under way is then not to be submitted.
    pub fn parse(&mut self) -> Result<bool> {
        while self.batch.text_size < BATCH_TEXT_SIZE {
            match self.reader.next()? {
                Next::Command(Command::Put { id, document, offset }) => {
                    self.preparer.json_with_id(Place::Byte(offset), &id, document, &mut self.batch);
                    if let Some(refusal) = self.batch.refused.pop() {
                        let what = "document of a bulk insert";
                        return Err(Error::Item {
                            what,
                            offset,
                            reason: format!("{id}: {}", refusal.reason),
                        });
                    }
                }
                Next::Command(Command::HeartBeat) => {}
                Next::NeedMore => {
                    self.unread = 0;
                    return Ok(false);
                }
                Next::End => {
                    (self.unread, self.is_over) = (0, true);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Hands the batch over to the database. What is awaited afterwards is one storage transaction at most.
    pub fn submit(&mut self) -> SubmittedBatch {
        let batch = std::mem::take(&mut self.batch);
        let (size, existing) = (batch.size, self.existing);
        let pending =
            self.database.submit(move |transaction| store::store(transaction, &batch, existing, ..));
        SubmittedBatch { pending, size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands as text, and the error that ends them, however the input is cut.
    fn check(input: &str, expected: &[&str], fault: Option<&str>) {
        for size in [1, 2, 7, 64, 10_000] {
            let mut reader = BulkInsertReader::default();
            let mut pieces = input.as_bytes().chunks(size);
            let mut found = Vec::new();
            let failed = loop {
                match reader.next() {
                    Ok(Next::Command(Command::Put { id, document, .. })) => {
                        found.push(format!("{id} {}", String::from_utf8_lossy(document)));
                    }
                    Ok(Next::Command(Command::HeartBeat)) => found.push("beat".into()),
                    Ok(Next::NeedMore) => match pieces.next() {
                        Some(piece) => reader.push(piece),
                        None => reader.end(),
                    },
                    Ok(Next::End) => break None,
                    Err(error) => break Some(error.to_string()),
                }
            };
            assert_eq!(
                (found, failed.as_deref()),
                (expected.iter().map(|s| (*s).to_owned()).collect(), fault)
            );
        }
    }

    #[test]
    fn commands_of_the_clients() {
        check(
            r#"[{"Id":"users/1-A","Type":"PUT","Document":{"Name":"a]}","@metadata":{"@collection":"Users"}}},{"Type":"HeartBeat"},
               {"Document":{}, "Type" : "PUT", "Id":"users\/2-A"}]"#,
            &[r#"users/1-A {"Name":"a]}","@metadata":{"@collection":"Users"}}"#, "beat", "users/2-A {}"],
            None,
        );
    }

    #[test]
    fn streams_may_end_without_the_bracket() {
        check("", &[], None);
        check("[", &[], None);
        check(r#"[{"Id":"a","Type":"PUT","Document":{}}"#, &["a {}"], None);
        check(r#"[{"Id":"a","Type":"PUT","Document":{}},"#, &["a {}"], None);
        check(
            r#"[{"Id":"a","Type":"PUT","Document":{}},{"Id""#,
            &["a {}"],
            Some("the input ends too early at byte 44"),
        );
    }

    #[test]
    fn what_cannot_be_stored_yet_is_named() {
        let put = r#"[{"Id":"a","Type":"PUT","Document":{}},"#;
        for (kind, what) in [
            ("Counters", "counters"),
            ("TimeSeriesBulkInsert", "time series"),
            ("AttachmentPUT", "attachments"),
        ] {
            check(
                &format!(r#"{put}{{"Id":"a","Type":"{kind}"}}]"#),
                &["a {}"],
                Some(&format!("{what} are not supported yet (byte 39)")),
            );
        }
    }

    #[test]
    fn malformed_commands_are_refused() {
        let at = |reason: &str| format!("bulk insert command at byte 1: {reason}");
        let check = |command: &str, reason: &str| check(&format!("[{command}]"), &[], Some(&at(reason)));
        check("1", "an object is expected");
        check("{}", "it has no Type that is text");
        check(r#"{"Type":1}"#, "it has no Type that is text");
        check(r#"{"Type":"DELETE","Id":"a"}"#, r#"its Type "DELETE" is unknown"#);
        check(r#"{"Type":"PUT","Document":{}}"#, "it has no Id that is text");
        check(r#"{"Type":"PUT","Id":null,"Document":{}}"#, "it has no Id that is text");
        check(r#"{"Type":"PUT","Id":"a"}"#, r#"the document "a" is missing or no object"#);
        check(r#"{"Type":"PUT","Id":"a","Document":[]}"#, r#"the document "a" is missing or no object"#);
        check(r#"{"Type":"PUT" "Id":"a"}"#, "a ',' or '}' is expected behind a value");
    }
}
