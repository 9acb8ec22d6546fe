//! Values as text, as .NET writes them in the invariant culture, with and without formats.

use std::fmt::Write as _;

use jackdaw_document::date::{DATE_TEXT_MAX, Date, Zone};
use jackdaw_document::{self as document, Style};
use rust_decimal::{Decimal, RoundingStrategy};

use super::numbers::Num;
use super::{Run, Step, dates, kind_of};
use crate::value::{Value, text_of, time_span_text};

/// A format may ask for this many digits or places.
const PLACES_MAX: usize = 100;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// A value as text; null is empty.
    pub(super) fn text_of(&mut self, value: Value<'r>) -> Step<&'r str> {
        match value {
            Value::Text(text) => Ok(text),
            Value::Missing | Value::Null => Ok(""),
            Value::Bool(true) => Ok("True"),
            Value::Bool(false) => Ok("False"),
            value => {
                let text = plain(&value);
                self.keep(&text)
            }
        }
    }
}

/// A value as text.
pub(super) fn plain(value: &Value<'_>) -> String {
    match value {
        Value::Missing | Value::Null => String::new(),
        Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Value::Long(value) => value.to_string(),
        Value::Double(value) => double(*value),
        Value::Decimal(value) => value.to_string(),
        // As the document has it: `1.10` stays so.
        Value::Number(number) => number.to_string(),
        Value::Text(text) => (*text).to_owned(),
        Value::Date(date) => general_date(*date),
        Value::TimeSpan(ticks) => time_span_text(*ticks),
        Value::Json(value) => match value {
            document::Value::Text(text) => text.to_str().into_owned(),
            value => value.to_json(Style::Compact),
        },
        Value::Document(input) => input.document.to_json(Style::Compact),
        Value::Array(_) | Value::Group(_) | Value::Object(_) | Value::Field(_) | Value::Spatial(_) => {
            json(value)
        }
        Value::Boosted(boosted) => plain(&boosted.value),
    }
}

fn json(value: &Value<'_>) -> String {
    let context = document::Context::new();
    match context.build(document::Mode::Memory, |builder| value.append_to(builder)) {
        Ok(document) => document.to_json(Style::Compact),
        Err(_) => kind_of(value).to_owned(),
    }
}

fn general_date(date: Date) -> String {
    let mut text = custom_date(date, "MM/dd/yyyy HH:mm:ss");
    if matches!(date.zone, Zone::Offset(_)) {
        text.push_str(&custom_date(date, " zzz"));
    }
    text
}

/// The shortest text that reads back as the double; with an exponent from 1E+15 on and below 1E-05, as .NET has it.
pub(super) fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..15).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}E{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

/// Text with spaces up to a width; negative: to the left.
pub(super) fn padded(text: String, width: i32) -> String {
    let places = (width.unsigned_abs() as usize).min(PLACES_MAX * 10);
    if width >= 0 { format!("{text:>places$}") } else { format!("{text:<places$}") }
}

/// A value in a format of .NET.
pub(crate) fn with_format(value: &Value<'_>, format: &str) -> Result<String, String> {
    if format.is_empty() {
        return Ok(plain(value));
    }
    match value {
        Value::Date(date) => date_format(*date, format),
        Value::TimeSpan(ticks) => match format {
            "c" | "t" | "T" | "g" | "G" => Ok(time_span_text(*ticks)),
            _ => Ok(custom_span(*ticks, format)),
        },
        Value::Boosted(boosted) => with_format(&boosted.value, format),
        value => match Num::of(value) {
            Some(number) => number_format(number, format),
            None => Ok(plain(value)),
        },
    }
}

/// The composite format of `String.Format`.
pub(super) fn composite(format: &str, values: &[Value<'_>]) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let bracket = rest.as_bytes()[at];
        if rest.as_bytes().get(at + 1) == Some(&bracket) {
            out.push(char::from(bracket));
            rest = &rest[at + 2..];
            continue;
        }
        let end = rest[at..]
            .find('}')
            .filter(|_| bracket == b'{')
            .ok_or("Input string was not in a correct format.")?;
        let inner = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        let (place, spec) = inner.split_once(':').unwrap_or((inner, ""));
        let (place, width) = place.split_once(',').unwrap_or((place, "0"));
        let place: usize = place.trim().parse().map_err(|_| "Input string was not in a correct format.")?;
        let width: i32 = width.trim().parse().map_err(|_| "Input string was not in a correct format.")?;
        let value = values.get(place).ok_or(
            "Index (zero based) must be greater than or equal to zero and less than the size of the argument list.",
        )?;
        out.push_str(&padded(with_format(value, spec)?, width));
    }
    out.push_str(rest);
    Ok(out)
}

fn wrong_format(format: &str) -> String {
    format!("The format '{format}' is not supported.")
}

fn number_format(number: Num, format: &str) -> Result<String, String> {
    let mut characters = format.chars();
    let kind = characters.next().unwrap_or('G');
    let digits = characters.as_str();
    if kind.is_ascii_alphabetic() && digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let places: Option<usize> = digits.parse().ok();
        if places.is_some_and(|places| places > PLACES_MAX) {
            return Err(wrong_format(format));
        }
        return standard_number(number, kind, places).ok_or_else(|| wrong_format(format));
    }
    Ok(custom_number(number, format))
}

