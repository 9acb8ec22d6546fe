//! Export and import of a database: dumps as the clients' smuggler sends and takes them, and files of JSON lines, JSON or CSV.
//!
//! Both run on a thread that may block, connected with the request by a few pieces of queue, so that memory stays constant and a slow side slows the other
//! down. Both are operations under the client's id, and end with their request.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt, stream};
use http::{Method, header};
use jackdaw_smuggler::{
    CsvOptions, DumpOptions, Existing, Expansion, ExportOptions, FieldType, Format, ImportOptions, Imported,
    Progress, decompressed, export, import,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::body::RequestBody;
use crate::databases::{LoadedDatabase, blocking};
use crate::dumps::{TakenIndexes, analyzers_of_record, index_items};
use crate::error::{ErrorKind, Result, WireError};
use crate::operations::RunningOperation;
use crate::query_string::Query;
use crate::request::DatabaseRequest;
use crate::response::{ClientGone, PieceWriter, Response};
use crate::routes::Routes;
use crate::wire::smuggler::{self, ItemTypes};

/// Pieces of an upload that wait to be read.
const QUEUE: usize = 8;
/// Bytes of the options of an import.
const OPTIONS_SIZE_MAX: u64 = 1 << 20;
/// How often an operation tells how far it is.
const TELL_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::POST, "/smuggler/export", export_dump);
    routes.database(Method::POST, "/smuggler/import", import_dump);
    routes.database(Method::POST, "/smuggler/import/csv", import_csv);
    routes.database(Method::POST, "/import", import_file);
}

// ---- export ----

async fn export_dump(mut request: DatabaseRequest) -> Result<Response> {
    let body = request.bytes().await?;
    let asked: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    smuggler::refuse_unsupported(&asked)?;
    let types = ItemTypes::of(&asked)?;
    let record = request.database.record();
    let mut options = ExportOptions {
        documents: types.documents,
        tombstones: types.tombstones,
        identities: types.identities,
        compare_exchange: types.compare_exchange,
        collections: smuggler::texts(&asked, "Collections")?,
        ..ExportOptions::default()
    };
    let remove_analyzers = smuggler::removes_analyzers(&asked);
    let operation = begin(&request, "DatabaseExport", "Export of the database")?;
    let name = match asked.get("FileName").and_then(Value::as_str) {
        Some(name) => format!("{name}.ravendbdump"),
        None => format!("Dump of {}.ravendbdump", record.database_name),
    };
    let (sender, response) = Response::stream_file(&name);
    let database = request.database.clone();
    tokio::spawn(async move {
        let stop = Stop::default();
        let (source, progress) = (database.clone(), stop.progress.clone());
        let work = blocking(move || {
            let started = Instant::now();
            let mut pieces = PieceWriter::new(sender);
            options.database_record = types.database_record.then(|| {
                source.record().to_dump(analyzers_of_record(source.indexes())).to_string().into_bytes()
            });
            options.indexes = types.indexes.then(|| index_items(source.indexes(), remove_analyzers));
            let report = export(&source, &mut pieces, &options, &progress)?;
            // A client that reads slowly holds no more than the queue; one that went away is an error of writing.
            let gone = |ClientGone| ErrorKind::BrokenBody.error("the client went away");
            Ok((pieces.end().map_err(gone)?, smuggler::export_result(&report, started.elapsed())))
        });
        match watched(work, &stop, &operation, &database).await {
            Ok((sender, result)) => {
                // Before the answer ends: the client asks for the state as soon as it has the file.
                operation.complete(result);
                sender.finish();
            }
            Err(error) => operation.fail(&error),
        }
    });
    Ok(response)
}

// ---- import ----

/// A dump, as the clients send it: a multipart body of options and the file.
async fn import_dump(request: DatabaseRequest) -> Result<Response> {
    let operation = begin(&request, "DatabaseImport", "Import of a dump")?;
    run(request, operation, |request| async move {
        let database = request.database.clone();
        let (asked, file) = parts(request).await?;
        smuggler::refuse_unsupported(&asked)?;
        let types = ItemTypes::of(&asked)?;
        let dump = DumpOptions {
            database_record: types.database_record,
            documents: types.documents,
            indexes: types.indexes,
            identities: types.identities,
            compare_exchange: types.compare_exchange,
            tombstones: types.tombstones,
        };
        let only_collections = smuggler::texts(&asked, "Collections")?;
        let options = ImportOptions { only_collections, ..import_options() };
        let remove_analyzers = smuggler::removes_analyzers(&asked);
        Ok(Task { database, format: Format::Dump(dump), options, file, remove_analyzers })
    })
    .await
}

/// A CSV file, as the studio sends it.
async fn import_csv(request: DatabaseRequest) -> Result<Response> {
    let operation = begin(&request, "CollectionImportFromCsv", "Import of CSV")?;
    run(request, operation, |request| async move {
        let database = request.database.clone();
        let collection = request.query().get_filled("collection")?.map(|name| name.into_owned());
        let (_, file) = parts(request).await?;
        let options = ImportOptions { collection, ..import_options() };
        let format = Format::Csv(CsvOptions::default());
        Ok(Task { database, format, options, file, remove_analyzers: false })
    })
    .await
}

