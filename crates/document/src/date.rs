//! Dates as text: `2015-01-15T00:41:16.6616631`, with seven digits of fraction, and `Z` where the time is universal.
//!
//! Every document has at least one. Both ways work on two digits at a time from tables or words, without allocation.

use crate::text::number;

/// Ticks (100 nanoseconds) in a second.
pub const TICKS_PER_SECOND: i64 = 10_000_000;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// Ticks from the first day of year 1 to the first of 1970, as [`Date::ticks`] counts.
pub const UNIX_EPOCH_TICKS: i64 = 719_162 * TICKS_PER_DAY;

/// The last tick of year 9999.
pub const TICKS_MAX: i64 = 3_652_059 * TICKS_PER_DAY - 1;

/// The longest text of a date.
pub const DATE_TEXT_MAX: usize = 33;

/// What a date's text says about its zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Zone {
    /// Nothing.
    #[default]
    Unspecified,
    /// `Z`.
    Utc,
    /// `+hh:mm` or `-hh:mm`, in minutes east.
    Offset(i16),
}

/// A date and time as its text says it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Date {
    /// Ticks of 100 nanoseconds since the first day of year 1, by the clock the text shows; 0 to [`TICKS_MAX`].
    pub ticks: i64,
    /// The clock's zone.
    pub zone: Zone,
}

impl Date {
    /// Reads `yyyy-MM-ddTHH:mm:ss`, then a fraction of one to seven digits or none, then `Z`, an offset or nothing. `None` for anything else, days that do not
    /// exist, and leap seconds.
    #[inline]
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Date> {
        let head = text.first_chunk::<19>()?;
        let word = |at: usize| crate::simd::word(&head[at..]);
        // `2015-01-`, `15T00:41`, `:16` by the word; the separators sit between the digits.
        let year_month = word(0);
        let day_hour = word(8);
        if head[4] != b'-'
            || head[7] != b'-'
            || head[10] != b'T'
            || head[13] != b':'
            || head[16] != b':'
            || !digits(year_month, 0x00FF_FF00_FFFF_FFFF)
            || !digits(day_hour, 0xFFFF_00FF_FF00_FFFF)
        {
            return None;
        }
        let pair = |at: usize| i64::from(head[at] & 15) * 10 + i64::from(head[at + 1] & 15);
        let tens = head[17].wrapping_sub(b'0');
        let ones = head[18].wrapping_sub(b'0');
        if tens > 5 || ones > 9 {
            return None;
        }
        let year = pair(0) * 100 + pair(2);
        let (month, day) = (pair(5), pair(8));
        let (hour, minute, second) = (pair(11), pair(14), i64::from(tens) * 10 + i64::from(ones));
        if !(1..=12).contains(&month)
            || day < 1
            || day > days_in_month(year, month)
            || year < 1
            || hour > 23
            || minute > 59
        {
            return None;
        }
        let mut ticks = days_before(year, month, day) * TICKS_PER_DAY
            + (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND;
        let mut rest = &text[19..];
        if let Some((b'.', after)) = rest.split_first() {
            let (fraction, left) = fraction(after)?;
            ticks += fraction;
            rest = left;
        }
        let zone = match rest {
            [] => Zone::Unspecified,
            [b'Z'] => Zone::Utc,
            _ => offset(rest)?,
        };
        Some(Date { ticks, zone })
    }

    /// The text of a date in full, with seven digits of fraction, in `buffer`; `None` when `text` is no date.
    #[inline]
    #[must_use]
    pub fn in_full<'b>(text: &str, buffer: &'b mut [u8; DATE_TEXT_MAX]) -> Option<&'b str> {
        let date = Date::parse(text.as_bytes())?;
        str::from_utf8(date.format(buffer)).ok()
    }

    /// Writes the text, always with seven digits of fraction, into `buffer` and returns the part used.
    #[inline]
    #[must_use]
    pub fn format(self, buffer: &mut [u8; DATE_TEXT_MAX]) -> &[u8] {
        let ticks = self.ticks.clamp(0, TICKS_MAX) as u64;
        let (days, in_day) = (ticks / TICKS_PER_DAY as u64, ticks % TICKS_PER_DAY as u64);
        let (seconds, fraction) =
            ((in_day / TICKS_PER_SECOND as u64) as u32, (in_day % TICKS_PER_SECOND as u64) as u32);
        let (year, month, day) = civil(days as u32);
        let mut put = |at: usize, value: u32| buffer[at..at + 2].copy_from_slice(&number::pair(value));
        put(0, year / 100);
        put(2, year % 100);
        put(5, month);
        put(8, day);
        let minutes = seconds / 60;
        put(11, minutes / 60);
        put(14, minutes % 60);
        put(17, seconds % 60);
        put(20, fraction / 100_000);
        put(22, fraction / 1000 % 100);
        put(24, fraction / 10 % 100);
        buffer[26] = b'0' + (fraction % 10) as u8;
        (buffer[4], buffer[7], buffer[10]) = (b'-', b'-', b'T');
        (buffer[13], buffer[16], buffer[19]) = (b':', b':', b'.');
        match self.zone {
            Zone::Unspecified => &buffer[..27],
            Zone::Utc => {
                buffer[27] = b'Z';
                &buffer[..28]
            }
            Zone::Offset(minutes) => {
                let east = u32::from(minutes.unsigned_abs()).min(14 * 60);
                buffer[27] = if minutes < 0 { b'-' } else { b'+' };
                buffer[28..30].copy_from_slice(&number::pair(east / 60));
                buffer[30] = b':';
                buffer[31..33].copy_from_slice(&number::pair(east % 60));
                &buffer[..33]
            }
        }
    }

    /// The ticks of the same moment in universal time; a date without a zone is taken as universal.
    #[must_use]
    pub fn utc_ticks(self) -> i64 {
        match self.zone {
            Zone::Offset(minutes) => self.ticks - i64::from(minutes) * 60 * TICKS_PER_SECOND,
            _ => self.ticks,
        }
    }
}

