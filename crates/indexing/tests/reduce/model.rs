//! What the engine should hold, in maps of the standard library, and the reduction that the tests use.

use std::collections::BTreeMap;

use jackdaw_indexing::reduce::{Batch, Key, KeyValue, ReduceError, Reduction, Snapshot};

/// A number whose reduction fails, alone or with others.
pub(crate) const POISON: i64 = 666_666;

/// What the tests reduce to: how many, their sum, the least, the greatest, and all of them in an order-free fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) count: i64,
    pub(crate) sum: i64,
    pub(crate) least: i64,
    pub(crate) greatest: i64,
    pub(crate) fingerprint: i64,
}

impl Sums {
    pub(crate) fn of(number: i64) -> Sums {
        let fingerprint = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) as i64;
        Sums { count: 1, sum: number, least: number, greatest: number, fingerprint }
    }

    pub(crate) fn and(self, other: Sums) -> Sums {
        Sums {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            fingerprint: self.fingerprint.wrapping_add(other.fingerprint),
        }
    }

    pub(crate) fn to_pack(self) -> Vec<u8> {
        let Sums { count, sum, least, greatest, fingerprint } = self;
        [count, sum, least, greatest, fingerprint].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    pub(crate) fn from_pack(pack: &[u8]) -> Sums {
        let number = |at: usize| i64::from_le_bytes(pack[8 * at..8 * at + 8].try_into().unwrap());
        Sums {
            count: number(0),
            sum: number(1),
            least: number(2),
            greatest: number(3),
            fingerprint: number(4),
        }
    }
}

/// Adds up. Fails where it meets [`POISON`]. Results may be longer than the numbers: what is behind is ignored. Whether it is told to be
/// incremental must make no difference.
pub(crate) struct AddUp(pub(crate) bool);

impl Reduction for AddUp {
    fn reduce(&mut self, _key: &[u8], packs: &[&[u8]], out: &mut Vec<u8>) -> Result<(), ReduceError> {
        let parts = packs.iter().map(|pack| Sums::from_pack(pack));
        let all = parts.reduce(Sums::and).ok_or(ReduceError("nothing to reduce".into()))?;
        if all.greatest == POISON {
            return Err(ReduceError("poison".into()));
        }
        out.extend(all.to_pack());
        Ok(())
    }

    fn is_incremental(&self) -> bool {
        self.0
    }
}

/// A result of a map: key, number, and how many bytes of padding its pack has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) key: u32,
    pub(crate) number: i64,
    pub(crate) padding: usize,
}

/// The bytes of a key; some are so long that they are stored shortened.
pub(crate) fn key_of(number: u32) -> Key {
    let mut key = Key::of(KeyValue::Text(&format!("key{number}")));
    if number % 7 == 3 {
        key.push(KeyValue::Text(&"long ".repeat(80 + number as usize % 5)));
    }
    key
}

/// Documents with their results.
#[derive(Clone, Default, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) documents: BTreeMap<String, Vec<Mapped>>,
}

impl Model {
    /// Puts the document's new results into the model and into a batch. `promise`: tell the engine when it is new.
    pub(crate) fn put(&mut self, batch: &mut Batch, id: &str, results: Vec<Mapped>, promise: bool) {
        batch.begin(id.as_bytes(), promise && !self.documents.contains_key(id));
        for result in &results {
            let mut pack = Sums::of(result.number).to_pack();
            pack.resize(pack.len() + result.padding, 0);
            batch.emit(key_of(result.key).as_bytes(), &pack);
        }
        if results.is_empty() {
            self.documents.remove(id);
        } else {
            self.documents.insert(id.into(), results);
        }
    }

    /// The results by key, from scratch; `None` where the reduce fails.
    pub(crate) fn results(&self) -> BTreeMap<Vec<u8>, Option<Sums>> {
        let mut all: BTreeMap<Vec<u8>, Sums> = BTreeMap::new();
        for result in self.documents.values().flatten() {
            let sums = Sums::of(result.number);
            let key = key_of(result.key).as_bytes().to_vec();
            all.entry(key).and_modify(|all| *all = all.and(sums)).or_insert(sums);
        }
        all.into_iter().map(|(key, all)| (key, (all.greatest != POISON).then_some(all))).collect()
    }

    /// Compares everything.
    pub(crate) fn compare(&self, snapshot: &Snapshot) -> Result<(), String> {
        let problems = snapshot.check().map_err(|error| error.to_string())?;
        if !problems.is_empty() {
            return Err(problems.join("\n"));
        }
        let mut held = BTreeMap::new();
        let walked = snapshot.each_result(|result| {
            held.insert(result.key.to_vec(), (result.pack.map(Sums::from_pack), result.count));
            Ok::<(), jackdaw_indexing::reduce::Error>(())
        });
        walked.map_err(|error| error.to_string())?;
        let expected = self.results();
        if held.len() != expected.len() {
            return Err(format!("{} keys are held, {} expected", held.len(), expected.len()));
        }
        for ((key, (held, count)), (expected_key, expected)) in held.iter().zip(&expected) {
            let wrong_count = expected.is_some_and(|expected| expected.count as u64 != *count);
            if key != expected_key || held != expected || wrong_count {
                return Err(format!(
                    "key \"{}\" has {held:?} of {count}, expected is {expected:?} (\"{}\")",
                    key.escape_ascii(),
                    expected_key.escape_ascii()
                ));
            }
        }
        let statistics = snapshot.statistics().map_err(|error| error.to_string())?;
        let results = self.documents.values().map(Vec::len).sum::<usize>() as u64;
        let counts = (statistics.documents, statistics.results, statistics.keys);
        let expected = (self.documents.len() as u64, results, expected.len() as u64);
        if counts == expected { Ok(()) } else { Err(format!("counts are {counts:?}, expected {expected:?}")) }
    }
}