/// A file as the body, described by the query string; see `docs/operations/import.md`.
async fn import_file(request: DatabaseRequest) -> Result<Response> {
    let (format, options) = asked_by_query(request.query())?;
    let operation = begin(&request, "DatabaseImport", "Import of a file")?;
    run(request, operation, |request| async move {
        let database = request.database.clone();
        let file: Pieces = Box::pin(pieces_of(request.request.into_body()));
        Ok(Task { database, format, options, file, remove_analyzers: false })
    })
    .await
}

/// Compressed uploads come from anyone who may write: a bound on what they become keeps one request from filling the disk with blanks.
fn import_options() -> ImportOptions {
    ImportOptions {
        expansion: Expansion { size_max: 1 << 40, ..Expansion::default() },
        ..ImportOptions::default()
    }
}

fn asked_by_query(query: Query<'_>) -> Result<(Format, ImportOptions)> {
    let text = |name| Ok::<_, WireError>(query.get_filled(name)?.map(|text| text.into_owned()));
    let all = |name| query.all(name).map(|text| Ok(text?.into_owned())).collect::<Result<Vec<String>>>();
    let byte = |name, default: u8| match text(name)?.as_deref() {
        None => Ok(default),
        Some("tab") => Ok(b'\t'),
        Some(one) if one.len() == 1 && one.is_ascii() => Ok(one.as_bytes()[0]),
        Some(_) => Err(ErrorKind::Argument.error(format!("'{name}' must be one ASCII character, or 'tab'"))),
    };
    let format = match &*query.require("format")? {
        "lines" => Format::Lines,
        "json" => Format::Values,
        "dump" => Format::Dump(DumpOptions::default()),
        "csv" => Format::Csv(CsvOptions {
            delimiter: byte("delimiter", b',')?,
            quote: byte("quote", b'"')?,
            nulls: all("null")?,
            types: if query.flag("text")? == Some(true) { FieldType::Text } else { FieldType::Inferred },
            nested: query.flag("flat")? != Some(true),
            ..CsvOptions::default()
        }),
        other => {
            let message = format!("the format '{other}' is not known; lines, json, csv and dump are");
            return Err(ErrorKind::Argument.error(message));
        }
    };
    let existing = match text("existing")?.as_deref() {
        None | Some("overwrite") => Existing::Overwrite,
        Some("skip-unchanged") => Existing::SkipUnchanged,
        Some("keep") => Existing::Keep,
        Some(other) => {
            let message = format!("'{other}' is not known; overwrite, skip-unchanged and keep are");
            return Err(ErrorKind::Argument.error(message));
        }
    };
    let options = ImportOptions {
        collection: text("collection")?,
        id_property: text("id")?,
        id_prefix: text("idPrefix")?,
        existing,
        only_collections: all("only")?,
        refused_max: query.number("refusedMax")?.unwrap_or(u64::MAX),
        ..import_options()
    };
    Ok((format, options))
}

type Pieces = std::pin::Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// What is to be imported, into what, and how.
struct Task {
    database: Arc<LoadedDatabase>,
    format: Format,
    options: ImportOptions,
    file: Pieces,
    /// Whether indexes that come with it lose their analyzers.
    remove_analyzers: bool,
}

/// Runs an import to its end, and answers with what it did.
async fn run<F: Future<Output = Result<Task>>>(
    request: DatabaseRequest,
    operation: RunningOperation,
    task: impl FnOnce(DatabaseRequest) -> F,
) -> Result<Response> {
    let stop = Stop::default();
    let database = request.database.clone();
    let work = async {
        let task = task(request).await?;
        take_in(task, &stop).await
    };
    match watched(work, &stop, &operation, &database).await {
        Ok(result) => {
            let response = Response::of(&result)?;
            operation.complete(result);
            Ok(response)
        }
        Err(error) => {
            operation.fail(&error);
            Err(error)
        }
    }
}

async fn take_in(task: Task, stop: &Stop) -> Result<Value> {
    let Task { database, format, options, mut file, remove_analyzers } = task;
    let (sender, receiver) = mpsc::channel(QUEUE);
    let reader = PieceReader { receiver, piece: Bytes::new(), is_over: false };
    let started = Instant::now();
    let progress = stop.progress.clone();
    let work = blocking(move || {
        let indexes = TakenIndexes { indexes: database.indexes().clone(), remove_analyzers };
        Ok(import(&database, Some(&indexes), reader, &format, &options, &progress))
    });
    let feed = async move {
        loop {
            let next = tokio::select! {
                next = file.try_next() => next,
                // The import finds that nothing comes any more.
                () = stop.token.cancelled() => break,
            };
            let piece = match next {
                Ok(Some(piece)) if piece.is_empty() => continue,
                Ok(piece) => Ok(piece),
                Err(error) => Err(error),
            };
            let is_last = !matches!(piece, Ok(Some(_)));
            // If nobody listens, the import has failed by itself, and what it says counts.
            if sender.send(piece).await.is_err() || is_last {
                break;
            }
        }
        drop(sender);
    };
    let (imported, ()) = tokio::join!(work, feed);
    let Imported { report, failure } = imported?;
    match failure {
        Some(error) => Err(WireError::from(error).with("Imported", report.documents)),
        None => Ok(smuggler::import_result(&report, started.elapsed())),
    }
}