/// Whether the bytes of `word` that `mask` selects are digits.
#[inline(always)]
fn digits(word: u64, mask: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Bytes not looked at count as zeros.
    let word = (word & mask) | ((ONES * 0x30) & !mask);
    let high = word & (ONES * 0xF0);
    let carried = (word.wrapping_add(ONES * 6) & (ONES * 0xF0)) >> 4;
    high | carried == ONES * 0x33
}

/// One to seven digits as ticks, and what follows them.
#[inline(always)]
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    if let Some((seven, rest)) = text.split_first_chunk::<7>() {
        let word =
            u64::from_le_bytes([seven[0], seven[1], seven[2], seven[3], seven[4], seven[5], seven[6], b'0']);
        if digits(word, u64::MAX) {
            return Some(((number::value_of_eight(word) / 10) as i64, rest));
        }
    }
    let count = text.iter().take(7).take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let value = text[..count].iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some((value * 10i64.pow(7 - count as u32), &text[count..]))
}

#[cold]
fn offset(text: &[u8]) -> Option<Zone> {
    let [sign @ (b'+' | b'-'), hour @ .., b':', minute_tens, minute_ones] = text else {
        return None;
    };
    let two = |tens: u8, ones: u8| {
        (tens.is_ascii_digit() && ones.is_ascii_digit())
            .then(|| i16::from(tens - b'0') * 10 + i16::from(ones - b'0'))
    };
    let [hour_tens, hour_ones] = hour else {
        return None;
    };
    let (hours, minutes) = (two(*hour_tens, *hour_ones)?, two(*minute_tens, *minute_ones)?);
    if hours > 14 || minutes > 59 || hours * 60 + minutes > 14 * 60 {
        return None;
    }
    let east = hours * 60 + minutes;
    Some(Zone::Offset(if *sign == b'-' { -east } else { east }))
}

#[inline(always)]
fn is_leap(year: i64) -> bool {
    // Divisible by 4, and by 16 where it is divisible by 25 (which is divisible by 400 where by 100).
    year & 3 == 0 && (year % 25 != 0 || year & 15 == 0)
}

#[inline(always)]
fn days_in_month(year: i64, month: i64) -> i64 {
    if month == 2 { 28 + i64::from(is_leap(year)) } else { 30 + ((month + (month >> 3)) & 1) }
}

/// Days from the first of year 1.
#[inline(always)]
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // Years from March on, so that the leap day is the last.
    let early = i64::from(month <= 2);
    let year = year - early;
    let month = month + 12 * early - 3;
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 306
}

