//! What is a letter, a digit, a space, and how case is folded, as .NET sees it: by UTF-16 unit, so that what lies outside
//! the basic plane is none of them.

use std::sync::OnceLock;

/// A set of characters as sorted ranges.
struct Class(Vec<(char, char)>);

impl Class {
    fn parse(pattern: &str) -> Class {
        // The patterns are constants; one that failed to parse would be an empty set, which the tests notice.
        let ranges = match regex_syntax::parse(pattern).map(regex_syntax::hir::Hir::into_kind) {
            Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
                class.ranges().iter().map(|range| (range.start(), range.end())).collect()
            }
            _ => Vec::new(),
        };
        Class(ranges)
    }

    fn contains(&self, character: char) -> bool {
        self.0
            .binary_search_by(|&(from, to)| {
                if to < character {
                    std::cmp::Ordering::Less
                } else if from > character {
                    std::cmp::Ordering::Greater
                } else {
                    std::cmp::Ordering::Equal
                }
            })
            .is_ok()
    }
}

/// Whether it is a letter (general category L).
pub(crate) fn is_letter(character: char) -> bool {
    static CLASS: OnceLock<Class> = OnceLock::new();
    if character.is_ascii() {
        return character.is_ascii_alphabetic();
    }
    character <= '\u{ffff}' && CLASS.get_or_init(|| Class::parse(r"\p{L}")).contains(character)
}

/// Whether it is a decimal digit (general category Nd).
pub(crate) fn is_digit(character: char) -> bool {
    static CLASS: OnceLock<Class> = OnceLock::new();
    if character.is_ascii() {
        return character.is_ascii_digit();
    }
    character <= '\u{ffff}' && CLASS.get_or_init(|| Class::parse(r"\p{Nd}")).contains(character)
}

/// Whether it separates words.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace()
}

/// The text in lower case, character by character: one whose lower case is several stays as it is.
pub(crate) fn lower(text: &str) -> String {
    let mut lowered = String::with_capacity(text.len());
    lower_into(text, &mut lowered);
    lowered
}

/// Appends the text in lower case.
pub(crate) fn lower_into(text: &str, out: &mut String) {
    if text.is_ascii() {
        let from = out.len();
        out.push_str(text);
        out[from..].make_ascii_lowercase();
        return;
    }
    for character in text.chars() {
        if character.is_ascii() {
            out.push(character.to_ascii_lowercase());
            continue;
        }
        let mut lowered = character.to_lowercase();
        match (lowered.next(), lowered.next()) {
            (Some(one), None) => out.push(one),
            _ => out.push(character),
        }
    }
}
