//! What a storage environment should hold, in maps of the standard library.
//!
//! A [`Model`] is cheap to clone, so that a test can keep one for each snapshot and each commit: structures are shared until
//! they change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// What kind of structure goes by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructureKind {
    /// Byte keys to byte values.
    Tree,
    /// Byte keys to sorted sets of small byte values.
    Multi,
    /// `i64` keys to values of a fixed size.
    Fixed,
    /// Rows, found by a unique id, by a unique etag, and by a group that many share.
    Table,
}

impl StructureKind {
    /// All kinds.
    pub const ALL: [StructureKind; 4] =
        [StructureKind::Tree, StructureKind::Multi, StructureKind::Fixed, StructureKind::Table];
}

/// Bytes of a value in a fixed-size tree.
pub const FIXED_VALUE_SIZE: usize = 12;

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The unique id.
    pub id: Vec<u8>,
    /// The unique number.
    pub etag: i64,
    /// What the non-unique index goes by.
    pub group: Vec<u8>,
    /// The rest.
    pub body: Arc<Vec<u8>>,
}

/// One structure's content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named like their kinds")]
pub enum Structure {
    Tree(BTreeMap<Vec<u8>, Arc<Vec<u8>>>),
    Multi(BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>),
    Fixed(BTreeMap<i64, [u8; FIXED_VALUE_SIZE]>),
    /// By id. The other indexes follow.
    Table(BTreeMap<Vec<u8>, Row>),
}

impl Structure {
    /// A structure that holds nothing.
    pub fn empty(kind: StructureKind) -> Structure {
        match kind {
            StructureKind::Tree => Structure::Tree(BTreeMap::new()),
            StructureKind::Multi => Structure::Multi(BTreeMap::new()),
            StructureKind::Fixed => Structure::Fixed(BTreeMap::new()),
            StructureKind::Table => Structure::Table(BTreeMap::new()),
        }
    }

    /// What kind it is.
    pub fn kind(&self) -> StructureKind {
        match self {
            Structure::Tree(_) => StructureKind::Tree,
            Structure::Multi(_) => StructureKind::Multi,
            Structure::Fixed(_) => StructureKind::Fixed,
            Structure::Table(_) => StructureKind::Table,
        }
    }

    /// How many keys (rows) it holds.
    pub fn len(&self) -> usize {
        match self {
            Structure::Tree(map) => map.len(),
            Structure::Multi(map) => map.len(),
            Structure::Fixed(map) => map.len(),
            Structure::Table(map) => map.len(),
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One change.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum Operation {
    /// Makes a structure; refused when the name is taken.
    Create { name: String, kind: StructureKind },
    /// Removes a structure with all it holds; refused when there is none.
    Drop { name: String },
    /// Renames a structure; refused when there is none, or the new name is taken.
    Rename { from: String, to: String },
    /// Sets a key of a tree; tells whether it was there.
    Put { name: String, key: Vec<u8>, value: Arc<Vec<u8>> },
    /// Removes a key of a tree; tells whether it was there.
    Delete { name: String, key: Vec<u8> },
    /// Adds a value to a key of a multi-value tree; tells whether it is new.
    MultiAdd { name: String, key: Vec<u8>, value: Vec<u8> },
    /// Removes a value of a key of a multi-value tree; tells whether it was there.
    MultiRemove { name: String, key: Vec<u8>, value: Vec<u8> },
    /// Sets a key of a fixed-size tree; tells whether it was there.
    FixedPut { name: String, key: i64, value: [u8; FIXED_VALUE_SIZE] },
    /// Removes a key of a fixed-size tree; tells whether it was there.
    FixedDelete { name: String, key: i64 },
    /// Adds a row to a table; refused when its id or etag is taken.
    Insert { name: String, row: Row },
    /// Replaces the row of the same id; refused when there is none, or the etag is another row's.
    Update { name: String, row: Row },
    /// Removes the row of an id; tells whether it was there.
    DeleteRow { name: String, id: Vec<u8> },
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was made, and there is nothing to tell.
    Done,
    /// It was made; whether there was something to do.
    Was(bool),
    /// It was refused and changed nothing.
    Refused,
}

impl Operation {
    /// The structure it is about.
    pub fn name(&self) -> &str {
        match self {
            Operation::Create { name, .. }
            | Operation::Drop { name }
            | Operation::Rename { from: name, .. }
            | Operation::Put { name, .. }
            | Operation::Delete { name, .. }
            | Operation::MultiAdd { name, .. }
            | Operation::MultiRemove { name, .. }
            | Operation::FixedPut { name, .. }
            | Operation::FixedDelete { name, .. }
            | Operation::Insert { name, .. }
            | Operation::Update { name, .. }
            | Operation::DeleteRow { name, .. } => name,
        }
    }
}

/// Bytes for a message: text where it is text, long ones cut.
struct Brief<'a>(&'a [u8]);

impl fmt::Debug for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(24)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.0.len() { write!(f, "..({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Create { name, kind } => write!(f, "create {name} as {kind:?}"),
            Operation::Drop { name } => write!(f, "drop {name}"),
            Operation::Rename { from, to } => write!(f, "rename {from} to {to}"),
            Operation::Put { name, key, value } => {
                write!(f, "{name}: put {:?} = {:?}", Brief(key), Brief(value))
            }
            Operation::Delete { name, key } => write!(f, "{name}: delete {:?}", Brief(key)),
            Operation::MultiAdd { name, key, value } => {
                write!(f, "{name}: add {:?} to {:?}", Brief(value), Brief(key))
            }
            Operation::MultiRemove { name, key, value } => {
                write!(f, "{name}: remove {:?} from {:?}", Brief(value), Brief(key))
            }
            Operation::FixedPut { name, key, value } => write!(f, "{name}: put {key} = {:?}", Brief(value)),
            Operation::FixedDelete { name, key } => write!(f, "{name}: delete {key}"),
            Operation::Insert { name, row } | Operation::Update { name, row } => {
                let verb = if matches!(self, Operation::Insert { .. }) { "insert" } else { "update" };
                let Row { id, etag, group, body } = row;
                write!(
                    f,
                    "{name}: {verb} {:?} etag {etag} group {:?} body {:?}",
                    Brief(id),
                    Brief(group),
                    Brief(body)
                )
            }
            Operation::DeleteRow { name, id } => write!(f, "{name}: delete row {:?}", Brief(id)),
        }
    }
}

/// All that an environment holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    structures: BTreeMap<String, Arc<Structure>>,
}

