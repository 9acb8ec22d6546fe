//! The time of day, in the unit documents keep it in.

use std::time::{SystemTime, UNIX_EPOCH};

use jackdaw_document::date::{DATE_TEXT_MAX, Date, TICKS_MAX, UNIX_EPOCH_TICKS, Zone};

/// Now, in ticks of 100 nanoseconds since the first day of year 1, universal time.
pub fn now_ticks() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ticks = i64::try_from(since.as_nanos() / 100).unwrap_or(TICKS_MAX - UNIX_EPOCH_TICKS);
    (UNIX_EPOCH_TICKS + ticks).min(TICKS_MAX)
}

/// Appends ticks as text with seven digits of fraction and `Z`.
pub fn append_date(ticks: i64, out: &mut Vec<u8>) {
    let mut buffer = [0; DATE_TEXT_MAX];
    out.extend_from_slice(Date { ticks: ticks.clamp(0, TICKS_MAX), zone: Zone::Utc }.format(&mut buffer));
}

/// Ticks as text with seven digits of fraction and `Z`.
pub fn date_text(ticks: i64) -> String {
    let mut out = Vec::with_capacity(DATE_TEXT_MAX);
    append_date(ticks, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
