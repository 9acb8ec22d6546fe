//! One level into an object's text: its properties as slices, nothing parsed below.

use std::borrow::Cow;

use super::extent::{Extent, is_space};

/// The properties of the object that `text` holds, in order: names unescaped, values as text. `text` should begin with `{`.
///
/// The iterator ends after the first fault, which is an `Err` with the reason.
pub(crate) fn properties(text: &[u8]) -> Properties<'_> {
    Properties { text, at: 0, place: Place::Start }
}

/// A property's name, and its value as text.
pub(crate) type Named<'t> = (Cow<'t, str>, &'t [u8]);

/// See [`properties`].
pub(crate) struct Properties<'t> {
    text: &'t [u8],
    at: usize,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    First,
    Behind,
    Done,
}

const NOT_AN_OBJECT: &str = "an object is expected";
const NO_NAME: &str = "a property name is expected";
const NO_COLON: &str = "a ':' is expected behind a property name";
const NO_VALUE: &str = "a value is expected";
const NO_COMMA: &str = "a ',' or '}' is expected behind a value";
const TRAILING: &str = "nothing may follow the object";
const BAD_NAME: &str = "a property name is malformed";

impl<'t> Properties<'t> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(|byte| is_space(*byte)) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn value(&mut self, missing: &'static str) -> Result<&'t [u8], &'static str> {
        let first = self.peek().ok_or(missing)?;
        let mut extent = Extent::begin(first).ok_or(missing)?;
        let rest = &self.text[self.at..];
        let size = extent.advance(rest).ok_or(missing)?;
        self.at += size;
        Ok(&rest[..size])
    }

    fn property(&mut self) -> Result<Option<Named<'t>>, &'static str> {
        if self.place == Place::Start {
            if self.peek() != Some(b'{') {
                return Err(NOT_AN_OBJECT);
            }
            self.at += 1;
            self.place = Place::First;
        }
        match (self.place, self.peek()) {
            (Place::First | Place::Behind, Some(b'}')) => {
                self.at += 1;
                return if self.peek().is_some() { Err(TRAILING) } else { Ok(None) };
            }
            (Place::Behind, Some(b',')) => self.at += 1,
            (Place::Behind, _) => return Err(NO_COMMA),
            _ => {}
        }
        self.place = Place::Behind;
        if self.peek() != Some(b'"') {
            return Err(NO_NAME);
        }
        let name = text(self.value(NO_NAME)?).ok_or(BAD_NAME)?;
        if self.peek() != Some(b':') {
            return Err(NO_COLON);
        }
        self.at += 1;
        Ok(Some((name, self.value(NO_VALUE)?)))
    }
}

impl<'t> Iterator for Properties<'t> {
    type Item = Result<Named<'t>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.place == Place::Done {
            return None;
        }
        let found = self.property().transpose();
        if !matches!(found, Some(Ok(_))) {
            self.place = Place::Done;
        }
        found
    }
}

/// The string that a JSON text holds, borrowed when it has no escapes. None if it holds no string, or a malformed one.
pub(crate) fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.iter().any(|byte| *byte == b'\\' || *byte < 0x20) {
        return serde_json::from_slice::<String>(json).ok().map(Cow::Owned);
    }
    simdutf8::basic::from_utf8(inner).ok().map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &[(&str, &str)], fault: Option<&str>) {
        let mut found = Vec::new();
        let mut failed = None;
        for property in properties(json.as_bytes()) {
            match property {
                Ok((name, value)) => {
                    found.push((name.into_owned(), String::from_utf8_lossy(value).into_owned()));
                }
                Err(reason) => failed = Some(reason),
            }
        }
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!((found, failed), (expected, fault), "{json}");
    }

    #[test]
    fn properties_come_in_order_with_their_text() {
        check("{}", &[], None);
        check(" { } ", &[], None);
        check(
            r#"{"a":1 ,"b\n": {"c":[1,"}"]}, "ü":null}"#,
            &[("a", "1"), ("b\n", r#"{"c":[1,"}"]}"#), ("ü", "null")],
            None,
        );
    }

    #[test]
    fn faults_end_the_properties() {
        check("[]", &[], Some(NOT_AN_OBJECT));
        check("", &[], Some(NOT_AN_OBJECT));
        check("{", &[], Some(NO_NAME));
        check("{,}", &[], Some(NO_NAME));
        check(r#"{"a"}"#, &[], Some(NO_COLON));
        check(r#"{"a":}"#, &[], Some(NO_VALUE));
        check(r#"{"a":1"#, &[], Some(NO_VALUE));
        check(r#"{"a":"b"#, &[], Some(NO_VALUE));
        check(r#"{"a":"b""#, &[("a", "\"b\"")], Some(NO_COMMA));
        // What a value holds is for the parser to refuse.
        check(r#"{"a":"b","c":[1}"#, &[("a", "\"b\""), ("c", "[1}")], Some(NO_COMMA));
        check(r#"{"a":"b" "c":1}"#, &[("a", "\"b\"")], Some(NO_COMMA));
        check(r#"{"a":{}}x"#, &[("a", "{}")], Some(TRAILING));
        check(r#"{"\x":1}"#, &[], Some(BAD_NAME));
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(text(br#""plain""#).as_deref(), Some("plain"));
        assert_eq!(text(br#""a\"\u0041""#).as_deref(), Some("a\"A"));
        assert_eq!(text(b"\"\xff\""), None);
        assert_eq!(text(b"1"), None);
        assert_eq!(text(b"\"\n\""), None);
    }
}
