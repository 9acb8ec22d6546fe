//! Telling others what changed, after it is durable and in the order in which it happened.
//!
//! A [`Subscriber`] says which [`Topic`]s it wants; each event goes at most once to each subscriber. Ten thousand subscribers that wait for
//! other documents cost a publisher nothing: topics are looked up, not tried one by one (prefixes aside).
//! A subscriber that does not take its events in time is cut off, not waited for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::sync::mpsc;

use crate::ids;

/// Events that wait for a subscriber at most.
const QUEUE_MAX: usize = 16_384;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A document changed.
    Document(DocumentChange),
    /// The state of an operation changed.
    Operation {
        /// The operation.
        id: i64,
        /// Its state, as JSON text.
        state: String,
    },
}

/// What happened to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was stored.
    Put,
    /// It was deleted.
    Delete,
}

/// A change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The document.
    pub id: String,
    /// Its collection.
    pub collection: Arc<str>,
    /// Its change vector, or that of the deletion.
    pub change_vector: String,
}

/// What a subscriber wants to hear of. Names are matched in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// All documents.
    AllDocuments,
    /// The document of an id.
    Document(String),
    /// Documents whose ids begin so.
    Prefix(String),
    /// The documents of a collection.
    Collection(String),
    /// All operations.
    AllOperations,
    /// One operation.
    Operation(i64),
}

impl Topic {
    fn normal(self) -> Topic {
        match self {
            Topic::Document(id) => Topic::Document(ids::lower(&id).into_owned()),
            Topic::Prefix(prefix) => Topic::Prefix(ids::lower(&prefix).into_owned()),
            Topic::Collection(name) => Topic::Collection(ids::lower(&name).into_owned()),
            other => other,
        }
    }
}

/// Who is subscribed to what.
#[derive(Default, Clone)]
pub struct Notifications(Arc<Hub>);

#[derive(Default)]
struct Hub {
    topics: RwLock<Topics>,
    /// So that nobody looks when nobody listens.
    watches: AtomicUsize,
    next: AtomicU64,
}

#[derive(Default)]
struct Topics {
    exact: HashMap<Topic, Vec<Arc<Sink>>>,
    prefixes: HashMap<String, Vec<Arc<Sink>>>,
}

struct Sink {
    id: u64,
    events: mpsc::Sender<Arc<Event>>,
    cut_off: AtomicBool,
}

/// Somebody who listens; dropping it ends all its watches.
pub struct Subscriber {
    hub: Arc<Hub>,
    sink: Arc<Sink>,
    topics: Vec<Topic>,
}

/// Where a subscriber's events arrive. It ends when the subscriber is dropped or was cut off.
pub type Events = mpsc::Receiver<Arc<Event>>;

impl Notifications {
    /// A subscriber without topics, and where its events will arrive.
    pub fn subscribe(&self) -> (Subscriber, Events) {
        let (events, receiver) = mpsc::channel(QUEUE_MAX);
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let sink = Arc::new(Sink { id, events, cut_off: AtomicBool::new(false) });
        (Subscriber { hub: self.0.clone(), sink, topics: Vec::new() }, receiver)
    }

    /// Whether anybody watches anything.
    pub fn has_watches(&self) -> bool {
        self.0.watches.load(Ordering::Relaxed) > 0
    }

    /// Tells an event to those who watch for it.
    pub fn publish(&self, event: Event) {
        if !self.has_watches() {
            return;
        }
        let event = Arc::new(event);
        let topics = self.0.topics.read();
        let mut told: Vec<u64> = Vec::new();
        let mut tell = |sinks: Option<&Vec<Arc<Sink>>>| {
            for sink in sinks.into_iter().flatten() {
                if !told.contains(&sink.id) {
                    told.push(sink.id);
                    if sink.events.try_send(event.clone()).is_err() {
                        sink.cut_off.store(true, Ordering::Release);
                    }
                }
            }
        };
        match &*event {
            Event::Document(change) => {
                let id = ids::lower(&change.id);
                tell(topics.exact.get(&Topic::AllDocuments));
                tell(topics.exact.get(&Topic::Document(id.to_string())));
                tell(topics.exact.get(&Topic::Collection(ids::lower(&change.collection).into_owned())));
                for (_, sinks) in topics.prefixes.iter().filter(|(prefix, _)| id.starts_with(prefix.as_str()))
                {
                    tell(Some(sinks));
                }
            }
            Event::Operation { id, .. } => {
                tell(topics.exact.get(&Topic::AllOperations));
                tell(topics.exact.get(&Topic::Operation(*id)));
            }
        }
    }
}

