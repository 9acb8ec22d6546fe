//! Numbers as JavaScript reads and writes them.

use super::texts::is_space;

/// Texts with more digits are left to QuickJS: the nearest double of a text that long is a matter of care.
const DIGITS_MAX: usize = 19;

/// The number that a text is; not a number when it is none. `None`: not known here.
pub(super) fn parse(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_space);
    if text.is_empty() {
        return Some(0.0);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "Infinity" {
        return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let bytes = text.as_bytes();
    if bytes[0] == b'0' && bytes.len() > 1 && matches!(bytes[1] | 0x20, b'x' | b'o' | b'b') {
        return None;
    }
    match decimal_end(text) {
        Some(end) if end == text.len() => decimal(text),
        _ => Some(f64::NAN),
    }
}

/// `parseFloat`: the number that a text begins with.
pub(super) fn parse_start(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(is_space);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with("Infinity") {
        return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    match decimal_end(text) {
        Some(end) => decimal(&text[..end]),
        None => Some(f64::NAN),
    }
}

/// `parseInt` of base ten: the digits that a text begins with. Of those that begin with `0x`, and of many digits: not known here.
pub(super) fn parse_integer(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(is_space);
    let (sign, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if unsigned.len() > 1 && unsigned.as_bytes()[0] == b'0' && unsigned.as_bytes()[1] | 0x20 == b'x' {
        return None;
    }
    let end = unsigned.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(unsigned.len());
    match end {
        0 => Some(f64::NAN),
        1..=15 => unsigned[..end].parse::<f64>().ok().map(|number| sign * number),
        _ => None,
    }
}

/// Where the decimal number ends that a text begins with.
fn decimal_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(start);
    let mut end = start + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if whole + fraction == 0 {
            return None;
        }
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = if end + 1 + sign <= bytes.len() { digits(end + 1 + sign) } else { 0 };
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some(end)
}

fn decimal(text: &str) -> Option<f64> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits > DIGITS_MAX {
        return None;
    }
    text.parse().ok()
}

/// A number as text.
pub(super) fn text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // Minus zero has no sign as text.
    if number == 0.0 {
        return "0".to_owned();
    }
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return (number as i64).to_string();
    }
    // The shortest digits that give the number back, with their exponent.
    let shortest = format!("{:e}", number.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let mut out = String::with_capacity(24);
    if number < 0.0 {
        out.push('-');
    }
    let count = digits.len() as i32;
    let point = exponent + 1;
    if count <= point && point <= 21 {
        out.push_str(&digits);
        out.extend(std::iter::repeat_n('0', (point - count) as usize));
    } else if 0 < point && point <= 21 {
        out.push_str(&digits[..point as usize]);
        out.push('.');
        out.push_str(&digits[point as usize..]);
    } else if -6 < point && point <= 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', -point as usize));
        out.push_str(&digits);
    } else {
        out.push_str(&digits[..1]);
        if count > 1 {
            out.push('.');
            out.push_str(&digits[1..]);
        }
        out.push('e');
        out.push(if exponent < 0 { '-' } else { '+' });
        out.push_str(&exponent.unsigned_abs().to_string());
    }
    out
}

/// `toFixed`. `None`: not known here.
pub(super) fn fixed(number: f64, digits: usize) -> Option<String> {
    if !number.is_finite() || number.abs() >= 1e15 || digits > 20 {
        return None;
    }
    // What lies in the middle between two is rounded away from zero; that is so only of numbers whose digits end there.
    let exact = format!("{:.*}", digits + 60, number.abs());
    let kept = exact.len() - 60;
    if exact.as_bytes()[kept] == b'5' && exact.as_bytes()[kept + 1..].iter().all(|digit| *digit == b'0') {
        return None;
    }
    let text = format!("{digits_of:.digits$}", digits_of = number.abs());
    let is_negative = number < 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
    if number < 0.0 && !is_negative {
        // `-0.00` or `0.00`.
        return None;
    }
    Some(if is_negative { format!("-{text}") } else { text })
}

/// The 32 bits that bit operators see.
pub(super) fn to_int32(number: f64) -> i32 {
    const RANGE: f64 = 4_294_967_296.0;
    if !number.is_finite() {
        return 0;
    }
    let within = number.trunc() % RANGE;
    let positive = if within < 0.0 { within + RANGE } else { within };
    positive as u32 as i32
}

/// `**`.
pub(super) fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) {
        return f64::NAN;
    }
    base.powf(exponent)
}

/// `Math.round`: to the nearest whole number, the greater of two.
pub(super) fn round(number: f64) -> f64 {
    if !number.is_finite() || number.fract() == 0.0 {
        return number;
    }
    let floor = number.floor();
    let rounded = if number - floor >= 0.5 { floor + 1.0 } else { floor };
    // What rounds to zero from below is minus zero.
    if rounded == 0.0 && number < 0.0 { -0.0 } else { rounded }
}
