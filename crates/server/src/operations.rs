//! Operations: work that goes on after its request was answered, or that others may watch and stop.
//!
//! A registry of its own belongs to each database, and one to the server. Ids count from 1 in each and mean nothing after a restart. Clients
//! poll an operation's state, listen for it on the changes socket, and may kill it. What has ended is kept for a while, because the
//! client asks for the result afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jackdaw_database::clock;
use jackdaw_database::notifications::{Event, Notifications};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::error::{ErrorKind, Result, WireError};

/// How long the state of an operation that ended can be asked for.
const KEPT_FOR: Duration = Duration::from_secs(15 * 60);
/// How many that ended are kept at most.
const KEPT_MAX: usize = 1000;

/// The operations of one database, or of the server.
#[derive(Default)]
pub(crate) struct Operations {
    last_id: AtomicI64,
    list: Mutex<BTreeMap<i64, Arc<Operation>>>,
    /// Ids that were given out and killed before their operation began.
    killed_ahead: Mutex<BTreeSet<i64>>,
    /// Where each state that an operation comes to is told.
    notifications: Option<Notifications>,
}

struct Operation {
    id: i64,
    /// What kind of task, as the reference names it: `BulkInsert`, `DatabaseExport`.
    kind: &'static str,
    description: String,
    is_killable: bool,
    cancel: CancellationToken,
    /// When, in the ticks of [`clock`].
    begun: i64,
    progress: Mutex<Progress>,
}

struct Progress {
    status: Status,
    progress: Value,
    result: Value,
    ended: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
    Faulted,
    Canceled,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::InProgress => "InProgress",
            Status::Completed => "Completed",
            Status::Faulted => "Faulted",
            Status::Canceled => "Canceled",
        }
    }
}

impl Operation {
    fn state(&self) -> Value {
        let progress = self.progress.lock();
        json!({
            "$type": "Raven.Client.Documents.Operations.OperationState, Raven.Client",
            "Progress": progress.progress,
            "Status": progress.status.name(),
            "Result": progress.result,
        })
    }

    fn description(&self) -> Value {
        let progress = self.progress.lock();
        json!({
            "Id": self.id,
            "Killable": self.is_killable && progress.status == Status::InProgress,
            "Description": {
                "TaskType": self.kind,
                "Description": self.description,
                "StartTime": clock::date_text(self.begun),
            },
            "State": { "Status": progress.status.name(), "Progress": progress.progress, "Result": progress.result },
        })
    }
}

impl Operations {
    /// Operations that tell their states to those who watch them.
    pub(crate) fn of_database(notifications: Notifications) -> Operations {
        Operations { notifications: Some(notifications), ..Operations::default() }
    }

