//! JSON numbers: from text to what the format keeps, and back.
//!
//! A number is kept so that its text comes back digit for digit: as an integer, as a decimal (an integer and how many of its digits stand after
//! the point), or as its own text where neither can hold it. No floating-point conversion happens until somebody asks.

use crate::format::SCALE_MAX;

/// A number as parsed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Parsed {
    Integer(i64),
    Decimal {
        mantissa: i64,
        scale: u32,
    },
    /// Keep the text itself.
    Text,
}

/// Parses the number at the start of `text`, whose first byte is `-` or a digit. Returns it with its length, or the offset of what is wrong.
#[inline(always)]
pub(crate) fn parse(text: &[u8]) -> Result<(Parsed, usize), usize> {
    let mut at = 0;
    let negative = text[0] == b'-';
    if negative {
        at = 1;
    }
    let digits_start = at;
    let mut mantissa = 0u64;
    at += digits(&text[at..], &mut mantissa);
    let whole = at - digits_start;
    if whole == 0 || (whole > 1 && text[digits_start] == b'0') {
        return Err(at);
    }
    match text.get(at) {
        Some(b'.') => {}
        Some(b'e' | b'E') => return exponent(text, at),
        _ => {
            // 18 digits always fit; with 19 the sum may have wrapped, so they are looked at again.
            if whole <= 18 {
                if negative && mantissa == 0 {
                    return Ok((Parsed::Text, at));
                }
                let value = mantissa as i64;
                return Ok((Parsed::Integer(if negative { -value } else { value }), at));
            }
            return Ok((long_integer(&text[..at]), at));
        }
    }
    at += 1;
    let scale = digits(&text[at..], &mut mantissa);
    at += scale;
    if scale == 0 {
        return Err(at);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        return exponent(text, at);
    }
    // Leading zeros are no digits of the mantissa: 0.000…1 has a small one.
    let significant = if whole == 1 && text[digits_start] == b'0' {
        scale - text[at - scale..at].iter().take_while(|byte| **byte == b'0').count()
    } else {
        whole + scale
    };
    if significant > 18 || scale > SCALE_MAX as usize || (negative && mantissa == 0) {
        return Ok((Parsed::Text, at));
    }
    let value = mantissa as i64;
    Ok((Parsed::Decimal { mantissa: if negative { -value } else { value }, scale: scale as u32 }, at))
}

