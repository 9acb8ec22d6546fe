//! Random changes that go where bugs are: around size limits, at both edges of a tree, on keys that exist and on their neighbours.

use std::sync::Arc;

use crate::model::{FIXED_VALUE_SIZE, Model, Operation, Row, Structure, StructureKind};
use crate::random::Random;

/// Makes the operations of one history. Each history has its own habits: how large values are, how often something is deleted, which
/// kinds of structure it uses.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Which kinds of structure are made.
    pub kinds: Vec<StructureKind>,
    /// The longest key, in bytes.
    pub key_size_max: usize,
    /// The longest value of a tree or body of a row, in bytes.
    pub value_size_max: usize,
    /// Value sizes near which the engine changes its ways, in bytes.
    pub size_edges: Vec<usize>,
    /// How many of 10 changes to entries delete.
    pub deletes: usize,
    /// How many different keys are used, about.
    pub key_space: usize,
    /// How many structures there are at most.
    pub structures_max: usize,
    counter: i64,
}

impl Workload {
    /// The habits of one history over `kinds`.
    pub fn new(random: &mut Random, kinds: &[StructureKind]) -> Workload {
        Workload {
            kinds: kinds.to_vec(),
            key_size_max: [16, 64, 2048][random.below(3)],
            value_size_max: [32, 1000, 9000, 40_000, 400_000][random.weighted(&[3, 4, 4, 2, 1])],
            size_edges: Vec::new(),
            deletes: random.below(7),
            key_space: [8, 100, 1000, 100_000][random.below(4)],
            structures_max: 1 + random.below(6),
            counter: 0,
        }
    }

    /// The next change for an environment that holds `model`. Most are sensible; some should be refused.
    pub fn next(&mut self, random: &mut Random, model: &Model) -> Operation {
        let names: Vec<(&str, &Structure)> = model.structures().collect();
        if names.is_empty() || (names.len() < self.structures_max && random.one_in(12)) || random.one_in(400)
        {
            let kind = random.pick(&self.kinds).copied().unwrap_or(StructureKind::Tree);
            return Operation::Create { name: structure_name(random), kind };
        }
        let (name, structure) = names[random.below(names.len())];
        let name = name.to_owned();
        if random.one_in(150) {
            return Operation::Drop { name: if random.one_in(5) { structure_name(random) } else { name } };
        }
        if random.one_in(150) {
            return Operation::Rename { from: name, to: structure_name(random) };
        }
        let delete = random.below(10) < self.deletes;
        match structure {
            Structure::Tree(map) => {
                let key = self.key(random, |random| {
                    let at = random.below(map.len().max(1));
                    map.keys().nth(at).cloned()
                });
                if delete {
                    Operation::Delete { name, key }
                } else {
                    Operation::Put { name, key, value: self.value(random) }
                }
            }
            Structure::Multi(map) => {
                let any = |random: &mut Random| {
                    let at = random.below(map.len().max(1));
                    map.keys().nth(at).cloned()
                };
                // Few keys, so that some get many values.
                let key =
                    if random.one_in(3) { self.key(random, any) } else { vec![b'm', random.below(3) as u8] };
                let key = bounded(key, 200);
                let existing = map
                    .get(&key)
                    .and_then(|values| values.iter().nth(random.below(values.len().max(1))).cloned());
                let value = match existing {
                    Some(value) if delete || random.one_in(8) => value,
                    _ => bounded(self.key(random, |_| None), 200),
                };
                if delete {
                    Operation::MultiRemove { name, key, value }
                } else {
                    Operation::MultiAdd { name, key, value }
                }
            }
            Structure::Fixed(map) => {
                let key = match random.below(4) {
                    0 => map.keys().nth(random.below(map.len().max(1))).copied().unwrap_or(0),
                    1 => [i64::MIN, i64::MAX, 0, -1, 1][random.below(5)],
                    2 => random.below(self.key_space) as i64 - self.key_space as i64 / 2,
                    _ => self.count(),
                };
                if delete {
                    return Operation::FixedDelete { name, key };
                }
                let mut value = [0; FIXED_VALUE_SIZE];
                value.copy_from_slice(&random.bytes(FIXED_VALUE_SIZE));
                Operation::FixedPut { name, key, value }
            }
            Structure::Table(map) => {
                let existing = map.values().nth(random.below(map.len().max(1)));
                let id = bounded(self.key(random, |_| existing.map(|row| row.id.clone())), 300);
                if delete {
                    return Operation::DeleteRow { name, id };
                }
                let etag = match existing {
                    Some(row) if random.one_in(10) => row.etag,
                    _ => self.count(),
                };
                let group = [b"users".to_vec(), b"orders".to_vec(), vec![b'g', random.below(5) as u8]]
                    [random.below(3)]
                .clone();
                let row = Row { id, etag, group, body: self.value(random) };
                let known = map.contains_key(&row.id) != random.one_in(20);
                if known { Operation::Update { name, row } } else { Operation::Insert { name, row } }
            }
        }
    }

