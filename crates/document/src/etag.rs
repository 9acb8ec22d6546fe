//! Etags as text.
//!
//! Every document has one, and many are read and written per request, so both ways go eight characters at a time, without tables and without allocation. The new form is a
//! decimal integer; the old one looks like a GUID: `01000000-0000-0005-0000-00000000012C`.

use crate::text::number;

/// An etag of 128 bits that is written like a GUID, in upper case: the higher is the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct GuidEtag {
    /// The first sixteen digits: the kind of thing in the highest byte, then how often the store had been started.
    pub restarts: u64,
    /// The last sixteen digits: the changes since that start.
    pub changes: u64,
}

/// Bytes of the text of a [`GuidEtag`].
pub const GUID_ETAG_TEXT_SIZE: usize = 36;

impl GuidEtag {
    /// Reads the text; upper and lower case count the same. `None` unless it is 36 characters of that form.
    #[inline]
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<GuidEtag> {
        let text: &[u8; GUID_ETAG_TEXT_SIZE] = text.try_into().ok()?;
        if (text[8] ^ b'-') | (text[13] ^ b'-') | (text[18] ^ b'-') | (text[23] ^ b'-') != 0 {
            return None;
        }
        let word = |at: usize| crate::simd::word(&text[at..]);
        let two = |left: usize, right: usize| (word(left) & 0xFFFF_FFFF) | word(right) << 32;
        // 8 digits, 4 and 4, 4 and 4, 8: the fifth group has twelve.
        let [restarts, changes] = hexadecimal([word(0), two(9, 14), two(19, 24), word(28)])?;
        Some(GuidEtag { restarts, changes })
    }

