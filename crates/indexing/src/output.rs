//! Results of a map/reduce index as documents of a collection, and documents that refer to them.
//!
//! Each result becomes the document `<collection>/<number>/<hash of the key>`, where the number is the index's (of several results of a key, the second
//! ends in `/2`). With a pattern, such as `reports/{At:yyyy-MM-dd}`, the document of the id that the pattern makes of the result lists in `ReduceOutputs` the
//! ids of all results for which it makes that id.
//!
//! Everything is found again in the database: what a key had before is in its document, and with it the id of the reference. So a job can come again after
//! a crash and changes nothing then; what has not changed is not written.

use std::sync::Arc;

use jackdaw_database::{Database, Expected, Flags, IncomingDocument, PutOptions, Transaction};
use jackdaw_document::date::Date;
use jackdaw_document::{Context, Document, Value as DocumentValue};
use jackdaw_functions::{Value, format_value};

use crate::definition::IndexDefinition;
use crate::error::{Error, Result};

/// Keys in one job of the database.
const KEYS_A_JOB: usize = 256;
/// Bytes of documents in one job.
const BYTES_A_JOB: usize = 4 << 20;

/// The property of reference documents.
const REDUCE_OUTPUTS: &str = "ReduceOutputs";

const FLAGS: Flags = Flags::ARTIFICIAL.and(Flags::FROM_INDEX);

/// Where results go.
#[derive(Clone, Debug)]
pub(crate) struct OutputPlan {
    collection: String,
    pattern: Option<Arc<Pattern>>,
    references: String,
}

impl OutputPlan {
    /// `None`: the definition has no output.
    ///
    /// Errors: a pattern that is none.
    pub(crate) fn of(definition: &IndexDefinition) -> Result<Option<OutputPlan>> {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let Some(collection) = filled(&definition.output_reduce_to_collection) else { return Ok(None) };
        let pattern = filled(&definition.pattern_for_output_reduce_to_collection_references);
        let pattern = pattern.map(|text| Pattern::parse(&text)).transpose()?.map(Arc::new);
        let references = filled(&definition.pattern_references_collection_name);
        let references = references.unwrap_or_else(|| format!("{collection}/References"));
        Ok(Some(OutputPlan { collection, pattern, references }))
    }
}

/// The pattern of reference ids: text, and fields of results with a format.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    /// Text before each field.
    parts: Vec<(String, Field)>,
    end: String,
}

#[derive(Debug)]
struct Field {
    name: String,
    format: String,
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern> {
        let wrong = |reason: &str| {
            Error::InvalidDefinition(format!("The provided pattern is invalid: {text}. {reason}"))
        };
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            let inner =
                from.strip_prefix('{').ok_or_else(|| wrong("A closing bracket without an opening one."))?;
            let end = inner.find('}').ok_or_else(|| wrong("A bracket is not closed."))?;
            let (name, format) = inner[..end].split_once(':').unwrap_or((&inner[..end], ""));
            if name.trim().is_empty() || name.contains('{') {
                return Err(wrong("A field has no name."));
            }
            parts.push((before.to_owned(), Field { name: name.trim().into(), format: format.into() }));
            rest = &inner[end + 1..];
        }
        if parts.is_empty() {
            return Err(wrong("It refers to no field."));
        }
        Ok(Pattern { text: text.to_owned(), parts, end: rest.to_owned() })
    }

    /// The id that a result makes.
    ///
    /// Error: in words, why it makes none.
    fn id(&self, document: &Document<'_>) -> std::result::Result<String, String> {
        let mut id = String::new();
        for (before, field) in &self.parts {
            id.push_str(before);
            let value = document.get(&field.name);
            id.push_str(&self.shown(field, value)?);
        }
        id.push_str(&self.end);
        Ok(id)
    }

    fn shown(&self, field: &Field, value: Option<DocumentValue<'_>>) -> std::result::Result<String, String> {
        let Field { name, format } = field;
        let (text, number);
        let value = match value {
            None | Some(DocumentValue::Null) => {
                return Err(format!(
                    "Invalid pattern reference document ID '{}'. Field '{name}' was null",
                    self.text
                ));
            }
            Some(DocumentValue::Bool(value)) => Value::Bool(value),
            Some(DocumentValue::Number(found)) => match found.as_i64() {
                Some(value) => Value::Long(value),
                None => {
                    number = found;
                    Value::Number(&number)
                }
            },
            Some(DocumentValue::Text(found)) => {
                text = found.to_str().into_owned();
                match Date::parse(text.as_bytes()).filter(|_| !format.is_empty()) {
                    Some(date) => Value::Date(date),
                    None => Value::Text(&text),
                }
            }
            Some(other) => {
                return Err(format!("Field '{name}' is {}, which is no part of an id", other.type_name()));
            }
        };
        format_value(&value, format)
    }
}

