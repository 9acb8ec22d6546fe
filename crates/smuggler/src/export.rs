//! An export: one state of a database as a dump.

use std::io::Write;
use std::ops::ControlFlow;

use jackdaw_database::clock::append_date;
use jackdaw_database::{Database, Fields, Order, Snapshot, print_document};
use jackdaw_document::Style;

use crate::dump::Section;
use crate::dump::writer::{BUILD_VERSION, DumpCompression, DumpWriter};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::report::ExportReport;

/// Keys that begin so guard documents of cluster-wide transactions here; they mean nothing elsewhere.
const GUARD_PREFIX: &str = "rvn-atomic/";

/// What an export writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// Documents.
    pub documents: bool,
    /// Tombstones.
    pub tombstones: bool,
    /// Definitions of indexes, each an item as dumps have them (`{"Type":..,"IndexDefinition":{..}}`), if they are to be in the dump.
    pub indexes: Option<Vec<Vec<u8>>>,
    /// Identities.
    pub identities: bool,
    /// Compare-exchange values.
    pub compare_exchange: bool,
    /// Only documents and tombstones of these collections; all if there are none.
    pub collections: Vec<String>,
    /// How the dump is compressed.
    pub compression: DumpCompression,
    /// The database record as JSON, if it is to be in the dump.
    pub database_record: Option<Vec<u8>>,
}

impl Default for ExportOptions {
    /// Everything but tombstones, as clients ask for; definitions of indexes are the caller's to give.
    fn default() -> ExportOptions {
        ExportOptions {
            documents: true,
            tombstones: false,
            indexes: None,
            identities: true,
            compare_exchange: true,
            collections: Vec::new(),
            compression: DumpCompression::default(),
            database_record: None,
        }
    }
}

/// Writes a dump of the newest durable state. Blocks the thread; what others write meanwhile is not in it.
///
/// # Errors
///
/// [`Error::Io`] when it cannot be written, [`Error::Cancelled`], and those of reading. What was written by then is no whole dump.
pub fn export(
    database: &Database,
    out: impl Write,
    options: &ExportOptions,
    progress: &Progress,
) -> Result<ExportReport> {
    let snapshot = database.read()?;
    let dump = DumpWriter::new(out, options.compression).map_err(write_error)?;
    let report = ExportReport { last_etag: snapshot.last_etag()?, ..ExportReport::default() };
    let mut export =
        Export { snapshot: &snapshot, dump, options, progress, report, text: Vec::new(), failed: None };
    export.value(&Section::BuildVersion, BUILD_VERSION.to_string().as_bytes())?;
    if let Some(record) = &options.database_record {
        export.value(&Section::DatabaseRecord, record)?;
    }
    if options.documents {
        export.documents()?;
    }
    if options.tombstones {
        export.tombstones()?;
    }
    if let Some(indexes) = &options.indexes {
        export.indexes(indexes)?;
    }
    if options.identities {
        export.identities()?;
    }
    if options.compare_exchange {
        export.compare_exchange()?;
    }
    export.dump.finish().and_then(|mut out| out.flush()).map_err(write_error)?;
    Ok(export.report)
}

fn write_error(source: std::io::Error) -> Error {
    Error::Io { action: "the dump cannot be written", source }
}

struct Export<'a, W: Write> {
    snapshot: &'a Snapshot,
    dump: DumpWriter<W>,
    options: &'a ExportOptions,
    progress: &'a Progress,
    report: ExportReport,
    text: Vec<u8>,
    /// What ended a walk over the database.
    failed: Option<Error>,
}