    /// An id that no operation has; the client will begin one under it.
    pub(crate) fn next_id(&self) -> i64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins an operation under an id from [`Operations::next_id`], or one that the client chose. `kind` is the reference's name of the
    /// task; `description` is for people.
    ///
    /// Errors: the id belongs to an operation that is going on.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: i64,
        kind: &'static str,
        description: impl Into<String>,
        is_killable: bool,
    ) -> Result<RunningOperation> {
        let operation = Arc::new(Operation {
            id,
            kind,
            description: description.into(),
            is_killable,
            cancel: CancellationToken::new(),
            begun: clock::now_ticks(),
            progress: Mutex::new(Progress {
                status: Status::InProgress,
                progress: Value::Null,
                result: Value::Null,
                ended: None,
            }),
        });
        let mut list = self.list.lock();
        forget_old(&mut list);
        if list.get(&id).is_some_and(|other| other.progress.lock().status == Status::InProgress) {
            return Err(ErrorKind::InvalidOperation.error(format!("operation {id} is going on already")));
        }
        // An id of the client's own must not be given out again.
        self.last_id.fetch_max(id, Ordering::Relaxed);
        if self.killed_ahead.lock().remove(&id) {
            operation.cancel.cancel();
        }
        list.insert(id, operation.clone());
        drop(list);
        Ok(RunningOperation { operations: self.clone(), operation, is_over: false })
    }

    /// The state, as `GET /operations/state` answers; `None` when there is no such operation.
    pub(crate) fn state(&self, id: i64) -> Option<Value> {
        let operation = self.list.lock().get(&id).cloned();
        operation.map(|operation| operation.state())
    }

    /// All operations, as `GET /operations` answers them.
    pub(crate) fn describe_all(&self) -> Value {
        let operations: Vec<Arc<Operation>> = self.list.lock().values().cloned().collect();
        json!({ "Results": operations.iter().map(|operation| operation.description()).collect::<Vec<_>>() })
    }

    /// One operation, as the list answers it.
    pub(crate) fn describe(&self, id: i64) -> Option<Value> {
        let operation = self.list.lock().get(&id).cloned();
        operation.map(|operation| operation.description())
    }

    /// How many are going on.
    pub(crate) fn running(&self) -> usize {
        self.list.lock().values().filter(|other| other.progress.lock().status == Status::InProgress).count()
    }

    /// Asks an operation to stop; it does when it next looks. One that has ended stays as it is.
    ///
    /// Errors: there is none with this id, or it cannot be stopped.
    pub(crate) fn kill(&self, id: i64) -> Result<()> {
        let list = self.list.lock();
        let operation = list.get(&id).cloned();
        if operation.is_none() && (1..=self.last_id.load(Ordering::Relaxed)).contains(&id) {
            // Its request is on the way, or it ended long ago, which does no harm.
            let mut killed_ahead = self.killed_ahead.lock();
            killed_ahead.insert(id);
            if killed_ahead.len() > KEPT_MAX {
                killed_ahead.pop_first();
            }
            return Ok(());
        }
        drop(list);
        let operation = operation
            .ok_or_else(|| ErrorKind::UnknownArgument.error(format!("Operation {id} was not registered")))?;
        if !operation.is_killable {
            return Err(ErrorKind::InvalidOperation.error(format!("operation {id} cannot be killed")));
        }
        operation.cancel.cancel();
        Ok(())
    }

    /// Asks all to stop, because what they work on goes away.
    pub(crate) fn kill_all(&self) {
        self.list.lock().values().for_each(|operation| operation.cancel.cancel());
    }

    fn tell(&self, operation: &Operation) {
        if let Some(notifications) = &self.notifications
            && notifications.has_watches()
        {
            notifications
                .publish(Event::Operation { id: operation.id, state: operation.state().to_string() });
        }
    }
}

fn forget_old(list: &mut BTreeMap<i64, Arc<Operation>>) {
    let now = Instant::now();
    list.retain(|_, operation| {
        operation.progress.lock().ended.is_none_or(|ended| now.duration_since(ended) < KEPT_FOR)
    });
    let mut too_many = list.len().saturating_sub(KEPT_MAX);
    list.retain(|_, operation| {
        let goes = too_many > 0 && operation.progress.lock().ended.is_some();
        too_many -= usize::from(goes);
        !goes
    });
}

/// An operation that is going on, for whoever does its work. Dropped without an end, it has failed.
pub(crate) struct RunningOperation {
    operations: Arc<Operations>,
    operation: Arc<Operation>,
    is_over: bool,
}

impl RunningOperation {
    /// Becomes cancelled when the operation is killed; to be looked at between steps, or awaited.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.operation.cancel
    }

    /// An error when the operation was killed.
    #[cfg(test)]
    pub(crate) fn check(&self) -> Result<()> {
        if self.operation.cancel.is_cancelled() {
            return Err(ErrorKind::Cancelled.error("The operation was canceled."));
        }
        Ok(())
    }

    /// Tells how far it is; the shape depends on the kind of operation.
    pub(crate) fn progress(&self, progress: Value) {
        self.operation.progress.lock().progress = progress;
        self.operations.tell(&self.operation);
    }

    /// It is done; the result's shape depends on the kind of operation.
    pub(crate) fn complete(self, result: Value) {
        self.end(Status::Completed, result);
    }

    /// It failed; a killed one was cancelled instead.
    pub(crate) fn fail(self, error: &WireError) {
        let status = match self.operation.cancel.is_cancelled() {
            true => Status::Canceled,
            false => Status::Faulted,
        };
        self.end(status, exception(error));
    }

    fn end(mut self, status: Status, result: Value) {
        self.is_over = true;
        self.set_end(status, result);
    }

    fn set_end(&self, status: Status, result: Value) {
        let mut progress = self.operation.progress.lock();
        progress.status = status;
        progress.result = result;
        progress.ended = Some(Instant::now());
        drop(progress);
        self.operations.tell(&self.operation);
    }
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        if !self.is_over {
            let error = match self.operation.cancel.is_cancelled() {
                true => ErrorKind::Cancelled.error("The operation was canceled."),
                false => ErrorKind::Internal.error("the operation ended before it was done"),
            };
            let status = match error.kind() {
                ErrorKind::Cancelled => Status::Canceled,
                _ => Status::Faulted,
            };
            self.set_end(status, exception(&error));
        }
    }
}

