//! One client on the changes socket.
//!
//! - A command is confirmed once it is in force, with the next frame.
//! - What waits when a frame is written goes into that frame, events before confirmations: once an unwatch is confirmed, nothing more
//!   comes of what it named.
//! - A client that does not take its events in time is cut off, because it must not miss any without knowing it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jackdaw_database::notifications::{Event, Events, Subscriber};

use crate::databases::LoadedDatabase;
use crate::state::ServerState;
use crate::websocket::{Code, End, Slot, Socket, Upgrade, ended};
use crate::wire::changes::{Action, CAPABILITIES, Command, HEARTBEAT, confirmation, error, message};

/// Bytes after which a frame goes out. Also what each socket's write buffer grows to, for good.
const FRAME_SIZE: usize = 8 << 10;
/// Events taken at a time.
const EVENTS_MAX: usize = 64;
/// Commands taken at a time.
const COMMANDS_MAX: usize = 64;
/// Topics of one client at most.
const TOPICS_MAX: usize = 65_536;

/// Serves a client until it goes, or the database or the server does. Holds the database, so that it is not closed for being idle.
pub(super) async fn run(
    upgrade: Upgrade,
    state: Arc<ServerState>,
    database: Arc<LoadedDatabase>,
    url: String,
) {
    let Some(mut socket) = upgrade.socket().await else { return };
    let _counted = Counted::new(&state);
    let (subscriber, events) = database.notifications().subscribe();
    let connection = socket.connection().clone();
    let end = {
        let mut client = Client {
            socket: &mut socket,
            subscriber,
            events: &events,
            slot: state.heartbeat().slot(),
            state: &state,
            database: &database,
            url: &url,
            frame: String::new(),
            sent: true,
        };
        tokio::select! {
            biased;
            end = ended(&connection) => end,
            () = database.closing().cancelled() => {
                End::Saying(Code::Away, Cow::Borrowed("the database is closing"))
            }
            () = events.cut_off() => {
                state.metrics().sockets_cut_off.fetch_add(1, Ordering::Relaxed);
                let name = &database.record().database_name;
                tracing::warn!(database = %name, peer = %connection.peer(), "a client takes its changes too slowly and is cut off");
                End::Saying(Code::Again, Cow::Borrowed("changes were not taken in time"))
            }
            end = client.converse() => end,
        }
    };
    // Closing a database waits for whoever holds it, and a goodbye can take a while.
    drop(database);
    socket.end(end).await;
}

/// Counts an open socket.
struct Counted<'s>(&'s ServerState);

impl Counted<'_> {
    fn new(state: &ServerState) -> Counted<'_> {
        state.metrics().sockets_open.fetch_add(1, Ordering::Relaxed);
        Counted(state)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.metrics().sockets_open.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Client<'s> {
    socket: &'s mut Socket,
    subscriber: Subscriber,
    events: &'s Events,
    slot: Slot,
    state: &'s ServerState,
    database: &'s LoadedDatabase,
    url: &'s str,
    /// Messages for the next frame.
    frame: String,
    /// Something was sent since the last heartbeat.
    sent: bool,
}

impl Client<'_> {
    async fn converse(&mut self) -> End {
        if let Err(end) = self.socket.send(CAPABILITIES.to_owned()).await {
            return end;
        }
        loop {
            if let Err(end) = self.take_turn().await {
                return end;
            }
        }
    }

    /// Waits until there is something to say, and says all there is.
    async fn take_turn(&mut self) -> Result<(), End> {
        let mut taken = Vec::new();
        let first = tokio::select! {
            text = self.socket.text() => Some(text?),
            // A client that was cut off ends elsewhere.
            Ok(()) = self.events.take(&mut taken, EVENTS_MAX) => None,
            () = self.state.heartbeat().wait(self.slot) => {
                if !std::mem::take(&mut self.sent) {
                    self.socket.send(HEARTBEAT.to_owned()).await?;
                }
                return Ok(());
            }
        };
        let mut confirmations = Vec::new();
        let mut outcome = Ok(());
        let mut next = first;
        while let Some(text) = next.take() {
            match self.obey(&text) {
                Ok(command_id) => confirmations.push(command_id),
                Err(end) => {
                    outcome = Err(end);
                    break;
                }
            }
            if confirmations.len() < COMMANDS_MAX {
                next = self.socket.text_if_there()?;
            }
        }
        // A confirmation comes after all that was heard before it: what a watch ended, and what happened before a client asked.
        let max = if confirmations.is_empty() { EVENTS_MAX } else { usize::MAX };
        let _ = self.events.try_take(&mut taken, max);
        self.tell(taken).await?;
        for command_id in confirmations {
            self.add(&confirmation(command_id)).await?;
        }
        if let Err(End::Saying(_, reason)) = &outcome {
            self.add(&error(reason)).await?;
        }
        self.flush().await?;
        outcome
    }

    /// Puts a command into force. Its id.
    fn obey(&mut self, text: &str) -> Result<i64, End> {
        let command: Command = serde_json::from_str(text)
            .map_err(|error| End::Saying(Code::Invalid, format!("this is no command: {error}").into()))?;
        let refuse = |reason: String| End::Saying(Code::Policy, reason.into());
        let action = command.action().map_err(refuse)?;
        match action {
            Action::Watch(_) if self.subscriber.topics() >= TOPICS_MAX => {
                return Err(refuse(format!("a client can watch {TOPICS_MAX} things at most")));
            }
            Action::Watch(topic) => self.subscriber.watch(topic),
            Action::Unwatch(topic) => self.subscriber.unwatch(topic),
            Action::Nothing => {}
        }
        Ok(command.command_id)
    }

    async fn tell(&mut self, events: Vec<Arc<Event>>) -> Result<(), End> {
        if events.is_empty() {
            return Ok(());
        }
        let record = self.database.record();
        for event in events {
            self.add(&message(&event, self.url, &record.database_name)).await?;
        }
        Ok(())
    }

    /// Adds a message to the frame, sending what is full.
    async fn add(&mut self, message: &str) -> Result<(), End> {
        if self.frame.len() + message.len() > FRAME_SIZE {
            self.flush().await?;
        }
        self.frame.push(if self.frame.is_empty() { '[' } else { ',' });
        self.frame.push_str(message);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), End> {
        if self.frame.is_empty() {
            return Ok(());
        }
        self.frame.push(']');
        self.sent = true;
        self.socket.send(std::mem::take(&mut self.frame)).await
    }
}
