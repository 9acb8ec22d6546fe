//! The query string of a URL, read the way clients write it.
//!
//! They send `??`, `?&`, a trailing `&`, keys without a value, keys that repeat, and values with `/`, `@` or `|` unescaped. Nothing of
//! that is an error. Keys are compared without regard to case. Nothing is parsed ahead and nothing is allocated but for a value
//! with escapes: query strings are short, and an endpoint asks for few keys.

use std::borrow::Cow;
use std::str::FromStr;

use crate::error::{ErrorKind, Result};

/// A query string, without the first `?`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    pub(crate) fn new(text: &'a str) -> Query<'a> {
        Query(text)
    }

    /// Keys and values as they came, still escaped; a key without `=` has no value. Empty pairs are left out.
    fn raw_pairs(self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        self.0.split('&').filter_map(|pair| {
            let pair = pair.trim_start_matches('?');
            match pair.split_once('=') {
                Some((key, value)) => Some((key, Some(value))),
                None if pair.is_empty() => None,
                None => Some((pair, None)),
            }
        })
    }

    /// Every value of `name`, in order, decoded; a key without a value gives an empty one.
    ///
    /// Errors (each item its own): escapes that are not UTF-8.
    pub(crate) fn all(self, name: &'static str) -> impl Iterator<Item = Result<Cow<'a, str>>> {
        self.raw_pairs()
            .filter(move |(key, _)| is_name(key, name))
            .map(move |(_, value)| decode(value.unwrap_or_default(), name))
    }

    /// The first value of `name`, decoded. `None` when the key is not there; empty when it has no value.
    pub(crate) fn get(self, name: &'static str) -> Result<Option<Cow<'a, str>>> {
        self.all(name).next().transpose()
    }

    /// As [`Query::get`], with an empty value taken for none.
    pub(crate) fn get_filled(self, name: &'static str) -> Result<Option<Cow<'a, str>>> {
        Ok(self.get(name)?.filter(|value| !value.is_empty()))
    }

    /// The value of `name`, which must be there and not be empty.
    pub(crate) fn require(self, name: &'static str) -> Result<Cow<'a, str>> {
        self.get_filled(name)?.ok_or_else(|| {
            ErrorKind::Argument.error(format!("Query string {name} is mandatory, but wasn't specified."))
        })
    }

    /// Whether the key is there at all.
    pub(crate) fn has(self, name: &'static str) -> bool {
        self.raw_pairs().any(|(key, _)| is_name(key, name))
    }

    /// The number in `name`; `None` when the key is missing or empty.
    pub(crate) fn number<T: FromStr>(self, name: &'static str) -> Result<Option<T>> {
        let Some(value) = self.get_filled(name)? else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ErrorKind::Argument
                .error(format!("Could not parse query string '{name}' as a number, value was: {value}"))),
        }
    }

    /// `true` or `false` in `name`; `None` when the key is missing or empty.
    pub(crate) fn flag(self, name: &'static str) -> Result<Option<bool>> {
        let Some(value) = self.get_filled(name)? else { return Ok(None) };
        match value.trim() {
            value if value.eq_ignore_ascii_case("true") => Ok(Some(true)),
            value if value.eq_ignore_ascii_case("false") => Ok(Some(false)),
            value => Err(ErrorKind::Argument
                .error(format!("Could not parse query string '{name}' as bool, value was: {value}"))),
        }
    }
}

/// Whether a key as it came is `name`.
fn is_name(key: &str, name: &str) -> bool {
    key.eq_ignore_ascii_case(name)
        || (key.contains('%') && decode(key, "key").is_ok_and(|key| key.eq_ignore_ascii_case(name)))
}

fn decode<'a>(text: &'a str, name: &str) -> Result<Cow<'a, str>> {
    percent_decode(text, true)
        .ok_or_else(|| ErrorKind::Argument.error(format!("Query string {name} is not UTF-8 when decoded")))
}

/// Decodes `%41`, and `+` as a space where `plus_is_space`. What is no escape stays as it is. `None`: not UTF-8.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    let is_plain = |byte: &u8| *byte != b'%' && (*byte != b'+' || !plus_is_space);
    let bytes = text.as_bytes();
    let Some(first) = bytes.iter().position(|byte| !is_plain(byte)) else { return Some(Cow::Borrowed(text)) };
    let mut decoded = Vec::with_capacity(bytes.len());
    decoded.extend_from_slice(&bytes[..first]);
    let mut rest = &bytes[first..];
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' if plus_is_space => decoded.push(b' '),
            b'%' => match escape(rest) {
                Some(value) => {
                    decoded.push(value);
                    rest = &rest[2..];
                }
                None => decoded.push(b'%'),
            },
            byte => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// The value of two hexadecimal digits at the start.
fn escape(digits: &[u8]) -> Option<u8> {
    let digit = |index: usize| digits.get(index).and_then(|digit| char::from(*digit).to_digit(16));
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn all(query: &str, name: &'static str) -> Vec<String> {
        Query::new(query).all(name).map(|value| value.expect("UTF-8").into_owned()).collect()
    }

    #[test]
    fn what_clients_send_is_understood() {
        for (query, expected) in [
            ("id=users/1", &["users/1"][..]),
            ("&id=users%2F1-A", &["users/1-A"]),
            ("?&id=a&", &["a"]),
            ("?id=a&&?id=b", &["a", "b"]),
            ("ID=a&Id=b", &["a", "b"]),
            ("id", &[""]),
            ("id=", &[""]),
            ("id=a=b", &["a=b"]),
            ("idx=a&xid=b", &[]),
            ("%69d=a", &["a"]),
            ("id=a+b%20c%2Bd", &["a b c+d"]),
            ("id=%252F", &["%2F"]),
            ("id=100%&id=%zz&id=%2", &["100%", "%zz", "%2"]),
            ("id=%C3%A9", &["é"]),
            ("", &[]),
            ("?", &[]),
        ] {
            assert_eq!(all(query, "id"), expected, "{query:?}");
        }
    }

    #[test]
    fn numbers_and_flags_are_checked() {
        let query = Query::new("start=12&pageSize=x&a=TRUE&b=maybe&first-topology-update&empty=");
        assert_eq!(query.number::<u32>("start").expect("a number"), Some(12));
        assert_eq!(query.number::<u32>("empty").expect("nothing"), None);
        assert_eq!(query.number::<u32>("none").expect("nothing"), None);
        assert_eq!(query.number::<u32>("pageSize").expect_err("no number").kind(), ErrorKind::Argument);
        assert_eq!(query.flag("a").expect("a flag"), Some(true));
        assert_eq!(query.flag("b").expect_err("no flag").kind(), ErrorKind::Argument);
        assert!(query.has("first-topology-update") && !query.has("topology"));
        assert_eq!(query.require("empty").expect_err("empty").kind(), ErrorKind::Argument);
    }

    #[test]
    fn what_is_not_utf_8_is_an_error() {
        assert_eq!(Query::new("id=%ff").get("id").expect_err("not UTF-8").kind(), ErrorKind::Argument);
    }
}
