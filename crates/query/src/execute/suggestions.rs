//! `select suggest(..)`: words of the index that are like misspelt ones.

use jackdaw_document::{Context, Object, Value};
use jackdaw_rql::tree::{Argument, Call, Expression, Projection, SelectItem};
use jackdaw_search::{StringDistance, Suggest, SuggestSort};

use crate::answer::envelope::{self, Layout};
use crate::answer::json;
use crate::error::{Error, Result};
use crate::execute::collection::Outcome;
use crate::execute::index::Opened;
use crate::parameters::{Scalar, flatten, option};
use crate::run::Run;
use crate::search::names::{Names, Use};
use crate::sink::{Head, Sink};

/// What is suggested at most, and how alike it must be, unless the query says.
const COUNT: usize = 15;
const ACCURACY: f32 = 0.5;

/// Answers a query of suggestions.
pub(crate) fn run(run: &Run<'_>, opened: &Opened, out: &mut Vec<u8>, sink: &mut dyn Sink) -> Result<Outcome> {
    let mut state = opened.state(run)?;
    if run.request.known_etag == Some(state.etag) {
        return Ok(Outcome::NotModified);
    }
    let names = opened.names(run);
    let items = match run.plan.tree.select.as_ref().map(|select| &select.projection) {
        Some(Projection::Items(items)) => &**items,
        _ => &[],
    };
    let mut all = Vec::with_capacity(items.len());
    for SelectItem { expression, alias } in items {
        if let Expression::Call(call) = expression {
            let (name, words) = suggest(run, opened, &names, call)?;
            all.push((alias.as_ref().map_or(name, |alias| alias.text.to_string()), words));
        }
    }
    sink.begin(Head { etag: state.etag });
    envelope::begin(Layout::Answer, &state, out);
    for (name, words) in &all {
        json::separate(out);
        out.push(b'{');
        json::string(out, "Name", name);
        json::strings(out, "Suggestions", words.iter().map(String::as_str));
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"Includes\":{}");
    state.total = i64::try_from(all.len()).unwrap_or(i64::MAX);
    envelope::print_state(run, &state, None, out);
    out.push(b'}');
    Ok(Outcome::Answered)
}

/// The name of the field, and the words like one or all of the terms.
fn suggest(
    run: &Run<'_>,
    opened: &Opened,
    names: &Names<'_>,
    call: &Call<'_>,
) -> Result<(String, Vec<String>)> {
    let text = &*run.plan.text;
    let (Some(first), Some(terms)) = (call.arguments.first(), call.arguments.get(1)) else {
        return Err(Error::invalid(text, call.span, "suggest() expects a field and a term"));
    };
    let field = names.of_argument(&first.expression, Use::Values)?;
    if !opened.is_auto() && opened.index.field_options(&field).suggestions != Some(true) {
        return Err(Error::InvalidOperation(format!(
            "Index '{}' does not have suggestions configured for field '{field}'.",
            opened.index.name()
        )));
    }
    let mut wanted = Suggest {
        field: field.clone(),
        term: String::new(),
        accuracy: ACCURACY,
        count: COUNT,
        distance: StringDistance::Levenshtein,
        sort: SuggestSort::None,
    };
    if let Some(options) = call.arguments.get(2) {
        read_options(run, options, &mut wanted)?;
    }
    let mut words: Vec<String> = Vec::new();
    let mut each = Vec::new();
    flatten(run.parameters().value(text, &terms.expression)?, &mut |term| each.push(term));
    for term in each {
        let Scalar::Text(term) = term else {
            let message = format!("suggest() expects text as its term, but got {}", term.type_name());
            return Err(Error::invalid(text, terms.expression.span(), message));
        };
        wanted.term = term.into_owned();
        for word in opened.view.searcher().suggest(&wanted)? {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    Ok((field, words))
}

fn read_options(run: &Run<'_>, argument: &Argument<'_>, wanted: &mut Suggest) -> Result<()> {
    let text = &*run.plan.text;
    let context = Context::new();
    let object: Object<'_> = match run.parameters().value(text, &argument.expression)? {
        Scalar::Null => return Ok(()),
        Scalar::Other(Value::Object(object)) => object,
        Scalar::Text(json) => match context.parse(json.as_bytes())?.object() {
            Some(object) => object,
            None => {
                return Err(Error::invalid(
                    text,
                    argument.expression.span(),
                    "The options must be an object",
                ));
            }
        },
        _ => return Err(Error::invalid(text, argument.expression.span(), "The options must be an object")),
    };
    let word = |name: &str| {
        option(&object, name).and_then(|value| value.as_str()).map(|word| word.to_ascii_lowercase())
    };
    if let Some(accuracy) = option(&object, "Accuracy").and_then(|value| value.as_f64()) {
        wanted.accuracy = accuracy as f32;
    }
    if let Some(count) = option(&object, "PageSize").and_then(|value| value.as_i64()) {
        wanted.count = usize::try_from(count).unwrap_or(0);
    }
    wanted.distance = match word("Distance").as_deref() {
        Some("jarowinkler") => StringDistance::JaroWinkler,
        Some("ngram") => StringDistance::NGram,
        _ => StringDistance::Levenshtein,
    };
    if word("SortMode").as_deref() == Some("popularity") {
        wanted.sort = SuggestSort::Popularity;
    }
    Ok(())
}
