//! The fuzz targets' checks over their corpus, on the stable compiler: what fuzzing found stays found.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../../../fuzz/rql/fuzz_targets/checks.rs"]
mod checks;

use jackdaw_testkit::replay_corpus;

#[test]
fn query() {
    replay_corpus("rql", "rql_query", checks::query);
}

#[test]
fn expression() {
    replay_corpus("rql", "rql_expression", checks::expression);
    replay_corpus("rql", "rql_query", checks::expression);
}

/// Texts put together at random from the tokens and characters that matter to the lexer: what a minute of fuzzing begins with, on any machine.
#[test]
fn random_texts() {
    const PIECES: &[&str] = &[
        "from ",
        "index ",
        "Users",
        "'x y'",
        "\"q\"",
        " where ",
        " and ",
        " or ",
        " not ",
        " in ",
        "(",
        ")",
        "(",
        ")",
        ",",
        ".",
        "[",
        "]",
        "[]",
        "=",
        "!=",
        "<",
        ">",
        " between ",
        "1",
        "-2.5",
        "1e",
        "_",
        "$p",
        "$",
        "null",
        "true",
        " order by ",
        " group by ",
        " as ",
        " desc",
        " select ",
        " distinct ",
        "*",
        "{",
        "}",
        "{ a: 1 }",
        " include ",
        " load ",
        " filter ",
        " update ",
        " limit ",
        " offset ",
        "filter_limit ",
        "declare function f(x) {",
        "timeseries(",
        "from",
        "'",
        "\"",
        "\\",
        "\\u",
        "`",
        "${",
        "/",
        "//",
        "/*",
        "*/",
        "\n",
        "\0",
        "é",
        "日",
        "\u{301}",
        "\u{FEFF}",
        "\u{A0}",
        "@all_docs",
        "@",
        "-",
        "a-b",
        "id()",
        "all in (",
        "true.x",
        " match ",
        "count()",
        "nulls first",
        " as long",
    ];
    for seed in 0..10_000_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % bound
        };
        let count = 1 + next(16);
        let mut text = if next(2) == 0 { "from a where ".to_owned() } else { String::new() };
        (0..count).for_each(|_| text.push_str(PIECES[next(PIECES.len())]));
        checks::query(text.as_bytes());
        checks::expression(text.as_bytes());
    }
}
