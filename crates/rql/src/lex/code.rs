//! Finding the end of a block in another language: JavaScript between braces, a time series query between parentheses.
//!
//! The text is not parsed; it is read just as far as it takes not to be deceived by a closing brace in a string, template, comment or regular
//! expression. What is inside is for whoever runs it to judge. Whether a `/` begins a regular expression cannot be known without parsing; it does
//! after an operator, an opening bracket or a keyword such as `return`, and it does not after a value.

/// The offset of the brace that closes the one at `open`.
pub(crate) fn closing_brace(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    // For each template literal that we are in the `${...}` of, how many braces were open around it.
    let mut templates: Vec<usize> = Vec::new();
    let mut depth = 0_usize;
    let mut at = open;
    // The last byte that was neither blank nor comment, and its offset.
    let mut last = (b'{', open);
    // No regular expression that begins before here is closed: without this, many slashes would each read to the end.
    let mut divisions_until = 0;
    while let Some(&byte) = bytes.get(at) {
        let begins = at;
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
                if templates.last() == Some(&depth) {
                    templates.pop();
                    at = template(bytes, at + 1, &mut templates, &mut depth)?;
                    last = (b'`', at);
                    continue;
                }
            }
            b'\'' | b'"' => at = string(bytes, at)?,
            b'`' => {
                at = template(bytes, at + 1, &mut templates, &mut depth)?;
                // In a `${`, an expression begins; after the template, a value has ended.
                last = (if templates.last().is_some_and(|open| open + 1 == depth) { b'{' } else { b'`' }, at);
                continue;
            }
            b'/' => match bytes.get(at + 1) {
                Some(b'/') => {
                    at += text[at..].find(['\n', '\r']).unwrap_or(text.len() - at);
                    continue;
                }
                Some(b'*') => {
                    at += 2 + text[at + 2..].find("*/")? + 2;
                    continue;
                }
                _ => {
                    if at >= divisions_until && regular_expression_may_follow(text, last) {
                        match regular_expression(bytes, at) {
                            Ok(end) => at = end,
                            Err(end) => divisions_until = end,
                        }
                    }
                }
            },
            _ => {}
        }
        at += 1;
        if !byte.is_ascii_whitespace() {
            last = (byte, begins);
        }
    }
    None
}

/// The offset of the parenthesis that closes the one at `open`; strings are as in RQL and JavaScript alike.
pub(crate) fn closing_parenthesis(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = open;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'\'' | b'"' => at = string(bytes, at)?,
            b'/' if bytes.get(at + 1) == Some(&b'/') => at += text[at..].find('\n')?,
            b'/' if bytes.get(at + 1) == Some(&b'*') => at += 3 + text[at + 2..].find("*/")?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The offset of the quote that closes the one at `open`. A line break closes it too: no string of JavaScript goes on behind it, and a quote that
/// stands alone in a regular expression we did not recognize then costs one line and not the rest of the query.
fn string(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'\n' => return Some(at),
            byte if *byte == bytes[open] => return Some(at),
            _ => at += 1,
        }
    }
}

/// Reads the text of a template literal from `at` and returns the offset behind its end, or behind a `${`, which it notes as open.
fn template(bytes: &[u8], mut at: usize, templates: &mut Vec<usize>, depth: &mut usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'`' => return Some(at + 1),
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                templates.push(*depth);
                *depth += 1;
                return Some(at + 2);
            }
            _ => at += 1,
        }
    }
}

/// Whether an operand begins after `last`, so that a slash is not a division.
fn regular_expression_may_follow(text: &str, (byte, at): (u8, usize)) -> bool {
    match byte {
        b')' | b']' | b'}' | b'\'' | b'"' | b'`' => false,
        byte if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80 => {
            let word = text.as_bytes()[..=at]
                .iter()
                .rev()
                .take_while(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | 0x80..)
                })
                .count();
            let word = text.as_bytes().get(at + 1 - word..=at).unwrap_or_default();
            matches!(
                word,
                b"return"
                    | b"typeof"
                    | b"case"
                    | b"in"
                    | b"of"
                    | b"delete"
                    | b"void"
                    | b"instanceof"
                    | b"new"
                    | b"else"
                    | b"throw"
            )
        }
        _ => true,
    }
}

/// The offset of the slash that closes the regular expression at `open`, if it is closed on its line; else where the line ends.
fn regular_expression(bytes: &[u8], open: usize) -> Result<usize, usize> {
    let mut at = open + 1;
    let mut class = false;
    loop {
        match bytes.get(at) {
            Some(b'\\') => at += 1,
            Some(b'\n' | b'\r') | None => return Err(at),
            Some(b'[') => class = true,
            Some(b']') => class = false,
            Some(b'/') if !class => return Ok(at),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block of `text` up to the mark `^`, which is not part of it.
    #[track_caller]
    fn check(text: &str) {
        let end = text.find('^').unwrap_or_else(|| panic!("no mark in {text}"));
        let text = format!("{}{}", &text[..end], &text[end + 1..]);
        assert_eq!(closing_brace(&text, 0), Some(end - 1), "{text}");
    }

    #[test]
    fn braces_nest() {
        check("{}^ }");
        check("{ a: { b: {} } }^ }}");
        check("{{ this.a = 1 }}^");
    }

    #[test]
    fn strings_templates_and_comments_hide_braces() {
        check(r#"{ a: "}" + '}' + "\"}" }^ }"#);
        check("{ a: `}` }^ }");
        check("{ a: `x${ {a: `}${'}'}`}.a }}` }^ }");
        check("{ return 1; // }\n }^ }");
        check("{ /* } */ }^ }");
        check("{ // it's\n }^ '");
    }

    #[test]
    fn regular_expressions_hide_braces_and_divisions_do_not() {
        check("{ return /}/.test(x) }^ }");
        check("{ x = /[/}]'/g }^ }");
        check("{ x.replace(/\"}/, '') }^ \"}");
        check("{ a = b / c; d = { e: f / g } }^ }/");
        check("{ a = (b) / 2 }^ / }");
        check("{ a = `${ /}/.source }` }^ }");
        check("{ myreturn / 2 }^ / }");
    }

    #[test]
    fn what_is_not_closed_has_no_end() {
        for text in ["{", "{ {}", "{ '}", "{ `}", "{ `${}", "{ /* }", "{ // }"] {
            assert_eq!(closing_brace(text, 0), None, "{text}");
        }
        for text in ["(", "( (", "( ')", "( /* )", "( // )"] {
            assert_eq!(closing_parenthesis(text, 0), None, "{text}");
        }
    }

    #[test]
    fn parentheses_are_found_around_strings() {
        assert_eq!(closing_parenthesis("(from 'a)' where (x))) ", 0), Some(20));
    }
}
