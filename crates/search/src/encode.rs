//! From an [`Entry`] to the terms and columns of its fields.
//!
//! | value | terms | columns |
//! | --- | --- | --- |
//! | null | `NULL_VALUE` | |
//! | text | as the analyzer cuts it; `EMPTY_STRING` for the empty one | |
//! | text that is a length of time | as any text | ticks as a long |
//! | text that is a date and time, dates | ISO text with seven digits, analyzed where the field is | ticks |
//! | long | its digits | long |
//! | double | as it was written, without zeros at the end of its fraction; its integral part in `truncated` | long, truncated; double |
//! | boolean | `true`, `false` | |
//! | object | its JSON, as it is | |
//!
//! An entry's doubles are written only where a field has a number that is no long: else the longs are the doubles.

use std::collections::HashMap;
use std::sync::Arc;

use jackdaw_document::date::{DATE_TEXT_MAX, Date, TICKS_MAX, Zone};

use tantivy::tokenizer::TokenStream;

use crate::analysis::{Analyzer, RAW_MARK, Words, is_too_long, lower_into};
use crate::cells::{Cells, Stored};
use crate::entry::{Entry, FieldValue};
use crate::layout::{Column, Layout, Part, Place, SEPARATOR};
use crate::options::Indexing;

/// The term of an explicit null.
pub(crate) const NULL: &str = "NULL_VALUE";

/// The term of the empty text.
pub(crate) const EMPTY: &str = "EMPTY_STRING";

/// The last integer up to which all are doubles.
const EXACT_DOUBLE_MAX: i64 = 1 << 53;

/// The places of the fields of entries, found quickly where one entry has the fields of the one before it.
#[derive(Default)]
pub(crate) struct Places {
    /// By the fields' numbers in an entry.
    last: Vec<Arc<Place>>,
    /// Of fields that were not known beforehand, which take something to make.
    others: HashMap<String, Arc<Place>>,
}

impl Places {
    /// Of fields that were not known beforehand.
    const OTHERS_MAX: usize = 1000;

    fn find(&mut self, layout: &Layout, at: usize, name: &str) -> Arc<Place> {
        if let Some(place) = self.last.get(at)
            && place.name == name
        {
            return Arc::clone(place);
        }
        let place = self.look_up(layout, name);
        if at < self.last.len() {
            self.last[at] = Arc::clone(&place);
        } else {
            // Fields come one after the other.
            self.last.push(Arc::clone(&place));
        }
        place
    }

    fn look_up(&mut self, layout: &Layout, name: &str) -> Arc<Place> {
        if layout.is_known(name) {
            return layout.place(name);
        }
        if let Some(place) = self.others.get(name) {
            return Arc::clone(place);
        }
        let place = layout.place(name);
        if self.others.len() < Places::OTHERS_MAX {
            self.others.insert(name.to_owned(), Arc::clone(&place));
        }
        place
    }
}

/// Adds the cells of an entry, the `order`th that was ever added.
pub(crate) fn encode(layout: &Layout, places: &mut Places, entry: &Entry<'_>, order: u64, cells: &mut Cells) {
    cells.text(layout.key, |text| {
        text.push_str(entry.key);
        true
    });
    cells.unsigned(layout.order, order);
    cells.bytes(layout.stored, |bytes| Stored::write(entry.key, entry.stored, bytes));
    for reference in entry.references {
        cells.text(layout.reference, |text| {
            lower_into(reference, text);
            true
        });
    }
    if entry.boost != 1.0 {
        cells.double(layout.boost, f64::from(entry.boost));
    }
    for (at, (name, value)) in entry.fields.iter().enumerate() {
        let place = places.find(layout, at, name);
        if place.options.indexing == Indexing::No {
            continue;
        }
        // All values of a field decide together whether its doubles are written.
        let doubles = has_numbers(value) && {
            let is_repeated =
                entry.fields.iter().enumerate().any(|(other, (same, _))| other != at && same == name);
            if is_repeated {
                entry.fields.iter().any(|(same, value)| same == name && needs_doubles(value))
            } else {
                needs_doubles(value)
            }
        };
        let mut field = FieldCells { layout, place: &place, cells, doubles };
        field.value(value);
    }
    cells.end();
}

/// Whether there may be a number among the values.
fn has_numbers(value: &FieldValue<'_>) -> bool {
    matches!(
        value,
        FieldValue::Long(_) | FieldValue::Double { .. } | FieldValue::Array(_) | FieldValue::Boosted { .. }
    )
}