impl Subscriber {
    /// Hears of a topic from now on. Once is enough.
    pub fn watch(&mut self, topic: Topic) {
        let topic = topic.normal();
        if self.topics.contains(&topic) {
            return;
        }
        let mut topics = self.hub.topics.write();
        let sinks = match &topic {
            Topic::Prefix(prefix) => topics.prefixes.entry(prefix.clone()).or_default(),
            other => topics.exact.entry(other.clone()).or_default(),
        };
        sinks.push(self.sink.clone());
        self.hub.watches.fetch_add(1, Ordering::Relaxed);
        self.topics.push(topic);
    }

    /// Hears no more of a topic.
    pub fn unwatch(&mut self, topic: Topic) {
        let topic = topic.normal();
        if let Some(at) = self.topics.iter().position(|watched| *watched == topic) {
            self.topics.swap_remove(at);
            self.remove(&topic);
        }
    }

    /// Whether events were lost because they were not taken in time.
    pub fn is_cut_off(&self) -> bool {
        self.sink.cut_off.load(Ordering::Acquire)
    }

    fn remove(&self, topic: &Topic) {
        let mut topics = self.hub.topics.write();
        let id = self.sink.id;
        match topic {
            Topic::Prefix(prefix) => {
                if let Some(sinks) = topics.prefixes.get_mut(prefix) {
                    sinks.retain(|sink| sink.id != id);
                    if sinks.is_empty() {
                        topics.prefixes.remove(prefix);
                    }
                }
            }
            other => {
                if let Some(sinks) = topics.exact.get_mut(other) {
                    sinks.retain(|sink| sink.id != id);
                    if sinks.is_empty() {
                        topics.exact.remove(other);
                    }
                }
            }
        }
        self.hub.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        for topic in std::mem::take(&mut self.topics) {
            self.remove(&topic);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn change(id: &str, collection: &str) -> Event {
        let collection = Arc::from(collection);
        let (kind, change_vector) = (ChangeKind::Put, "A:1-x".to_owned());
        Event::Document(DocumentChange { kind, id: id.to_owned(), collection, change_vector })
    }

    #[test]
    fn each_hears_once_of_what_it_watches() {
        let notifications = Notifications::default();
        assert!(!notifications.has_watches());
        let (mut one, mut ones) = notifications.subscribe();
        let (mut two, mut twos) = notifications.subscribe();
        one.watch(Topic::Document("Users/1".to_owned()));
        one.watch(Topic::Prefix("USERS/".to_owned()));
        one.watch(Topic::Collection("users".to_owned()));
        two.watch(Topic::AllDocuments);
        notifications.publish(change("users/1", "Users"));
        notifications.publish(change("orders/1", "Orders"));
        assert_eq!(*ones.try_recv().unwrap(), change("users/1", "Users"));
        assert!(ones.try_recv().is_err());
        assert_eq!(*twos.try_recv().unwrap(), change("users/1", "Users"));
        assert_eq!(*twos.try_recv().unwrap(), change("orders/1", "Orders"));
        one.unwatch(Topic::Prefix("users/".to_owned()));
        one.unwatch(Topic::Collection("Users".to_owned()));
        notifications.publish(change("users/2", "Users"));
        assert!(ones.try_recv().is_err());
        drop(one);
        drop(two);
        assert!(!notifications.has_watches());
    }

    #[test]
    fn who_does_not_listen_is_cut_off() {
        let notifications = Notifications::default();
        let (mut slow, events) = notifications.subscribe();
        slow.watch(Topic::AllDocuments);
        for _ in 0..QUEUE_MAX {
            notifications.publish(change("a", "b"));
        }
        assert!(!slow.is_cut_off());
        notifications.publish(change("a", "b"));
        assert!(slow.is_cut_off());
        drop(events);
    }
}
