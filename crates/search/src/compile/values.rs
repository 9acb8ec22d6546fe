//! Terms, ranges and sets of values: the domains in which values compare.

use std::sync::Arc;

use jackdaw_document::date::{DATE_TEXT_MAX, Date, Zone};
use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::query::{ConstScoreQuery, EmptyQuery};

use super::{Boxed, Compiler};
use crate::docs::{Docs, Gather};
use crate::encode::{EMPTY, NULL, date_of, date_text, long_text};
use crate::error::Result;
use crate::layout::{Layout, Place, SEPARATOR};
use crate::query::{Bound, Value};
use crate::segment::{Domain, Segment, gather_postings};

impl Compiler<'_> {
    /// A field holds a value.
    pub(super) fn term(&self, place: &Arc<Place>, value: &Value, exact: bool) -> Result<Boxed> {
        Ok(match value {
            Value::Null => self.exact_term(place, NULL),
            Value::Bool(value) => self.exact_term(place, if *value { "true" } else { "false" }),
            Value::Long(value) => self.number(place, Number::Long(*value)),
            Value::Double(value) => self.number(place, Number::Double(*value)),
            Value::Text(text) if text.is_empty() => self.exact_term(place, EMPTY),
            Value::Text(text) => {
                if let Some(date) = query_date(text)
                    && place.analyzer.is_keyword()
                {
                    return Ok(self.any_of_terms(place, date_terms(date, text)));
                }
                // Also where words are cut from text: RavenDB compares the whole.
                self.exact_term(place, &place.fold(text, exact))
            }
        })
    }

    /// A field holds one of the values. As in RavenDB, numbers are compared as terms here.
    pub(super) fn any_of(&self, place: &Arc<Place>, values: &[Value], exact: bool) -> Boxed {
        if values.is_empty() {
            return Box::new(EmptyQuery);
        }
        let terms = values.iter().flat_map(|value| value_terms(place, value, exact)).collect();
        self.any_of_terms(place, terms)
    }

    fn any_of_terms(&self, place: &Arc<Place>, mut terms: Vec<String>) -> Boxed {
        if terms.len() == 1 {
            return Box::new(ConstScoreQuery::new(self.exact_term(place, &terms[0]), 1.0));
        }
        terms.sort_unstable();
        terms.dedup();
        let place = Arc::clone(place);
        self.set(move |segment, _| {
            let inverted = segment.reader.inverted_index(place.terms)?;
            let mut gather = Gather::new(segment.max_doc());
            for term in &terms {
                if let Some(info) = inverted.terms().get(place.term(term))? {
                    gather_postings(&inverted, &info, &mut gather)?;
                }
            }
            Ok(gather.finish())
        })
    }

    /// The entries with a number, in its domain: those with the term of its digits, or of its integral part, whose columns hold it.
    fn number(&self, place: &Arc<Place>, number: Number) -> Boxed {
        let place = Arc::clone(place);
        self.set(move |segment, layout| equal_numbers(segment, layout, &place, number))
    }

    /// A field is between two values.
    pub(super) fn range(&self, place: &Arc<Place>, low: &Bound, high: &Bound, exact: bool) -> Result<Boxed> {
        // Where no entry has a date, texts that look like dates compare as texts.
        let ends = number_ends(low, high).filter(|ends| {
            !matches!(ends, Some((Domain::Date, ..))) || self.has(place, |numbers| numbers.dates.is_some())
        });
        if let Some(ends) = ends {
            let Some((domain, from, to)) = ends else { return Ok(Box::new(EmptyQuery)) };
            let place = Arc::clone(place);
            return Ok(self.set(move |segment, layout| segment.between(layout, &place, domain, from, to)));
        }
        let is_open = |bound: &Bound| {
            matches!(bound, Bound::Open | Bound::Included(Value::Null) | Bound::Excluded(Value::Null))
        };
        if is_open(low) && is_open(high) {
            return Ok(self.exists(place));
        }
        let (from, to) = text_ends(place, low, high, exact);
        let place = Arc::clone(place);
        Ok(self.set(move |segment, _| segment.term_range(&place, &from, to.as_ref())))
    }
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Long(i64),
    Double(f64),
}

fn equal_numbers(segment: &Segment, layout: &Layout, place: &Place, number: Number) -> tantivy::Result<Docs> {
    let numbers = segment.numbers(layout, place)?;
    if numbers.longs.is_none() {
        return Ok(Docs::None);
    }
    let (truncated, domain, wanted) = match number {
        Number::Long(value) => (value, Domain::Long, value.to_u64()),
        Number::Double(value) => (value as i64, Domain::Double, value.to_u64()),
    };
    let mut digits = [0; 20];
    let digits = long_text(truncated, &mut digits);
    let mut gather = Gather::new(segment.max_doc());
    let holds = |doc| {
        let mut found = false;
        numbers.each(domain, doc, |value| found |= value == wanted);
        found
    };
    let terms = segment.reader.inverted_index(place.terms)?;
    let others = segment.reader.inverted_index(layout.truncated)?;
    let other = format!("{}{SEPARATOR}{digits}", place.name);
    for (inverted, term) in [(&terms, place.term(digits)), (&others, other.into_bytes())] {
        if let Some(info) = inverted.terms().get(term)? {
            let mut candidates = Gather::new(segment.max_doc());
            gather_postings(inverted, &info, &mut candidates)?;
            let mut cursor = candidates.finish().cursor();
            use tantivy::DocSet as _;
            let mut doc = cursor.doc();
            while doc != tantivy::TERMINATED {
                if holds(doc) {
                    gather.insert(doc);
                }
                doc = cursor.advance();
            }
        }
    }
    Ok(gather.finish())
}

