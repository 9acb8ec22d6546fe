//! Orders of texts.

use std::cmp::Ordering;

/// Natural order: runs of digits compare as numbers and come before other text, which compares without regard to case. So the
/// empty text, whose term is `EMPTY_STRING`, stands among what begins with an e.
pub(crate) fn natural(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        let (Some(first), Some(second)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len());
        };
        let is_number = |character: char| character.is_ascii_digit();
        let (ordering, left_end, right_end) = match (is_number(first), is_number(second)) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (true, true) => {
                let (a, b) = (run(left, true), run(right, true));
                let (x, y) = (left[..a].trim_start_matches('0'), right[..b].trim_start_matches('0'));
                (x.len().cmp(&y.len()).then_with(|| x.cmp(y)), a, b)
            }
            (false, false) => {
                let (a, b) = (run(left, false), run(right, false));
                fn lower(text: &str) -> impl Iterator<Item = u8> {
                    text.bytes().map(|byte| byte.to_ascii_lowercase())
                }
                (lower(&left[..a]).cmp(lower(&right[..b])), a, b)
            }
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
        left = &left[left_end..];
        right = &right[right_end..];
    }
}

/// The length of the run of digits, or of anything else, at the beginning.
fn run(text: &str, digits: bool) -> usize {
    text.find(|character: char| character.is_ascii_digit() != digits).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_numbers() {
        let mut texts = [
            "zed 10",
            "-2.7",
            "zed 9",
            "a2b",
            "a10b",
            "2",
            "10",
            "1.5",
            "1",
            "a",
            "str",
            "0.1",
            "007",
            "EMPTY_STRING",
            "1e2",
            "1E+2",
            "1e-3",
            "f",
        ];
        texts.sort_by(|left, right| natural(left, right));
        assert_eq!(
            texts,
            [
                "0.1",
                "1",
                "1.5",
                "1e2",
                "1E+2",
                "1e-3",
                "2",
                "007",
                "10",
                "-2.7",
                "a",
                "a2b",
                "a10b",
                "EMPTY_STRING",
                "f",
                "str",
                "zed 9",
                "zed 10"
            ]
        );
    }
}