/// Whether a number among the values is not told by its long.
fn needs_doubles(value: &FieldValue<'_>) -> bool {
    match value {
        FieldValue::Long(value) => value.unsigned_abs() > EXACT_DOUBLE_MAX as u64,
        FieldValue::Double { value, .. } => {
            value.fract() != 0.0
                || value.abs() > EXACT_DOUBLE_MAX as f64
                || value.is_sign_negative() && *value == 0.0
        }
        FieldValue::Array(values) => values.iter().any(needs_doubles),
        FieldValue::Boosted { value, .. } => needs_doubles(value),
        _ => false,
    }
}

struct FieldCells<'a> {
    layout: &'a Layout,
    place: &'a Place,
    cells: &'a mut Cells,
    doubles: bool,
}

impl FieldCells<'_> {
    fn value(&mut self, value: &FieldValue<'_>) {
        match *value {
            FieldValue::Null => self.raw(NULL),
            FieldValue::Text("") | FieldValue::Words("") | FieldValue::Exact("") => self.raw(EMPTY),
            FieldValue::Exact(text) => self.raw(text),
            FieldValue::Words(text) => {
                if self.place.analyzer.is_keyword() {
                    let mut words = Words::new(Analyzer::RavenStandard, text);
                    while words.advance() {
                        self.raw(&words.token().text);
                    }
                } else {
                    self.text(text);
                }
            }
            FieldValue::Text(text) => match date_of(text) {
                Some(date) => self.date(date),
                None => {
                    self.text(text);
                    if let Some(ticks) = ticks_of(text) {
                        self.long(ticks);
                    }
                }
            },
            FieldValue::Long(value) => {
                let mut digits = [0; 20];
                self.raw(long_text(value, &mut digits));
                self.long(value);
                if self.doubles {
                    self.double(value as f64);
                }
            }
            FieldValue::Double { value, text } => {
                let text = number_text(text);
                self.raw(text);
                // Saturates, as the domain of longs does.
                let truncated = value as i64;
                self.long(truncated);
                if self.doubles {
                    self.double(value);
                }
                let mut digits = [0; 20];
                let digits = long_text(truncated, &mut digits);
                if digits != text {
                    let place = self.place;
                    self.cells.text(self.layout.truncated, |out| {
                        out.push_str(&place.name);
                        out.push(SEPARATOR);
                        out.push_str(digits);
                        true
                    });
                }
            }
            FieldValue::Bool(value) => self.raw(if value { "true" } else { "false" }),
            FieldValue::Date(date) => self.date(date),
            FieldValue::Json(text) => self.raw(text),
            FieldValue::Point { latitude, longitude } => {
                self.column_double(Part::Latitude, latitude);
                self.column_double(Part::Longitude, longitude);
            }
            FieldValue::Shape(shape) => {
                let text = crate::spatial::text_of(shape);
                match &self.place.columns[Part::Shape as usize] {
                    Column::Own(field) => self.cells.text(*field, |out| {
                        out.push_str(&text);
                        true
                    }),
                    Column::Shared(path) => self.cells.column_text(self.layout.columns, path, &text),
                }
            }
            FieldValue::Boosted { value, boost } => {
                self.column_double(Part::Boost, f64::from(boost));
                self.value(value);
            }
            FieldValue::Array(values) => values.iter().for_each(|value| self.value(value)),
        }
    }

    /// One term, whatever the analyzer.
    fn raw(&mut self, term: &str) {
        let place = self.place;
        self.cells.text(place.terms, |out| {
            out.push_str(&place.prefix);
            if !place.analyzer.is_keyword() {
                out.push(RAW_MARK);
            }
            out.push_str(term);
            !is_too_long(term)
        });
    }

    fn text(&mut self, text: &str) {
        let place = self.place;
        self.cells.text(place.terms, |out| {
            out.push_str(&place.prefix);
            let begin = out.len();
            match place.analyzer {
                Analyzer::LowerCaseKeyword => lower_into(text, out),
                Analyzer::Keyword => out.push_str(text),
                // The writer's thread cuts it. A text of the user's must not pass for one that is not cut.
                _ => {
                    out.push_str(text.trim_start_matches(RAW_MARK));
                    return true;
                }
            }
            !is_too_long(&out[begin..])
        });
    }

    fn date(&mut self, date: Date) {
        let mut buffer = [0; DATE_TEXT_MAX];
        let text = date_text(date, &mut buffer);
        if self.place.analyzer.is_keyword() {
            self.raw(text);
        } else {
            self.text(text);
        }
        self.column_long(Part::Date, date.ticks);
    }

    fn long(&mut self, value: i64) {
        self.column_long(Part::Long, value);
    }

    fn column_long(&mut self, part: Part, value: i64) {
        match &self.place.columns[part as usize] {
            Column::Own(field) => self.cells.long(*field, value),
            Column::Shared(path) => self.cells.column_long(self.layout.columns, path, value),
        }
    }

    fn double(&mut self, value: f64) {
        self.column_double(Part::Double, value);
    }

    fn column_double(&mut self, part: Part, value: f64) {
        match &self.place.columns[part as usize] {
            Column::Own(field) => self.cells.double(*field, value),
            Column::Shared(path) => self.cells.column_double(self.layout.columns, path, value),
        }
    }
}

