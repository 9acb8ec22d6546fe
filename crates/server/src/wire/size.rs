//! Sizes as the reference writes them: a number of bytes and a text for people.

use serde_json::{Value, json};

/// `{"HumaneSize":"13.48 MBytes","SizeInBytes":14131200}`
pub(crate) fn size(bytes: u64) -> Value {
    json!({ "HumaneSize": humane(bytes), "SizeInBytes": bytes })
}

/// `13.48 MBytes`
pub(crate) fn humane(bytes: u64) -> String {
    let units = [(1u64 << 40, "TBytes"), (1 << 30, "GBytes"), (1 << 20, "MBytes"), (1 << 10, "KBytes")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let text = format!("{:.2}", bytes as f64 / *unit as f64);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            format!("{text} {name}")
        }
        None => format!("{bytes} Bytes"),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_reference_spelling() {
        for (bytes, expected) in [
            (0, "0 Bytes"),
            (178, "178 Bytes"),
            (2048, "2 KBytes"),
            (14_131_200, "13.48 MBytes"),
            (3 << 29, "1.5 GBytes"),
        ] {
            assert_eq!(humane(bytes), expected);
        }
    }
}