/// Writes the results of one batch.
pub(crate) struct Output<'p> {
    plan: &'p OutputPlan,
    database: &'p Database,
    /// `<collection>/<number>/`.
    prefix: String,
    made: Vec<Made>,
    bytes: usize,
    context: Context,
    /// What was found wrong with results, in words.
    pub(crate) problems: Vec<String>,
}

/// The documents of one key.
struct Made {
    key: String,
    documents: Vec<(IncomingDocument, Option<String>)>,
}

impl<'p> Output<'p> {
    /// For the index of this number.
    pub(crate) fn new(plan: &'p OutputPlan, database: &'p Database, number: i64) -> Output<'p> {
        let prefix = format!("{}/{number}/", plan.collection);
        let context = Context::new();
        Output { plan, database, prefix, made: Vec::new(), bytes: 0, context, problems: Vec::new() }
    }

    /// Begins with nothing: documents of an earlier life of the index go.
    pub(crate) fn clear(&mut self) -> Result<()> {
        loop {
            let mut ids = Vec::new();
            self.database.read()?.documents_by_prefix(&self.prefix, None, |document| {
                ids.push(document.id.to_owned());
                let full = ids.len() == KEYS_A_JOB;
                Ok(if full { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) })
            })?;
            if ids.is_empty() {
                return Ok(());
            }
            let writer = self.writer();
            let deleted = self
                .database
                .submit(move |transaction| ids.iter().try_for_each(|id| writer.delete(transaction, id)));
            deleted.wait()?;
        }
    }

    /// A key has these results now; with none, it is gone.
    pub(crate) fn add(&mut self, key: &str) {
        self.made.push(Made { key: key.to_owned(), documents: Vec::new() });
    }

    /// Adds a result to the key added last.
    pub(crate) fn result(&mut self, document: &Document<'_>) -> Result<()> {
        self.context.reset();
        let incoming =
            IncomingDocument::in_collection(document, &self.plan.collection, &self.context, self.database)?;
        self.bytes += incoming.as_bytes().len();
        let reference = match self.plan.pattern.as_deref().map(|pattern| pattern.id(document)) {
            None => None,
            Some(Ok(id)) => Some(id),
            Some(Err(problem)) => {
                self.problems.push(problem);
                None
            }
        };
        if let Some(made) = self.made.last_mut() {
            made.documents.push((incoming, reference));
        }
        Ok(())
    }

    /// Writes what was added, if that is enough for a job.
    pub(crate) fn write_some(&mut self) -> Result<()> {
        if self.made.len() >= KEYS_A_JOB || self.bytes >= BYTES_A_JOB { self.write() } else { Ok(()) }
    }

    /// Writes what was added. Durable when it returns.
    pub(crate) fn write(&mut self) -> Result<()> {
        if self.made.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let (made, writer) = (std::mem::take(&mut self.made), self.writer());
        let written = self.database.submit(move |transaction: &mut Transaction<'_>| {
            made.iter().try_for_each(|made| writer.write(transaction, made))
        });
        match written.wait() {
            // Somebody else's document has the id: trying again does not help.
            Err(error @ jackdaw_database::Error::CollectionMismatch { .. }) => {
                self.problems.push(error.to_string());
                Ok(())
            }
            other => Ok(other?),
        }
    }

    fn writer(&self) -> JobWriter {
        JobWriter { database: self.database.clone(), prefix: self.prefix.clone(), plan: self.plan.clone() }
    }
}

/// Writes within a job of the database.
struct JobWriter {
    database: Database,
    prefix: String,
    plan: OutputPlan,
}

