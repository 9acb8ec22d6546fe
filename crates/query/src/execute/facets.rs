//! `select facet(..)`: what a query finds, counted by terms and ranges of fields.

use jackdaw_document::{Object, Value as Json};
use jackdaw_rql::parse_expression;
use jackdaw_rql::tree::{Argument, Call, ComparisonOperator, Expression, Projection, SelectItem};
use jackdaw_search::{Bound, FacetKind, FacetRange, FacetRequest, FacetResult, FacetSort, Value};

use crate::answer::envelope::{self, Layout};
use crate::answer::json;
use crate::error::{Error, Result};
use crate::execute::collection::Outcome;
use crate::execute::index::Opened;
use crate::parameters::{Parameters, Scalar, option};
use crate::plan::Aliases;
use crate::plan::needs::name_of;
use crate::run::Run;
use crate::search::condition::Conditions;
use crate::search::names::Names;
use crate::sink::{Head, Sink};

/// What the one value of `facet()` is called.
const ALL_RESULTS: &str = "@AllResults";

/// One facet, with what its answer is called.
struct Facet {
    name: String,
    request: FacetRequest,
    /// For each of the request's fields: its name in the answer, and which numbers are wanted.
    aggregates: Vec<(String, Vec<Number>)>,
    /// The text of each range.
    ranges: Vec<String>,
}

/// A number of the values of a facet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Number {
    // In the order of the answer.
    Average,
    Max,
    Min,
    Sum,
}

impl Number {
    fn named(name: &str) -> Option<Number> {
        match &*name.to_ascii_lowercase() {
            "sum" => Some(Number::Sum),
            "min" => Some(Number::Min),
            "max" => Some(Number::Max),
            "avg" | "average" => Some(Number::Average),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Number::Sum => "Sum",
            Number::Min => "Min",
            Number::Max => "Max",
            Number::Average => "Average",
        }
    }
}

/// Answers a query of facets.
pub(crate) fn run(run: &Run<'_>, opened: &Opened, out: &mut Vec<u8>, sink: &mut dyn Sink) -> Result<Outcome> {
    if opened.is_auto() {
        return Err(Error::Invalid(format!(
            "Facet query must be executed against static index.\nQuery: {}",
            run.plan.text
        )));
    }
    let mut state = opened.state(run)?;
    if run.request.known_etag == Some(state.etag) {
        return Ok(Outcome::NotModified);
    }
    let searcher = opened.view.searcher();
    let names = opened.names(run);
    let facets = facets(run, &names)?;
    let requests: Vec<FacetRequest> = facets.iter().map(|facet| facet.request.clone()).collect();
    let query = Conditions { run, names, searcher }.query()?;
    let results = searcher.facets(&query, &requests)?;
    sink.begin(Head { etag: state.etag });
    envelope::begin(Layout::Answer, &state, out);
    for (facet, result) in facets.iter().zip(&results) {
        json::separate(out);
        print(facet, result, out);
    }
    out.extend_from_slice(b"],\"Includes\":{}");
    state.total = i64::try_from(facets.len()).unwrap_or(i64::MAX);
    envelope::print_state(run, &state, None, out);
    out.push(b'}');
    Ok(Outcome::Answered)
}

fn print(facet: &Facet, result: &FacetResult, out: &mut Vec<u8>) {
    out.push(b'{');
    json::string(out, "Name", &facet.name);
    json::name(out, "Values");
    out.push(b'[');
    for (number, value) in result.values.iter().enumerate() {
        let range = facet.ranges.get(number).map_or_else(|| result.term(value), String::as_str);
        let count = i64::try_from(value.count).unwrap_or(i64::MAX);
        if facet.aggregates.is_empty() {
            json::separate(out);
            out.extend_from_slice(b"{\"Name\":null");
            json::number(out, "Count", count);
            json::string(out, "Range", range);
            out.push(b'}');
        }
        for ((name, numbers), found) in facet.aggregates.iter().zip(&value.aggregates) {
            json::separate(out);
            out.push(b'{');
            json::string(out, "Name", name);
            for number in numbers.iter().filter(|_| value.count > 0) {
                json::name(out, number.name());
                let number = match number {
                    Number::Sum => found.sum,
                    Number::Min if found.count == 0 => 0.0,
                    Number::Max if found.count == 0 => 0.0,
                    Number::Average if found.count == 0 => 0.0,
                    Number::Min => found.min,
                    Number::Max => found.max,
                    Number::Average => found.sum / value.count as f64,
                };
                json::append_double(number, out);
            }
            json::number(out, "Count", count);
            json::string(out, "Range", range);
            out.push(b'}');
        }
    }
    out.push(b']');
    json::number(out, "RemainingHits", i64::try_from(result.remaining_hits).unwrap_or(i64::MAX));
    json::number(out, "RemainingTermsCount", i64::try_from(result.remaining_terms_count).unwrap_or(i64::MAX));
    json::strings(out, "RemainingTerms", result.remaining_terms.iter().map(String::as_str));
    out.push(b'}');
}