/// The date of a day, by Euclidean affine functions (Neri and Schneider, 2022).
#[inline(always)]
fn civil(days: u32) -> (u32, u32, u32) {
    // Days from the first of March of year 0.
    let shifted = 4 * (days + 306) + 3;
    let century = shifted / 146_097;
    let in_century = (shifted % 146_097) | 3;
    let product = u64::from(in_century) * 2_939_745;
    let year_of_century = (product >> 32) as u32;
    let day_of_year = (product as u32) / 2_939_745 / 4;
    let mixed = 2141 * day_of_year + 197_913;
    let month = mixed >> 16;
    let day = (mixed & 0xFFFF) / 2141 + 1;
    let late = u32::from(day_of_year >= 306);
    (century * 100 + year_of_century + late, month - 12 * late, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(date: Date) -> String {
        String::from_utf8(date.format(&mut [0; DATE_TEXT_MAX]).to_vec()).unwrap()
    }

    #[test]
    fn known_dates() {
        for (shown, ticks) in [
            ("0001-01-01T00:00:00.0000000", 0),
            ("1970-01-01T00:00:00.0000000", UNIX_EPOCH_TICKS),
            ("2015-01-15T00:41:16.6616631", 635_568_792_766_616_631),
            ("9999-12-31T23:59:59.9999999", TICKS_MAX),
        ] {
            assert_eq!(Date::parse(shown.as_bytes()), Some(Date { ticks, zone: Zone::Unspecified }));
            assert_eq!(text(Date { ticks, zone: Zone::Unspecified }), shown);
            let utc = format!("{shown}Z");
            assert_eq!(Date::parse(utc.as_bytes()), Some(Date { ticks, zone: Zone::Utc }));
            assert_eq!(text(Date { ticks, zone: Zone::Utc }), utc);
        }
    }

    /// Every day of ten thousand years, against a plain calendar.
    #[test]
    fn every_day() {
        let (mut year, mut month, mut day) = (1i64, 1i64, 1i64);
        for days in 0..3_652_059u32 {
            assert_eq!(civil(days), (year as u32, month as u32, day as u32));
            assert_eq!(days_before(year, month, day), i64::from(days));
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let length =
                [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1];
            assert_eq!(days_in_month(year, month), length);
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

    #[test]
    fn fractions_and_zones() {
        for (shown, printed) in [
            ("2020-02-29T12:34:56", "2020-02-29T12:34:56.0000000"),
            ("2020-02-29T12:34:56Z", "2020-02-29T12:34:56.0000000Z"),
            ("2020-02-29T12:34:56.5", "2020-02-29T12:34:56.5000000"),
            ("2020-02-29T12:34:56.000Z", "2020-02-29T12:34:56.0000000Z"),
            ("2020-02-29T12:34:56.123456", "2020-02-29T12:34:56.1234560"),
            ("2020-02-29T12:34:56.1234567+02:00", "2020-02-29T12:34:56.1234567+02:00"),
            ("2020-02-29T12:34:56-05:30", "2020-02-29T12:34:56.0000000-05:30"),
        ] {
            assert_eq!(text(Date::parse(shown.as_bytes()).unwrap()), printed);
        }
        let date = Date::parse(b"2020-01-01T02:00:00+02:00").unwrap();
        assert_eq!(date.utc_ticks(), Date::parse(b"2020-01-01T00:00:00Z").unwrap().ticks);
    }

    #[test]
    fn what_is_no_date() {
        for wrong in [
            "",
            "2020",
            "2020-01-01",
            "2020-01-01T00:00",
            "2020-01-01 00:00:00",
            "2020-13-01T00:00:00",
            "2020-00-01T00:00:00",
            "2020-01-00T00:00:00",
            "2020-01-32T00:00:00",
            "2019-02-29T00:00:00",
            "1900-02-29T00:00:00",
            "2020-04-31T00:00:00",
            "0000-01-01T00:00:00",
            "2020-01-01T24:00:00",
            "2020-01-01T00:60:00",
            "2020-01-01T00:00:60",
            "2020-01-01T00:00:00.",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00.12345678",
            "2020-01-01T00:00:00z",
            "2020-01-01T00:00:00+2:00",
            "2020-01-01T00:00:00+15:00",
            "2020-01-01T00:00:00 ",
            "2020-01-01T00:00:0a",
            "a020-01-01T00:00:00",
            "2020-1a-01T00:00:00",
        ] {
            assert_eq!(Date::parse(wrong.as_bytes()), None, "{wrong}");
        }
        // Any other byte in the place of a digit or a separator.
        let good = *b"2020-01-01T00:00:00";
        for place in 0..good.len() {
            for byte in 0..=255u8 {
                let mut shown = good;
                shown[place] = byte;
                if !byte.is_ascii_digit() || [4, 7, 10, 13, 16].contains(&place) {
                    assert_eq!(Date::parse(&shown).is_some(), byte == good[place], "{byte:#x} at {place}");
                }
            }
        }
    }
}
