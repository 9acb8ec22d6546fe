//! Keys of entries that were asked for before.
//!
//! What an entry stores is read from blocks on disk, which takes a microsecond: most of the time of a query whose page is scattered over an index. Most entries
//! store nothing but their key. The keys last read are kept, at places that their entries' numbers determine, so that there is nothing to keep in order.

use parking_lot::Mutex;
use tantivy::DocId;

/// Parts with a lock each, at most.
const SHARDS_MAX: usize = 64;
/// Places in a part: some 4 MB of keys of usual length at most for a segment.
const SHARD_PLACES_MAX: usize = 1024;
/// Longer keys are not kept.
const KEY_BYTES_MAX: usize = 64;

/// Keys of entries of one segment that store nothing else.
pub(crate) struct Keys {
    shards: Vec<Mutex<Shard>>,
    places: usize,
}

/// Empty until its first key.
type Shard = Vec<Option<(DocId, Box<str>)>>;

impl Keys {
    /// For a segment of so many entries.
    pub(crate) fn new(entries: DocId) -> Keys {
        let entries = entries as usize;
        let shards = entries.clamp(1, SHARDS_MAX);
        let places = entries.div_ceil(shards).clamp(1, SHARD_PLACES_MAX);
        Keys { shards: (0..shards).map(|_| Mutex::default()).collect(), places }
    }

    /// The shard of an entry, and its place there.
    fn at(&self, doc: DocId) -> (&Mutex<Shard>, usize) {
        let (doc, shards) = (doc as usize, self.shards.len());
        (&self.shards[doc % shards], doc / shards % self.places)
    }

    /// The key of an entry that stores nothing else, when it is known.
    pub(crate) fn get(&self, doc: DocId) -> Option<String> {
        let (shard, place) = self.at(doc);
        match shard.lock().get(place) {
            Some(Some((known, key))) if *known == doc => Some(String::from(&**key)),
            _ => None,
        }
    }

    /// Keeps the key of an entry that stores nothing else.
    pub(crate) fn put(&self, doc: DocId, key: &str) {
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        let kept = Some((doc, Box::from(key)));
        let (shard, place) = self.at(doc);
        let mut shard = shard.lock();
        if shard.is_empty() {
            shard.resize_with(self.places, || None);
        }
        // What stood there is freed without the lock.
        let before = std::mem::replace(&mut shard[place], kept);
        drop(shard);
        drop(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_the_entrys_own() {
        let size = (SHARDS_MAX * SHARD_PLACES_MAX * 2) as DocId;
        for entries in [1, 63, 65, 1000, size] {
            let keys = Keys::new(entries);
            let key = |doc: DocId| format!("things/{doc}");
            assert_eq!(keys.get(entries - 1), None);
            (0..entries).for_each(|doc| keys.put(doc, &key(doc)));
            let known = (0..entries)
                .filter(|&doc| keys.get(doc).inspect(|found| assert_eq!(*found, key(doc))).is_some());
            assert_eq!(known.count(), (entries as usize).min(SHARDS_MAX * SHARD_PLACES_MAX));
        }
        let keys = Keys::new(3);
        keys.put(2, &"x".repeat(KEY_BYTES_MAX + 1));
        assert_eq!(keys.get(2), None);
    }
}