fn standard_number(number: Num, kind: char, places: Option<usize>) -> Option<String> {
    Some(match kind.to_ascii_uppercase() {
        'G' | 'R' => match number {
            Num::Double(value) => double(value),
            number => plain(&number.value()),
        },
        'D' => {
            let Num::Long(value) = number else { return None };
            let sign = if value < 0 { "-" } else { "" };
            format!("{sign}{:0>width$}", value.unsigned_abs(), width = places.unwrap_or(1))
        }
        'X' => {
            let Num::Long(value) = number else { return None };
            let text = format!("{value:0>width$X}", width = places.unwrap_or(1));
            if kind == 'x' { text.to_lowercase() } else { text }
        }
        'F' => fixed(number, places.unwrap_or(2)),
        'N' => grouped(&fixed(number, places.unwrap_or(2))),
        'C' => {
            let text = grouped(&fixed(number, places.unwrap_or(2)));
            match text.strip_prefix('-') {
                Some(rest) => format!("(¤{rest})"),
                None => format!("¤{text}"),
            }
        }
        'P' => {
            let hundred = number.apply(crate::program::Operator::Multiply, Num::Long(100))?;
            format!("{} %", grouped(&fixed(hundred, places.unwrap_or(2))))
        }
        'E' => {
            let text = format!("{:.*e}", places.unwrap_or(6), number.as_f64());
            let (digits, exponent) = text.split_once('e')?;
            let exponent: i32 = exponent.parse().ok()?;
            let sign = if exponent < 0 { '-' } else { '+' };
            let mark = if kind == 'e' { 'e' } else { 'E' };
            format!("{digits}{mark}{sign}{:03}", exponent.abs())
        }
        _ => return None,
    })
}

/// With exactly so many digits after the point, rounded away from zero.
fn fixed(number: Num, places: usize) -> String {
    let decimal = match number {
        Num::Double(value) => value.to_string().parse::<Decimal>().ok(),
        number => number.as_decimal(),
    };
    match decimal {
        Some(decimal) => {
            let rounded =
                decimal.round_dp_with_strategy(places.min(28) as u32, RoundingStrategy::MidpointAwayFromZero);
            let text = format!("{rounded:.places$}");
            let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-'));
            if is_zero { text.trim_start_matches('-').to_owned() } else { text }
        }
        None => format!("{:.places$}", number.as_f64()),
    }
}

/// With a comma before each three digits.
fn grouped(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) =
        text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `0.00`, `#,##0.#`, `0%`, with text around.
