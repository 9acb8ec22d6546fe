//! `moreLikeThis()`: entries like those of a document.

use jackdaw_database::ids;
use jackdaw_document::{Context, Document, Object, Value};
use jackdaw_indexing::definition::{FieldStorage, TermVector};
use jackdaw_rql::tree::{Call, Expression};
use jackdaw_search::{MoreLikeThis, MoreLikeThisSource, Query};

use crate::error::{Error, Result};
use crate::parameters::{Scalar, option};
use crate::search::condition::Conditions;

impl Conditions<'_> {
    /// `moreLikeThis(id() = 'x'[, options])`, `moreLikeThis(document[, options])`.
    pub(crate) fn more_like_this(&self, call: &Call<'_>) -> Result<Query> {
        let text = &*self.run.plan.text;
        let context = Context::new();
        let Some(first) = call.arguments.first().map(|argument| &argument.expression) else {
            return Err(Error::invalid(text, call.span, "moreLikeThis() expects a document or a condition"));
        };
        let mut wanted = MoreLikeThis::new(MoreLikeThisSource::Texts(Vec::new()));
        if let Some(argument) = call.arguments.get(1) {
            match self.run.parameters().value(text, &argument.expression)? {
                Scalar::Null => {}
                Scalar::Other(value) => match value.as_object() {
                    Some(object) => self.read_options(&object, &mut wanted)?,
                    None => {
                        return Err(Error::invalid(
                            text,
                            argument.expression.span(),
                            "The options must be an object",
                        ));
                    }
                },
                Scalar::Text(json) => match context.parse(json.as_bytes())?.object() {
                    Some(object) => self.read_options(&object, &mut wanted)?,
                    None => {
                        return Err(Error::invalid(
                            text,
                            argument.expression.span(),
                            "The options must be an object",
                        ));
                    }
                },
                _ => {
                    return Err(Error::invalid(
                        text,
                        argument.expression.span(),
                        "The options must be an object",
                    ));
                }
            }
        }
        if wanted.fields.is_empty() {
            wanted.fields = self.names.index.field_names().map(str::to_owned).collect();
        }
        wanted.source = match first {
            Expression::Parameter(_) | Expression::Literal(_) => {
                let texts = match self.run.parameters().value(text, first)? {
                    Scalar::Text(json) => self.texts(&context.parse(json.as_bytes())?.root(), &wanted.fields),
                    Scalar::Other(value) => self.texts(&value, &wanted.fields),
                    _ => {
                        return Err(Error::invalid(
                            text,
                            first.span(),
                            "moreLikeThis() expects a document or a condition",
                        ));
                    }
                };
                MoreLikeThisSource::Texts(texts)
            }
            condition => {
                let query = self.of(condition, false)?;
                let found = self.searcher.search(&query, &[], 0, 1, false)?;
                let Some(hit) = found.hits.into_iter().next() else {
                    return Err(Error::InvalidOperation(
                        "Given filtering expression did not yield any documents that could be used as a base of comparison"
                            .to_owned(),
                    ));
                };
                self.keep_comparable(&mut wanted.fields);
                let texts = match hit.stored.is_empty() {
                    true => Vec::new(),
                    false => self.texts(&Document::open(&hit.stored)?.root(), &wanted.fields),
                };
                MoreLikeThisSource::Entries { query: Query::Key(hit.key), texts }
            }
        };
        Ok(Query::MoreLikeThis(Box::new(wanted)))
    }

    /// Leaves the fields whose texts or terms the index keeps, as the reference has it; all of them in an index that keeps none,
    /// because its terms can be found all the same.
    fn keep_comparable(&self, fields: &mut Vec<String>) {
        let kept = |name: &str| {
            let options = self.names.index.field_options(name);
            options.storage == Some(FieldStorage::Yes)
                || options.term_vector.is_some_and(|vector| vector != TermVector::No)
        };
        if self.names.index.field_names().any(kept) {
            fields.retain(|name| kept(name));
        }
    }

    /// The texts of a document by these fields.
    fn texts(&self, root: &Value<'_>, fields: &[String]) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        for name in fields {
            let Ok(path) = jackdaw_document::Path::parse(name) else { continue };
            path.visit_through_arrays(root, |value| {
                take(name, &value, &mut texts);
                true
            });
        }
        texts
    }

    fn read_options(&self, options: &Object<'_>, wanted: &mut MoreLikeThis) -> Result<()> {
        let number =
            |name: &str| option(options, name).and_then(|value| value.as_i64()).filter(|number| *number >= 0);
        let size = |name: &str| number(name).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let small = |name: &str| number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        if let Some(value) = small("MinimumTermFrequency") {
            wanted.minimum_term_frequency = value;
        }
        if let Some(value) = size("MaximumQueryTerms") {
            wanted.maximum_query_terms = value;
        }
        if let Some(value) = size("MaximumNumberOfTokensParsed") {
            wanted.maximum_number_of_tokens_parsed = value;
        }
        if let Some(value) = size("MinimumWordLength") {
            wanted.minimum_word_length = value;
        }
        if let Some(value) = size("MaximumWordLength") {
            wanted.maximum_word_length = value;
        }
        if let Some(value) = number("MinimumDocumentFrequency") {
            wanted.minimum_document_frequency = value.unsigned_abs();
        }
        if let Some(value) = number("MaximumDocumentFrequency") {
            wanted.maximum_document_frequency = value.unsigned_abs();
        }
        wanted.maximum_document_frequency_percentage = small("MaximumDocumentFrequencyPercentage");
        if let Some(value) = option(options, "Boost").and_then(|value| value.as_bool()) {
            wanted.boost = value;
        }
        if let Some(value) = option(options, "BoostFactor").and_then(|value| value.as_f64()) {
            wanted.boost_factor = value as f32;
        }
        if let Some(fields) = option(options, "Fields").and_then(|value| value.as_array()) {
            wanted.fields =
                fields.iter().filter_map(|name| name.as_str().map(|name| name.into_owned())).collect();
        }
        if let Some(id) = option(options, "StopWordsDocumentId").and_then(|value| value.as_str()) {
            let document = self.run.snapshot().document(&ids::lower(&id))?.ok_or_else(|| {
                Error::InvalidOperation(format!("Stop words document {id} could not be found"))
            })?;
            let words = document.document.get("StopWords").and_then(|words| words.as_array());
            wanted.stop_words = words
                .iter()
                .flat_map(|words| words.iter())
                .filter_map(|word| word.as_str().map(|word| word.to_lowercase()))
                .collect();
        }
        Ok(())
    }
}

fn take(name: &str, value: &Value<'_>, texts: &mut Vec<(String, String)>) {
    match value {
        Value::Text(text) => texts.push((name.to_owned(), text.to_str().into_owned())),
        Value::Number(number) => texts.push((name.to_owned(), number.to_string())),
        Value::Array(array) => array.iter().for_each(|value| take(name, &value, texts)),
        _ => {}
    }
}
