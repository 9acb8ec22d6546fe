//! What the parser accepts and refuses, case by case: `y_` must be accepted, `n_` refused, `i_` is ours to decide, and the decision stands here.
//!
//! The plan of the list follows the well-known suites for JSON parsers; the cases are our own.
#![allow(clippy::unwrap_used, missing_docs)]

use jackdaw_document::{Context, Mode, Style};

/// Must be accepted, and print as the second text.
const ACCEPTED: &[(&str, &str, &str)] = &[
    ("y_array_empty", "[]", "[]"),
    ("y_array_in_array", "[[]]", "[[]]"),
    ("y_array_spaces", "[ ]", "[]"),
    ("y_array_mixed", r#"[null, 1, "1", {}, [], true, false]"#, r#"[null,1,"1",{},[],true,false]"#),
    ("y_array_newline", "[1\n,\r2\t]", "[1,2]"),
    ("y_array_many_nulls", "[1,null,null,null,2]", "[1,null,null,null,2]"),
    ("y_leading_and_trailing_space", " \t\r\n1 \t\r\n", "1"),
    ("y_scalar_null", "null", "null"),
    ("y_scalar_true", "true", "true"),
    ("y_scalar_false", "false", "false"),
    ("y_scalar_string", "\"a\"", "\"a\""),
    ("y_scalar_empty_string", "\"\"", "\"\""),
    ("y_scalar_number", "42", "42"),
    ("y_scalar_negative_real", "-0.1", "-0.1"),
    ("y_number_zero", "[0]", "[0]"),
    ("y_number_negative_zero", "[-0]", "[-0]"),
    ("y_number_negative_zero_real", "[-0.0]", "[-0.0]"),
    ("y_number_trailing_zero", "[1.10]", "[1.10]"),
    ("y_number_exponent", "[1e2]", "[1e2]"),
    ("y_number_exponent_upper", "[1E22]", "[1E22]"),
    ("y_number_exponent_plus", "[1e+2]", "[1e+2]"),
    ("y_number_exponent_minus", "[1E-2]", "[1E-2]"),
    ("y_number_exponent_zero", "[0e0]", "[0e0]"),
    ("y_number_real_exponent", "[123.456e78]", "[123.456e78]"),
    ("y_number_i64_max", "[9223372036854775807]", "[9223372036854775807]"),
    ("y_number_i64_min", "[-9223372036854775808]", "[-9223372036854775808]"),
    (
        "y_number_close_to_zero",
        "[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]",
        "[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]",
    ),
    ("y_object_empty", "{}", "{}"),
    ("y_object_empty_name", r#"{"":0}"#, r#"{"":0}"#),
    ("y_object_nested", r#"{"a":{"b":{"c":[]}}}"#, r#"{"a":{"b":{"c":[]}}}"#),
    ("y_object_spaces", "{ \"a\" : 1 , \"b\" : 2 }", r#"{"a":1,"b":2}"#),
    ("y_object_newlines", "{\n\"a\"\n:\n1\n}", r#"{"a":1}"#),
    ("y_object_escaped_name", r#"{"\u0061\"":1}"#, r#"{"a\"":1}"#),
    ("y_object_escaped_name_is_the_same_name", r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#),
    ("y_object_repeated_name_last_counts", r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":3}"#),
    (
        "y_object_repeated_name_with_containers",
        r#"{"a":{"x":1},"b":[2],"a":{"y":[]}}"#,
        r#"{"b":[2],"a":{"y":[]}}"#,
    ),
    ("y_object_nul_in_name", r#"{"a\u0000b":1}"#, r#"{"a\u0000b":1}"#),
    ("y_string_all_escapes", r#"["\"\\\/\b\f\n\r\t"]"#, r#"["\"\\/\b\f\n\r\t"]"#),
    ("y_string_unicode_escape", r#"["\u0041\u00e9\u6c34"]"#, "[\"Aé水\"]"),
    ("y_string_unicode_escape_upper", r#"["\u00E9\u6C34"]"#, "[\"é水\"]"),
    ("y_string_surrogate_pair", r#"["\ud83d\ude00"]"#, "[\"😀\"]"),
    ("y_string_surrogate_pair_upper", r#"["\uD83D\uDE00"]"#, "[\"😀\"]"),
    ("y_string_last_code_point", r#"["\uDBFF\uDFFF"]"#, "[\"\u{10FFFF}\"]"),
    ("y_string_control_escapes", r#"["\u0000\u001f\u007f"]"#, "[\"\\u0000\\u001f\u{7f}\"]"),
    ("y_string_utf8", "[\"é水😀\u{2028}\u{2029}\"]", "[\"é水😀\u{2028}\u{2029}\"]"),
    ("y_string_delete", "[\"\u{7f}\"]", "[\"\u{7f}\"]"),
    ("y_string_noncharacter", "[\"\u{FFFF}\u{FDD0}\"]", "[\"\u{FFFF}\u{FDD0}\"]"),
    ("y_string_solidus", r#"["a/b\/c"]"#, r#"["a/b/c"]"#),
    (
        "y_string_backslash_at_block_ends",
        r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"aaa"]"#,
        r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"aaa"]"#,
    ),
];

/// Must be refused.
const REFUSED: &[(&str, &[u8])] = &[
    ("n_nothing", b""),
    ("n_only_space", b" "),
    ("n_array_unclosed", b"["),
    ("n_array_unclosed_value", b"[1"),
    ("n_array_unclosed_comma", b"[1,"),
    ("n_array_extra_comma", b"[1,]"),
    ("n_array_only_comma", b"[,]"),
    ("n_array_double_comma", b"[1,,2]"),
    ("n_array_leading_comma", b"[,1]"),
    ("n_array_missing_comma", b"[1 2]"),
    ("n_array_colon", b"[1:2]"),
    ("n_array_wrong_close", b"[1}"),
    ("n_array_close_only", b"]"),
    ("n_array_extra_close", b"[1]]"),
    ("n_array_name", b"[\"a\":1]"),
    ("n_object_unclosed", b"{"),
    ("n_object_unclosed_name", b"{\"a\""),
    ("n_object_unclosed_colon", b"{\"a\":"),
    ("n_object_unclosed_value", b"{\"a\":1"),
    ("n_object_trailing_comma", b"{\"a\":1,}"),
    ("n_object_double_comma", b"{\"a\":1,,\"b\":2}"),
    ("n_object_leading_comma", b"{,\"a\":1}"),
    ("n_object_missing_colon", b"{\"a\" 1}"),
    ("n_object_double_colon", b"{\"a\"::1}"),
    ("n_object_missing_value", b"{\"a\":}"),
    ("n_object_missing_name", b"{:1}"),
    ("n_object_unquoted_name", b"{a:1}"),
    ("n_object_single_quotes", b"{'a':1}"),
    ("n_object_number_name", b"{1:1}"),
    ("n_object_wrong_close", b"{\"a\":1]"),
    ("n_object_missing_comma", b"{\"a\":1 \"b\":2}"),
    ("n_object_trailing_text", b"{\"a\":1}x"),
    ("n_object_two", b"{}{}"),
    ("n_comment_line", b"[1] // a"),
    ("n_comment_block", b"/**/[1]"),
    ("n_comment_hash", b"[1] # a"),
    ("n_number_plus", b"[+1]"),
    ("n_number_leading_zero", b"[01]"),
    ("n_number_negative_leading_zero", b"[-01]"),
    ("n_number_double_zero", b"[00]"),
    ("n_number_point_first", b"[.5]"),
    ("n_number_point_last", b"[1.]"),
    ("n_number_point_exponent", b"[1.e1]"),
    ("n_number_minus_alone", b"[-]"),
    ("n_number_minus_space", b"[- 1]"),
    ("n_number_double_minus", b"[--1]"),
    ("n_number_exponent_alone", b"[1e]"),
    ("n_number_exponent_sign_alone", b"[1e+]"),
    ("n_number_exponent_point", b"[1e1.5]"),
    ("n_number_double_exponent", b"[1ee1]"),
    ("n_number_hexadecimal", b"[0x1F]"),
    ("n_number_letters", b"[1a]"),
    ("n_number_two_points", b"[1.2.3]"),
    ("n_number_nan", b"[NaN]"),
    ("n_number_minus_nan", b"[-NaN]"),
    ("n_number_infinity", b"[Infinity]"),
    ("n_number_minus_infinity", b"[-Infinity]"),
    ("n_number_fullwidth", "[１]".as_bytes()),
    ("n_number_long_then_letter", b"[123456789012345678901234567890x]"),
    ("n_literal_case", b"[True]"),
    ("n_literal_cut", b"[nul]"),
    ("n_literal_cut_at_end", b"tru"),
    ("n_literal_longer", b"[nulll]"),
    ("n_string_unclosed", b"\"a"),
    ("n_string_unclosed_escape", b"\"a\\"),
    ("n_string_escaped_close", b"\"a\\\""),
    ("n_string_unknown_escape", b"[\"\\x\"]"),
    ("n_string_upper_escape", b"[\"\\N\"]"),
    ("n_string_unicode_upper_u", b"[\"\\U0041\"]"),
    ("n_string_unicode_short", b"[\"\\u004\"]"),
    ("n_string_unicode_cut", b"[\"\\u00"),
    ("n_string_unicode_no_hexadecimal", b"[\"\\u00g1\"]"),
    ("n_string_unicode_sign", b"[\"\\u+041\"]"),
    ("n_string_surrogate_then_bad_escape", b"[\"\\ud800\\u\"]"),
    ("n_string_newline", b"[\"a\nb\"]"),
    ("n_string_tab", b"[\"a\tb\"]"),
    ("n_string_nul", b"[\"a\0b\"]"),
    ("n_string_control_1f", b"[\"\x1f\"]"),
    (
        "n_string_control_in_long_text",
        b"[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x01\"]",
    ),
    ("n_string_single_quotes", b"['a']"),
    ("n_name_newline", b"{\"a\nb\":1}"),
    ("n_name_lone_surrogate", b"{\"\\ud800\":1}"),
    ("n_utf8_lone_continuation", b"[\"\x80\"]"),
    ("n_utf8_cut", b"[\"\xe6\xb0\"]"),
    ("n_utf8_overlong", b"[\"\xc0\xaf\"]"),
    ("n_utf8_surrogate", b"[\"\xed\xa0\x80\"]"),
    ("n_utf8_beyond_unicode", b"[\"\xf4\x90\x80\x80\"]"),
    ("n_utf8_latin1", b"[\"\xe9\"]"),
    ("n_utf8_outside_strings", b"[1]\xff"),
    ("n_utf16", b"[\0\"\0a\0\"\0]\0"),
    ("n_byte_order_mark", b"\xef\xbb\xbf{}"),
    ("n_byte_order_mark_alone", b"\xef\xbb\xbf"),
    ("n_space_form_feed", b"[1,\x0c2]"),
    ("n_space_vertical_tab", b"[1,\x0b2]"),
    ("n_space_no_break", "[1,\u{a0}2]".as_bytes()),
    ("n_nul_after", b"[1]\0"),
    ("n_nul_before", b"\0[1]"),
    ("n_trailing_comma", b"1,"),
    ("n_two_values", b"1 2"),
    ("n_angle", b"<.>"),
];

/// Ours to decide: the text, and what it prints as, or nothing where it is refused.
const DECIDED: &[(&str, &str, Option<&str>)] = &[
    // Kept as they came: some clients send them, and a store gives back what it was given.
    ("i_string_lone_high_surrogate", r#"["\ud800"]"#, Some(r#"["\ud800"]"#)),
    ("i_string_lone_low_surrogate", r#"["\uDC00 x"]"#, Some(r#"["\udc00 x"]"#)),
    ("i_string_inverted_surrogates", r#"["\udc00\ud800"]"#, Some(r#"["\udc00\ud800"]"#)),
    ("i_string_high_surrogate_then_text", r#"["\ud800abc\n\ud83d\ude00"]"#, Some("[\"\\ud800abc\\n😀\"]")),
    ("i_string_high_surrogate_then_escape", r#"["\ud800\u0041"]"#, Some(r#"["\ud800A"]"#)),
    ("i_string_high_surrogate_then_pair", r#"["\ud800\ud83d\ude00"]"#, Some("[\"\\ud800😀\"]")),
    // Kept digit for digit; reading one as a double rounds, or is infinite.
    ("i_number_beyond_i64", "[9223372036854775808]", Some("[9223372036854775808]")),
    ("i_number_below_i64", "[-9223372036854775809]", Some("[-9223372036854775809]")),
    (
        "i_number_huge_integer",
        "[100000000000000000000000000000000000000]",
        Some("[100000000000000000000000000000000000000]"),
    ),
    ("i_number_huge_exponent", "[1e9999]", Some("[1e9999]")),
    ("i_number_tiny_exponent", "[1e-9999]", Some("[1e-9999]")),
    (
        "i_number_more_digits_than_a_double",
        "[0.1000000000000000055511151231257827]",
        Some("[0.1000000000000000055511151231257827]"),
    ),
];

fn print(text: &[u8], mode: Mode) -> Result<String, jackdaw_document::Error> {
    let context = Context::new();
    let document = context.parse_with(text, mode)?;
    document.validate(context.limits())?;
    Ok(document.to_json(Style::Compact))
}

#[test]
fn accepted() {
    for (name, text, expected) in ACCEPTED {
        for mode in [Mode::Memory, Mode::Disk] {
            assert_eq!(print(text.as_bytes(), mode).unwrap(), *expected, "{name}");
        }
        // Accepted by others too, unless the list is wrong.
        assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{name}");
    }
}

#[test]
fn refused() {
    for (name, text) in REFUSED {
        assert!(print(text, Mode::Memory).is_err(), "{name}");
        assert!(
            name.starts_with("n_name_lone") || serde_json::from_slice::<serde_json::Value>(text).is_err(),
            "{name}"
        );
        // With much white space behind, so that the wide loops see it and not only the ends of texts.
        let mut padded = text.to_vec();
        padded.extend_from_slice(&[b' '; 200]);
        assert!(print(&padded, Mode::Memory).is_err(), "{name}, padded");
    }
}

#[test]
fn decided() {
    for (name, text, expected) in DECIDED {
        for mode in [Mode::Memory, Mode::Disk] {
            match expected {
                Some(expected) => assert_eq!(print(text.as_bytes(), mode).unwrap(), *expected, "{name}"),
                None => assert!(print(text.as_bytes(), mode).is_err(), "{name}"),
            }
        }
    }
}

/// Every accepted text, cut at every place, is refused or is another value; never a panic.
#[test]
fn cut_anywhere() {
    for (name, text, _) in ACCEPTED {
        for len in 0..text.len() {
            let ours = print(&text.as_bytes()[..len], Mode::Memory).is_ok();
            let theirs = serde_json::from_slice::<serde_json::Value>(&text.as_bytes()[..len]).is_ok();
            assert_eq!(ours, theirs, "{name} cut to {len}");
        }
    }
}

#[test]
fn errors_tell_the_place() {
    let cases: &[(&str, usize, usize, usize)] = &[
        ("[1,\n  x]", 6, 2, 3),
        ("{\"a\":1,\n\"b\" 2}", 12, 2, 5),
        ("[\"a\nb\"]", 3, 1, 4),
        ("", 0, 1, 1),
        ("[1]\n\n2", 5, 3, 1),
    ];
    for (text, offset, line, column) in cases {
        match Context::new().parse(text).unwrap_err() {
            jackdaw_document::Error::Text(error) => {
                assert_eq!(
                    (error.offset, error.line, error.column),
                    (*offset, *line, *column),
                    "{text:?}: {error}"
                );
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn depth_is_limited() {
    let context = Context::new();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deepest = context.limits().depth_max as usize;
    let document = context.parse(nested(deepest)).unwrap();
    document.validate(context.limits()).unwrap();
    assert_eq!(document.to_json(Style::Compact), nested(deepest));
    let error = context.parse(nested(deepest + 1)).unwrap_err();
    assert!(error.to_string().contains("depth"), "{error}");
    assert!(context.parse("[".repeat(100_000)).is_err());
    assert!(context.parse("{\"a\":".repeat(100_000)).is_err());
}