fn custom_number(number: Num, format: &str) -> String {
    let sections: Vec<&str> = format.split(';').collect();
    let double = number.as_f64();
    let (format, number) = match sections[..] {
        [_, _, zero] if double == 0.0 => (zero, number),
        [_, negative, ..] if double < 0.0 && !negative.is_empty() => {
            (negative, number.apply(crate::program::Operator::Multiply, Num::Long(-1)).unwrap_or(number))
        }
        [positive, ..] => (positive, number),
        [] => ("", number),
    };
    let number = if format.contains('%') {
        number.apply(crate::program::Operator::Multiply, Num::Long(100)).unwrap_or(number)
    } else {
        number
    };
    let digits: Vec<char> = format.chars().filter(|c| matches!(c, '0' | '#' | '.')).collect();
    let point = digits.iter().position(|c| *c == '.').unwrap_or(digits.len());
    let places = digits.len().saturating_sub(point + 1).min(PLACES_MAX);
    let needed_places = digits.iter().skip(point + 1).rposition(|c| *c == '0').map_or(0, |last| last + 1);
    let needed_whole = digits[..point].iter().position(|c| *c == '0').map_or(0, |first| point - first);
    let text = fixed(number, places);
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let mut whole = format!("{whole:0>needed_whole$}");
    if format.split('.').next().unwrap_or_default().contains(',') {
        whole = grouped(&whole);
    }
    let kept = fraction.trim_end_matches('0').len().max(needed_places);
    let mut body = whole;
    if kept > 0 {
        body.push('.');
        body.push_str(&fraction[..kept.min(fraction.len())]);
    }
    // What stands around the digits is text.
    let first = format.find(['0', '#', '.']);
    let last = format.rfind(['0', '#', '.']);
    let (before, after) = match (first, last) {
        (Some(first), Some(last)) => (&format[..first], &format[last + 1..]),
        _ => return format.to_owned(),
    };
    let clean = |text: &str| text.replace(['\'', '"', '\\', ','], "");
    format!("{sign}{}{body}{}", clean(before), clean(after))
}

fn date_format(date: Date, format: &str) -> Result<String, String> {
    let custom = match format {
        "d" => "MM/dd/yyyy",
        "D" => "dddd, dd MMMM yyyy",
        "f" => "dddd, dd MMMM yyyy HH:mm",
        "F" => "dddd, dd MMMM yyyy HH:mm:ss",
        "g" => "MM/dd/yyyy HH:mm",
        "G" => "MM/dd/yyyy HH:mm:ss",
        "m" | "M" => "MMMM dd",
        "o" | "O" => return Ok(text_of(date.format(&mut [0; DATE_TEXT_MAX])).to_owned()),
        "r" | "R" => "ddd, dd MMM yyyy HH':'mm':'ss 'GMT'",
        "s" => "yyyy'-'MM'-'dd'T'HH':'mm':'ss",
        "t" => "HH:mm",
        "T" => "HH:mm:ss",
        "u" => "yyyy'-'MM'-'dd HH':'mm':'ss'Z'",
        "y" | "Y" => "yyyy MMMM",
        format if format.len() == 1 => return Err(wrong_format(format)),
        format => format,
    };
    Ok(custom_date(date, custom))
}

fn custom_date(date: Date, format: &str) -> String {
    let (year, month, day) = dates::civil(date.ticks);
    let in_day = date.ticks.rem_euclid(dates::DAY);
    let (hour, minute, second) =
        (in_day / dates::HOUR, in_day / dates::MINUTE % 60, in_day / dates::SECOND % 60);
    let fraction = format!("{:07}", in_day % dates::SECOND);
    let month_name = MONTHS[(month - 1).rem_euclid(12) as usize];
    let day_name = dates::DAYS[dates::day_of_week(date.ticks) as usize % 7];
    let half = if hour % 12 == 0 { 12 } else { hour % 12 };
    let mut out = String::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        let run = rest.chars().take_while(|c| *c == first).count();
        let mut used = run * first.len_utf8();
        // Writing into a string cannot fail.
        match first {
            'y' => {
                let shown = if run <= 2 { year % 100 } else { year };
                let _ = write!(out, "{shown:0>run$}");
            }
            'M' if run >= 4 => out.push_str(month_name),
            'M' if run == 3 => out.push_str(&month_name[..3]),
            'd' if run >= 4 => out.push_str(day_name),
            'd' if run == 3 => out.push_str(&day_name[..3]),
            'M' | 'd' | 'H' | 'h' | 'm' | 's' => {
                let value = match first {
                    'M' => month,
                    'd' => day,
                    'H' => hour,
                    'h' => half,
                    'm' => minute,
                    _ => second,
                };
                let _ = write!(out, "{value:0>width$}", width = run.min(2));
            }
            'f' => out.push_str(&fraction[..run.min(7)]),
            'F' => out.push_str(fraction[..run.min(7)].trim_end_matches('0')),
            't' => out.push_str(&(if hour < 12 { "AM" } else { "PM" })[..run.min(2)]),
            'z' | 'K' => match date.zone {
                Zone::Utc if first == 'K' => out.push('Z'),
                Zone::Unspecified if first == 'K' => {}
                zone => {
                    let minutes = if let Zone::Offset(minutes) = zone { minutes } else { 0 };
                    let sign = if minutes < 0 { '-' } else { '+' };
                    let _ = write!(out, "{sign}{:0>width$}", minutes.abs() / 60, width = run.min(2));
                    if run >= 3 || first == 'K' {
                        let _ = write!(out, ":{:02}", minutes.abs() % 60);
                    }
                }
            },
            '\'' | '"' => {
                let inner = &rest[1..];
                let end = inner.find(first).unwrap_or(inner.len());
                out.push_str(&inner[..end]);
                used = (end + 2).min(rest.len());
            }
            '\\' => {
                let escaped = rest[1..].chars().next();
                out.extend(escaped);
                used = 1 + escaped.map_or(0, char::len_utf8);
            }
            '%' => used = 1,
            other => {
                for _ in 0..run {
                    out.push(other);
                }
            }
        }
        rest = &rest[used.min(rest.len())..];
    }
    out
}

