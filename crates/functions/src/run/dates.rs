//! Dates and lengths of time: their parts, their text, the calendar.

use jackdaw_document::date::{Date, TICKS_MAX, Zone};

use crate::program::Member;
use crate::value::Value;

pub(super) const SECOND: i64 = 10_000_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The date that a text of a document is, if all of it is one with a time: what does not start as one costs two looks.
#[inline]
pub(super) fn date_of(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    if bytes.len() < 19 || bytes[4] != b'-' || bytes[10] != b'T' {
        return None;
    }
    Date::parse(bytes)
}

/// The date of a text in any of the forms that `DateTime.Parse` is asked for: ISO, with or without a time; `M/d/yyyy`.
pub(super) fn parse_any(text: &str) -> Option<Date> {
    let text = text.trim();
    if let Some(date) = Date::parse(text.as_bytes()) {
        return Some(date);
    }
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, time.trim()),
        None => (text, ""),
    };
    let (year, month, day) = if let Some((month, rest)) = day.split_once('/') {
        let (day, year) = rest.split_once('/')?;
        (year, month, day)
    } else {
        let (year, rest) = day.split_once('-')?;
        let (month, day) = rest.split_once('-')?;
        (year, month, day)
    };
    if year.len() != 4 || month.len() > 2 || day.len() > 2 {
        return None;
    }
    let time = match time.matches(':').count() {
        0 if time.is_empty() => "00:00:00".to_owned(),
        1 => {
            let (clock, zone) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
            format!("{clock}:00{zone}")
        }
        _ => time.to_owned(),
    };
    let time = if time.find(':') == Some(1) { format!("0{time}") } else { time };
    Date::parse(format!("{year}-{month:0>2}-{day:0>2}T{time}").as_bytes())
}

/// What dates are compared by: the clock's ticks, but the moment where the zone is known by an offset.
pub(super) fn moment(date: Date) -> i64 {
    date.utc_ticks()
}

/// Year, month and day of ticks.
pub(super) fn civil(ticks: i64) -> (i64, i64, i64) {
    // Days since 1 March of the year 0; a year starts in March, so that the leap day is its last.
    let days = ticks.div_euclid(DAY) + 306;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

pub(super) fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap(year)),
        _ => 31,
    }
}

/// Ticks of a day, if there is such a day in the years 1 to 9999.
pub(super) fn ticks_of(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || day < 1
        || day > days_in_month(year, month)
    {
        return None;
    }
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some((days - 306) * DAY)
}

/// 0 for Sunday.
pub(super) fn day_of_week(ticks: i64) -> i64 {
    // The first day of year 1 was a Monday.
    (ticks.div_euclid(DAY) + 1).rem_euclid(7)
}

pub(super) fn day_of_week_named(name: &str) -> Option<i64> {
    DAYS.iter().position(|day| *day == name).map(|day| day as i64)
}

pub(super) fn day_of_year(ticks: i64) -> i64 {
    let (year, ..) = civil(ticks);
    ticks_of(year, 1, 1).map_or(0, |first| (ticks - first).div_euclid(DAY) + 1)
}

/// A date so many months later; the day is the month's last where it has no such day.
pub(super) fn add_months(date: Date, months: i64) -> Option<Date> {
    if months.abs() > 120_000 {
        return None;
    }
    let (year, month, day) = civil(date.ticks);
    let all = year * 12 + month - 1 + months;
    let (year, month) = (all.div_euclid(12), all.rem_euclid(12) + 1);
    let ticks = ticks_of(year, month, day.min(days_in_month(year, month)))? + date.ticks.rem_euclid(DAY);
    (0..=TICKS_MAX).contains(&ticks).then_some(Date { ticks, zone: date.zone })
}

pub(super) fn part_of_date<'r>(date: Date, member: Member) -> Option<Value<'r>> {
    let ticks = date.ticks;
    let in_day = ticks.rem_euclid(DAY);
    Some(Value::Long(match member {
        Member::Year => civil(ticks).0,
        Member::Month => civil(ticks).1,
        Member::Day => civil(ticks).2,
        Member::Hour => in_day / HOUR,
        Member::Minute => in_day / MINUTE % 60,
        Member::Second => in_day / SECOND % 60,
        Member::Millisecond => in_day / 10_000 % 1000,
        Member::Ticks => ticks,
        Member::DayOfYear => day_of_year(ticks),
        Member::Date => {
            return Some(Value::Date(Date { ticks: ticks - in_day, zone: whole_zone(date.zone) }));
        }
        Member::DateTime => return Some(Value::Date(Date { ticks, zone: whole_zone(date.zone) })),
        Member::UtcDateTime => return Some(Value::Date(Date { ticks: date.utc_ticks(), zone: Zone::Utc })),
        Member::TimeOfDay => return Some(Value::TimeSpan(in_day)),
        Member::DayOfWeek => return Some(Value::Text(DAYS[day_of_week(ticks) as usize % 7])),
        Member::Kind => {
            return Some(Value::Text(if date.zone == Zone::Utc { "Utc" } else { "Unspecified" }));
        }
        Member::Offset => {
            let Zone::Offset(minutes) = date.zone else { return Some(Value::TimeSpan(0)) };
            return Some(Value::TimeSpan(i64::from(minutes) * MINUTE));
        }
        _ => return None,
    }))
}