/// The ends of a range of numbers or dates, in the domain that its values ask for; `Some(None)` for an empty one, `None` for a
/// range of texts.
#[expect(clippy::option_option, reason = "three answers: texts, numbers with nothing between, numbers")]
pub(crate) fn number_ends(low: &Bound, high: &Bound) -> Option<Option<(Domain, u64, u64)>> {
    let value = |bound: &Bound| match bound {
        Bound::Included(Value::Null) | Bound::Excluded(Value::Null) | Bound::Open => None,
        Bound::Included(value) | Bound::Excluded(value) => Some(value.clone()),
    };
    let (first, last) = (value(low), value(high));
    let given: Vec<&Value> = first.iter().chain(last.iter()).collect();
    if given.is_empty() {
        return None;
    }
    let domain = if given.iter().all(|value| matches!(value, Value::Long(_))) {
        Domain::Long
    } else if given.iter().all(|value| matches!(value, Value::Long(_) | Value::Double(_))) {
        Domain::Double
    } else if given.iter().all(|value| matches!(value, Value::Text(text) if query_date(text).is_some())) {
        Domain::Date
    } else {
        return None;
    };
    let mapped = |value: &Value| match (domain, value) {
        (Domain::Long, Value::Long(value)) => value.to_u64(),
        (Domain::Double, Value::Long(value)) => (*value as f64).to_u64(),
        (Domain::Double, Value::Double(value)) => value.to_u64(),
        (_, Value::Text(text)) => query_date(text).map_or(0, |date| date.ticks.to_u64()),
        _ => 0,
    };
    let from = match (low, &first) {
        (Bound::Excluded(_), Some(value)) => mapped(value).checked_add(1),
        (_, Some(value)) => Some(mapped(value)),
        (_, None) => Some(0),
    };
    let to = match (high, &last) {
        (Bound::Excluded(_), Some(value)) => mapped(value).checked_sub(1),
        (_, Some(value)) => Some(mapped(value)),
        (_, None) => Some(u64::MAX),
    };
    Some(match (from, to) {
        (Some(from), Some(to)) if from <= to => Some((domain, from, to)),
        _ => None,
    })
}

/// An end of a range in the dictionary, and whether it counts itself.
pub(crate) type End = (Vec<u8>, bool);

/// The ends of a range of texts in the dictionary.
pub(crate) fn text_ends(place: &Place, low: &Bound, high: &Bound, exact: bool) -> (End, Option<End>) {
    let end = |bound: &Bound| match bound {
        Bound::Open | Bound::Included(Value::Null) | Bound::Excluded(Value::Null) => None,
        Bound::Included(value) => Some((place.term(&end_text(place, value, exact)), true)),
        Bound::Excluded(value) => Some((place.term(&end_text(place, value, exact)), false)),
    };
    let from = end(low).unwrap_or_else(|| (place.prefix.clone().into_bytes(), true));
    let to = end(high)
        .or_else(|| crate::segment::after_prefix(place.prefix.as_bytes()).map(|after| (after, false)));
    (from, to)
}

/// The term that an end of a range of texts stands at.
fn end_text(place: &Place, value: &Value, exact: bool) -> String {
    match value {
        Value::Text(text) if text.is_empty() => EMPTY.to_owned(),
        value => place.fold(&plain_text(value), exact),
    }
}

/// The date that a query's text is: with a time, or without one for midnight.
pub(crate) fn query_date(text: &str) -> Option<Date> {
    if let Some(date) = date_of(text) {
        return Some(date);
    }
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    Date::parse(format!("{text}T00:00:00").as_bytes())
}

/// The terms of a date, whatever its documents say about its zone, and the text itself.
fn date_terms(date: Date, text: &str) -> Vec<String> {
    let mut buffer = [0; DATE_TEXT_MAX];
    let mut terms: Vec<String> = [Zone::Unspecified, Zone::Utc]
        .map(|zone| date_text(Date { ticks: date.ticks, zone }, &mut buffer).to_owned())
        .into();
    terms.push(text.to_owned());
    terms
}

/// The terms that a value may be.
fn value_terms(place: &Place, value: &Value, exact: bool) -> Vec<String> {
    match value {
        Value::Text(text) if text.is_empty() => vec![EMPTY.to_owned()],
        Value::Text(text) => match query_date(text) {
            Some(date) => date_terms(date, text),
            None => vec![place.fold(text, exact)],
        },
        other => vec![plain_text(other)],
    }
}

/// The term of a value that is not analyzed.
fn plain_text(value: &Value) -> String {
    match value {
        Value::Null => NULL.to_owned(),
        Value::Text(text) => text.clone(),
        Value::Long(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
    }
}
