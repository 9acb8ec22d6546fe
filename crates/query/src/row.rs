//! One result before it is printed: what was found, and what was loaded for it.

use jackdaw_database::{Snapshot, StoredDocument, clock, metadata};
use jackdaw_document::Value;
use jackdaw_indexing::Index;
use jackdaw_indexing::definition::FieldStorage;

use crate::error::Result;
use crate::plan::field::{FieldPath, Found, Origin};
use crate::plan::{LoadPath, Plan};

/// What was found.
#[derive(Default)]
pub(crate) struct Row<'s> {
    /// The document; none for what a map/reduce index made.
    pub(crate) document: Option<StoredDocument<'s>>,
    /// The key of the index entry: the document's id in lower case. None for what a map/reduce index made.
    pub(crate) key: Option<&'s str>,
    /// The index that it was found by, if that is one of documents.
    pub(crate) index: Option<&'s Index>,
    /// The stored fields of the index entry.
    pub(crate) stored: Option<Value<'s>>,
    /// The documents of each `load`.
    pub(crate) loads: Vec<Loaded<'s>>,
    /// How well the index entry matched.
    pub(crate) score: Option<f32>,
    /// How far away it is, when distances order the results.
    pub(crate) distance: Option<Distance>,
}

/// A distance that results are ordered by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Distance {
    pub(crate) distance: f64,
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
}

/// What a `load` found.
#[derive(Debug)]
pub(crate) enum Loaded<'s> {
    Nothing,
    One(Box<StoredDocument<'s>>),
    Many(Vec<StoredDocument<'s>>),
}

impl<'s> Row<'s> {
    pub(crate) fn of_document(document: StoredDocument<'s>) -> Row<'s> {
        Row { document: Some(document), ..Row::default() }
    }

    /// Loads what the query loads.
    pub(crate) fn load(&mut self, plan: &Plan, snapshot: &'s Snapshot) -> Result<()> {
        for load in &plan.loads {
            let loaded = self.load_one(load, snapshot)?;
            self.loads.push(loaded);
        }
        Ok(())
    }

    fn load_one(&self, load: &LoadPath, snapshot: &'s Snapshot) -> Result<Loaded<'s>> {
        let mut documents = Vec::new();
        let mut take = |value: &Value<'s>| -> Result<()> {
            let id = match value {
                Value::Text(text) => text.to_str(),
                _ => return Ok(()),
            };
            documents.extend(snapshot.document(&id)?);
            Ok(())
        };
        match self.find(load.origin, &load.path) {
            Found::One(Value::Array(array)) => array.iter().try_for_each(|value| take(&value))?,
            found => found.each(&mut take)?,
        }
        Ok(match load.many {
            true => Loaded::Many(documents),
            false => match documents.into_iter().next() {
                Some(document) => Loaded::One(Box::new(document)),
                None => Loaded::Nothing,
            },
        })
    }

    /// Whether the index stores a field, so that the document's is not taken when this entry has none.
    pub(crate) fn is_stored(&self, name: &str) -> bool {
        self.index.is_some_and(|index| {
            index.has_field(name) && index.field_options(name).storage == Some(FieldStorage::Yes)
        })
    }

    /// The documents that an alias means.
    pub(crate) fn documents(&self, origin: Origin) -> &[StoredDocument<'s>] {
        match origin {
            Origin::Result => self.document.as_slice(),
            Origin::Loaded(number) => match self.loads.get(number) {
                Some(Loaded::One(document)) => std::slice::from_ref(document),
                Some(Loaded::Many(documents)) => documents,
                Some(Loaded::Nothing) | None => &[],
            },
        }
    }

    /// Whether an alias means a document that is not there.
    pub(crate) fn is_missing(&self, origin: Origin) -> bool {
        match origin {
            Origin::Result => false,
            Origin::Loaded(number) => matches!(self.loads.get(number), Some(Loaded::Nothing) | None),
        }
    }

    /// The id of a document.
    pub(crate) fn id(&self, origin: Origin) -> Option<&'s str> {
        let id = self.documents(origin).first().map(|document| document.id);
        if origin == Origin::Result { id.or(self.key) } else { id }
    }

    /// The values of a field.
    pub(crate) fn find(&self, origin: Origin, path: &FieldPath) -> Found<'s> {
        match origin {
            Origin::Result => match (&self.document, &self.stored) {
                (Some(document), _) => of_document(document, path),
                (None, Some(stored)) => path.find(*stored),
                (None, None) => Found::Missing,
            },
            Origin::Loaded(number) => match self.loads.get(number) {
                Some(Loaded::One(document)) => of_document(document, path),
                Some(Loaded::Many(documents)) => {
                    let mut all = Vec::new();
                    for document in documents {
                        match of_document(document, path) {
                            Found::Many(each) => all.extend(each),
                            Found::Missing => {}
                            found => all.push(found),
                        }
                    }
                    Found::Many(all)
                }
                Some(Loaded::Nothing) | None => Found::Missing,
            },
        }
    }
}

/// A field of a document; some of its metadata is not stored in it.
fn of_document<'s>(document: &StoredDocument<'s>, path: &FieldPath) -> Found<'s> {
    if let Some((metadata::METADATA, name)) = path.two_names() {
        let computed = match name {
            metadata::ID => document.id.to_owned(),
            metadata::CHANGE_VECTOR => document.change_vector.to_string(),
            metadata::LAST_MODIFIED => clock::date_text(document.last_modified),
            metadata::FLAGS if !document.flags.is_none() => document.flags.to_string(),
            _ => return path.find(document.document.root()),
        };
        return Found::Computed(computed);
    }
    path.find(document.document.root())
}
