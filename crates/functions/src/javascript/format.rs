//! Dates, numbers and distances as scripts show them.

use jackdaw_document::date::{DATE_TEXT_MAX, Date, Zone};

/// Ticks of 100 nanoseconds from the year 1 to 1970.
pub(super) const TICKS_OF_1970: i64 = 621_355_968_000_000_000;
/// Ticks of the end of the year 9999.
const TICKS_MAX: i64 = 3_155_378_975_999_999_999;
const KILOMETERS_PER_MILE: f64 = 1.609_344;
/// The earth's radius as RavenDB's scripts have it: a minute of arc is 1.1515 miles.
const EARTH_RADIUS_KILOMETERS: f64 = 180.0 / std::f64::consts::PI * 60.0 * 1.1515 * KILOMETERS_PER_MILE;

/// Ticks of a script's date. `None` for one that is none, or of no year from 1 to 9999.
pub(super) fn ticks_of(milliseconds: f64) -> Option<i64> {
    if !milliseconds.is_finite() || milliseconds.abs() > 8.64e15 {
        return None;
    }
    let ticks = (milliseconds as i64).checked_mul(10_000)?.checked_add(TICKS_OF_1970)?;
    (0..=TICKS_MAX).contains(&ticks).then_some(ticks)
}

/// A date in ticks of universal time, as text.
pub(crate) fn date_text(ticks: i64) -> String {
    let mut buffer = [0; DATE_TEXT_MAX];
    String::from_utf8_lossy(Date { ticks, zone: Zone::Utc }.format(&mut buffer)).into_owned()
}

/// A script's date as text.
pub(super) fn date_text_of(milliseconds: f64) -> Option<String> {
    ticks_of(milliseconds).map(date_text)
}

/// The great-circle distance of two points in degrees, in kilometers or miles.
pub(super) fn distance(latitude1: f64, longitude1: f64, latitude2: f64, longitude2: f64, miles: bool) -> f64 {
    let half = |a: f64, b: f64| ((b - a).to_radians() / 2.0).sin().powi(2);
    let between = latitude1.to_radians().cos() * latitude2.to_radians().cos();
    let chord = half(latitude1, latitude2) + between * half(longitude1, longitude2);
    let kilometers = 2.0 * chord.sqrt().min(1.0).asin() * EARTH_RADIUS_KILOMETERS;
    if miles { kilometers / KILOMETERS_PER_MILE } else { kilometers }
}

/// A date by a format of .NET: runs of `y M d H h m s f t` and text as it is.
pub(super) fn date(milliseconds: f64, format: String) -> Option<String> {
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
    const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let ticks = ticks_of(milliseconds)?;
    let text = date_text(ticks);
    let part = |range: std::ops::Range<usize>| {
        text.get(range).and_then(|part| part.parse::<u32>().ok()).unwrap_or(0)
    };
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    let (hour, minute, second) = (part(11..13), part(14..16), part(17..19));
    let weekday = DAYS[(ticks / 864_000_000_000 % 7) as usize];
    let month_name = MONTHS[(month.clamp(1, 12) - 1) as usize];
    let format = match &*format {
        "d" => "MM/dd/yyyy",
        "D" => "dddd, dd MMMM yyyy",
        "t" => "HH:mm",
        "T" => "HH:mm:ss",
        "s" => "yyyy-MM-ddTHH:mm:ss",
        "u" => "yyyy-MM-dd HH:mm:ssZ",
        "o" | "O" => return Some(text),
        other => other,
    };
    let mut out = String::new();
    let mut rest = format;
    while let Some(letter) = rest.chars().next() {
        let length = rest.chars().take_while(|other| *other == letter).count();
        let (run, after) = rest.split_at(length * letter.len_utf8());
        let number = |value: u32| if length > 1 { format!("{value:02}") } else { value.to_string() };
        match letter {
            'y' if length > 2 => out.push_str(&format!("{year:0length$}")),
            'y' => out.push_str(&number(year % 100)),
            'M' if length >= 4 => out.push_str(month_name),
            'M' if length == 3 => out.push_str(&month_name[..3]),
            'M' => out.push_str(&number(month)),
            'd' if length >= 4 => out.push_str(weekday),
            'd' if length == 3 => out.push_str(&weekday[..3]),
            'd' => out.push_str(&number(day)),
            'H' => out.push_str(&number(hour)),
            'h' => out.push_str(&number((hour + 11) % 12 + 1)),
            'm' => out.push_str(&number(minute)),
            's' => out.push_str(&number(second)),
            'f' => out.push_str(text.get(20..20 + length.min(7)).unwrap_or_default()),
            't' => out.push_str(&(if hour < 12 { "AM" } else { "PM" })[..length.min(2)]),
            '\'' | '"' => {
                let end = after.find(letter).unwrap_or(after.len());
                out.push_str(&after[..end]);
                rest = after.get(end + 1..).unwrap_or_default();
                continue;
            }
            _ => out.push_str(run),
        }
        rest = after;
    }
    Some(out)
}