/// The facets of `select`, those of setup documents included.
fn facets(run: &Run<'_>, names: &Names<'_>) -> Result<Vec<Facet>> {
    let items = match run.plan.tree.select.as_ref().map(|select| &select.projection) {
        Some(Projection::Items(items)) => &**items,
        _ => &[],
    };
    let mut facets = Vec::new();
    for item in items {
        if let SelectItem { expression: Expression::Call(call), alias } = item {
            let alias = alias.as_ref().map(|alias| &*alias.text);
            of_call(run, names, call, alias, &mut facets)?;
        }
    }
    Ok(facets)
}

fn of_call(
    run: &Run<'_>,
    names: &Names<'_>,
    call: &Call<'_>,
    alias: Option<&str>,
    facets: &mut Vec<Facet>,
) -> Result<()> {
    let text = &*run.plan.text;
    let Some(first) = call.arguments.first() else {
        facets.push(Facet {
            name: alias.unwrap_or(ALL_RESULTS).to_owned(),
            request: FacetRequest { kind: FacetKind::All, aggregations: Vec::new() },
            aggregates: Vec::new(),
            ranges: vec![ALL_RESULTS.to_owned()],
        });
        return Ok(());
    };
    if let Expression::Call(id) = &first.expression
        && id.is("id")
    {
        let id = match id.arguments.first() {
            Some(id) => run.parameters().value(text, &id.expression)?,
            None => Scalar::Null,
        };
        let Scalar::Text(id) = id else {
            return Err(Error::invalid(text, call.span, "id() expects the id of a setup document here"));
        };
        return of_setup(run, &id, facets);
    }
    let mut aggregates: Vec<(String, String, Number)> = Vec::new();
    let mut ranges = Vec::new();
    let mut field = None;
    let mut options = None;
    for argument in &call.arguments {
        match &argument.expression {
            Expression::Call(call) if Number::named(&call.name).is_some() => {
                aggregates.push(aggregate(text, names, argument, call)?);
            }
            Expression::Parameter(parameter) => match run.parameters().require(text, parameter)? {
                Json::Object(object) => options = Some(object),
                Json::Text(name) if field.is_none() && ranges.is_empty() => {
                    field = Some(name.to_str().into_owned())
                }
                _ => {
                    return Err(Error::InvalidOperation(format!(
                        "Parameter '{}' should contain JSON object.",
                        parameter.name
                    )));
                }
            },
            Expression::Field(path) if field.is_none() && ranges.is_empty() => {
                field = Some(name_of(path, names.aliases, text)?);
            }
            Expression::Literal(literal) if literal.value.as_str().is_some() && field.is_none() => {
                field = literal.value.as_str().map(str::to_owned);
            }
            condition @ (Expression::Comparison(_) | Expression::Between(_) | Expression::And(_)) => {
                ranges.push(range(text, names.aliases, run.parameters(), condition)?);
            }
            other => {
                return Err(Error::invalid(
                    text,
                    other.span(),
                    "facet() expects a field, ranges, aggregations and options",
                ));
            }
        }
    }
    facets.push(match (field, ranges.is_empty()) {
        (Some(field), true) => terms(alias.unwrap_or(&field), &field, options.as_ref(), aggregates),
        (None, false) => of_ranges(alias, ranges, aggregates),
        _ => return Err(Error::invalid(text, call.span, "facet() expects a field or ranges, and not both")),
    });
    Ok(())
}

/// Aggregations of the same field are one.
fn grouped(aggregates: Vec<(String, String, Number)>) -> (Vec<String>, Vec<(String, Vec<Number>)>) {
    let (mut fields, mut all): (Vec<String>, Vec<(String, Vec<Number>)>) = (Vec::new(), Vec::new());
    for (field, name, number) in aggregates {
        match fields.iter().zip(&mut all).find(|(known, (other, _))| **known == field && *other == name) {
            Some((_, (_, numbers))) => numbers.push(number),
            None => {
                fields.push(field);
                all.push((name, vec![number]));
            }
        }
    }
    all.iter_mut().for_each(|(_, numbers)| numbers.sort_unstable());
    (fields, all)
}