/// Adds the digits at the start of `text` to `value` (wrapping) and returns how many they are.
#[inline(always)]
fn digits(text: &[u8], value: &mut u64) -> usize {
    let mut at = 0;
    while text.len() - at >= 8 {
        let word = crate::simd::word(&text[at..]);
        if !eight_digits(word) {
            break;
        }
        *value = value.wrapping_mul(100_000_000).wrapping_add(value_of_eight(word));
        at += 8;
    }
    while let Some(byte) = text.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

#[inline(always)]
fn eight_digits(word: u64) -> bool {
    // Adding 6 to the low half carries into bit 4 for 0xA..=0xF; the high half must be 3 before and after.
    let high = word & 0xF0F0_F0F0_F0F0_F0F0;
    let carried = (word.wrapping_add(0x0606_0606_0606_0606) & 0xF0F0_F0F0_F0F0_F0F0) >> 4;
    high | carried == 0x3333_3333_3333_3333
}

/// The value of eight digits, the first in the lowest byte: pairs, then fours, then all.
#[inline(always)]
pub(crate) fn value_of_eight(word: u64) -> u64 {
    let word = word.wrapping_sub(0x3030_3030_3030_3030);
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let low = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(0x000F_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00FF_0000_00FF).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

#[cold]
fn long_integer(text: &[u8]) -> Parsed {
    match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        Some(value) => Parsed::Integer(value),
        None => Parsed::Text,
    }
}

/// The number goes on with an exponent at `at`: checks it; such numbers keep their text.
#[cold]
#[inline(never)]
fn exponent(text: &[u8], mut at: usize) -> Result<(Parsed, usize), usize> {
    at += 1;
    if matches!(text.get(at), Some(b'+' | b'-')) {
        at += 1;
    }
    let start = at;
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    if at == start { Err(at) } else { Ok((Parsed::Text, at)) }
}

/// Parses `text`, if all of it is one JSON number.
pub(crate) fn parse_whole(text: &[u8]) -> Option<Parsed> {
    if !matches!(text.first(), Some(b'-' | b'0'..=b'9')) {
        return None;
    }
    parse(text).ok().filter(|(_, len)| *len == text.len()).map(|(parsed, _)| parsed)
}

/// Whether all of `text` is one JSON number.
#[cfg(test)]
pub(crate) fn is_number(text: &[u8]) -> bool {
    parse_whole(text).is_some()
}

/// The double nearest to `mantissa / 10^scale`.
pub(crate) fn decimal_to_f64(mantissa: i64, scale: u32) -> f64 {
    /// Powers of ten that a double holds exactly.
    const EXACT: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    if mantissa.unsigned_abs() <= 1 << 53 && scale < 23 {
        // Both sides are exact, so the one division rounds correctly.
        return mantissa as f64 / EXACT[scale as usize];
    }
    let mut buffer = [0; DECIMAL_TEXT_MAX];
    let text = decimal_text(mantissa, scale, &mut buffer);
    // Digits and a point always parse.
    text_to_f64(text)
}

/// The double nearest to a number's text; infinite when it is beyond all doubles.
pub(crate) fn text_to_f64(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// The longest text of a decimal: a sign, zeros up to the scale, a point; and what the last wide write goes beyond it.
pub(crate) const DECIMAL_TEXT_MAX: usize = 168;

/// Room for the text of an integer, and for what the last wide write goes beyond it.
pub(crate) const INTEGER_TEXT_MAX: usize = 32;

const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// The two digits of a value below 100.
#[inline(always)]
pub(crate) fn pair(value: u32) -> [u8; 2] {
    let at = (value % 100) as usize * 2;
    [PAIRS[at], PAIRS[at + 1]]
}

/// The digits of a value below 10^8 as numbers, the first one in the lowest byte: halves, then pairs, then single ones, all at once.
#[inline(always)]
fn eight_digits_of(value: u32) -> u64 {
    debug_assert!(value < 100_000_000);
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    // n × 10,486 / 2^20 is n / 100 for all n below 10,000; n × 103 / 2^10 is n / 10 for all below 100.
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007F_0000_007F;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = (pairs * 103) >> 10 & 0x000F_000F_000F_000F;
    tens | (pairs - 10 * tens) << 8
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The first value of nine digits.
pub(crate) const EIGHT: u64 = 100_000_000;

/// The text of a value below 1,000 and how many of its bytes count.
#[inline(always)]
pub(crate) fn small(value: u64) -> Option<([u8; 4], usize)> {
    let small = SMALL.get(usize::try_from(value).ok()?)?;
    Some((small.to_le_bytes(), (small >> 24) as usize))
}

/// The text of a value below [`EIGHT`] and how many of its bytes count; of zero itself one digit stays.
#[inline(always)]
pub(crate) fn first_digits(value: u64) -> ([u8; 8], usize) {
    let word = eight_digits_of(value as u32);
    // Leading zeros are low bytes without a bit.
    let skipped = (word | 1 << 56).trailing_zeros() / 8;
    (((word | ZEROS) >> (8 * skipped)).to_le_bytes(), 8 - skipped as usize)
}

/// The eight digits of a value below [`EIGHT`].
#[inline(always)]
pub(crate) fn eight_digits_text(value: u64) -> [u8; 8] {
    (eight_digits_of(value as u32) | ZEROS).to_le_bytes()
}

/// The sixteen digits of a value below 10^16.
#[inline(always)]
pub(crate) fn sixteen_digits(value: u64) -> [u8; 16] {
    crate::simd::sixteen_digits((value / EIGHT) as u32, (value % EIGHT) as u32)
}

/// What stands before the point of `value / 10^scale`, and sixteen digits after it, of which `scale` (1 to [`SHORT_SCALE_MAX`]) count.
#[inline(always)]
pub(crate) fn split(value: u64, scale: u32) -> (u64, u64) {
    let scale = scale.clamp(1, SHORT_SCALE_MAX) as usize;
    let (whole, part) = (value / POWERS[scale], value % POWERS[scale]);
    (whole, part * POWERS[16 - scale])
}

/// The text of each value below 1,000 from the lowest byte on, and its length in the highest.
static SMALL: [u32; 1000] = {
    let mut texts = [0; 1000];
    let mut value = 0;
    while value < texts.len() {
        let (hundreds, tens, ones) = (value as u32 / 100, value as u32 / 10 % 10, value as u32 % 10);
        texts[value] = 0x0030_3030
            | if value >= 100 {
                hundreds | tens << 8 | ones << 16 | 3 << 24
            } else if value >= 10 {
                tens | ones << 8 | 2 << 24
            } else {
                ones | 1 << 24
            };
        value += 1;
    }
    texts
};

/// Writes the digits of `value`, at most 20, from `at` on; returns where they end. Up to eight bytes after that are overwritten.
#[inline(always)]
fn put_digits<const SIZE: usize>(value: u64, buffer: &mut [u8; SIZE], at: usize) -> usize {
    if let Some((text, size)) = small(value) {
        buffer[at..at + 4].copy_from_slice(&text);
        return at + size;
    }
    let mut put = |text: [u8; 8], at: usize| buffer[at..at + 8].copy_from_slice(&text);
    let mut put_first = |value: u64| {
        let (text, size) = first_digits(value);
        put(text, at);
        at + size
    };
    if value < EIGHT {
        return put_first(value);
    }
    let (high, low) = (value / EIGHT, value % EIGHT);
    if high < EIGHT {
        let end = put_first(high);
        put(eight_digits_text(low), end);
        return end + 8;
    }
    let end = put_first(high / EIGHT);
    put(eight_digits_text(high % EIGHT), end);
    put(eight_digits_text(low), end + 8);
    end + 16
}

/// Writes the text of an integer; returns its length.
#[inline(always)]
pub(crate) fn put_integer(value: i64, buffer: &mut [u8; INTEGER_TEXT_MAX]) -> usize {
    buffer[0] = b'-';
    put_digits(value.unsigned_abs(), buffer, usize::from(value < 0))
}

/// The text of an integer.
#[inline(always)]
pub(crate) fn integer_text(value: i64, buffer: &mut [u8; INTEGER_TEXT_MAX]) -> &[u8] {
    let size = put_integer(value, buffer);
    &buffer[..size]
}

/// The most digits after the point that [`put_short_decimal`] writes.
pub(crate) const SHORT_SCALE_MAX: u32 = 16;

/// Room for the text of a decimal of [`SHORT_SCALE_MAX`] and what the last wide write goes beyond it.
pub(crate) const SHORT_DECIMAL_TEXT_MAX: usize = 48;

const POWERS: [u64; 17] = {
    let mut powers = [1; 17];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = 10 * powers[i - 1];
        i += 1;
    }
    powers
};

/// Writes the text of `mantissa / 10^scale`, for a scale of 1 to [`SHORT_SCALE_MAX`]; returns its length. What stands before and after the point are written
/// each by itself: reading back digits just written, to move them, would wait for the writes.
#[inline(always)]
pub(crate) fn put_short_decimal(
    mantissa: i64,
    scale: u32,
    buffer: &mut [u8; SHORT_DECIMAL_TEXT_MAX],
) -> usize {
    let (whole, part) = split(mantissa.unsigned_abs(), scale);
    buffer[0] = b'-';
    let point = put_digits(whole, buffer, usize::from(mantissa < 0)).min(SHORT_DECIMAL_TEXT_MAX - 17);
    buffer[point] = b'.';
    buffer[point + 1..point + 17].copy_from_slice(&sixteen_digits(part));
    point + 1 + scale.min(SHORT_SCALE_MAX) as usize
}

/// The text of `mantissa / 10^scale` with exactly `scale` digits after the point.
pub(crate) fn decimal_text(mantissa: i64, scale: u32, buffer: &mut [u8; DECIMAL_TEXT_MAX]) -> &[u8] {
    // More than the format allows can come from damaged bytes only.
    let scale = scale.clamp(1, SCALE_MAX);
    if scale <= SHORT_SCALE_MAX
        && let Some(short) = buffer.first_chunk_mut()
    {
        let size = put_short_decimal(mantissa, scale, short);
        return &buffer[..size];
    }
    let mut digits = [0; 32];
    let count = put_digits(mantissa.unsigned_abs(), &mut digits, 0);
    let start = usize::from(mantissa < 0);
    let scale = scale as usize;
    let whole = count.saturating_sub(scale);
    let zeros = scale.saturating_sub(count);
    let point = start + whole.max(1);
    let size = point + 1 + scale;
    buffer[..size].fill(b'0');
    buffer[0] = if mantissa < 0 { b'-' } else { b'0' };
    buffer[start..start + whole].copy_from_slice(&digits[..whole]);
    buffer[point] = b'.';
    buffer[point + 1 + zeros..size].copy_from_slice(&digits[whole..count]);
    &buffer[..size]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_comes_back() {
        let mut cases: Vec<String> = [
            "0",
            "1",
            "-1",
            "10",
            "255",
            "256",
            "1.10",
            "0.001",
            "-0.5",
            "100.00",
            "9223372036854775807",
            "-9223372036854775808",
        ]
        .map(String::from)
        .to_vec();
        let mut power = 1i64;
        for _ in 0..18 {
            power *= 10;
            for value in [power - 1, power, power + 1, -power, 7 * (power / 9)] {
                cases.push(value.to_string());
            }
        }
        for scale in 1..=SCALE_MAX as usize {
            for digits in [1, 2, 8, 9, 16, 17, 18] {
                if digits <= scale {
                    cases.push(format!("0.{}{}", "0".repeat(scale - digits), "9".repeat(digits)));
                    cases.push(format!("-0.{}1{}", "0".repeat(scale - digits), "0".repeat(digits - 1)));
                }
            }
        }
        let mut digits = String::new();
        for i in 0..18 {
            digits.push(char::from(b'1' + i % 9));
            cases.push(digits.clone());
            cases.push(format!("-{digits}"));
            cases.push(format!("0.{digits}"));
            for point in 1..digits.len() {
                cases.push(format!("{}.{}", &digits[..point], &digits[point..]));
            }
        }
        for case in &cases {
            let (parsed, len) = parse(case.as_bytes()).unwrap();
            assert_eq!(len, case.len(), "{case}");
            let text = match parsed {
                Parsed::Integer(value) => integer_text(value, &mut [0; INTEGER_TEXT_MAX]).to_vec(),
                Parsed::Decimal { mantissa, scale } => {
                    assert_eq!(
                        decimal_to_f64(mantissa, scale).to_bits(),
                        case.parse::<f64>().unwrap().to_bits(),
                        "{case}"
                    );
                    decimal_text(mantissa, scale, &mut [0; DECIMAL_TEXT_MAX]).to_vec()
                }
                Parsed::Text => panic!("{case} need not be kept as text"),
            };
            assert_eq!(String::from_utf8(text).unwrap(), *case);
        }
    }

    #[test]
    fn what_no_integer_or_decimal_holds_keeps_its_text() {
        for case in [
            "-0",
            "-0.0",
            "1e5",
            "1E+5",
            "1.5e-3",
            "9223372036854775808",
            "18446744073709551616",
            "1234567890.1234567890",
            "0.1e1",
            "-0e0",
        ] {
            assert_eq!(parse(case.as_bytes()), Ok((Parsed::Text, case.len())), "{case}");
        }
    }

    #[test]
    fn malformed() {
        for case in ["-", "01", "-01", "1.", "1.e5", "1e", "1e+", "-a", "00"] {
            assert!(parse(case.as_bytes()).is_err(), "{case}");
        }
        for case in ["1x", "1 ", "1,", "1.5]", "1-", "0x10", "1+2"] {
            assert!(!is_number(case.as_bytes()), "{case}");
        }
    }
}
