//! Telling others what changed, after it is durable and in the order in which it happened.
//!
//! A [`Subscriber`] says which [`Topic`]s it wants; each event goes at most once to each subscriber, into a queue of its own, where its
//! [`Events`] take it. Ten thousand subscribers that wait for other documents cost a publisher nothing: topics are looked up, not tried one
//! by one, and prefixes are looked up once for each length that a watched prefix has.
//!
//! A publisher never waits. A subscriber whose queue is full is cut off: what waited for it is dropped, it hears nothing more, and its
//! [`Events`] say so, because a subscriber that misses events without knowing it is worse off than one that has to begin anew.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::ids;

/// Events that wait for a subscriber at most: half a second of the fastest writes, 128 KiB of memory.
const QUEUE_MAX: usize = 16_384;
/// Events for which an empty queue keeps its memory.
const QUEUE_KEPT: usize = 32;

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
    /// Something happened to an index.
    Index(IndexChange),
    /// Where the database can be reached changed.
    Topology,
    /// Something changed since the subscriber last heard this, so that what it cached may be stale. Follows every change of a document for
    /// those who watch [`Topic::Staleness`], but waits at most once in a queue.
    Staleness,
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

/// What happened to an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexChangeKind {
    /// A batch was indexed.
    BatchCompleted,
    /// It was made.
    Added,
    /// It was deleted.
    Removed,
    /// It took the place of the one that it was built beside.
    SideBySideReplace,
    /// Its lock mode was set.
    LockModeChanged,
    /// Its priority was set.
    PriorityChanged,
}

/// A change of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexChange {
    /// What happened.
    pub kind: IndexChangeKind,
    /// The index.
    pub name: String,
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
    /// All indexes.
    AllIndexes,
    /// One index.
    Index(String),
    /// Where the database can be reached.
    Topology,
    /// That anything changed at all.
    Staleness,
}

