//! Ids of documents: case-insensitive, case-preserving.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// The most bytes of an id, in lower case.
pub const ID_SIZE_MAX: usize = 512;

/// The key under which an id, a collection's name or another case-insensitive name is found: its lower case.
///
/// Characters map one to one (as in .NET's invariant culture), so that the length in characters stays the same.
pub fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let simple = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) => one,
            _ => c,
        }
    };
    Cow::Owned(text.chars().map(simple).collect())
}

/// The lower-case key of a document's id.
///
/// Error: [`Error::InvalidId`] when it is empty or too long.
pub fn key(id: &str) -> Result<Cow<'_, str>> {
    let lower = lower(id);
    check_key(id, &lower)?;
    Ok(lower)
}

fn check_key(id: &str, lower: &str) -> Result<()> {
    if lower.is_empty() {
        return Err(Error::InvalidId("the id of a document must not be empty".to_owned()));
    }
    if lower.len() > ID_SIZE_MAX {
        let shown: String = id.chars().take(64).collect();
        return Err(Error::InvalidId(format!(
            "the document id '{shown}...' has {} bytes; the longest allowed has {ID_SIZE_MAX}",
            lower.len()
        )));
    }
    Ok(())
}

/// Which id a document that is stored under some text really gets.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum IdKind<'t> {
    /// The text itself.
    Given(&'t str),
    /// The text ends in a slash: the etag follows, padded to 19 digits, and the node's tag.
    Sequential(&'t str),
    /// The text ends in a vertical bar: the identity of this name, with a slash before its number.
    Identity(&'t str),
    /// There is no text: something universally unique.
    Unique,
}

impl<'t> IdKind<'t> {
    /// What an id as a client gives it stands for.
    pub fn of(id: &'t str) -> IdKind<'t> {
        match id.as_bytes().last() {
            None => IdKind::Unique,
            Some(b'/') => IdKind::Sequential(id),
            Some(b'|') => IdKind::Identity(id),
            Some(_) => IdKind::Given(id),
        }
    }
}

/// A version-4 UUID as text, for ids that nobody chose.
pub(crate) fn unique() -> String {
    let mut bytes = random();
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let mut text = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    text
}

/// Sixteen random bytes from the system.
pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if got != Ok(16) {
        // A kernel without random numbers: time and place must do, they tell databases of one machine apart.
        let now = crate::clock::now_ticks().to_le_bytes();
        let place =
            (std::ptr::from_ref(&bytes).addr() as u64 ^ u64::from(std::process::id()) << 40).to_le_bytes();
        bytes[..8].copy_from_slice(&now);
        bytes[8..].copy_from_slice(&place);
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lower_case_is_one_to_one() {
        for (text, expected) in [
            ("users/1", "users/1"),
            ("Users/1-A", "users/1-a"),
            ("ÄÖ/É", "äö/é"),
            ("İ", "İ"),
            ("ΣΑΣ", "σασ"),
            ("", ""),
        ] {
            assert_eq!(lower(text), expected, "{text}");
        }
    }

    #[test]
    fn ids_have_bounds() {
        assert!(key("").is_err());
        assert!(key(&"x".repeat(ID_SIZE_MAX)).is_ok());
        let error = key(&"x".repeat(ID_SIZE_MAX + 1)).unwrap_err();
        assert!(error.to_string().contains("513 bytes"), "{error}");
    }

    #[test]
    fn kinds_of_ids() {
        assert_eq!(IdKind::of("a/b"), IdKind::Given("a/b"));
        assert_eq!(IdKind::of("a/"), IdKind::Sequential("a/"));
        assert_eq!(IdKind::of("a|"), IdKind::Identity("a|"));
        assert_eq!(IdKind::of(""), IdKind::Unique);
        let unique = unique();
        assert_eq!((unique.len(), unique.as_bytes()[14]), (36, b'4'));
    }
}
