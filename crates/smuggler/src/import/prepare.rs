//! Records into documents that are ready to be stored: parsed, with an id and a collection. Runs on many threads at once.

use std::borrow::Cow;
use std::sync::Arc;

use jackdaw_database::{Database, IncomingDocument, ids, metadata};
use jackdaw_document::{Context, Document, Limits, Path, Property, Value};

use super::options::ImportOptions;
use crate::csv::layout::Layout;
use crate::error::Result;
use crate::json::properties;
use crate::report::{Place, Refusal};
use crate::source::rows::RowBlock;
use crate::source::{Block, Other, Records, lines};

/// A context is given back its memory after so many bytes of text.
const RESET_AFTER: usize = 1 << 20;

/// An id as given (the database may complete it) and a document.
pub(crate) type Prepared = (String, IncomingDocument);

/// Documents that are stored together, in one job of the database.
#[derive(Default)]
pub(crate) struct Batch {
    /// They.
    pub(crate) documents: Vec<Prepared>,
    /// What is not a document.
    pub(crate) others: Vec<Other>,
    /// Where each document came from.
    pub(crate) places: Vec<Place>,
    /// What was refused.
    pub(crate) refused: Vec<Refusal>,
    /// Documents passed over, since they belong to other collections than were asked for.
    pub(crate) left_out: u64,
    /// Bytes of text of all its records.
    pub(crate) text_size: u64,
    /// Bytes of the documents.
    pub(crate) size: usize,
}

/// Where ids come from; shared by all threads.
pub(crate) struct IdRule {
    property: Option<Path>,
    prefix: Option<String>,
    made: String,
}

impl IdRule {
    pub(crate) fn new(options: &ImportOptions) -> Result<IdRule> {
        let property = options.id_property.as_deref().map(Path::parse).transpose();
        let property =
            property.map_err(|error| crate::Error::Options(format!("the id property: {error}")))?;
        let made = match (&options.id_prefix, &options.collection) {
            (Some(prefix), _) => prefix.clone(),
            (None, Some(collection)) => prefix_of(collection),
            (None, None) => String::new(),
        };
        Ok(IdRule { property, prefix: options.id_prefix.clone(), made })
    }

    /// The id of a document: from its property, from its metadata, or one that the database completes.
    fn id(&self, document: &Document<'_>, in_metadata: Option<Value<'_>>) -> Result<String, String> {
        if let Some(path) = &self.property {
            let value = path.first(&document.root());
            let value = value.as_ref().map_or(Ok(None), scalar)?;
            let value = value.ok_or("it has no value in the id property")?;
            return Ok(self.of_value(&value));
        }
        match in_metadata {
            None | Some(Value::Null) => Ok(self.made.clone()),
            Some(value) => match value.as_str() {
                Some(id) => Ok(id.into_owned()),
                None => Err(format!("{} is no text", metadata::ID)),
            },
        }
    }

    fn of_value(&self, value: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}{value}"),
            None => value.to_owned(),
        }
    }
}

/// How the ids of a collection begin, as the clients have it: `users/`, but `OrderLines/`.
fn prefix_of(collection: &str) -> String {
    if collection.chars().filter(|c| c.is_uppercase()).count() > 1 {
        format!("{collection}/")
    } else {
        format!("{}/", collection.to_lowercase())
    }
}

fn scalar<'a>(value: &Value<'a>) -> Result<Option<Cow<'a, str>>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Text(text) => Ok(Some(text.to_str()).filter(|text| !text.is_empty())),
        Value::Number(number) => {
            let mut text = Vec::new();
            number.append_to(&mut text);
            Ok(Some(Cow::Owned(String::from_utf8_lossy(&text).into_owned())))
        }
        other => Err(format!("the id property holds {}, not text or a number", other.type_name())),
    }
}

/// What one thread prepares documents with.
pub(crate) struct Preparer {
    database: Database,
    ids: Arc<IdRule>,
    layout: Option<Arc<Layout>>,
    collection: String,
    only: Vec<String>,
    context: Context,
    /// Bytes of text since the context was reset.
    used: usize,
    metadata: Property,
    id: Property,
    /// A document's text without its id.
    text: Vec<u8>,
}

impl Preparer {
    pub(crate) fn new(
        database: &Database,
        options: &ImportOptions,
        ids: &Arc<IdRule>,
        layout: Option<&Arc<Layout>>,
    ) -> Preparer {
        let text_size_max = options.record_size_max;
        Preparer {
            database: database.clone(),
            ids: ids.clone(),
            layout: layout.cloned(),
            collection: options.collection.clone().unwrap_or_default(),
            only: options.only_collections.clone(),
            context: Context::with_limits(Limits { text_size_max, ..Limits::default() }),
            used: 0,
            metadata: Property::new(metadata::METADATA),
            id: Property::new(metadata::ID),
            text: Vec::new(),
        }
    }

