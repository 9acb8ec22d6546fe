//! The fuzz target's checks over its corpus, on the stable compiler: what fuzzing found stays found.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../../../fuzz/functions/fuzz_targets/checks.rs"]
mod checks;

use jackdaw_testkit::replay_corpus;

#[test]
fn linq() {
    replay_corpus("functions", "functions_linq", checks::linq);
}

#[test]
fn javascript() {
    replay_corpus("functions", "functions_javascript", checks::javascript);
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
    for_random_texts(PIECES, 4_000, checks::linq);
}

/// The same for JavaScript.
#[test]
fn random_scripts() {
    const PIECES: &[&str] = &[
        "x",
        ".A",
        ".B",
        ".C",
        ".F",
        ".G",
        ".H",
        ".J",
        ".Missing",
        "?.A",
        "[0]",
        "['A']",
        "[9]",
        "g.values",
        "g.key",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " ** ",
        " == ",
        " === ",
        " != ",
        " !== ",
        " < ",
        " >= ",
        " && ",
        " || ",
        " ?? ",
        " ? 1 : 2",
        "!",
        "-",
        "+",
        "~",
        " & 3",
        " << 2",
        " >>> 1",
        "typeof ",
        "void ",
        "(",
        ")",
        "1",
        "2.5",
        "1e400",
        "9007199254740993",
        "'a'",
        "\"\\ud83d\"",
        "null",
        "undefined",
        "NaN",
        "true",
        "`${x.A}|${x.C}`",
        "{ A: 1, b: x.B }",
        "[1, x.A]",
        "[...x.F]",
        ".map(y => y)",
        ".map((y, i) => i)",
        ".filter(y => y != null)",
        ".flatMap(y => x.F)",
        ".reduce((a, y) => a + y.A, 0)",
        ".reduce((a, b) => a + b)",
        ".some(y => y)",
        ".every(y => y > 0)",
        ".find(y => y)",
        ".length",
        ".join(',')",
        ".slice(1)",
        ".slice(-2)",
        ".concat(x.F)",
        ".indexOf(1)",
        ".includes('b')",
        ".toString()",
        ".toFixed(2)",
        ".substring(1)",
        ".substr(-1)",
        ".split(',')",
        ".toLowerCase()",
        ".trim()",
        ".padStart(5)",
        ".charCodeAt(0)",
        ".startsWith('A')",
        ".replace('b', '')",
        ".sort()",
        ".reverse()",
        "Math.round(",
        "Math.max(x.A, ",
        "Math.floor(",
        "Number(",
        "String(",
        "parseInt(",
        "Object.keys(",
        "Array.isArray(",
        "new Date(",
        "id(x)",
        "getMetadata(x)",
        "load(x.C, 'Xs')",
        "createField(x.C, x.F)",
        "(y => y)(",
        "x.F.forEach(y => y)",
        ", ",
        "é",
        "日\u{1F600}",
        "\n",
        "//",
    ];
    for_random_texts(PIECES, 1_500, checks::javascript);
}

/// Texts of some of these pieces each, with brackets closed.
fn for_random_texts(pieces: &[&str], seeds: u64, check: fn(&[u8])) {
    for seed in 0..seeds {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % bound
        };
        let count = 1 + next(9);
        let mut text = if next(3) > 0 { "x".to_owned() } else { String::new() };
        (0..count).for_each(|_| text.push_str(pieces[next(pieces.len())]));
        let open = text.matches('(').count().saturating_sub(text.matches(')').count());
        text.push_str(&")".repeat(open));
        check(text.as_bytes());
    }
}
