//! What must hold of any input: one function per target, used by the fuzz targets and by the replay of the corpus on the stable compiler.

use jackdaw_rql::{parse, parse_expression, parse_path};

/// Any text as a query: it is refused with a place inside the text, or it prints as a text that parses to an equal tree and prints the same.
pub fn query(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match parse(text) {
        Ok(query) => {
            let printed = query.to_string();
            let again = parse(&printed).expect("what was printed parses");
            assert_eq!(again, query);
            assert_eq!(again.to_string(), printed);
            query.visit_fields(|_| {});
            query.visit_expressions(|expression| assert!(!expression.span().of(text).is_empty()));
            assert_eq!(query.clone().into_owned(), query);
        }
        Err(error) => check_error(text, &error),
    }
}

/// Any text as an expression and as a path.
pub fn expression(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match parse_expression(text) {
        Ok(expression) => {
            let printed = expression.to_string();
            assert_eq!(parse_expression(&printed).expect("what was printed parses"), expression);
        }
        Err(error) => check_error(text, &error),
    }
    match parse_path(text) {
        Ok(path) => {
            let printed = path.to_string();
            assert_eq!(parse_path(&printed).expect("what was printed parses"), path);
        }
        Err(error) => check_error(text, &error),
    }
}

fn check_error(text: &str, error: &jackdaw_rql::Error) {
    assert!(error.offset() <= text.len() && text.is_char_boundary(error.offset()));
    assert!(error.line() >= 1 && error.column() >= 1);
    let message = error.to_string();
    let lines: Vec<&str> = message.split('\n').collect();
    assert!(lines.len() == 3 && lines[2].trim_start().starts_with('^'), "{message}");
}