fn custom_span(ticks: i64, format: &str) -> String {
    let date = Date { ticks: ticks.rem_euclid(dates::DAY), zone: Zone::Unspecified };
    // Hours and below are as in dates; `d` counts days.
    let days = (ticks / dates::DAY).abs().to_string();
    custom_date(
        date,
        &format
            .replace("\\:", "':'")
            .replace("hh", "HH")
            .replace("dd", "d")
            .replace('d', &format!("'{days}'")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles() {
        for (value, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e14, "100000000000000"),
            (1e15, "1E+15"),
            (1.5e300, "1.5E+300"),
            (0.0001, "0.0001"),
            (0.00001, "1E-05"),
            (-2.5, "-2.5"),
            (f64::NAN, "NaN"),
            (123_456_789_012_345_680.0, "1.2345678901234568E+17"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn numbers_in_formats() {
        let long = |value, format| number_format(Num::Long(value), format).unwrap();
        assert_eq!(long(7, "D5"), "00007");
        assert_eq!(long(-7, "D3"), "-007");
        assert_eq!(long(255, "x"), "ff");
        assert_eq!(long(1_234_567, "N0"), "1,234,567");
        assert_eq!(long(5, "000"), "005");
        assert_eq!(long(1_234_567, "#,##0"), "1,234,567");
        let double = |value, format| number_format(Num::Double(value), format).unwrap();
        assert_eq!(double(1.1, "0.000"), "1.100");
        assert_eq!(double(1.005, "F2"), "1.01");
        assert_eq!(double(2.5, "0.##"), "2.5");
        assert_eq!(double(0.256, "P1"), "25.6 %");
        assert_eq!(double(1234.5, "E2"), "1.23E+003");
        assert!(number_format(Num::Double(1.5), "D2").is_err());
    }

    #[test]
    fn dates_in_formats() {
        let date = Date::parse(b"2020-02-03T04:05:06.1230000Z").unwrap();
        for (format, text) in [
            ("yyyy-MM", "2020-02"),
            ("d", "02/03/2020"),
            ("dddd d MMM yy", "Monday 3 Feb 20"),
            ("o", "2020-02-03T04:05:06.1230000Z"),
            ("s", "2020-02-03T04:05:06"),
            ("HH:mm:ss.fff tt", "04:05:06.123 AM"),
            ("yyyy'y'", "2020y"),
        ] {
            assert_eq!(date_format(date, format).unwrap(), text, "{format}");
        }
    }

    #[test]
    fn composite_formats() {
        let values = [Value::Long(5), Value::Text("tea"), Value::Null];
        assert_eq!(composite("{0:D3}/{1,5}|{1,-5}|{2}{{}}", &values).unwrap(), "005/  tea|tea  |{}");
        assert!(composite("{3}", &values).is_err());
        assert!(composite("{", &values).is_err());
    }
}
