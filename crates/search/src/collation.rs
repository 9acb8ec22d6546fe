//! The order of texts for people: that of Unicode's collation without a language, as .NET's invariant culture has it, by which RavenDB sorts the values of facets.
//!
//! What is ASCII alone, as most values are, is compared by a table; the rest by ICU4X. A test holds the one to the other.

use std::cmp::Ordering;
use std::sync::LazyLock;

use icu_collator::options::CollatorOptions;
use icu_collator::{Collator, CollatorBorrowed};

/// `None` only if the data that is compiled in were damaged: bytes order then.
static COLLATOR: LazyLock<Option<CollatorBorrowed<'static>>> =
    LazyLock::new(|| Collator::try_new(Default::default(), CollatorOptions::default()).ok());

/// Printable ASCII in the order of its primary weights; letters stand once, without regard to case.
const ORDER: &[u8; 69] = b" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";

/// The place of each byte in [`ORDER`], from 1 on; 0 for what is not there.
const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut at = 0;
    while at < ORDER.len() {
        weights[ORDER[at] as usize] = at as u8 + 1;
        weights[ORDER[at].to_ascii_uppercase() as usize] = at as u8 + 1;
        at += 1;
    }
    weights
};

/// Whether texts made of these bytes alone are in this order when they are in the order of their bytes.
pub(crate) fn is_byte_order(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'-' | b'.' | b'/' | b'0'..=b'9' | b'a'..=b'z'))
}

/// Compares two texts.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let weigh = |text: &str| text.bytes().all(|byte| WEIGHTS[usize::from(byte)] != 0);
    match &*COLLATOR {
        Some(collator) if !weigh(left) || !weigh(right) => collator.compare(left, right),
        _ => compare_ascii(left.as_bytes(), right.as_bytes()),
    }
}

fn compare_ascii(left: &[u8], right: &[u8]) -> Ordering {
    let weight = |byte: &u8| WEIGHTS[usize::from(*byte)];
    // Small letters come before capitals, where nothing else decides.
    let case = |byte: &u8| byte.is_ascii_uppercase();
    left.iter()
        .map(weight)
        .cmp(right.iter().map(weight))
        .then_with(|| left.iter().map(case).cmp(right.iter().map(case)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use jackdaw_testkit::Random;

    use super::*;

    #[test]
    fn the_table_orders_as_the_collation() {
        let collator = COLLATOR.as_ref().unwrap();
        let mut random = Random::new(7);
        let mut text = |letters: &[u8]| -> String {
            let size = random.below(6);
            (0..size).map(|_| char::from(letters[random.below(letters.len())])).collect()
        };
        let printable: Vec<u8> = (b' '..=b'~').collect();
        for _ in 0..200_000 {
            for letters in [&printable[..], b"aAbB-_ 1", b" -./09az"] {
                let (left, right) = (text(letters), text(letters));
                let expected = collator.compare(&left, &right);
                assert_eq!(compare_ascii(left.as_bytes(), right.as_bytes()), expected, "{left:?} {right:?}");
                if is_byte_order(&left) && is_byte_order(&right) {
                    assert_eq!(left.cmp(&right), expected, "{left:?} {right:?}");
                }
            }
        }
    }

    /// As RavenDB 5.4 sorted them.
    #[test]
    fn texts_of_all_kinds() {
        let sorted = [
            "_", "-", "\"q\"", "(x)", "#", "+", "<x>", "~", "😀", "$", "1", "10", "1a", "9", "a", "A", "ä",
            "Ä", "a b", "a_b", "a-b", "a:b", "a.b", "a/b", "ab", "b", "B", "cafe", "café", "caff", "e", "é",
            "É", "f", "i", "İ", "ı", "ss", "ß", "sz", "x@y", "z", "日本",
        ];
        for pair in sorted.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
