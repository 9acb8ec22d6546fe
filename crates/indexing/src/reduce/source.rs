//! Which results a document has: its record in the tree of sources, and what changes between it and what the maps made now.
//!
//! ```text
//! | entry | hash, 8 bytes | key's length | key (as stored) |   ... once for each result
//! ```

use std::collections::HashMap;

use super::batch::Mapped;
use super::bytes::{Reader, put_number, put_slice};

/// A result that a document has, as its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Had<'a> {
    /// Its place among the key's results.
    pub(super) entry: u64,
    /// Of its pack.
    pub(super) hash: u64,
    /// As it is stored.
    pub(super) key: &'a [u8],
}

impl Had<'_> {
    pub(super) fn append_to(&self, record: &mut Vec<u8>) {
        put_number(record, self.entry);
        record.extend(self.hash.to_le_bytes());
        put_slice(record, self.key);
    }
}

/// Reads a record; `None` when it is damaged.
pub(super) fn read(record: &[u8]) -> Option<Vec<Had<'_>>> {
    let mut reader = Reader(record);
    let mut had = Vec::new();
    while !reader.is_empty() {
        had.push(Had { entry: reader.number()?, hash: reader.u64()?, key: reader.slice()? });
    }
    Some(had)
}

/// What becomes of a result that was mapped now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is there already, as this entry.
    Same(u64),
    /// It takes the place of this entry, of the same key.
    Instead(u64),
    /// It is new.
    New,
}

/// Below so many pairs, comparing all with all is faster than a map.
const PAIRS_MAX: usize = 256;

/// Finds a place for each result among those that the document had; `keys` gives the stored key of each key number. Returns the places, in the
/// order of `mapped`, and leaves in `had` those that are no more.
pub(super) fn places<'a>(
    had: &mut Vec<Had<'_>>,
    mapped: &[Mapped],
    keys: impl Fn(u32) -> &'a [u8],
) -> Vec<Place> {
    let mut places = vec![Place::New; mapped.len()];
    if had.is_empty() {
        return places;
    }
    let mut taken = vec![false; had.len()];
    // First what has not changed, then what takes the place of another, so that as little as possible is moved.
    for same in [true, false] {
        let matches = |had: &Had<'_>, result: &Mapped| !same || had.hash == result.hash;
        if had.len() * mapped.len() <= PAIRS_MAX {
            for (place, result) in places.iter_mut().zip(mapped).filter(|(place, _)| **place == Place::New) {
                let key = keys(result.key);
                let found = (0..had.len())
                    .find(|at| !taken[*at] && had[*at].key == key && matches(&had[*at], result));
                settle(place, found, had, &mut taken, same);
            }
            continue;
        }
        let mut free: HashMap<(&[u8], u64), Vec<usize>> = HashMap::with_capacity(had.len());
        for (at, had) in had.iter().enumerate().rev().filter(|(at, _)| !taken[*at]) {
            free.entry((had.key, if same { had.hash } else { 0 })).or_default().push(at);
        }
        for (place, result) in places.iter_mut().zip(mapped).filter(|(place, _)| **place == Place::New) {
            let wanted = (keys(result.key), if same { result.hash } else { 0 });
            let found = free.get_mut(&wanted).and_then(Vec::pop);
            settle(place, found, had, &mut taken, same);
        }
    }
    let mut at = 0;
    had.retain(|_| {
        at += 1;
        !taken[at - 1]
    });
    places
}

fn settle(place: &mut Place, found: Option<usize>, had: &[Had<'_>], taken: &mut [bool], same: bool) {
    if let Some(at) = found {
        taken[at] = true;
        *place = if same { Place::Same(had[at].entry) } else { Place::Instead(had[at].entry) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];

    fn mapped(key: u32, hash: u64) -> Mapped {
        Mapped { key, pack: 0..0, hash }
    }

    #[test]
    fn results_keep_their_places() {
        let before = [(1, 10, 0), (2, 20, 1), (3, 30, 1), (4, 40, 2)];
        let mut had: Vec<_> =
            before.iter().map(|&(entry, hash, key)| Had { entry, hash, key: KEYS[key] }).collect();
        let now = [mapped(1, 21), mapped(1, 30), mapped(0, 10), mapped(0, 10)];
        let places = places(&mut had, &now, |key| KEYS[key as usize]);
        assert_eq!(places, [Place::Instead(2), Place::Same(3), Place::Same(1), Place::New]);
        assert_eq!(had, [Had { entry: 4, hash: 40, key: b"c" }]);
    }

    #[test]
    fn many_results_find_the_same_places_as_few() {
        let key = |at: u64| KEYS[(at % 3) as usize];
        let mut had: Vec<_> = (0..200).map(|at| Had { entry: at, hash: at / 2, key: key(at) }).collect();
        let now: Vec<_> =
            (0..250).map(|at| mapped((at % 3) as u32, at / 2 + u64::from(at % 7 == 0))).collect();
        let places = places(&mut had, &now, |key| KEYS[key as usize]);
        let mut used: Vec<u64> = Vec::new();
        for (place, result) in places.iter().zip(&now) {
            match place {
                Place::Same(entry) => {
                    assert_eq!((entry / 2, key(*entry)), (result.hash, KEYS[result.key as usize]));
                    used.push(*entry);
                }
                Place::Instead(entry) => {
                    assert_eq!(key(*entry), KEYS[result.key as usize]);
                    used.push(*entry);
                }
                Place::New => {}
            }
        }
        used.extend(had.iter().map(|had| had.entry));
        used.sort_unstable();
        assert_eq!(used, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn records_come_back() {
        let had = [Had { entry: 300, hash: u64::MAX, key: b"key" }, Had { entry: 1, hash: 0, key: b"" }];
        let mut record = Vec::new();
        had.iter().for_each(|had| had.append_to(&mut record));
        assert_eq!(read(&record).as_deref(), Some(&had[..]));
        assert_eq!(read(&record[..5]), None);
    }
}