    /// A number greater than all before.
    fn count(&mut self) -> i64 {
        self.counter += 1;
        self.counter
    }

    /// A key; some are ones that exist, or their neighbours.
    pub fn key(
        &mut self,
        random: &mut Random,
        existing: impl FnOnce(&mut Random) -> Option<Vec<u8>>,
    ) -> Vec<u8> {
        let number = random.below(self.key_space);
        let mut key = match random.weighted(&[8, 8, 6, 3, 3, 1]) {
            0 => format!("users/{number}").into_bytes(),
            1 => format!("orders/{:08}", self.count()).into_bytes(),
            2 => existing(random).unwrap_or_else(|| vec![b'k']),
            3 => {
                let mut key = existing(random).unwrap_or_else(|| vec![0]);
                match random.below(3) {
                    0 => key.push(0),
                    1 => drop(key.pop()),
                    _ => {
                        if let Some(last) = key.last_mut() {
                            *last = last.wrapping_add(1);
                        }
                    }
                }
                key
            }
            4 => {
                let size = 1 + random.below(self.key_size_max);
                let mut key = random.bytes(size);
                if random.one_in(2) {
                    // A long common prefix.
                    let prefix = size / 2;
                    key[..prefix].fill(b'p');
                }
                key
            }
            _ => [vec![0], vec![0xFF], vec![0xFF; 9], vec![b'x'; self.key_size_max]][random.below(4)].clone(),
        };
        key.truncate(self.key_size_max);
        if key.is_empty() {
            key.push(b'e');
        }
        key
    }

    /// A value.
    pub fn value(&mut self, random: &mut Random) -> Arc<Vec<u8>> {
        let edges: Vec<usize> =
            self.size_edges.iter().copied().filter(|&edge| edge < self.value_size_max).collect();
        let size = match random.pick(&edges) {
            Some(edge) if random.one_in(5) => edge + random.below(5) - 2.min(*edge),
            _ => {
                let bits = (self.value_size_max.max(2)).ilog2() as usize;
                random.skewed(bits)
            }
        };
        let size = size.min(self.value_size_max);
        Arc::new(match random.below(3) {
            0 => random.bytes(size),
            1 => vec![random.next_u64() as u8; size],
            _ => {
                let word = random.bytes(11);
                word.iter().copied().cycle().take(size).collect()
            }
        })
    }
}

fn bounded(mut key: Vec<u8>, size_max: usize) -> Vec<u8> {
    key.truncate(size_max);
    key
}

fn structure_name(random: &mut Random) -> String {
    ["documents", "by-etag", "a", "tombstones", "counters", "values/of a longer name", "z"][random.below(7)]
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;

    #[test]
    fn histories_change_something_of_each_kind() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut workload = Workload::new(&mut random, &StructureKind::ALL);
            workload.structures_max = 6;
            workload.deletes = 2;
            let mut model = Model::default();
            let mut done = 0;
            for _ in 0..1000 {
                let operation = workload.next(&mut random, &model);
                done += usize::from(model.apply(&operation) != Outcome::Refused);
            }
            assert!(done > 800, "seed {seed}: {done} of 1000 were made");
            assert!(model.structures().any(|(_, structure)| structure.len() > 10), "seed {seed}");
        }
    }

    #[test]
    fn one_seed_makes_one_history() {
        let history = |seed| {
            let mut random = Random::new(seed);
            let mut workload = Workload::new(&mut random, &StructureKind::ALL);
            let mut model = Model::default();
            for _ in 0..300 {
                let operation = workload.next(&mut random, &model);
                model.apply(&operation);
            }
            model
        };
        assert_eq!(history(3), history(3));
        assert_ne!(history(3), history(4));
    }
}