/// A `DateTimeOffset` gives dates without a zone.
fn whole_zone(zone: Zone) -> Zone {
    match zone {
        Zone::Offset(_) => Zone::Unspecified,
        zone => zone,
    }
}

pub(super) fn part_of_span<'r>(ticks: i64, member: Member) -> Option<Value<'r>> {
    Some(match member {
        Member::Ticks => Value::Long(ticks),
        Member::Days => Value::Long(ticks / DAY),
        Member::Hours => Value::Long(ticks / HOUR % 24),
        Member::Minutes => Value::Long(ticks / MINUTE % 60),
        Member::Seconds => Value::Long(ticks / SECOND % 60),
        Member::Milliseconds => Value::Long(ticks / 10_000 % 1000),
        Member::TotalDays => Value::Double(ticks as f64 / DAY as f64),
        Member::TotalHours => Value::Double(ticks as f64 / HOUR as f64),
        Member::TotalMinutes => Value::Double(ticks as f64 / MINUTE as f64),
        Member::TotalSeconds => Value::Double(ticks as f64 / SECOND as f64),
        Member::TotalMilliseconds => Value::Double(ticks as f64 / 10_000.0),
        _ => return None,
    })
}

/// The length of time that a text of a document is, if it is written as such are: `[-][d.]hh:mm:ss[.fffffff]`, so that it prints the same again.
pub(super) fn span_of(text: &str) -> Option<i64> {
    let colon = text.bytes().take(13).position(|byte| byte == b':')?;
    if colon < 2 || text.as_bytes().get(colon + 3) != Some(&b':') {
        return None;
    }
    let ticks = parse_span(text)?;
    (crate::value::time_span_text(ticks) == text).then_some(ticks)
}

/// `[-][d.]hh:mm[:ss[.fffffff]]`.
pub(super) fn parse_span(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.len() > 30 || !text.contains(':') {
        return None;
    }
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (head, rest) = text.split_once(':')?;
    let (days, hours) = match head.split_once('.') {
        Some((days, hours)) => (number(days, 8)?, number(hours, 2)?),
        None => (0, number(head, 2)?),
    };
    let (minutes, seconds) = match rest.split_once(':') {
        Some((minutes, seconds)) => (number(minutes, 2)?, seconds),
        None => (number(rest, 2)?, "00"),
    };
    let (seconds, fraction) = match seconds.split_once('.') {
        Some((seconds, fraction)) => {
            let digits = fraction.len() as u32;
            (number(seconds, 2)?, number(fraction, 7)? * 10i64.pow(7u32.checked_sub(digits)?))
        }
        None => (number(seconds, 2)?, 0),
    };
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let ticks =
        days.checked_mul(DAY)?.checked_add(hours * HOUR + minutes * MINUTE + seconds * SECOND + fraction)?;
    Some(if negative { -ticks } else { ticks })
}

fn number(digits: &str, most: usize) -> Option<i64> {
    if digits.is_empty() || digits.len() > most || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_goes_round() {
        for days in (0..3_652_059).step_by(97) {
            let (year, month, day) = civil(days * DAY + 5);
            assert_eq!(ticks_of(year, month, day), Some(days * DAY), "{year}-{month}-{day}");
        }
        assert_eq!(civil(0), (1, 1, 1));
        assert_eq!(DAYS[day_of_week(ticks_of(2020, 2, 3).unwrap()) as usize], "Monday");
        assert_eq!(day_of_year(ticks_of(2020, 12, 31).unwrap()), 366);
        assert_eq!(ticks_of(2019, 2, 29), None);
    }

    #[test]
    fn dates_of_many_forms() {
        let text = |text: &str| {
            parse_any(text).map(|date| String::from_utf8_lossy(date.format(&mut [0; 33])).into_owned())
        };
        for (given, parsed) in [
            ("2020-02-03", "2020-02-03T00:00:00.0000000"),
            ("2020-02-03T04:05", "2020-02-03T04:05:00.0000000"),
            ("2020-02-03 04:05:06Z", "2020-02-03T04:05:06.0000000Z"),
            ("2/3/2020", "2020-02-03T00:00:00.0000000"),
        ] {
            assert_eq!(text(given).as_deref(), Some(parsed));
        }
        assert_eq!(text("2020-02"), None);
        assert_eq!(text("tea"), None);
    }

    #[test]
    fn spans() {
        for (text, ticks) in [
            ("01:02:03", Some(37_230_000_000)),
            ("1.00:00:00.5", Some(DAY + SECOND / 2)),
            ("-00:01", Some(-MINUTE)),
            ("25:00:00", None),
            ("a:b", None),
            ("12", None),
        ] {
            assert_eq!(parse_span(text), ticks, "{text}");
        }
    }
}
