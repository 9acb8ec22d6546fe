//! Bulk insert: one request whose body is an array of commands, sent for as long as the application likes.
//!
//! The body is taken piece by piece, in constant memory: pieces become batches, each one job of the database, and when too many batches wait for the
//! disk the body is not read on, which stops the client. What is durable when it ends early stays: whole batches, in the order of the stream.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Method, StatusCode};
use jackdaw_smuggler::{BulkInsert, Existing, StoredBatch, SubmittedBatch};
use serde_json::{Value, json};

use crate::databases::blocking;
use crate::error::{ErrorKind, Result, WireError};
use crate::operations::RunningOperation;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;

/// Bytes of documents that may wait for the disk, of one bulk insert.
const WAITING_SIZE_MAX: usize = 8 << 20;
/// Bytes of text that are gathered before they are parsed.
const UNREAD_SIZE: usize = 128 << 10;
/// After so long without more, what came is stored although it fills no batch.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::POST, "/bulk_insert", bulk_insert);
}

async fn bulk_insert(mut request: DatabaseRequest) -> Result<Response> {
    let id = request.query().number("id")?;
    let operations = request.database.operations().clone();
    let id = id.unwrap_or_else(|| operations.next_id());
    let existing = match request.query().flag("skipOverwriteIfUnchanged")? {
        Some(true) => Existing::SkipUnchanged,
        _ => Existing::Overwrite,
    };
    let operation = operations.begin(id, "BulkInsert", "Bulk Insert", true)?;
    let mut progress = Progress::default();
    match run(&mut request, existing, &operation, &mut progress).await {
        Ok(()) => {
            operation.complete(progress.result());
            Ok(Response::empty(StatusCode::CREATED))
        }
        Err(error) => {
            operation.fail(&error);
            Err(error)
        }
    }
}

/// What came while the body was waited for.
enum Came {
    Piece(Option<Bytes>),
    Pause,
}

async fn run(
    request: &mut DatabaseRequest,
    existing: Existing,
    operation: &RunningOperation,
    progress: &mut Progress,
) -> Result<()> {
    let mut waiting = Waiting::default();
    let outcome = read(request, existing, operation, progress, &mut waiting).await;
    // Who is told that it failed finds all that it will ever have stored.
    let settled = waiting.settle(operation, progress).await;
    outcome.and(settled)
}

async fn read(
    request: &mut DatabaseRequest,
    existing: Existing,
    operation: &RunningOperation,
    progress: &mut Progress,
    waiting: &mut Waiting,
) -> Result<()> {
    let mut insert = BulkInsert::new(&request.database, existing);
    let closing = request.database.closing().clone();
    let stopping = request.state.stopping().clone();
    loop {
        let unstored = insert.unread() > 0 || insert.has_batch();
        let came = tokio::select! {
            biased;
            () = operation.cancel().cancelled() => return Err(killed()),
            () = closing.cancelled() => {
                return Err(ErrorKind::BulkInsertAborted.error("the database is being closed"));
            }
            () = stopping.cancelled() => {
                return Err(ErrorKind::BulkInsertAborted.error("the server is stopping"));
            }
            piece = request.body().piece() => Came::Piece(piece?),
            () = tokio::time::sleep(PAUSE), if unstored => Came::Pause,
        };
        let (mut is_end, is_pause) = match came {
            Came::Piece(Some(piece)) => {
                insert.push(&piece);
                // Some clients close the array and never end the body: what may be the closing is looked at at once.
                if insert.unread() < UNREAD_SIZE && !piece.ends_with(b"]") {
                    continue;
                }
                (false, false)
            }
            Came::Piece(None) => {
                insert.end();
                (true, false)
            }
            Came::Pause => (false, true),
        };
        loop {
            let (parsed, is_full) = blocking(move || {
                let is_full = insert.parse().map_err(refused)?;
                Ok((insert, is_full))
            })
            .await?;
            insert = parsed;
            is_end |= insert.is_over();
            if insert.has_batch() && (is_full || is_end || is_pause) {
                let submitted = insert.submit();
                waiting.make_room(submitted.size, operation, progress).await?;
                waiting.add(submitted);
            }
            if !is_full {
                break;
            }
        }
        if is_end {
            return Ok(());
        }
        waiting.settle_done(operation, progress)?;
    }
}

/// A stream that is no bulk insert is a failure of the whole, with the status that clients expect then.
fn refused(error: jackdaw_smuggler::Error) -> WireError {
    let error = WireError::from(error);
    match error.kind() {
        ErrorKind::InvalidData => ErrorKind::BulkInsertAborted.error(error.message().to_owned()),
        _ => error,
    }
}

fn killed() -> WireError {
    ErrorKind::Cancelled.error("The operation was canceled.")
}

/// Batches that are not durable yet.
#[derive(Default)]
struct Waiting {
    batches: VecDeque<SubmittedBatch>,
    size: usize,
}

impl Waiting {
    fn add(&mut self, batch: SubmittedBatch) {
        self.size += batch.size;
        self.batches.push_back(batch);
    }

    /// Waits until another batch may wait beside these.
    async fn make_room(
        &mut self,
        size: usize,
        operation: &RunningOperation,
        progress: &mut Progress,
    ) -> Result<()> {
        while self.size + size > WAITING_SIZE_MAX && !self.batches.is_empty() {
            self.settle_one(operation, progress).await?;
        }
        Ok(())
    }

    /// Waits for all of them, also when one failed.
    async fn settle(&mut self, operation: &RunningOperation, progress: &mut Progress) -> Result<()> {
        let mut outcome = Ok(());
        while !self.batches.is_empty() {
            outcome = outcome.and(self.settle_one(operation, progress).await);
        }
        outcome
    }

    async fn settle_one(&mut self, operation: &RunningOperation, progress: &mut Progress) -> Result<()> {
        let Some(SubmittedBatch { pending, size }) = self.batches.pop_front() else { return Ok(()) };
        self.size -= size;
        progress.add(pending.await?, operation);
        Ok(())
    }

    /// Counts what is durable by now.
    fn settle_done(&mut self, operation: &RunningOperation, progress: &mut Progress) -> Result<()> {
        while let Some(batch) = self.batches.front_mut() {
            let Some(stored) = (&mut batch.pending).now_or_never() else { break };
            self.size -= batch.size;
            self.batches.pop_front();
            progress.add(stored?, operation);
        }
        Ok(())
    }
}

/// What is durable.
#[derive(Default)]
struct Progress {
    documents: u64,
    batches: u64,
    last_id: Option<String>,
}

impl Progress {
    fn add(&mut self, stored: StoredBatch, operation: &RunningOperation) {
        self.documents += stored.documents + stored.unchanged;
        self.batches += 1;
        self.last_id = Some(stored.last_id);
        operation.progress(self.to_wire());
    }

    fn to_wire(&self) -> Value {
        json!({
            "$type": "Raven.Client.Documents.Operations.BulkInsertProgress, Raven.Client",
            "Processed": self.documents,
            "Total": self.documents,
            "BatchCount": self.batches,
            "LastProcessedId": self.last_id,
            "DocumentsProcessed": self.documents,
            "AttachmentsProcessed": 0,
            "CountersProcessed": 0,
            "TimeSeriesProcessed": 0,
        })
    }

    fn result(&self) -> Value {
        json!({
            "$type": "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client",
            "Total": self.documents,
            "DocumentsProcessed": self.documents,
            "AttachmentsProcessed": 0,
            "CountersProcessed": 0,
            "TimeSeriesProcessed": 0,
            "Query": null,
            "Details": [],
            "Message": format!("Processed {} items.", self.documents),
        })
    }
}
