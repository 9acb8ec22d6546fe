//! Walks everything and reports what does not hold.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use super::error::Result;
use super::key::STORED_SIZE_MAX;
use super::node::{children, entries};
use super::snapshot::{Snapshot, record};
use super::source;
use super::state::{State, Trees};
use super::update::{node_key, node_place};

/// Problems that are reported; a damaged environment has many of one sort.
const PROBLEMS_MAX: usize = 100;

impl Snapshot {
    /// Everything that does not hold between the trees, in words; empty when all is well. Reads everything, and remembers some bytes for
    /// each result.
    ///
    /// Errors: those of the environment; what is in it never makes an error.
    pub fn check(&self) -> Result<Vec<String>> {
        let mut check = Check {
            snapshot: self,
            problems: Vec::new(),
            found: HashMap::new(),
            reached: HashSet::new(),
            next_entry: 0,
        };
        check.next_entry = State::read(&self.transaction)?.next_entry;
        check.keys()?;
        check.sources()?;
        check.nodes()?;
        Ok(check.problems)
    }
}

struct Check<'s> {
    snapshot: &'s Snapshot,
    problems: Vec<String>,
    /// The results in leaves: entry to a hash of the key and one of the pack.
    found: HashMap<u64, (u64, u64)>,
    /// The nodes that branches lead to.
    reached: HashSet<Vec<u8>>,
    next_entry: u64,
}

impl<'s> Check<'s> {
    fn problem(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    fn keys(&mut self) -> Result<()> {
        let keys = self.snapshot.transaction.tree(Trees::KEYS)?;
        let mut walk = keys.iter()?;
        while let Some((key, bytes)) = walk.next()? {
            let name = key.escape_ascii().to_string();
            let Ok(record) = record(key, bytes) else {
                self.problem(format!("key \"{name}\": its record does not read"));
                continue;
            };
            if record.full_key.is_some_and(|full| full.len() <= STORED_SIZE_MAX) {
                self.problem(format!("key \"{name}\": it is short and was stored shortened"));
            }
            if record.level > 0 && record.number == 0 {
                self.problem(format!("key \"{name}\": it has nodes and no number"));
            }
            let before = self.found.len();
            let count = self.node(key, record.number, record.level, (0, u64::MAX), record.root)?;
            if count != record.count || (self.found.len() - before) as u64 != count {
                self.problem(format!(
                    "key \"{name}\": its record counts {} results, there are {count}",
                    record.count
                ));
            }
            if count == 0 {
                self.problem(format!("key \"{name}\": it has no results and still a record"));
            }
        }
        Ok(())
    }

    /// Walks a node; how many results it holds. Entries must be within the bounds, the upper one excluded.
    fn node(
        &mut self,
        key: &[u8],
        number: u64,
        level: u8,
        (low, high): (u64, u64),
        bytes: &'s [u8],
    ) -> Result<u64> {
        let place = || format!("{} (\"{}\")", node_place(number, level, low), key.escape_ascii());
        if level == 0 {
            let Some(entries) = entries(bytes) else {
                self.problem(format!("{}: it is no leaf", place()));
                return Ok(0);
            };
            let rising = entries.windows(2).all(|pair| pair[0].number < pair[1].number);
            let within = entries
                .iter()
                .all(|entry| (low..high).contains(&entry.number) && entry.number < self.next_entry);
            if !rising || !within {
                self.problem(format!("{}: its entries are out of order or of bounds", place()));
            }
            for entry in &entries {
                if self.found.insert(entry.number, (xxh3_64(key), xxh3_64(entry.pack))).is_some() {
                    self.problem(format!("{}: entry {} is in another leaf, too", place(), entry.number));
                }
            }
            return Ok(entries.len() as u64);
        }
        let Some(below) = children(bytes) else {
            self.problem(format!("{}: it is no branch", place()));
            return Ok(0);
        };
        let nodes = self.snapshot.transaction.tree(Trees::NODES)?;
        let mut total = 0;
        for (at, child) in below.iter().enumerate() {
            // The first child takes what is below its low, too.
            let from = if at == 0 { low } else { child.low };
            let to = below.get(at + 1).map_or(high, |next| next.low);
            let stored = node_key(number, level - 1, child.low);
            let Some(bytes) = nodes.get(&stored)? else {
                self.problem(format!("{}: child {} is missing", place(), child.low));
                continue;
            };
            if !self.reached.insert(stored.to_vec()) {
                self.problem(format!("{}: child {} is another's, too", place(), child.low));
                continue; // so that the walk ends
            }
            let count = self.node(key, number, level - 1, (from, to), bytes)?;
            if (count, bytes.len() as u64) != (child.count, child.size) {
                self.problem(format!(
                    "{}: child {} has another count or size than listed",
                    place(),
                    child.low
                ));
            }
            total += count;
        }
        Ok(total)
    }

    fn sources(&mut self) -> Result<()> {
        let sources = self.snapshot.transaction.tree(Trees::SOURCES)?;
        let mut walk = sources.iter()?;
        let mut results = 0;
        while let Some((id, bytes)) = walk.next()? {
            let id = String::from_utf8_lossy(id).into_owned();
            let Some(had) = source::read(bytes).filter(|had| !had.is_empty()) else {
                self.problem(format!("document `{id}`: its record does not read, or is empty"));
                continue;
            };
            results += had.len() as u64;
            for had in had {
                if self.found.remove(&had.entry) != Some((xxh3_64(had.key), had.hash)) {
                    let key = had.key.escape_ascii();
                    self.problem(format!(
                        "document `{id}`: its result {} is not as recorded in key \"{key}\"",
                        had.entry
                    ));
                }
            }
        }
        if !self.found.is_empty() {
            self.problem(format!("{} results are no document's", self.found.len()));
        }
        let counted = self.snapshot.statistics()?.results;
        if counted != results {
            self.problem(format!("the state counts {counted} results, documents have {results}"));
        }
        Ok(())
    }

    fn nodes(&mut self) -> Result<()> {
        let nodes = self.snapshot.transaction.tree(Trees::NODES)?.len();
        if nodes != self.reached.len() as u64 {
            self.problem(format!("{nodes} nodes are stored, branches lead to {}", self.reached.len()));
        }
        Ok(())
    }
}