impl Model {
    /// The structures by name.
    pub fn structures(&self) -> impl Iterator<Item = (&str, &Structure)> {
        self.structures.iter().map(|(name, structure)| (name.as_str(), &**structure))
    }

    /// One structure.
    pub fn get(&self, name: &str) -> Option<&Structure> {
        self.structures.get(name).map(|structure| &**structure)
    }

    /// Makes a change and tells what it did. A change of a structure that does not exist or is of another kind is refused.
    pub fn apply(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Create { name, kind } => {
                if self.structures.contains_key(name) {
                    return Outcome::Refused;
                }
                self.structures.insert(name.clone(), Arc::new(Structure::empty(*kind)));
                return Outcome::Done;
            }
            Operation::Drop { name } => {
                return if self.structures.remove(name).is_some() { Outcome::Done } else { Outcome::Refused };
            }
            Operation::Rename { from, to } => {
                if self.structures.contains_key(to) {
                    return Outcome::Refused;
                }
                let Some(structure) = self.structures.remove(from) else { return Outcome::Refused };
                self.structures.insert(to.clone(), structure);
                return Outcome::Done;
            }
            _ => {}
        }
        let Some(structure) = self.structures.get_mut(operation.name()) else { return Outcome::Refused };
        match (operation, Arc::make_mut(structure)) {
            (Operation::Put { key, value, .. }, Structure::Tree(map)) => {
                Outcome::Was(map.insert(key.clone(), Arc::clone(value)).is_some())
            }
            (Operation::Delete { key, .. }, Structure::Tree(map)) => Outcome::Was(map.remove(key).is_some()),
            (Operation::MultiAdd { key, value, .. }, Structure::Multi(map)) => {
                Outcome::Was(map.entry(key.clone()).or_default().insert(value.clone()))
            }
            (Operation::MultiRemove { key, value, .. }, Structure::Multi(map)) => {
                let Some(values) = map.get_mut(key) else { return Outcome::Was(false) };
                let was = values.remove(value);
                if values.is_empty() {
                    map.remove(key);
                }
                Outcome::Was(was)
            }
            (Operation::FixedPut { key, value, .. }, Structure::Fixed(map)) => {
                Outcome::Was(map.insert(*key, *value).is_some())
            }
            (Operation::FixedDelete { key, .. }, Structure::Fixed(map)) => {
                Outcome::Was(map.remove(key).is_some())
            }
            (Operation::Insert { row, .. }, Structure::Table(map)) => {
                if map.contains_key(&row.id) || map.values().any(|other| other.etag == row.etag) {
                    return Outcome::Refused;
                }
                map.insert(row.id.clone(), row.clone());
                Outcome::Done
            }
            (Operation::Update { row, .. }, Structure::Table(map)) => {
                let etag_taken = map.values().any(|other| other.etag == row.etag && other.id != row.id);
                match map.get_mut(&row.id) {
                    Some(old) if !etag_taken => {
                        *old = row.clone();
                        Outcome::Done
                    }
                    _ => Outcome::Refused,
                }
            }
            (Operation::DeleteRow { id, .. }, Structure::Table(map)) => {
                Outcome::Was(map.remove(id).is_some())
            }
            _ => Outcome::Refused,
        }
    }

    /// The first difference to another model, in words; `None` when they are equal.
    pub fn difference(&self, found: &Model) -> Option<String> {
        for (name, structure) in &self.structures {
            let Some(other) = found.structures.get(name) else { return Some(format!("{name} is missing")) };
            if let Some(difference) = difference(structure, other) {
                return Some(format!("{name}: {difference}"));
            }
        }
        let more = found.structures.keys().find(|name| !self.structures.contains_key(*name));
        more.map(|name| format!("there is an unexpected {name}"))
    }

    /// Puts a structure in place, whatever was there: for reading a model out of an environment.
    pub fn set(&mut self, name: &str, structure: Structure) {
        self.structures.insert(name.to_owned(), Arc::new(structure));
    }
}