/// An error as the result of an operation; clients build an exception from it as from an answer's body.
fn exception(error: &WireError) -> Value {
    let mut result = Map::new();
    result.insert(
        "$type".to_owned(),
        "Raven.Client.Documents.Operations.OperationExceptionResult, Raven.Client".into(),
    );
    result.insert("Type".to_owned(), error.kind().type_name().into());
    result.insert("Message".to_owned(), error.message().into());
    result.insert("Error".to_owned(), error.full_text().into());
    result.insert("StatusCode".to_owned(), error.kind().status().as_u16().into());
    Value::Object(result)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    use jackdaw_database::notifications::Topic;

    fn operations() -> Arc<Operations> {
        Arc::default()
    }

    #[test]
    fn a_state_follows_its_operation() {
        let notifications = Notifications::default();
        let (mut subscriber, events) = notifications.subscribe();
        subscriber.watch(Topic::AllOperations);
        let operations = Arc::new(Operations::of_database(notifications));
        let id = operations.next_id();
        assert_eq!((id, operations.state(id)), (1, None));
        let running = operations.begin(id, "BulkInsert", "Bulk insert", true).expect("new");
        running.progress(json!({ "Total": 1 }));
        assert_eq!(operations.state(id).expect("running")["Status"], "InProgress");
        assert_eq!(operations.running(), 1);
        running.complete(json!({ "Total": 2 }));
        let state = operations.state(id).expect("kept");
        assert_eq!((&state["Status"], &state["Result"]["Total"]), (&json!("Completed"), &json!(2)));
        let told = || {
            let mut taken = Vec::new();
            events.try_take(&mut taken, 1).expect("not cut off");
            match taken.first().map(|event| &**event) {
                Some(Event::Operation { id: 1, state }) => {
                    serde_json::from_str::<Value>(state).expect("JSON")
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told()["Progress"]["Total"], 1);
        assert_eq!(told(), state);
        assert_eq!(operations.running(), 0);
    }

    #[test]
    fn a_killed_operation_is_cancelled_and_an_unknown_one_an_error() {
        let operations = operations();
        assert_eq!(operations.kill(7).expect_err("unknown").kind(), ErrorKind::UnknownArgument);
        let running = operations.begin(7, "BulkInsert", "", true).expect("new");
        assert!(running.check().is_ok());
        operations.kill(7).expect("killable");
        let error = running.check().expect_err("killed");
        running.fail(&error);
        let state = operations.state(7).expect("kept");
        assert_eq!(state["Status"], "Canceled");
        assert_eq!(state["Result"]["Type"], "System.OperationCanceledException");
        assert_eq!(operations.next_id(), 8, "an id that a client chose is not given out again");
    }

    #[test]
    fn an_operation_that_is_dropped_has_failed() {
        let operations = operations();
        drop(operations.begin(1, "BulkInsert", "", true).expect("new"));
        assert_eq!(operations.state(1).expect("kept")["Status"], "Faulted");
    }

    #[test]
    fn an_id_is_of_one_operation_at_a_time() {
        let operations = operations();
        let first = operations.begin(1, "BulkInsert", "", true).expect("new");
        assert!(operations.begin(1, "BulkInsert", "", true).is_err());
        first.complete(Value::Null);
        assert!(operations.begin(1, "BulkInsert", "", true).is_ok());
    }

    #[test]
    fn what_ended_is_kept_up_to_a_limit() {
        let operations = operations();
        for id in 0..=KEPT_MAX as i64 + 10 {
            operations.begin(id, "BulkInsert", "", true).expect("new").complete(Value::Null);
        }
        assert_eq!(operations.list.lock().len(), KEPT_MAX + 1);
        assert!(operations.state(0).is_none() && operations.state(KEPT_MAX as i64).is_some());
    }
}