/// Reads what arrives on another thread.
struct PieceReader {
    /// Pieces, and none at the end. Without that the upload was broken off, and what came is not all.
    receiver: mpsc::Receiver<Result<Option<Bytes>>>,
    piece: Bytes,
    is_over: bool,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.is_over {
            match self.receiver.blocking_recv() {
                Some(Ok(Some(piece))) => self.piece = piece,
                Some(Ok(None)) => self.is_over = true,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the upload was broken off"));
                }
            }
        }
        let piece = self.piece.split_to(buffer.len().min(self.piece.len()));
        buffer[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

fn pieces_of(body: RequestBody) -> impl Stream<Item = Result<Bytes>> + Send {
    stream::try_unfold(body, |mut body| async move { Ok(body.piece().await?.map(|piece| (piece, body))) })
}

/// The options and the file of a multipart body. The options come first, by whatever name; a body of one part is the file alone.
async fn parts(request: DatabaseRequest) -> Result<(Value, Pieces)> {
    let malformed = |error: multer::Error| {
        // The body's own error, if that is what it was.
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<WireError>());
        match source {
            Some(source) => source.kind().error(source.message().to_owned()),
            None => ErrorKind::InvalidData.error(format!("the multipart body is malformed: {error}")),
        }
    };
    let boundary = request.header(header::CONTENT_TYPE).and_then(smuggler::boundary);
    let boundary = boundary
        .ok_or_else(|| ErrorKind::InvalidData.error("a multipart body is expected, with a boundary"))?;
    let mut multipart = multer::Multipart::new(pieces_of(request.request.into_body()), boundary);
    let mut options = Value::Null;
    loop {
        let part = multipart.next_field().await.map_err(malformed)?;
        let Some(part) = part else {
            return Err(ErrorKind::InvalidData.error("the multipart body has no file"));
        };
        if part.name() != Some("importOptions") {
            // Holds the multipart body, which the file is read from.
            let file = stream::try_unfold((part, multipart), move |(mut part, multipart)| async move {
                let piece = part.chunk().await.map_err(malformed)?;
                Ok(piece.map(|piece| (piece, (part, multipart))))
            });
            return Ok((options, Box::pin(file)));
        }
        let bytes = part.bytes().await.map_err(malformed)?;
        // Java compresses the parts of a body one by one.
        let mut text = Vec::new();
        let read = decompressed(io::Cursor::new(bytes), Expansion::default(), &Default::default())?
            .take(OPTIONS_SIZE_MAX)
            .read_to_end(&mut text);
        read.map_err(|error| ErrorKind::InvalidData.error(format!("the import options: {error}")))?;
        options = serde_json::from_slice(&text)?;
    }
}

// ---- operations ----

fn begin(request: &DatabaseRequest, kind: &'static str, description: &str) -> Result<RunningOperation> {
    let operations = request.database.operations();
    let id = request.query().number("operationId")?.unwrap_or_else(|| operations.next_id());
    operations.begin(id, kind, description, true)
}

/// Waits for work, tells its operation how far it is, and stops it when the operation is killed or the database closes.
async fn watched<T>(
    work: impl Future<Output = Result<T>>,
    stop: &Stop,
    operation: &RunningOperation,
    database: &LoadedDatabase,
) -> Result<T> {
    let mut work = std::pin::pin!(work);
    let mut last = None;
    loop {
        let is_stopped = stop.token.is_cancelled();
        tokio::select! {
            outcome = &mut work => {
                // How the work notices that it was stopped says nothing to the client.
                return if is_stopped { outcome.map_err(|_| killed()) } else { outcome };
            }
            () = operation.cancel().cancelled(), if !is_stopped => stop.now(),
            () = database.closing().cancelled(), if !is_stopped => stop.now(),
            () = tokio::time::sleep(TELL_EVERY) => {}
        }
        let progress = &stop.progress;
        let now = (progress.read_bytes(), progress.documents(), progress.refused());
        if last.replace(now) != Some(now) {
            operation.progress(smuggler::progress(progress));
        }
    }
}

fn killed() -> WireError {
    ErrorKind::Cancelled.error("The operation was canceled.")
}

/// How work is stopped: the threads look at its progress, tasks wait for the token.
#[derive(Clone, Default)]
struct Stop {
    progress: Progress,
    token: CancellationToken,
}

impl Stop {
    fn now(&self) {
        self.progress.cancel();
        self.token.cancel();
    }
}