fn aggregate(
    text: &str,
    names: &Names<'_>,
    argument: &Argument<'_>,
    call: &Call<'_>,
) -> Result<(String, String, Number)> {
    let field = match call.arguments.first().map(|argument| &argument.expression) {
        Some(Expression::Field(path)) => name_of(path, names.aliases, text)?,
        Some(Expression::Literal(literal)) => literal.value.as_str().unwrap_or_default().to_owned(),
        _ => return Err(Error::invalid(text, call.span, format!("{}() expects a field", call.name))),
    };
    let name = argument.alias.as_ref().map_or_else(|| field.clone(), |alias| alias.text.to_string());
    let number = Number::named(&call.name).unwrap_or(Number::Sum);
    Ok((field, name, number))
}

fn terms(
    name: &str,
    field: &str,
    options: Option<&Object<'_>>,
    aggregates: Vec<(String, String, Number)>,
) -> Facet {
    let number = |name: &str| {
        let found = options.and_then(|options| option(options, name)).and_then(|value| value.as_i64());
        found.and_then(|number| usize::try_from(number).ok())
    };
    let sort = options.and_then(|options| option(options, "TermSortMode")).and_then(|value| value.as_str());
    let sort = match sort.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("valuedesc") => FacetSort::ValueDescending,
        Some("countasc") => FacetSort::CountAscending,
        Some("countdesc") => FacetSort::CountDescending,
        _ => FacetSort::ValueAscending,
    };
    let remaining = options.and_then(|options| option(options, "IncludeRemainingTerms"));
    let (fields, aggregates) = grouped(aggregates);
    let kind = FacetKind::Terms {
        field: field.to_owned(),
        sort,
        start: number("Start").unwrap_or(0),
        page_size: number("PageSize").unwrap_or(usize::MAX),
        include_remaining_terms: remaining.and_then(|value| value.as_bool()).unwrap_or(false),
    };
    Facet {
        name: name.to_owned(),
        request: FacetRequest { kind, aggregations: fields },
        aggregates,
        ranges: Vec::new(),
    }
}

fn of_ranges(
    alias: Option<&str>,
    ranges: Vec<(FacetRange, String)>,
    aggregates: Vec<(String, String, Number)>,
) -> Facet {
    let name = alias
        .map(str::to_owned)
        .unwrap_or_else(|| ranges.first().map(|(range, _)| range.field.clone()).unwrap_or_default());
    let (fields, aggregates) = grouped(aggregates);
    let (ranges, texts) = ranges.into_iter().unzip();
    Facet {
        name,
        request: FacetRequest { kind: FacetKind::Ranges(ranges), aggregations: fields },
        aggregates,
        ranges: texts,
    }
}

/// One range, and its text with the values of parameters.
fn range(
    text: &str,
    aliases: &Aliases,
    parameters: Parameters<'_>,
    condition: &Expression<'_>,
) -> Result<(FacetRange, String)> {
    let field_of = |expression: &Expression<'_>| match expression {
        Expression::Field(path) => name_of(path, aliases, text),
        other => Err(Error::invalid(text, other.span(), "A range of a facet compares a field")),
    };
    let value_of = |expression: &Expression<'_>| -> Result<(Value, String)> {
        let scalar = parameters.value(text, expression)?;
        let mut shown = Vec::new();
        match &scalar {
            Scalar::Text(text) => shown.extend_from_slice(text.as_bytes()),
            other => other.print_to(&mut shown),
        }
        let value = match scalar {
            Scalar::Long(value) => Value::Long(value),
            Scalar::Double(value) => Value::Double(value),
            Scalar::Text(text) => Value::Text(text.into_owned()),
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Null | Scalar::Missing => Value::Null,
            Scalar::Other(value) => {
                return Err(Error::invalid(
                    text,
                    expression.span(),
                    format!("A range cannot end at {}", value.type_name()),
                ));
            }
        };
        Ok((value, String::from_utf8_lossy(&shown).into_owned()))
    };
    match condition {
        Expression::Comparison(comparison) => {
            let field = field_of(&comparison.left)?;
            let (value, shown) = value_of(&comparison.right)?;
            let (low, high) = match comparison.operator {
                ComparisonOperator::Less => (Bound::Open, Bound::Excluded(value)),
                ComparisonOperator::LessEqual => (Bound::Open, Bound::Included(value)),
                ComparisonOperator::Greater => (Bound::Excluded(value), Bound::Open),
                ComparisonOperator::GreaterEqual => (Bound::Included(value), Bound::Open),
                ComparisonOperator::Equal => (Bound::Included(value.clone()), Bound::Included(value)),
                ComparisonOperator::NotEqual => {
                    return Err(Error::invalid(
                        text,
                        comparison.span,
                        "A range of a facet cannot be of what differs",
                    ));
                }
            };
            let shown = format!("{field} {} {shown}", comparison.operator.as_str());
            Ok((FacetRange { field, low, high }, shown))
        }
        Expression::Between(between) => {
            let field = field_of(&between.operand)?;
            let ((low, low_shown), (high, high_shown)) = (value_of(&between.low)?, value_of(&between.high)?);
            let shown = format!("{field} between {low_shown} and {high_shown}");
            Ok((FacetRange { field, low: Bound::Included(low), high: Bound::Included(high) }, shown))
        }
        Expression::And(junction) => {
            let mut whole: Option<(FacetRange, String)> = None;
            for operand in &junction.operands {
                let (part, shown) = range(text, aliases, parameters, operand)?;
                whole = Some(match whole {
                    None => (part, shown),
                    Some((so_far, texts)) if so_far.field == part.field => {
                        let low = if part.low == Bound::Open { so_far.low } else { part.low };
                        let high = if part.high == Bound::Open { so_far.high } else { part.high };
                        (FacetRange { field: part.field, low, high }, format!("{texts} and {shown}"))
                    }
                    Some(_) => {
                        return Err(Error::invalid(
                            text,
                            junction.span,
                            "A range of a facet is of one field",
                        ));
                    }
                });
            }
            whole.ok_or_else(|| Error::invalid(text, junction.span, "Expected a range"))
        }
        other => Err(Error::invalid(text, other.span(), "Expected a range")),
    }
}

