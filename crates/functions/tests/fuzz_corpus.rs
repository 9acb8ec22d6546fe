//! The fuzz target's checks over its corpus, on the stable compiler: what fuzzing found stays found.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../../../fuzz/functions/fuzz_targets/checks.rs"]
mod checks;

use jackdaw_testkit::replay_corpus;

#[test]
fn linq() {
    replay_corpus("functions", "functions_linq", checks::linq);
}

/// The expressions of the cases, which are as many hints at what may go wrong.
#[test]
fn cases() {
    for line in include_str!("cases/expressions.txt").lines() {
        if let Some((expression, _)) = line.split_once(" ==> ") {
            checks::linq(expression.as_bytes());
        }
    }
}

/// Texts put together at random from what the language is made of: what a minute of fuzzing begins with, on any machine.
#[test]
fn random_texts() {
    const PIECES: &[&str] = &[
        "x",
        ".A",
        ".B",
        ".C",
        ".F",
        ".G",
        ".H",
        ".I",
        ".J",
        ".Missing",
        "?.A",
        "[0]",
        "[\"A\"]",
        "[9]",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " != ",
        " < ",
        " > ",
        " && ",
        " || ",
        " ?? ",
        " ? 1 : 2",
        "!",
        "-",
        "(",
        ")",
        "(int)",
        "(double?)",
        "(decimal)",
        "(string)",
        "1",
        "2.5",
        "1.5M",
        "\"a\"",
        "'c'",
        "null",
        "true",
        "$\"{x.A:D3}|{x.C,5}\"",
        "new { A = 1, x.B }",
        "new [] { 1, x.A }",
        ".Select(y => y)",
        ".Where(y => y != null)",
        ".SelectMany(y => x.F)",
        ".Sum(y => y.A)",
        ".Sum()",
        ".Count()",
        ".Max()",
        ".Min(y => y)",
        ".First()",
        ".FirstOrDefault()",
        ".OrderBy(y => y)",
        ".GroupBy(y => y)",
        ".Distinct()",
        ".ToDictionary(y => y)",
        ".Aggregate((a, b) => a + b)",
        ".Take(2)",
        ".Skip(1)",
        ".Reverse()",
        ".Contains(1)",
        ".Concat(x.F)",
        ".Zip(x.F, (a, b) => a)",
        ".Any()",
        ".All(y => y > 0)",
        ".Average()",
        ".ToString()",
        ".ToString(\"0.00\")",
        ".ToString(\"yyyy-MM\")",
        ".Substring(1)",
        ".IndexOf(\"b\")",
        ".Split(',')",
        ".Replace(\"b\", \"\")",
        ".ToLower()",
        ".Trim()",
        ".PadLeft(5)",
        ".AddDays(1)",
        ".Year",
        ".Date",
        ".Length",
        ".TotalHours",
        ".Key",
        ".Value",
        ".Boost(2)",
        "Math.Round(",
        "Math.Max(x.A, ",
        "string.Format(\"{0:N2}\", ",
        "string.Join(\",\", ",
        "Regex.Replace(x.C, \"b\", ",
        "DateTime.Parse(",
        "Id(x)",
        "MetadataFor(x)",
        "LoadDocument(x.C, \"Xs\")",
        "CreateField(x.C, x.F)",
        "CreateSpatialField(x.A, x.B)",
        "Recurse(x, y => y.G)",
        "Enumerable.Range(0, 3)",
        " is null",
        " is string",
        " as string",
        " switch { 1 => 2, _ => 3 }",
        ", ",
        "é",
        "日\u{1F600}",
        "\n",
        "//",
    ];
    for seed in 0..4_000_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % bound
        };
        let count = 1 + next(9);
        let mut text = if next(3) > 0 { "x".to_owned() } else { String::new() };
        (0..count).for_each(|_| text.push_str(PIECES[next(PIECES.len())]));
        let open = text.matches('(').count().saturating_sub(text.matches(')').count());
        text.push_str(&")".repeat(open));
        checks::linq(text.as_bytes());
    }
}