    /// One for documents whose ids are known.
    pub(crate) fn for_bulk_insert(database: &Database) -> Preparer {
        let made = String::new();
        let ids = Arc::new(IdRule { property: None, prefix: None, made });
        let options =
            ImportOptions { record_size_max: Limits::default().text_size_max, ..ImportOptions::default() };
        Preparer::new(database, &options, &ids, None)
    }

    /// Prepares the records of a block.
    pub(crate) fn block(&mut self, block: Block) -> Batch {
        let mut batch = Batch { refused: block.refused, ..Batch::default() };
        match block.records {
            Records::Lines { bytes, first_line } => {
                for (line, text) in lines::lines(&bytes, first_line) {
                    self.json(Place::Line(line), text, &mut batch);
                }
            }
            Records::Values { bytes, ends } => {
                let mut start = 0;
                for (end, offset) in ends {
                    self.json(Place::Byte(offset), &bytes[start..end], &mut batch);
                    start = end;
                }
            }
            Records::Rows(rows) => self.rows(&rows, &mut batch),
            Records::Others(others) => batch.others = others,
        }
        // What was refused while cutting may lie behind what was refused here.
        batch.refused.sort_by_key(|refusal| refusal.place);
        batch
    }

    /// Prepares a document from its text.
    pub(crate) fn json(&mut self, place: Place, text: &[u8], batch: &mut Batch) {
        let prepared = self.prepare_json(text);
        self.take(place, text.len(), prepared, batch);
    }

    /// Prepares a document whose id is known.
    pub(crate) fn json_with_id(&mut self, place: Place, id: &str, text: &[u8], batch: &mut Batch) {
        let prepared = self.prepare_json_with_id(id, text);
        self.take(place, text.len(), prepared, batch);
    }

    fn prepare_json(&mut self, text: &[u8]) -> Result<Prepared, String> {
        // Most inputs name the id in the metadata, where it is not stored. Cut out before parsing, it need not be cut out of the document.
        if self.ids.property.is_none()
            && let Some(id) = without_id(text, &mut self.text)
            && let Ok(document) = self.context.parse_with(&self.text, self.database.document_mode())
        {
            check_id(&id)?;
            return Ok((id, self.incoming(&document)?));
        }
        let document = self.context.parse_with(text, self.database.document_mode()).map_err(said)?;
        let object = document.object();
        let metadata = object.as_ref().and_then(|object| self.metadata.get(object));
        let in_metadata =
            metadata.and_then(|metadata| metadata.as_object()).and_then(|object| self.id.get(&object));
        let id = self.ids.id(&document, in_metadata)?;
        check_id(&id)?;
        Ok((id, self.incoming(&document)?))
    }

    fn incoming(&self, document: &Document<'_>) -> Result<IncomingDocument, String> {
        IncomingDocument::in_collection(document, &self.collection, &self.context, &self.database)
            .map_err(said)
    }

    fn prepare_json_with_id(&self, id: &str, text: &[u8]) -> Result<Prepared, String> {
        check_id(id)?;
        let incoming = IncomingDocument::parse(text, &self.context, &self.database).map_err(said)?;
        Ok((id.to_owned(), incoming))
    }

    fn rows(&mut self, rows: &RowBlock, batch: &mut Batch) {
        let Some(layout) = self.layout.clone() else {
            return;
        };
        for i in 0..rows.len() {
            let (line, row) = rows.row(i);
            let prepared = self.prepare_row(&layout, row);
            self.take(Place::Line(line), row.size(), prepared, batch);
        }
    }

    fn prepare_row(
        &mut self,
        layout: &Layout,
        row: crate::source::rows::Row<'_>,
    ) -> Result<Prepared, String> {
        let text = |index: usize| {
            std::str::from_utf8(row.field(index)).map_err(|_| "its id or collection is not UTF-8".to_owned())
        };
        let collection = match layout.collection {
            Some(index) => Some(text(index)?).filter(|name| !name.is_empty()),
            None => None,
        };
        let id = match layout.id {
            Some(index) => match text(index)? {
                "" => return Err("it has no value in the id column".to_owned()),
                value => self.ids.of_value(value),
            },
            None => self.ids.made.clone(),
        };
        check_id(&id)?;
        let mut wrong = None;
        let collection = collection.unwrap_or(&self.collection);
        let incoming = IncomingDocument::build(collection, &self.context, &self.database, |builder| {
            wrong = layout.write(row, builder, &self.context).err();
            Ok(())
        });
        match wrong {
            Some(reason) => Err(reason),
            None => Ok((id, incoming.map_err(said)?)),
        }
    }