    /// Writes the text.
    #[inline]
    #[must_use]
    pub fn to_text(self) -> [u8; GUID_ETAG_TEXT_SIZE] {
        let mut text = [b'-'; GUID_ETAG_TEXT_SIZE];
        let first = u32_to_digits(self.restarts >> 32);
        let second = u32_to_digits(self.restarts & 0xFFFF_FFFF);
        let third = u32_to_digits(self.changes >> 32);
        let fourth = u32_to_digits(self.changes & 0xFFFF_FFFF);
        text[0..8].copy_from_slice(&first);
        text[9..13].copy_from_slice(&second[..4]);
        text[14..18].copy_from_slice(&second[4..]);
        text[19..23].copy_from_slice(&third[..4]);
        text[24..28].copy_from_slice(&third[4..]);
        text[28..36].copy_from_slice(&fourth);
        text
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The values of 32 hexadecimal digits, the first in the lowest byte of the first word; `None` if one is none.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn hexadecimal(words: [u64; 4]) -> Option<[u64; 2]> {
    crate::simd::x86::hexadecimal(words)
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn hexadecimal(words: [u64; 4]) -> Option<[u64; 2]> {
    hexadecimal_portable(words)
}

/// As `hexadecimal`, in plain words.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
fn hexadecimal_portable(words: [u64; 4]) -> Option<[u64; 2]> {
    let [first, second, third, fourth] = words.map(digits_to_u32);
    if first.1 | second.1 | third.1 | fourth.1 != 0 {
        return None;
    }
    Some([first.0 << 32 | second.0, third.0 << 32 | fourth.0])
}

/// The value of eight hexadecimal digits, the first in the lowest byte, and something other than 0 if one is none.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[inline(always)]
fn digits_to_u32(word: u64) -> (u64, u64) {
    // Per byte, in its high bit. Bytes from 0x80 on would carry into their neighbours, so they are refused apart.
    let digit = !(word ^ (ONES * 0x30)).wrapping_add(ONES * 0x76) & HIGHS;
    let lower = word | (ONES * 0x20);
    let letter = lower.wrapping_add(ONES * 0x1F) & !lower.wrapping_add(ONES * 0x19) & HIGHS;
    let bad = (word & HIGHS) | ((digit | letter) ^ HIGHS);
    let nibbles = (word & (ONES * 0x0F)) + (word >> 6 & ONES) * 9;
    let value = nibbles.swap_bytes();
    let value = (value | value >> 4) & 0x00FF_00FF_00FF_00FF;
    let value = (value | value >> 8) & 0x0000_FFFF_0000_FFFF;
    ((value | value >> 16) & 0xFFFF_FFFF, bad)
}

/// Eight upper-case hexadecimal digits of a value below 2^32.
#[inline(always)]
fn u32_to_digits(value: u64) -> [u8; 8] {
    let value = (value | value << 16) & 0x0000_FFFF_0000_FFFF;
    let value = (value | value << 8) & 0x00FF_00FF_00FF_00FF;
    let nibbles = ((value | value << 4) & (ONES * 0x0F)).swap_bytes();
    // 10 and more carry into bit 4 when 6 is added; seven more leads from behind '9' to 'A'.
    let letters = (nibbles + ONES * 6) >> 4 & ONES;
    (nibbles + ONES * 0x30 + letters * 7).to_le_bytes()
}

/// Reads a decimal etag. `None` unless all of `text` is a non-negative integer of 63 bits without leading zeros.
#[inline]
#[must_use]
pub fn parse_decimal(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 19 || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Nineteen digits fit 64 bits.
        value = value * 10 + u64::from(digit);
    }
    i64::try_from(value).ok()
}

/// The longest text of a decimal etag, in bytes.
pub const DECIMAL_ETAG_TEXT_MAX: usize = 20;

/// Writes a decimal etag into `buffer` and returns the part used.
#[inline]
#[must_use]
pub fn format_decimal(etag: i64, buffer: &mut [u8; DECIMAL_ETAG_TEXT_MAX]) -> &[u8] {
    let mut room = [0; number::INTEGER_TEXT_MAX];
    let size = number::put_integer(etag, &mut room);
    buffer.copy_from_slice(&room[..DECIMAL_ETAG_TEXT_MAX]);
    &buffer[..size]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_comes_back() {
        let etag = GuidEtag::parse(b"01000000-0000-0005-0000-00000000012C").unwrap();
        assert_eq!(etag, GuidEtag { restarts: 0x0100_0000_0000_0005, changes: 300 });
        assert_eq!(&etag.to_text(), b"01000000-0000-0005-0000-00000000012C");
        let mut seed = 1u64;
        for _ in 0..10_000 {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed ^ seed >> 31
            };
            let etag = GuidEtag { restarts: next(), changes: next() };
            let plain = format!("{:016X}{:016X}", etag.restarts, etag.changes);
            let expected = format!(
                "{}-{}-{}-{}-{}",
                &plain[..8],
                &plain[8..12],
                &plain[12..16],
                &plain[16..20],
                &plain[20..]
            );
            assert_eq!(String::from_utf8(etag.to_text().to_vec()).unwrap(), expected);
            assert_eq!(GuidEtag::parse(expected.as_bytes()), Some(etag));
            assert_eq!(GuidEtag::parse(expected.to_lowercase().as_bytes()), Some(etag));
        }
    }

    #[test]
    fn every_other_byte_in_any_place_is_refused() {
        let good = *b"01000000-0000-0005-0000-00000000012C";
        for place in 0..good.len() {
            for byte in 0..=255u8 {
                let mut text = good;
                text[place] = byte;
                let is_dash_place = [8, 13, 18, 23].contains(&place);
                let expected = if is_dash_place { byte == b'-' } else { byte.is_ascii_hexdigit() };
                assert_eq!(GuidEtag::parse(&text).is_some(), expected, "{byte:#x} at {place}");
            }
        }
        assert_eq!(GuidEtag::parse(b""), None);
        assert_eq!(GuidEtag::parse(&good[..35]), None);
    }

    /// Both ways to read digits agree, on digits and on anything else.
    #[test]
    fn wide_and_plain_reading_agree() {
        let mut seed = 1u64;
        for round in 0..20_000 {
            let words = [(); 4].map(|()| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let digits = u32_to_digits(seed >> 32);
                let word = u64::from_le_bytes(digits) | if round % 3 == 0 { ONES * 0x20 } else { 0 };
                // Now and then one bit is another.
                if seed >> 8 & 7 == 0 { word ^ 1 << (seed & 63) } else { word }
            });
            assert_eq!(hexadecimal(words), hexadecimal_portable(words), "{words:x?}");
        }
    }

    #[test]
    fn decimal() {
        let mut buffer = [0; DECIMAL_ETAG_TEXT_MAX];
        for etag in [0, 1, 9, 10, 99, 100, 12_345, i64::MAX, i64::MIN] {
            let text = format_decimal(etag, &mut buffer).to_vec();
            assert_eq!(text, etag.to_string().as_bytes());
            assert_eq!(parse_decimal(&text), (etag >= 0).then_some(etag));
        }
        for wrong in ["", "-1", "01", "9223372036854775808", "99999999999999999999", "1 ", "a"] {
            assert_eq!(parse_decimal(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
