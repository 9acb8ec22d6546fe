//! The text of a quoted string, from its escaped form and back.

use std::fmt::{self, Write};

use crate::error::{Error, ErrorKind, Result};
use crate::span::Span;

/// The text between the quotes of `span`, which has escapes or doubled quotes.
pub(crate) fn unescape(text: &str, span: Span) -> Result<String> {
    let (start, end) = (span.start as usize + 1, span.end as usize - 1);
    let quote = char::from(text.as_bytes()[span.start as usize]);
    let mut out = String::with_capacity(end - start);
    let mut rest = &text[start..end];
    while let Some(at) = rest.find(['\\', quote]) {
        out.push_str(&rest[..at]);
        let offset = end - rest.len() + at;
        if rest[at..].starts_with(quote) {
            // The lexer ends a string at a quote that is not doubled, so there are two.
            out.push(quote);
            rest = &rest[at + 2..];
            continue;
        }
        let bad = || {
            let end = (offset + 2).min(end) as u32;
            Error::new(text, Span { start: offset as u32, end }, ErrorKind::Escape)
        };
        let escape = rest[at + 1..].chars().next().ok_or_else(bad)?;
        let mut size = 1 + escape.len_utf8();
        out.push(match escape {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\u{8}',
            'f' => '\u{C}',
            'v' => '\u{B}',
            '\\' | '\'' | '"' | '/' => escape,
            'u' => {
                let high = hexadecimal(&rest[at + 2..]).ok_or_else(bad)?;
                size = 6;
                if (0xD800..0xDC00).contains(&high) {
                    // A pair of surrogates, as clients that escape UTF-16 send it.
                    let low = rest[at + 6..].strip_prefix("\\u").and_then(hexadecimal);
                    let low = low.filter(|low| (0xDC00..0xE000).contains(low)).ok_or_else(bad)?;
                    size = 12;
                    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)).ok_or_else(bad)?
                } else {
                    char::from_u32(high).ok_or_else(bad)?
                }
            }
            _ => return Err(bad()),
        });
        rest = &rest[at + size..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The value of the four hexadecimal digits that `text` begins with.
fn hexadecimal(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// Writes `text` as a string in single quotes that the lexer reads back as the same text.
pub(crate) fn write_quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('\'')?;
    for c in text.chars() {
        match c {
            '\'' => out.write_str("\\'")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('\'')
}