/// A number by a format of .NET: `F2`, `N0`, `D5`, `P1`, or digits as `#,##0.00`.
pub(super) fn number(value: f64, format: String) -> String {
    let mut letters = format.chars();
    let standard = letters.next().filter(char::is_ascii_alphabetic);
    let digits = letters.as_str();
    if let Some(standard) = standard.filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit())) {
        let digits = digits.parse::<usize>().ok().map(|digits| digits.min(99));
        return match standard.to_ascii_uppercase() {
            'F' => fixed(value, digits.unwrap_or(2), digits.unwrap_or(2), 1, false),
            'N' => fixed(value, digits.unwrap_or(2), digits.unwrap_or(2), 1, true),
            'P' => fixed(value * 100.0, digits.unwrap_or(2), digits.unwrap_or(2), 1, true) + " %",
            'D' => fixed(value, 0, 0, digits.unwrap_or(1), false),
            _ => value.to_string(),
        };
    }
    let Some(start) = format.find(['0', '#']) else { return format };
    let end = format.rfind(['0', '#']).map_or(start, |at| at + 1);
    let (before, pattern, after) = (&format[..start], &format[start..end], &format[end..]);
    let (whole, fraction) = pattern.split_once('.').unwrap_or((pattern, ""));
    let count = |text: &str, letter| text.matches(letter).count();
    let (fraction_min, fraction_max) = (count(fraction, '0'), count(fraction, '0') + count(fraction, '#'));
    let text = fixed(value, fraction_min, fraction_max, count(whole, '0'), whole.contains(','));
    format!("{before}{text}{after}")
}

fn fixed(value: f64, fraction_min: usize, fraction_max: usize, whole_min: usize, groups: bool) -> String {
    let text = format!("{:.*}", fraction_max, value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let needed = fraction.trim_end_matches('0').len().max(fraction_min);
    let whole = format!("{:0>whole_min$}", if whole == "0" && whole_min == 0 { "" } else { whole });
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        out.push('-');
    }
    for (place, digit) in whole.chars().enumerate() {
        if groups && place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if needed > 0 {
        out.push('.');
        out.push_str(&fraction[..needed]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert!((distance(1.0, 2.0, 3.0, 4.0, false) - 314.387_824_944_489_64).abs() < 1e-6);
        assert!((distance(1.0, 2.0, 3.0, 4.0, true) - 195.351_537_536_044_84).abs() < 1e-6);
        assert_eq!(distance(1.0, 2.0, 1.0, 2.0, true), 0.0);
    }

    #[test]
    fn dates() {
        assert_eq!(date_text_of(0.0).as_deref(), Some("1970-01-01T00:00:00.0000000Z"));
        assert_eq!(date_text_of(f64::NAN), None);
        assert_eq!(date_text_of(8e15), None);
        for (format, expected) in [
            ("yyyy", "2020"),
            ("yyyy-MM-dd", "2020-02-02"),
            ("dd.M.yy HH:mm:ss.fff", "02.2.20 13:04:05.006"),
            ("dddd, MMM d 'at' h tt", "Sunday, Feb 2 at 1 PM"),
            ("d", "02/02/2020"),
        ] {
            assert_eq!(date(1_580_648_645_006.0, format.to_owned()).as_deref(), Some(expected), "{format}");
        }
    }

    #[test]
    fn numbers() {
        for (value, format, expected) in [
            (1.5, "0.00", "1.50"),
            (1234567.891, "#,##0.00", "1,234,567.89"),
            (-0.25, "0.##", "-0.25"),
            (7.0, "D3", "007"),
            (1234.5, "N1", "1,234.5"),
            (0.5, "P0", "50 %"),
            (0.5, "#.0", ".5"),
            (-0.001, "0.0", "0.0"),
        ] {
            assert_eq!(number(value, format.to_owned()), expected, "{value} {format}");
        }
    }
}