impl<W: Write> Export<'_, W> {
    fn value(&mut self, section: &Section, json: &[u8]) -> Result<()> {
        self.dump.value(section, json).map_err(write_error)
    }

    fn begin(&mut self, section: &Section) -> Result<()> {
        self.dump.begin(section).map_err(write_error)
    }

    /// Writes the text as an item. Says whether to go on.
    fn item(&mut self) -> ControlFlow<()> {
        if let Err(error) = self.dump.item(&self.text) {
            self.failed = Some(write_error(error));
        } else if self.progress.is_cancelled() {
            self.failed = Some(Error::Cancelled);
        }
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn walked(&mut self, outcome: jackdaw_database::Result<()>) -> Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(outcome?),
        }
    }

    fn documents(&mut self) -> Result<()> {
        self.begin(&Section::Documents)?;
        let snapshot = self.snapshot;
        if self.options.collections.is_empty() {
            let outcome =
                snapshot.documents_by_etag(0, Order::Ascending, |document| Ok(self.document(&document)));
            return self.walked(outcome);
        }
        for collection in &self.options.collections {
            let outcome = snapshot.documents_of_collection(collection, 0, Order::Ascending, |document| {
                Ok(self.document(&document))
            });
            self.walked(outcome)?;
        }
        Ok(())
    }

    fn document(&mut self, document: &jackdaw_database::StoredDocument<'_>) -> ControlFlow<()> {
        self.text.clear();
        print_document(document, Fields::All, &mut self.text);
        self.report.documents += 1;
        self.report.text_bytes += self.text.len() as u64;
        self.progress.add_documents(1);
        self.item()
    }

    fn tombstones(&mut self) -> Result<()> {
        self.begin(&Section::Tombstones)?;
        let snapshot = self.snapshot;
        let outcome = snapshot.tombstones_by_etag(0, |tombstone| {
            let collection = snapshot.collection_of_tombstone(&tombstone);
            let wanted = &self.options.collections;
            if !wanted.is_empty() && !wanted.iter().any(|name| name.eq_ignore_ascii_case(&collection)) {
                return Ok(ControlFlow::Continue(()));
            }
            let mut date = Vec::new();
            append_date(tombstone.last_modified, &mut date);
            let json = serde_json::json!({
                "Key": tombstone.id,
                "Type": "Document",
                "Collection": &*collection,
                "Flags": if tombstone.flags.is_none() { "None".to_owned() } else { tombstone.flags.to_string() },
                "ChangeVector": tombstone.change_vector.to_string(),
                "DeletedEtag": tombstone.etag,
                "Etag": tombstone.etag,
                "LastModified": String::from_utf8_lossy(&date),
            });
            self.text = json.to_string().into_bytes();
            self.report.tombstones += 1;
            Ok(self.item())
        });
        self.walked(outcome)
    }

    fn indexes(&mut self, indexes: &[Vec<u8>]) -> Result<()> {
        self.begin(&Section::Indexes)?;
        for index in indexes {
            self.text.clone_from(index);
            self.report.indexes += 1;
            if self.item().is_break() {
                break;
            }
        }
        self.walked(Ok(()))
    }

    fn identities(&mut self) -> Result<()> {
        self.begin(&Section::Identities)?;
        for (name, value) in self.snapshot.identities()? {
            // Official servers write the number as text.
            let json = serde_json::json!({ "Key": name, "Value": value.to_string() });
            self.text = json.to_string().into_bytes();
            self.report.identities += 1;
            if self.item().is_break() {
                break;
            }
        }
        self.walked(Ok(()))
    }

    fn compare_exchange(&mut self) -> Result<()> {
        self.begin(&Section::CompareExchange)?;
        let snapshot = self.snapshot;
        let outcome = snapshot.compare_exchange_by_prefix("", |value| {
            if value.key.starts_with(GUARD_PREFIX) {
                return Ok(ControlFlow::Continue(()));
            }
            // The value is a text that holds JSON.
            let json = serde_json::json!({ "Key": value.key, "Value": value.value.to_json(Style::Compact) });
            self.text = json.to_string().into_bytes();
            self.report.compare_exchange += 1;
            Ok(self.item())
        });
        self.walked(outcome)
    }
}