/// The first difference between two structures, in words.
fn difference(expected: &Structure, found: &Structure) -> Option<String> {
    match (expected, found) {
        (Structure::Tree(expected), Structure::Tree(found)) => {
            between(expected, found, |key| format!("{:?}", Brief(key)), |value| format!("{:?}", Brief(value)))
        }
        (Structure::Multi(expected), Structure::Multi(found)) => between(
            expected,
            found,
            |key| format!("{:?}", Brief(key)),
            |values| {
                format!("{} values: {:?}", values.len(), values.iter().map(|v| Brief(v)).collect::<Vec<_>>())
            },
        ),
        (Structure::Fixed(expected), Structure::Fixed(found)) => {
            between(expected, found, i64::to_string, |value| format!("{:?}", Brief(value)))
        }
        (Structure::Table(expected), Structure::Table(found)) => between(
            expected,
            found,
            |id| format!("{:?}", Brief(id)),
            |row| format!("etag {} group {:?} body {:?}", row.etag, Brief(&row.group), Brief(&row.body)),
        ),
        _ => Some(format!("expected a {:?}, found a {:?}", expected.kind(), found.kind())),
    }
}

fn between<K: Ord, V: PartialEq>(
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
    key_text: impl Fn(&K) -> String,
    value_text: impl Fn(&V) -> String,
) -> Option<String> {
    let counts = format!("({} entries expected, {} found)", expected.len(), found.len());
    for (key, value) in expected {
        match found.get(key) {
            None => return Some(format!("{} is missing {counts}", key_text(key))),
            Some(other) if other != value => {
                let (key, value, other) = (key_text(key), value_text(value), value_text(other));
                return Some(format!("{key} is {other} instead of {value} {counts}"));
            }
            Some(_) => {}
        }
    }
    let more = found.keys().find(|key| !expected.contains_key(key));
    more.map(|key| format!("{} should not be there {counts}", key_text(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &[u8], etag: i64) -> Row {
        Row { id: id.to_vec(), etag, group: Vec::new(), body: Arc::default() }
    }

    #[test]
    fn tables_refuse_what_is_taken() {
        let mut model = Model::default();
        let name = "t".to_owned();
        assert_eq!(
            model.apply(&Operation::Insert { name: name.clone(), row: row(b"a", 1) }),
            Outcome::Refused
        );
        model.apply(&Operation::Create { name: name.clone(), kind: StructureKind::Table });
        let mut apply = |operation: Operation| model.apply(&operation);
        assert_eq!(apply(Operation::Insert { name: name.clone(), row: row(b"a", 1) }), Outcome::Done);
        assert_eq!(apply(Operation::Insert { name: name.clone(), row: row(b"a", 2) }), Outcome::Refused);
        assert_eq!(apply(Operation::Insert { name: name.clone(), row: row(b"b", 1) }), Outcome::Refused);
        assert_eq!(apply(Operation::Update { name: name.clone(), row: row(b"b", 3) }), Outcome::Refused);
        assert_eq!(apply(Operation::Update { name: name.clone(), row: row(b"a", 1) }), Outcome::Done);
        assert_eq!(
            apply(Operation::DeleteRow { name: name.clone(), id: b"b".to_vec() }),
            Outcome::Was(false)
        );
        assert_eq!(apply(Operation::DeleteRow { name, id: b"a".to_vec() }), Outcome::Was(true));
    }

    #[test]
    fn differences_are_told() {
        let mut one = Model::default();
        one.apply(&Operation::Create { name: "m".to_owned(), kind: StructureKind::Multi });
        let two = one.clone();
        let add = |value: &[u8]| Operation::MultiAdd {
            name: "m".to_owned(),
            key: b"k".to_vec(),
            value: value.to_vec(),
        };
        assert_eq!(one.apply(&add(b"v")), Outcome::Was(true));
        assert_eq!(one.apply(&add(b"v")), Outcome::Was(false));
        assert_eq!(
            one.difference(&two).as_deref(),
            Some("m: \"k\" is missing (1 entries expected, 0 found)")
        );
        assert_eq!(
            two.difference(&one).as_deref(),
            Some("m: \"k\" should not be there (0 entries expected, 1 found)")
        );
        assert_eq!(two.difference(&Model::default()).as_deref(), Some("m is missing"));
        assert_eq!(Model::default().difference(&two).as_deref(), Some("there is an unexpected m"));
        assert_eq!(one.difference(&one.clone()), None);
    }

    #[test]
    fn clones_share_what_does_not_change() {
        let mut one = Model::default();
        one.apply(&Operation::Create { name: "a".to_owned(), kind: StructureKind::Tree });
        let two = one.clone();
        one.apply(&Operation::Put { name: "a".to_owned(), key: vec![1], value: Arc::default() });
        assert!(two.get("a").is_some_and(Structure::is_empty));
        assert_eq!(one.get("a").map(Structure::len), Some(1));
    }
}