/// The date that a text is; only a whole date and time counts.
pub(crate) fn date_of(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    if bytes.len() < 19 || bytes[10] != b'T' {
        return None;
    }
    Date::parse(bytes).filter(|date| (0..=TICKS_MAX).contains(&date.ticks)).map(|date| match date.zone {
        Zone::Offset(_) => Date { ticks: date.utc_ticks().clamp(0, TICKS_MAX), zone: Zone::Utc },
        _ => date,
    })
}

/// The ticks of a text that is a length of time, `[-][days.]hours:minutes:seconds[.fraction]`, as RavenDB writes them.
pub(crate) fn ticks_of(text: &str) -> Option<i64> {
    const LENGTH_MIN: usize = "00:00:00".len();
    const LENGTH_MAX: usize = "-10675199.02:48:05.4775808".len();
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let bytes = rest.as_bytes();
    if !(LENGTH_MIN..=LENGTH_MAX).contains(&bytes.len()) || !bytes[0].is_ascii_digit() || !rest.is_ascii() {
        return None;
    }
    let digits =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok())?;
    let clock = rest.find(':')?.checked_sub(2)?;
    let days = match clock {
        0 => 0,
        _ => digits(rest.get(..clock)?.strip_suffix('.')?)?,
    };
    let (clock, fraction) = match rest.get(clock..)?.split_once('.') {
        Some((clock, fraction)) if !fraction.is_empty() && fraction.len() <= 7 => (clock, fraction),
        Some(_) => return None,
        None => (rest.get(clock..)?, "0"),
    };
    if clock.len() != LENGTH_MIN || clock.as_bytes()[5] != b':' {
        return None;
    }
    let (hours, minutes, seconds) = (digits(&clock[..2])?, digits(&clock[3..5])?, digits(&clock[6..])?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let fraction = digits(fraction)? * 10i64.pow(7 - fraction.len() as u32);
    let seconds = days.checked_mul(86_400)?.checked_add(hours * 3600 + minutes * 60 + seconds)?;
    let ticks = seconds.checked_mul(10_000_000)?.checked_add(fraction)?;
    Some(if negative { -ticks } else { ticks })
}

/// A date's term.
pub(crate) fn date_text(date: Date, buffer: &mut [u8; DATE_TEXT_MAX]) -> &str {
    // The digits and separators of a date are ASCII.
    std::str::from_utf8(date.format(buffer)).unwrap_or_default()
}

/// A number's term: as it was written, but for zeros at the end of its fraction.
pub(crate) fn number_text(text: &str) -> &str {
    // The text of a length of time is none of a number.
    if !text.contains('.') || text.contains(['e', 'E', ':']) {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.')
}

/// The digits of a long.
pub(crate) fn long_text(value: i64, buffer: &mut [u8; 20]) -> &str {
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    std::str::from_utf8(&buffer[at..]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        for (text, expected) in [
            ("00:00:00", Some(0)),
            ("12:30:00", Some(450_000_000_000)),
            ("1.12:30:00", Some(1_314_000_000_000)),
            ("-00:00:01.5", Some(-15_000_000)),
            ("00:00:00.0000001", Some(1)),
            ("12:30", None),
            ("24:00:00", None),
            ("1:12:30:00", None),
            ("é0:00:00", None),
            ("00:é0:000", None),
            ("00:00:00.", None),
            ("99999999999.00:00:00", None),
            ("text: a:b", None),
            ("--00:00:00", None),
        ] {
            assert_eq!(ticks_of(text), expected, "{text}");
        }
    }

    #[test]
    fn terms_of_numbers_have_no_zeros_at_the_end() {
        for (text, expected) in
            [("1.50", "1.5"), ("2.0", "2"), ("10", "10"), ("1.0e10", "1.0e10"), ("1.12:30:00", "1.12:30:00")]
        {
            assert_eq!(number_text(text), expected);
        }
    }
}