impl Topic {
    fn normal(self) -> Topic {
        match self {
            Topic::Document(id) => Topic::Document(ids::lower(&id).into_owned()),
            Topic::Prefix(prefix) => Topic::Prefix(ids::lower(&prefix).into_owned()),
            Topic::Collection(name) => Topic::Collection(ids::lower(&name).into_owned()),
            Topic::Index(name) => Topic::Index(ids::lower(&name).into_owned()),
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
    next_sink: AtomicU64,
    /// The number of the last event; held while an event is told, so that a sink can tell by the number whether it has it already.
    last_event: Mutex<u64>,
}

#[derive(Default)]
struct Topics {
    exact: HashMap<Topic, Sinks>,
    /// By length, then by prefix.
    prefixes: HashMap<usize, HashMap<String, Sinks>>,
}

/// Those who watch one topic, by id: those who begin to watch later mostly came later, and a binary search finds who goes.
#[derive(Default)]
struct Sinks(Vec<Arc<Sink>>);

impl Sinks {
    fn add(&mut self, sink: &Arc<Sink>) {
        if let Err(at) = self.0.binary_search_by_key(&sink.id, |other| other.id) {
            self.0.insert(at, sink.clone());
        }
    }

    /// Whether nobody is left.
    fn remove(&mut self, id: u64) -> bool {
        if let Ok(at) = self.0.binary_search_by_key(&id, |other| other.id) {
            self.0.remove(at);
        }
        self.0.is_empty()
    }
}

/// The queue of one subscriber.
struct Sink {
    id: u64,
    queue: Mutex<Queue>,
    /// Something came into the empty queue.
    came: Notify,
    cut_off: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Arc<Event>>,
    last_event: u64,
    /// An [`Event::Staleness`] is in the queue.
    has_staleness: bool,
    is_cut_off: bool,
}

impl Sink {
    fn push(&self, number: u64, event: &Arc<Event>) {
        let mut queue = self.queue.lock();
        let is_staleness = matches!(**event, Event::Staleness);
        if queue.is_cut_off || queue.last_event == number || is_staleness && queue.has_staleness {
            return;
        }
        if queue.events.len() >= QUEUE_MAX {
            queue.is_cut_off = true;
            queue.events = VecDeque::new();
            drop(queue);
            self.cut_off.notify_one();
            self.came.notify_one();
            return;
        }
        queue.last_event = number;
        queue.has_staleness |= is_staleness;
        queue.events.push_back(event.clone());
        let was_empty = queue.events.len() == 1;
        drop(queue);
        if was_empty {
            self.came.notify_one();
        }
    }
}

/// Somebody who listens; dropping it ends all its watches.
pub struct Subscriber {
    hub: Arc<Hub>,
    sink: Arc<Sink>,
    topics: Vec<Topic>,
}

/// Where a subscriber's events arrive, for one task.
pub struct Events(Arc<Sink>);

/// The subscriber was too slow: events were lost, and no more come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff;

impl Notifications {
    /// A subscriber without topics, and where its events will arrive.
    pub fn subscribe(&self) -> (Subscriber, Events) {
        let sink = Arc::new(Sink {
            id: self.0.next_sink.fetch_add(1, Ordering::Relaxed),
            queue: Mutex::default(),
            came: Notify::new(),
            cut_off: Notify::new(),
        });
        (Subscriber { hub: self.0.clone(), sink: sink.clone(), topics: Vec::new() }, Events(sink))
    }

    /// Whether anybody watches anything.
    ///
    /// To be asked once what is to be told is visible to readers: who begins to watch after that sees it.
    pub fn has_watches(&self) -> bool {
        self.0.watches.load(Ordering::Acquire) > 0
    }

    /// Tells an event to those who watch for it. To be called once what happened is visible to readers.
    pub fn publish(&self, event: Event) {
        if !self.has_watches() {
            return;
        }
        let mut number = self.0.last_event.lock();
        *number += 1;
        let topics = self.0.topics.read();
        let event = Arc::new(event);
        let tell = |sinks: Option<&Sinks>| {
            sinks.into_iter().flat_map(|sinks| &sinks.0).for_each(|sink| sink.push(*number, &event));
        };
        match &*event {
            Event::Document(change) => {
                let id = ids::lower(&change.id);
                tell(topics.exact.get(&Topic::AllDocuments));
                tell(topics.exact.get(&Topic::Document(id.to_string())));
                tell(topics.exact.get(&Topic::Collection(ids::lower(&change.collection).into_owned())));
                for (length, prefixes) in &topics.prefixes {
                    tell(id.get(..*length).and_then(|prefix| prefixes.get(prefix)));
                }
                if let Some(sinks) = topics.exact.get(&Topic::Staleness) {
                    let stale = Arc::new(Event::Staleness);
                    *number += 1;
                    sinks.0.iter().for_each(|sink| sink.push(*number, &stale));
                }
            }
            Event::Operation { id, .. } => {
                tell(topics.exact.get(&Topic::AllOperations));
                tell(topics.exact.get(&Topic::Operation(*id)));
            }
            Event::Index(change) => {
                tell(topics.exact.get(&Topic::AllIndexes));
                tell(topics.exact.get(&Topic::Index(ids::lower(&change.name).into_owned())));
                // A batch is what makes answers of queries new.
                if let Some(sinks) = topics.exact.get(&Topic::Staleness) {
                    let stale = Arc::new(Event::Staleness);
                    *number += 1;
                    sinks.0.iter().for_each(|sink| sink.push(*number, &stale));
                }
            }
            Event::Topology => tell(topics.exact.get(&Topic::Topology)),
            Event::Staleness => tell(topics.exact.get(&Topic::Staleness)),
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
            Topic::Prefix(prefix) => {
                topics.prefixes.entry(prefix.len()).or_default().entry(prefix.clone()).or_default()
            }
            other => topics.exact.entry(other.clone()).or_default(),
        };
        sinks.add(&self.sink);
        self.hub.watches.fetch_add(1, Ordering::Release);
        self.topics.push(topic);
    }

    /// Hears no more of a topic; events that wait already still arrive.
    pub fn unwatch(&mut self, topic: Topic) {
        let topic = topic.normal();
        if let Some(at) = self.topics.iter().position(|watched| *watched == topic) {
            self.topics.swap_remove(at);
            self.remove(&topic);
        }
    }

    /// How many topics are watched.
    pub fn topics(&self) -> usize {
        self.topics.len()
    }

    fn remove(&self, topic: &Topic) {
        let mut topics = self.hub.topics.write();
        match topic {
            Topic::Prefix(prefix) => {
                if let Some(same_length) = topics.prefixes.get_mut(&prefix.len()) {
                    if same_length.get_mut(prefix).is_some_and(|sinks| sinks.remove(self.sink.id)) {
                        same_length.remove(prefix);
                    }
                    if same_length.is_empty() {
                        topics.prefixes.remove(&prefix.len());
                    }
                }
            }
            other => {
                if topics.exact.get_mut(other).is_some_and(|sinks| sinks.remove(self.sink.id)) {
                    topics.exact.remove(other);
                }
            }
        }
        self.hub.watches.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        for topic in std::mem::take(&mut self.topics) {
            self.remove(&topic);
        }
    }
}

impl Events {
    /// Waits until something is there, then moves up to `max` events to the end of `taken`, the oldest first. Dropping the future loses
    /// nothing.
    ///
    /// Errors: the subscriber was cut off.
    pub async fn take(&self, taken: &mut Vec<Arc<Event>>, max: usize) -> Result<(), CutOff> {
        loop {
            if self.try_take(taken, max)? > 0 {
                return Ok(());
            }
            self.0.came.notified().await;
        }
    }

    /// As [`Events::take`] without the wait; how many were there.
    ///
    /// Errors: the subscriber was cut off.
    pub fn try_take(&self, taken: &mut Vec<Arc<Event>>, max: usize) -> Result<usize, CutOff> {
        let mut queue = self.0.queue.lock();
        if queue.is_cut_off {
            return Err(CutOff);
        }
        let count = queue.events.len().min(max);
        let before = taken.len();
        taken.extend(queue.events.drain(..count));
        if taken[before..].iter().any(|event| matches!(**event, Event::Staleness)) {
            queue.has_staleness = false;
        }
        if queue.events.is_empty() {
            if queue.events.capacity() > QUEUE_KEPT {
                queue.events = VecDeque::new();
            }
        } else {
            // A wake is sent only when something comes into an empty queue, and this one was used up.
            self.0.came.notify_one();
        }
        Ok(count)
    }

    /// Waits until the subscriber is cut off, which may never be. For a task that is busy with what it took.
    pub async fn cut_off(&self) {
        loop {
            if self.0.queue.lock().is_cut_off {
                return;
            }
            self.0.cut_off.notified().await;
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

    fn taken(events: &Events) -> Vec<Event> {
        let mut taken = Vec::new();
        events.try_take(&mut taken, usize::MAX).unwrap();
        taken.iter().map(|event| (**event).clone()).collect()
    }

    #[test]
    fn each_hears_once_of_what_it_watches() {
        let notifications = Notifications::default();
        assert!(!notifications.has_watches());
        let (mut one, ones) = notifications.subscribe();
        let (mut two, twos) = notifications.subscribe();
        one.watch(Topic::Document("Users/1".to_owned()));
        one.watch(Topic::Prefix("USERS/".to_owned()));
        one.watch(Topic::Prefix("us".to_owned()));
        one.watch(Topic::Collection("users".to_owned()));
        two.watch(Topic::AllDocuments);
        notifications.publish(change("users/1", "Users"));
        notifications.publish(change("orders/1", "Orders"));
        assert_eq!(taken(&ones), [change("users/1", "Users")]);
        assert_eq!(taken(&twos), [change("users/1", "Users"), change("orders/1", "Orders")]);
        one.unwatch(Topic::Prefix("users/".to_owned()));
        one.unwatch(Topic::Prefix("us".to_owned()));
        one.unwatch(Topic::Collection("Users".to_owned()));
        notifications.publish(change("users/2", "Users"));
        assert_eq!(taken(&ones), []);
        assert_eq!((one.topics(), two.topics()), (1, 1));
        drop(one);
        drop(two);
        assert!(!notifications.has_watches());
        let topics = notifications.0.topics.read();
        assert!(topics.exact.is_empty() && topics.prefixes.is_empty());
    }

    #[test]
    fn prefixes_of_any_length_are_found_and_never_split_a_character() {
        let notifications = Notifications::default();
        let (mut subscriber, events) = notifications.subscribe();
        for prefix in ["", "é", "ab"] {
            subscriber.watch(Topic::Prefix(prefix.to_owned()));
            for id in ["a", "ab", "ÉA", "xé", "日"] {
                notifications.publish(change(id, "C"));
                let expected = id.to_lowercase().starts_with(prefix);
                assert_eq!(!taken(&events).is_empty(), expected, "{prefix:?} {id:?}");
            }
            subscriber.unwatch(Topic::Prefix(prefix.to_owned()));
        }
    }

    #[test]
    fn operations_and_documents_do_not_hide_each_other() {
        let notifications = Notifications::default();
        let (mut subscriber, events) = notifications.subscribe();
        for topic in [Topic::AllOperations, Topic::Operation(1), Topic::AllDocuments, Topic::Topology] {
            subscriber.watch(topic);
        }
        let operation = |id| Event::Operation { id, state: "{}".to_owned() };
        for event in [operation(1), change("a", "b"), Event::Topology, operation(2)] {
            notifications.publish(event.clone());
            assert_eq!(taken(&events), [event]);
        }
        subscriber.unwatch(Topic::AllOperations);
        notifications.publish(operation(2));
        notifications.publish(operation(1));
        assert_eq!(taken(&events), [operation(1)]);
    }

    #[test]
    fn who_does_not_listen_is_cut_off_and_knows_it() {
        let notifications = Notifications::default();
        let (mut slow, events) = notifications.subscribe();
        slow.watch(Topic::AllDocuments);
        let (mut other, others) = notifications.subscribe();
        for _ in 0..QUEUE_MAX {
            notifications.publish(change("a", "b"));
        }
        other.watch(Topic::AllDocuments);
        let mut batch = Vec::new();
        assert_eq!(events.try_take(&mut batch, 1), Ok(1));
        notifications.publish(change("a", "b"));
        assert_eq!(events.try_take(&mut batch, 0), Ok(0), "there was just room");
        notifications.publish(change("a", "b"));
        assert_eq!(events.try_take(&mut batch, 1), Err(CutOff));
        assert_eq!(taken(&others).len(), 2, "others are not disturbed");
    }

    #[test]
    fn staleness_is_told_once_however_much_changes() {
        let notifications = Notifications::default();
        let (mut cache, events) = notifications.subscribe();
        cache.watch(Topic::Staleness);
        for _ in 0..QUEUE_MAX * 2 {
            notifications.publish(change("a", "b"));
        }
        assert_eq!(taken(&events), [Event::Staleness]);
        notifications.publish(change("a", "b"));
        assert_eq!(taken(&events), [Event::Staleness]);
        cache.watch(Topic::Document("a".to_owned()));
        notifications.publish(change("A", "b"));
        assert_eq!(taken(&events), [change("A", "b"), Event::Staleness]);
    }

    #[tokio::test]
    async fn a_waiting_task_is_woken_and_loses_nothing() {
        let notifications = Notifications::default();
        let (mut subscriber, events) = notifications.subscribe();
        subscriber.watch(Topic::AllDocuments);
        let publisher = std::thread::spawn(move || {
            for index in 0..10_000 {
                notifications.publish(change(&index.to_string(), "c"));
                if index % 1000 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let mut all = Vec::new();
        while all.len() < 10_000 {
            // Small batches, so that some of what came is left behind.
            events.take(&mut all, 7).await.unwrap();
        }
        publisher.join().unwrap();
        let ids = all.iter().map(|event| match &**event {
            Event::Document(change) => change.id.parse::<usize>().unwrap(),
            other => panic!("{other:?}"),
        });
        assert!(ids.eq(0..10_000), "in order");
        drop(subscriber);
    }
}
