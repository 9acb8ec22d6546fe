//! What the text of a field is.

use super::FieldType;

/// A field with its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'t> {
    /// No value.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// Any other number, as JSON writes it.
    Number(&'t str),
    /// A text.
    Text(&'t str),
    /// The text of a JSON value, not looked at yet.
    Json(&'t str),
}

/// The meaning of a field of this type. The error says what it should be.
#[inline]
pub(crate) fn field<'t>(
    bytes: &'t [u8],
    types: FieldType,
    nulls: &[Box<[u8]>],
) -> Result<Field<'t>, &'static str> {
    if bytes.is_empty() || nulls.iter().any(|null| **null == *bytes) {
        return Ok(Field::Null);
    }
    if (types == FieldType::Inferred || types == FieldType::Number)
        && let Some(number) = number(bytes)
    {
        return Ok(number);
    }
    if types == FieldType::Number {
        return Err("it is no number");
    }
    if types == FieldType::Inferred || types == FieldType::Boolean {
        match bytes {
            b"true" | b"True" | b"TRUE" => return Ok(Field::Boolean(true)),
            b"false" | b"False" | b"FALSE" => return Ok(Field::Boolean(false)),
            _ => {}
        }
    }
    if types == FieldType::Boolean {
        return Err("it is neither true nor false");
    }
    let text = simdutf8::basic::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    Ok(if types == FieldType::Json { Field::Json(text) } else { Field::Text(text) })
}

/// The number that these bytes are by JSON's grammar.
#[inline]
fn number(bytes: &[u8]) -> Option<Field<'_>> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let first = *digits.first()?;
    if !first.is_ascii_digit() {
        return None;
    }
    // Eighteen digits always fit; -0 is not 0.
    if digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit) {
        if first == b'0' && bytes.len() > 1 {
            return if bytes == b"-0" { Some(Field::Number("-0")) } else { None };
        }
        let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        return Some(Field::Integer(if digits.len() < bytes.len() { -value } else { value }));
    }
    is_number(digits).then(|| std::str::from_utf8(bytes).ok().map(Field::Number)).flatten()
}

/// Whether these bytes are a JSON number without a sign.
fn is_number(mut text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> Option<&[u8]> {
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 { None } else { Some(&text[count..]) }
    }
    text = match text {
        [b'0', rest @ ..] => rest,
        _ => match digits(text) {
            Some(rest) => rest,
            None => return false,
        },
    };
    if let [b'.', rest @ ..] = text {
        match digits(rest) {
            Some(rest) => text = rest,
            None => return false,
        }
    }
    match text {
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => {
            digits(rest).is_some_and(<[u8]>::is_empty)
        }
        rest => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Field<'_>) {
        assert_eq!(field(text.as_bytes(), FieldType::Inferred, &[]), Ok(expected), "{text}");
    }

    #[test]
    fn numbers_are_what_json_calls_so() {
        check("0", Field::Integer(0));
        check("42", Field::Integer(42));
        check("-7", Field::Integer(-7));
        check("999999999999999999", Field::Integer(999_999_999_999_999_999));
        for text in ["-0", "1.50", "0.5", "1e5", "1E+05", "-2.5e-3", "12345678901234567890", "0e0", "-0.0"] {
            check(text, Field::Number(text));
        }
        for text in [
            "007", "+1", "1.", ".5", "1e", "1e+", "--1", "-", "1,5", "0x10", "1 ", " 1", "NaN", "1.2.3",
            "00", "-01",
        ] {
            check(text, Field::Text(text));
        }
    }

    #[test]
    fn every_number_is_one_for_json_too() {
        for text in
            ["0", "-0", "01", "1.5", "1.", "1e5", "1e", "123456789012345678901234", "-", "-1", "0.10", "00.1"]
        {
            let json = serde_json::from_str::<serde_json::Number>(text).is_ok();
            let found = field(text.as_bytes(), FieldType::Inferred, &[]).unwrap();
            assert_eq!(matches!(found, Field::Integer(_) | Field::Number(_)), json, "{text}");
        }
    }

    #[test]
    fn booleans_nulls_and_texts() {
        check("true", Field::Boolean(true));
        check("FALSE", Field::Boolean(false));
        check("tRue", Field::Text("tRue"));
        check("", Field::Null);
        check("NULL", Field::Text("NULL"));
        check("2013-01-01T00:00:00Z", Field::Text("2013-01-01T00:00:00Z"));
        let nulls = [Box::from(&b"NA"[..])];
        assert_eq!(field(b"NA", FieldType::Inferred, &nulls), Ok(Field::Null));
        assert_eq!(field(b"NA", FieldType::Text, &nulls), Ok(Field::Null));
    }

    #[test]
    fn types_that_were_asked_for_hold() {
        assert_eq!(field(b"42", FieldType::Text, &[]), Ok(Field::Text("42")));
        assert_eq!(field(b"42", FieldType::Number, &[]), Ok(Field::Integer(42)));
        assert_eq!(field(b"x", FieldType::Number, &[]), Err("it is no number"));
        assert_eq!(field(b"1", FieldType::Boolean, &[]), Err("it is neither true nor false"));
        assert_eq!(field(b"[1]", FieldType::Json, &[]), Ok(Field::Json("[1]")));
        assert_eq!(field(b"\xff", FieldType::Inferred, &[]), Err("it is not UTF-8"));
    }
}
