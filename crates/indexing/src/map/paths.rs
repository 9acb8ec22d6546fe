//! Maps of automatic indexes: values at paths of a document, taken in place.

use bumpalo::collections::Vec as BumpVec;
use jackdaw_database::clock;
use jackdaw_document::{Context, Mode, Path, Value};
use jackdaw_functions::{Input, RuntimeError};
use jackdaw_search::{Entry, FieldValue, Shape};

use super::EachEntry;
use super::arena::Arena;
use super::values;
use crate::auto::{AutoDefinition, SpatialMethod, exact_field, search_field};
use crate::error::{Error, Result};

/// The map of an automatic index without groups.
pub(crate) struct PathMap {
    fields: Vec<PathField>,
}

struct PathField {
    /// The names under which the values are indexed.
    names: Vec<String>,
    /// The one under which the value is stored, for highlighting.
    stored_as: Option<String>,
    source: Source,
}

enum Source {
    /// The path, and its text where that may be the name of a property too.
    Path(Path, Option<Box<str>>),
    Id,
    LastModified,
    ChangeVector,
    Point(Box<(Source, Source)>),
    Wkt(Box<Source>),
}

impl Source {
    fn of(path: &str) -> Result<Source> {
        Ok(match path {
            "id()" | "@metadata.@id" => Source::Id,
            "@metadata.@last-modified" => Source::LastModified,
            "@metadata.@change-vector" => Source::ChangeVector,
            // A bracket that holds no index is part of a name.
            path => {
                let steps = Path::parse(path).map_err(|error| {
                    Error::InvalidDefinition(format!("'{path}' is no path into documents: {error}"))
                })?;
                Source::Path(steps, path.contains('.').then(|| path.into()))
            }
        })
    }
}

impl PathMap {
    /// Errors: a path that is none; a field of places with too few arguments.
    pub(crate) fn new(definition: &AutoDefinition) -> Result<PathMap> {
        let mut fields = Vec::new();
        for (path, field) in &definition.map_fields {
            let source = match &field.spatial {
                None => Source::of(path)?,
                Some(spatial) => match (spatial.method, spatial.arguments.as_slice()) {
                    (SpatialMethod::Point, [latitude, longitude]) => {
                        Source::Point(Box::new((Source::of(latitude)?, Source::of(longitude)?)))
                    }
                    (SpatialMethod::Wkt, [text]) => Source::Wkt(Box::new(Source::of(text)?)),
                    _ => {
                        return Err(Error::InvalidDefinition(format!(
                            "the field of places '{path}' has {} arguments",
                            spatial.arguments.len()
                        )));
                    }
                },
            };
            let mut names = vec![path.clone()];
            if field.exact {
                names.push(exact_field(path));
            }
            if field.search || field.highlighting {
                names.push(search_field(path));
            }
            let stored_as = field.highlighting.then(|| search_field(path));
            fields.push(PathField { names, stored_as, source });
        }
        Ok(PathMap { fields })
    }

    /// Gives the document's one entry to `each`.
    pub(super) fn run(
        &self,
        key: &str,
        input: &Input<'_>,
        arena: &Arena,
        context: &Context,
        each: &mut EachEntry<'_>,
    ) -> Result<(), RuntimeError> {
        let mut out = BumpVec::with_capacity_in(self.fields.len() * 2, &arena.bump);
        for field in &self.fields {
            let Some(value) = self.value(&field.source, input, arena) else { continue };
            out.extend(field.names.iter().map(|name| (name.as_str(), value)));
        }
        let stored = if self.fields.iter().any(|field| field.stored_as.is_some()) {
            self.stored(input, context)?
        } else {
            &[]
        };
        each(&Entry { key, fields: &out, stored, references: &[], boost: 1.0 })
    }

    fn value<'a>(&self, source: &Source, input: &Input<'a>, arena: &'a Arena) -> Option<FieldValue<'a>> {
        Some(match source {
            Source::Id => FieldValue::Text(input.id),
            Source::ChangeVector => FieldValue::Text(input.change_vector),
            Source::LastModified => {
                FieldValue::Text(arena.bump.alloc_str(&clock::date_text(input.last_modified)))
            }
            Source::Path(path, whole) => {
                let root = input.document.root();
                if !path.is_many() {
                    // Through arrays too: `Lines.Product` is what every line has.
                    if let Some(value) = path.first(&root) {
                        return Some(values::of_document(&value, arena));
                    }
                }
                let mut found = BumpVec::new_in(&arena.bump);
                path.visit_field(&root, |value| found.push(values::of_document(&value, arena)));
                match found.len() {
                    // A property may have points in its name.
                    0 => match whole.as_ref().and_then(|whole| root.get(whole)) {
                        Some(value) => return Some(values::of_document(&value, arena)),
                        None => return None,
                    },
                    _ => FieldValue::Array(found.into_bump_slice()),
                }
            }
            Source::Point(places) => {
                let (latitude, longitude) = (number(&places.0, input)?, number(&places.1, input)?);
                FieldValue::Point { latitude, longitude }
            }
            Source::Wkt(text) => {
                let Source::Path(path, _) = &**text else { return None };
                let mut found = BumpVec::new_in(&arena.bump);
                path.visit_through_arrays(&input.document.root(), |value| {
                    if let Some(text) = value.as_str() {
                        let shape = Shape::Wkt { text: text.into_owned(), units: None };
                        found.push(FieldValue::Shape(arena.shape(shape)));
                    }
                    true
                });
                FieldValue::Array(found.into_bump_slice())
            }
        })
    }

    fn stored<'c>(&self, input: &Input<'_>, context: &'c Context) -> Result<&'c [u8], RuntimeError> {
        let root = input.document.root();
        let built = context.build(Mode::Memory, |builder| {
            builder.begin_object()?;
            for field in &self.fields {
                if let (Some(name), Source::Path(path, _)) = (&field.stored_as, &field.source)
                    && let Some(value) = path.first(&root)
                {
                    builder.name(name)?;
                    builder.value(&value)?;
                }
            }
            builder.end()
        });
        let built = built.map_err(|error| RuntimeError::value(error.to_string(), 0))?;
        Ok(built.as_bytes())
    }
}

/// A number, also one that is written as text.
fn number(source: &Source, input: &Input<'_>) -> Option<f64> {
    let Source::Path(path, _) = source else { return None };
    match path.first(&input.document.root())? {
        Value::Number(number) => Some(number.as_f64()),
        Value::Text(text) => text.to_str().trim().parse().ok(),
        _ => None,
    }
}
