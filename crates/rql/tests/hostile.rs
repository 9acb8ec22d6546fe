//! Hostile texts: too deep, too long, not closed, not characters that RQL knows. Each is refused with its place, in bounded stack.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use jackdaw_rql::{DEPTH_MAX, ErrorKind, Limits, parse, parse_expression, parse_with};

#[track_caller]
fn refused(text: &str) -> jackdaw_rql::Error {
    match parse(text) {
        Ok(query) => panic!("parsed as {query}"),
        Err(error) => error,
    }
}

#[test]
fn depth_is_limited() {
    for (open, close) in
        [("(", ")"), ("boost(", ", 1)"), ("not ", ""), ("(a = 1 or (b = 2 and ", "))"), ("f(x, ", ")")]
    {
        let nested =
            |depth: usize| format!("from a where {}n = 1{}", open.repeat(depth), close.repeat(depth));
        let text = nested(64);
        let query = parse(&text).unwrap();
        assert_eq!(parse(&query.to_string()).as_ref(), Ok(&query));
        for depth in [129, 1000, 100_000] {
            assert!(matches!(
                refused(&nested(depth)).kind(),
                ErrorKind::Limit { what: "depth of nesting", limit: 128 }
            ));
        }
    }
}

/// The deepest tree that any limit allows is parsed, printed, compared, copied and dropped on a small stack.
#[test]
fn the_deepest_query_needs_little_stack() {
    let work = || {
        let limits = Limits { depth_max: u32::MAX, ..Limits::default() };
        let depth = DEPTH_MAX as usize;
        for (open, close) in [("(a = 1 or ", ")"), ("not ", ""), ("f(a = 1 and ", ")"), ("f(", ")")] {
            let text = format!("from a where {}n = 1{}", open.repeat(depth), close.repeat(depth));
            let query = parse_with(&text, limits).unwrap();
            let printed = query.to_string();
            assert_eq!(parse_with(&printed, limits).unwrap(), query.clone().into_owned());
            query.visit_fields(|_| {});
            let deeper = format!("from a where {}n = 1{}", open.repeat(depth + 1), close.repeat(depth + 1));
            assert!(parse_with(&deeper, limits).is_err());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn long_chains_and_lists_are_flat() {
    let chain = format!("from a where {}n = 1", "n = 1 and ".repeat(100_000));
    let query = parse(&chain).unwrap();
    assert_eq!(parse(&query.to_string()).unwrap(), query);
    let list = format!("from a where n in ({}1)", "'x', ".repeat(100_000));
    assert_eq!(parse(&list).unwrap().to_string().len(), list.len() + 2);
    let path = format!("from a where n{} = 1", "[].n".repeat(100_000));
    assert!(parse(&path).is_ok());
}

#[test]
fn size_is_limited() {
    let limits = Limits { text_size_max: 20, ..Limits::default() };
    assert!(parse_with("from a where n = 123", limits).is_ok());
    let error = parse_with("from a where n = 1234", limits).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Limit { what: "length of a query in bytes", limit: 20 });
}

#[test]
fn what_is_not_closed_is_reported_where_it_opens() {
    for (text, offset) in [
        ("from a where n = 'x", 17),
        ("from a where n = \"x'", 17),
        ("from a where n = 'x\\'", 17),
        ("from a where n = 'x''", 17),
        ("from a /* comment", 7),
        ("from a /*/", 7),
        ("from a select { x: '}' ", 14),
        ("from a update { /* }", 14),
        ("from a update { `${ }", 14),
        ("declare function f() { return '}", 21),
        ("from a select timeseries(from x where (y", 24),
    ] {
        let error = refused(text);
        assert!(matches!(error.kind(), ErrorKind::Unclosed { .. }), "{text}: {error}");
        assert_eq!(error.offset(), offset, "{text}");
    }
}

#[test]
fn characters_that_begin_nothing() {
    for c in [
        '\0', '#', ';', '+', '%', '?', '^', '|', '~', '`', '\\', '}', ':', '&', '\u{7F}', '€', '😀',
        '\u{200B}',
    ] {
        let error = refused(&format!("from a {c}"));
        assert!(matches!(error.kind(), ErrorKind::Character(found) if *found == c), "{error}");
    }
    // In strings, any character may stand.
    let text = "from 'a\0\u{1}\n€😀\u{200B}#' where n = \"\t\u{7F}\"";
    let query = parse(text).unwrap();
    assert_eq!(query.to_string(), "from 'a\\u0000\\u0001\\n€😀\u{200B}#' where n = '\\t\\u007f'");
    assert_eq!(parse(&query.to_string()).unwrap(), query);
}

#[test]
fn places_are_counted_in_lines_and_characters() {
    let error = refused("from Üsers\r\nwhere 'ä' = 1\n  and ñ = = 2");
    assert_eq!((error.line(), error.column(), error.offset()), (3, 11, 39));
    assert_eq!(
        error.to_string(),
        "3:11: expected a value after the operator, found `=`\n  and ñ = = 2\n          ^"
    );
    // A tab counts as one character, and is shown as one.
    assert_eq!(
        refused("from a\twhere\tn").to_string(),
        "1:15: expected an operator (=, !=, <, <=, >, >=, `between`, `in` or `all in`) after the field, found the end of the query\n\
         from a where n\n              ^"
    );
}

#[test]
fn a_long_line_is_shown_around_the_place() {
    let error = refused(&format!("from a where n in ({}) and", "'value', ".repeat(10_000)));
    let message = error.to_string();
    assert!(message.len() < 400, "{message}");
    let lines: Vec<&str> = message.split('\n').collect();
    assert_eq!(lines[1].chars().nth(lines[2].len() - 1), Some(')'), "{message}");
}

#[test]
fn empty_texts() {
    for text in ["", " ", "\n\n", "// nothing", "/* nothing */"] {
        assert!(matches!(
            refused(text).kind(),
            ErrorKind::Unexpected { expected: "`from` or `declare`", .. }
        ));
        assert!(parse_expression(text).is_err());
    }
}

/// Texts whose parsing would take quadratic time, were anything read again and again.
#[test]
fn time_is_linear() {
    for piece in [
        "(",
        "'",
        "\"\"",
        "a.",
        "not ",
        "/*",
        "{",
        "`",
        "${",
        "select {`${`${",
        "from a select {/",
        "[",
        "$",
        "\\",
        "a in (",
        "/**/",
        "/[",
        "/[ ",
        "a",
        "/",
    ] {
        let text = format!("from a where {}", piece.repeat(100_000));
        let _ = parse(&text);
        let text = format!("from a update {{ {}", piece.repeat(100_000));
        let _ = parse(&text);
    }
}