/// The facets of a setup document.
fn of_setup(run: &Run<'_>, id: &str, facets: &mut Vec<Facet>) -> Result<()> {
    let Some(setup) = run.snapshot().document(id)? else {
        return Err(Error::NoDocument(format!("Document '{id}' does not exist.")));
    };
    let names = |value: Option<Json<'_>>| -> Vec<(String, String, Number)> {
        let mut all = Vec::new();
        for (number, fields) in
            value.and_then(|value| value.as_object()).iter().flat_map(|object| object.iter())
        {
            let Some(number) = Number::named(&number.to_str()) else { continue };
            for field in fields.as_array().iter().flat_map(|fields| fields.iter()) {
                let name = |name: &str| {
                    field
                        .as_object()
                        .and_then(|field| option(&field, name))
                        .and_then(|name| name.as_str().map(|name| name.into_owned()))
                };
                match field.as_str() {
                    Some(field) => all.push((field.to_string(), field.into_owned(), number)),
                    None => {
                        if let Some(field) = name("Name") {
                            let shown = name("DisplayName").unwrap_or_else(|| field.clone());
                            all.push((field, shown, number));
                        }
                    }
                }
            }
        }
        all
    };
    let list = |name: &str| setup.document.get(name).and_then(|list| list.as_array());
    for facet in list("Facets").iter().flat_map(|list| list.iter()).filter_map(|facet| facet.as_object()) {
        let text =
            |name: &str| option(&facet, name).and_then(|value| value.as_str().map(|text| text.into_owned()));
        let Some(field) = text("FieldName").or_else(|| text("Name")) else { continue };
        let shown = text("DisplayFieldName").unwrap_or_else(|| field.clone());
        let options = option(&facet, "Options").and_then(|options| options.as_object());
        facets.push(terms(&shown, &field, options.as_ref(), names(option(&facet, "Aggregations"))));
    }
    let aliases = Aliases::default();
    for facet in list("RangeFacets").iter().flat_map(|list| list.iter()).filter_map(|facet| facet.as_object())
    {
        let shown =
            option(&facet, "DisplayFieldName").and_then(|value| value.as_str().map(|text| text.into_owned()));
        let mut ranges = Vec::new();
        for condition in option(&facet, "Ranges")
            .and_then(|ranges| ranges.as_array())
            .iter()
            .flat_map(|ranges| ranges.iter())
        {
            let Some(condition) = condition.as_str() else { continue };
            let parsed = parse_expression(&condition).map_err(|error| Error::parse(&error, &condition))?;
            ranges.push(range(&condition, &aliases, Parameters::new(None), &parsed)?);
        }
        if !ranges.is_empty() {
            facets.push(of_ranges(shown.as_deref(), ranges, names(option(&facet, "Aggregations"))));
        }
    }
    Ok(())
}
