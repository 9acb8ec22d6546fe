//! What comes along with hits: why they matched, and where.

use jackdaw_document::{Path, Value};
use jackdaw_indexing::auto::search_field;
use jackdaw_rql::tree::{Call, Expression};
use jackdaw_search::{Highlight, Hit, Query, Searcher};

use crate::answer::json;
use crate::error::{Error, Result};
use crate::execute::index::Opened;
use crate::parameters::{Scalar, option};
use crate::row::Row;
use crate::run::Run;
use crate::search::names::{Names, Use};

/// Gathers highlights and explanations of the hits that are given.
pub(crate) struct Extras<'e> {
    searcher: &'e Searcher,
    query: &'e Query,
    highlights: Vec<Field>,
    explanations: Option<Vec<(String, String)>>,
}

/// A field to be highlighted.
struct Field {
    /// As the query names it.
    name: String,
    path: Option<Path>,
    stored_name: String,
    request: Highlight,
    /// The field whose value fragments are told under, in place of the id.
    group_key: Option<String>,
    fragments: Vec<(String, Vec<String>)>,
}

impl<'e> Extras<'e> {
    /// What the query wants; `None` when that is nothing.
    pub(crate) fn new(run: &Run<'_>, opened: &'e Opened, query: &'e Query) -> Result<Option<Extras<'e>>> {
        let wanted = &run.plan.wanted;
        if wanted.highlights.is_empty() && !wanted.explanations {
            return Ok(None);
        }
        let names = opened.names(run);
        let calls = wanted.highlights.iter().filter_map(|at| match run.plan.tree.include.get(*at) {
            Some(Expression::Call(call)) => Some(call),
            _ => None,
        });
        Ok(Some(Extras {
            searcher: opened.view.searcher(),
            query,
            highlights: calls.map(|call| Field::new(run, opened, &names, call)).collect::<Result<_>>()?,
            explanations: wanted.explanations.then(Vec::new),
        }))
    }

    /// Notes a hit that is part of the answer.
    pub(crate) fn note(&mut self, hit: &Hit, row: &Row<'_>) -> Result<()> {
        let key = row.id(crate::plan::field::Origin::Result).unwrap_or(&hit.key).to_owned();
        for field in &mut self.highlights {
            let mut texts = Vec::new();
            if let Some(value) = row.stored.as_ref().and_then(|stored| stored.get(&field.stored_name)) {
                take(&value, &mut texts);
            } else if let (Some(document), Some(path)) = (&row.document, &field.path) {
                path.visit_through_arrays(&document.document.root(), |value| {
                    take(&value, &mut texts);
                    true
                });
            }
            let mut fragments = Vec::new();
            for text in &texts {
                fragments.extend(self.searcher.highlight(self.query, &field.request, text)?);
            }
            fragments.truncate(field.request.fragment_count);
            if fragments.is_empty() {
                continue;
            }
            let key = match &field.group_key {
                None => key.clone(),
                Some(name) => {
                    let of = |root: &Value<'_>| {
                        root.get(name).map(|value| match value.as_str() {
                            Some(text) => text.into_owned(),
                            None => value.to_string(),
                        })
                    };
                    let stored = row.stored.as_ref().and_then(of);
                    let found = stored.or_else(|| of(&row.document.as_ref()?.document.root()));
                    found.unwrap_or_else(|| key.clone())
                }
            };
            match field.fragments.iter_mut().find(|(known, _)| *known == key) {
                Some((_, all)) => all.extend(fragments),
                None => field.fragments.push((key, fragments)),
            }
        }
        if let Some(explanations) = &mut self.explanations {
            explanations.push((key, self.searcher.explain(self.query, hit.place)?));
        }
        Ok(())
    }

    /// The properties of the answer.
    pub(crate) fn print(&self, out: &mut Vec<u8>) {
        if !self.highlights.is_empty() {
            json::name(out, "Highlightings");
            out.push(b'{');
            for field in self.highlights.iter().filter(|field| !field.fragments.is_empty()) {
                json::name(out, &field.name);
                out.push(b'{');
                for (key, fragments) in &field.fragments {
                    json::strings(out, key, fragments.iter().map(String::as_str));
                }
                out.push(b'}');
            }
            out.push(b'}');
        }
        if let Some(explanations) = &self.explanations {
            json::name(out, "Explanations");
            out.push(b'{');
            for (key, text) in explanations {
                json::strings(out, key, [&**text]);
            }
            out.push(b'}');
        }
    }
}

fn take(value: &Value<'_>, texts: &mut Vec<String>) {
    match value {
        Value::Text(text) => texts.push(text.to_str().into_owned()),
        Value::Array(array) => array.iter().for_each(|value| take(&value, texts)),
        _ => {}
    }
}

impl Field {
    /// `highlight(field, length, count[, options])`.
    fn new(run: &Run<'_>, opened: &Opened, names: &Names<'_>, call: &Call<'_>) -> Result<Field> {
        let text = &*run.plan.text;
        let [field, length, count, ..] = &*call.arguments else {
            return Err(Error::invalid(text, call.span, "highlight() expects a field, a length and a count"));
        };
        let number = |expression: &Expression<'_>| match run.parameters().value(text, expression)? {
            Scalar::Long(number) if number > 0 => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
            other => {
                let message = format!("Expected a positive integer, but got {}", other.type_name());
                Err(Error::invalid(text, expression.span(), message))
            }
        };
        let plain = match opened.is_auto() {
            true => names.of_argument(&field.expression, Use::Values)?,
            false => match &field.expression {
                Expression::Field(path) => crate::plan::needs::name_of(path, names.aliases, text)?,
                other => names.of_argument(other, Use::Words)?,
            },
        };
        let searched = if opened.is_auto() { search_field(&plain) } else { plain.clone() };
        let mut request = Highlight {
            field: searched.clone(),
            fragment_length: number(&length.expression)?,
            fragment_count: number(&count.expression)?,
            pre_tags: Vec::new(),
            post_tags: Vec::new(),
        };
        let mut group_key = None;
        if let Some(options) = call.arguments.get(3) {
            match run.parameters().value(text, &options.expression)? {
                Scalar::Null => {}
                Scalar::Other(Value::Object(object)) => {
                    let tags = |name: &str| -> Vec<String> {
                        let tags = option(&object, name).and_then(|tags| tags.as_array());
                        let tags = tags.iter().flat_map(|tags| tags.iter());
                        tags.filter_map(|tag| tag.as_str().map(|tag| tag.into_owned())).collect()
                    };
                    (request.pre_tags, request.post_tags) = (tags("PreTags"), tags("PostTags"));
                    if request.pre_tags.len() != request.post_tags.len() {
                        return Err(Error::invalid(
                            text,
                            options.expression.span(),
                            "Number of pre-tags must match the number of post-tags",
                        ));
                    }
                    group_key =
                        option(&object, "GroupKey").and_then(|key| key.as_str().map(|key| key.into_owned()));
                }
                _ => {
                    return Err(Error::invalid(
                        text,
                        options.expression.span(),
                        "The options must be an object",
                    ));
                }
            }
        }
        Ok(Field {
            path: Path::parse(&plain).ok(),
            stored_name: searched,
            name: plain,
            request,
            group_key: group_key.filter(|key| !key.is_empty()),
            fragments: Vec::new(),
        })
    }
}
