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

/// Whether all of `text` is one JSON number.
pub(crate) fn is_number(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'-' | b'0'..=b'9')) && parse(text).is_ok_and(|(_, len)| len == text.len())
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

/// The longest text of a decimal: a sign, zeros up to the scale, a point.
pub(crate) const DECIMAL_TEXT_MAX: usize = 160;

/// The longest text of an integer.
pub(crate) const INTEGER_TEXT_MAX: usize = 20;

const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// The two digits of a value below 100.
#[inline(always)]
pub(crate) fn pair(value: u32) -> [u8; 2] {
    let at = (value % 100) as usize * 2;
    [PAIRS[at], PAIRS[at + 1]]
}

/// Writes the digits of `value` so that they end at the end of `buffer`; returns where they start.
#[inline(always)]
pub(crate) fn digits_before(mut value: u64, buffer: &mut [u8]) -> usize {
    let mut at = buffer.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    at
}

/// The text of an integer.
#[inline(always)]
pub(crate) fn integer_text(value: i64, buffer: &mut [u8; INTEGER_TEXT_MAX]) -> &[u8] {
    let mut start = digits_before(value.unsigned_abs(), buffer);
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    &buffer[start..]
}

/// The text of `mantissa / 10^scale` with exactly `scale` digits after the point.
#[inline(always)]
pub(crate) fn decimal_text(mantissa: i64, scale: u32, buffer: &mut [u8; DECIMAL_TEXT_MAX]) -> &[u8] {
    // More than the format allows can come from damaged bytes only.
    let scale = scale.clamp(1, SCALE_MAX) as usize;
    let end = buffer.len();
    let mut start = digits_before(mantissa.unsigned_abs(), buffer);
    // At least one digit before the point.
    while end - start < scale + 1 {
        start -= 1;
        buffer[start] = b'0';
    }
    // Shift the whole part left by one to make room for the point.
    let point = end - scale;
    buffer.copy_within(start..point, start - 1);
    start -= 1;
    buffer[point - 1] = b'.';
    if mantissa < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    &buffer[start..]
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
