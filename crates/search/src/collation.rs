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
    match (compare_ascii(left.as_bytes(), right.as_bytes()), &*COLLATOR) {
        (Some(ordering), _) => ordering,
        (None, Some(collator)) => collator.compare(left, right),
        (None, None) => left.cmp(right),
    }
}

/// Compares as far as the table tells: up to the first byte that has no weight. What comes behind a difference of primary weights decides nothing.
fn compare_ascii(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let weight = |byte: &u8| WEIGHTS[usize::from(*byte)];
    for (left, right) in left.iter().map(weight).zip(right.iter().map(weight)) {
        if left == 0 || right == 0 {
            return None;
        }
        if left != right {
            return Some(left.cmp(&right));
        }
    }
    let both = left.len().min(right.len());
    if left[both..].iter().chain(&right[both..]).any(|byte| weight(byte) == 0) {
        return None;
    }
    // Small letters come before capitals, where nothing else decides.
    let case = |byte: &u8| byte.is_ascii_uppercase();
    Some(left.len().cmp(&right.len()).then_with(|| left.iter().map(case).cmp(right.iter().map(case))))
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
        let mut text = |letters: &[char]| -> String {
            let size = random.below(6);
            (0..size).map(|_| letters[random.below(letters.len())]).collect()
        };
        let printable: Vec<char> = (' '..='~').collect();
        let letters = |text: &str| -> Vec<char> { text.chars().collect() };
        let mixed = letters("aAeElLzZ1 -_.éÉäÄßæøŁ·\u{301}\u{308}\u{327}\0\n日😀İıΩя");
        for _ in 0..200_000 {
            for letters in [&printable, &letters("aAbB-_ 1"), &letters(" -./09az"), &mixed] {
                let (left, right) = (text(letters), text(letters));
                let expected = collator.compare(&left, &right);
                assert_eq!(compare(&left, &right), expected, "{left:?} {right:?}");
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