impl JobWriter {
    fn write(&self, transaction: &mut Transaction<'_>, made: &Made) -> jackdaw_database::Result<()> {
        for (at, (document, reference)) in made.documents.iter().enumerate() {
            let id = self.id(&made.key, at);
            let before = self.reference_of(transaction, &id)?;
            let options = PutOptions { skip_if_unchanged: true, ..PutOptions::default() };
            transaction.put_flagged(&id, document, options, FLAGS)?;
            if before != *reference
                && let Some(before) = before
            {
                self.refer(transaction, &before, &id, false)?;
            }
            if let Some(reference) = reference {
                self.refer(transaction, reference, &id, true)?;
            }
        }
        // There may have been more.
        for at in made.documents.len().. {
            let id = self.id(&made.key, at);
            if transaction.get(&id)?.is_none() {
                break;
            }
            self.delete(transaction, &id)?;
        }
        Ok(())
    }

    fn id(&self, key: &str, at: usize) -> String {
        match at {
            0 => format!("{}{key}", self.prefix),
            more => format!("{}{key}/{}", self.prefix, more + 1),
        }
    }

    fn delete(&self, transaction: &mut Transaction<'_>, id: &str) -> jackdaw_database::Result<()> {
        if let Some(reference) = self.reference_of(transaction, id)? {
            self.refer(transaction, &reference, id, false)?;
        }
        transaction.delete(id, &Expected::Any)?;
        Ok(())
    }

    /// The id of the reference to a result as it is stored, if it has one.
    fn reference_of(
        &self,
        transaction: &Transaction<'_>,
        id: &str,
    ) -> jackdaw_database::Result<Option<String>> {
        let Some(pattern) = &self.plan.pattern else { return Ok(None) };
        Ok(transaction.get(id)?.and_then(|stored| pattern.id(&stored.document).ok()))
    }

    /// Adds a result to a reference document, or takes it away; the last one takes the document with it.
    fn refer(
        &self,
        transaction: &mut Transaction<'_>,
        reference: &str,
        id: &str,
        is_there: bool,
    ) -> jackdaw_database::Result<()> {
        let mut outputs: Vec<String> = Vec::new();
        if let Some(stored) = transaction.get(reference)?
            && let Some(list) = stored.document.get(REDUCE_OUTPUTS).and_then(|list| list.as_array())
        {
            outputs.extend(list.iter().filter_map(|id| Some(id.as_str()?.into_owned())));
        }
        let before = outputs.len();
        let had = outputs.iter().any(|output| output.eq_ignore_ascii_case(id));
        match (had, is_there) {
            (true, true) | (false, false) => return Ok(()),
            (false, true) => outputs.push(id.to_owned()),
            (true, false) => outputs.retain(|output| !output.eq_ignore_ascii_case(id)),
        }
        debug_assert_ne!(before, outputs.len());
        if outputs.is_empty() {
            transaction.delete(reference, &Expected::Any)?;
            return Ok(());
        }
        let context = Context::new();
        let document = IncomingDocument::build(&self.plan.references, &context, &self.database, |builder| {
            builder.name(REDUCE_OUTPUTS)?;
            builder.begin_array()?;
            outputs.iter().try_for_each(|output| builder.str(output))?;
            builder.end()
        })?;
        transaction.put_flagged(reference, &document, PutOptions::default(), FLAGS)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn patterns_make_ids() {
        let context = Context::new();
        let json =
            r#"{"At":"2024-02-05T13:00:00.0000000","Region":"eu","N":7,"D":1.50,"Nothing":null,"List":[]}"#;
        let document = context.parse(json).unwrap();
        for (pattern, id) in [
            ("reports/{At:yyyy-MM-dd}", Ok("reports/2024-02-05")),
            ("{Region}/{ N }/end", Ok("eu/7/end")),
            ("r/{D}", Ok("r/1.5")),
            ("r/{At:yyyy}/{At:MM}", Ok("r/2024/02")),
            ("r/{Nothing}", Err("was null")),
            ("r/{Other}", Err("was null")),
            ("r/{List}", Err("no part of an id")),
        ] {
            let made = Pattern::parse(pattern).unwrap().id(&document);
            match id {
                Ok(id) => assert_eq!(
                    made.as_deref().map(|made| made.trim_end_matches('0')),
                    Ok(id.trim_end_matches('0')),
                    "{pattern}"
                ),
                Err(part) => {
                    assert!(made.as_ref().is_err_and(|error| error.contains(part)), "{pattern}: {made:?}")
                }
            }
        }
        for wrong in ["reports", "a/{x", "a/x}", "a/{}", "a/{:yyyy}"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