    fn take(
        &mut self,
        place: Place,
        text_size: usize,
        prepared: Result<Prepared, String>,
        batch: &mut Batch,
    ) {
        batch.text_size += text_size as u64;
        match prepared {
            Ok((_, document)) if !self.is_wanted(document.collection()) => batch.left_out += 1,
            Ok((id, document)) => {
                batch.size += document.as_bytes().len();
                batch.documents.push((id, document));
                batch.places.push(place);
            }
            Err(reason) => batch.refused.push(Refusal { place, reason }),
        }
        self.used += text_size + 64;
        if self.used > RESET_AFTER {
            self.context.reset();
            self.used = 0;
        }
    }

    fn is_wanted(&self, collection: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted.eq_ignore_ascii_case(collection))
    }
}

/// Writes a document's text into `out` without `@metadata.@id`, and returns that. None: it is not the last property's, or the text is not as it should be.
///
/// Nothing is parsed but the metadata. It belongs to the root, since its end is directly before the end of the text; and its name is no part of a string, since there
/// its quotes would be escaped.
fn without_id(text: &[u8], out: &mut Vec<u8>) -> Option<String> {
    const NAME: &[u8] = b"\"@metadata\":";
    let inner = text.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let at = memchr::memmem::rfind(inner, NAME)?;
    if !matches!(text[..at].trim_ascii_end().last()?, b',' | b'{') {
        return None;
    }
    let metadata = inner[at + NAME.len()..].trim_ascii_start();
    out.clear();
    out.extend_from_slice(&text[..at + NAME.len()]);
    let mut id = None;
    let mut before = b'{';
    for property in properties::properties(metadata) {
        let (name, value) = property.ok()?;
        if name == metadata::ID {
            id = Some(properties::text(value)?.into_owned());
            continue;
        }
        out.push(std::mem::replace(&mut before, b','));
        serde_json::to_writer(&mut *out, &name).ok()?;
        out.push(b':');
        out.extend_from_slice(value);
    }
    if before == b'{' {
        out.push(b'{');
    }
    out.extend_from_slice(b"}}");
    id
}

/// Whether a document can be stored under this id, or one that the database makes of it.
fn check_id(id: &str) -> Result<(), String> {
    if id.is_empty() { Ok(()) } else { ids::key(id).map(|_| ()).map_err(said) }
}

fn said(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_out_of_the_text() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let mut out = Vec::new();
            let id = without_id(text.as_bytes(), &mut out);
            let found = id.map(|id| (id, String::from_utf8(out).unwrap()));
            let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
            assert_eq!(found, expected, "{text}");
        };
        let users = r#"{"a":1,"@metadata":{"@collection":"Users"}}"#;
        check(r#"{"a":1,"@metadata":{"@id":"u\/1","@collection":"Users"}}"#, Some(("u/1", users)));
        check(
            "{\"a\":1,\"@metadata\":{\"@collection\":\"Users\",\"@id\":\"u/1\"}\n}  ",
            Some(("u/1", users)),
        );
        check(r#"{"@metadata":{"@id":"x"}}"#, Some(("x", r#"{"@metadata":{}}"#)));
        check(r#"{"@metadata":{"a\"b":[{}],"@id":"x"}}"#, Some(("x", r#"{"@metadata":{"a\"b":[{}]}}"#)));
        // It has none, it is not text, or it is somebody else's.
        check(r#"{"@metadata":{"@collection":"Users"}}"#, None);
        check(r#"{"@metadata":{"@id":7}}"#, None);
        check(r#"{"a":{"@metadata":{"@id":"x"}}}"#, None);
        check(r#"{"@metadata":{"@id":"x"},"a":{"@metadata":{"@id":"y"}}}"#, None);
        check(r#"{"@metadata":{"@id":"x"},"a":1}"#, None);
        check(r#"{"a":"\"@metadata\":{\"@id\":\"x\"}"}"#, None);
        check(r#"{"@metadata":[]}"#, None);
        check("", None);
    }

    #[test]
    fn prefixes_of_ids_are_those_of_the_clients() {
        assert_eq!(prefix_of("Users"), "users/");
        assert_eq!(prefix_of("OrderLines"), "OrderLines/");
        assert_eq!(prefix_of("items"), "items/");
    }
}
