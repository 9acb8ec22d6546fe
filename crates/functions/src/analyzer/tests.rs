//! What is read, and what is refused. What the analyzers then do to texts is compared with a reference's terms in `indexing`.

use super::*;

fn class(body: &str) -> String {
    format!(
        "using System.IO;\nusing Lucene.Net.Analysis;\nusing Version = Lucene.Net.Util.Version;\nnamespace N {{\npublic class X : Analyzer {{\n{body}\n}}\n}}"
    )
}

fn stream(body: &str) -> String {
    class(&format!(
        "public override TokenStream TokenStream(string fieldName, TextReader reader) {{ {body} }}"
    ))
}

fn refused(code: &str) -> String {
    match Analyzer::compile("X", code) {
        Ok(analyzer) => panic!("taken as {analyzer:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_class_of_the_reference_is_read() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/data/custom_analyzers.json")).unwrap();
    for case in cases["analyzers"].as_array().unwrap() {
        let (name, code) = (case["name"].as_str().unwrap(), case["code"].as_str().unwrap());
        Analyzer::compile(name, code).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_chain_is_read_from_the_inside_out() {
    let code = stream(
        "var words = new System.Collections.Generic.HashSet<string> { \"a\", @\"b\"\"c\", \"\\u00e9\" };
         TokenStream result = new StandardTokenizer(Version.LUCENE_30, reader) { MaxTokenLength = 7 };
         result = new StandardFilter(result);
         return new LengthFilter(new StopFilter(true, result, words, true), 2, int.MaxValue);",
    );
    let words = vec!["a".to_owned(), "b\"c".to_owned(), "é".to_owned()];
    let filters = vec![
        TokenFilter::Standard,
        TokenFilter::Stop { words, ignores_case: true, leaves_gaps: true },
        TokenFilter::Length { min: 2, max: i32::MAX as u32 },
    ];
    let expected = Analyzer { tokenizer: Tokenizer::Standard { length_max: 7 }, filters };
    assert_eq!(Analyzer::compile("X", &code).unwrap(), expected);
}

#[test]
fn methods_fields_and_constructors_are_followed() {
    let code = class(
        "private readonly CharArraySet _words;
         private const int Least = 3;
         public X() { _words = new CharArraySet(new[] { \"The\" }, true); }
         private static TokenStream Lowered(TokenStream input) => new LowerCaseFilter(input);
         public override TokenStream TokenStream(string f, TextReader r)
         {
             return new LengthFilter(Lowered(new StopFilter(false, new WhitespaceTokenizer(r), this._words)), X.Least, 9);
         }",
    );
    let analyzer = Analyzer::compile("X", &code).unwrap();
    assert_eq!(analyzer.tokenizer, Tokenizer::Whitespace);
    let words = vec!["The".to_owned()];
    assert_eq!(
        analyzer.filters,
        [
            TokenFilter::Stop { words, ignores_case: true, leaves_gaps: false },
            TokenFilter::LowerCase,
            TokenFilter::Length { min: 3, max: 9 },
        ]
    );
}

#[test]
fn what_is_not_understood_is_refused_by_name_and_place() {
    for (body, place, name) in [
        ("return new SnowballFilter(new KeywordTokenizer(reader), \"English\");", "line 6", "SnowballFilter"),
        ("return new NGramTokenFilter(new KeywordTokenizer(reader), 2, 3);", "line 6", "NGramTokenFilter"),
        (
            "if (fieldName == \"a\") return new KeywordTokenizer(reader); return new LetterTokenizer(reader);",
            "line 6",
            "if statement",
        ),
        (
            "return fieldName == \"a\" ? (TokenStream)new KeywordTokenizer(reader) : new LetterTokenizer(reader);",
            "line 6",
            "conditional expression",
        ),
        ("while (true) { } return new KeywordTokenizer(reader);", "line 6", "while statement"),
        ("reader.ReadToEnd(); return new KeywordTokenizer(reader);", "line 6", "reader.ReadToEnd()"),
        (
            "return new KeywordTokenizer(new StringReader(reader.ReadToEnd().Trim()));",
            "line 6",
            "such a call",
        ),
        ("return new KeywordTokenizer(new StringReader(\"x\"));", "line 6", "StringReader"),
        ("return new WhitespaceTokenizer(new MappingCharFilter(map, reader));", "line 6", "`map`"),
        (
            "return new StopFilter(true, new KeywordTokenizer(reader), new[] { fieldName });",
            "line 6",
            "among words",
        ),
        ("return new StandardTokenizer(Version.LUCENE_24, reader);", "line 6", "LUCENE_24"),
        ("return new StandardTokenizer(reader);", "line 6", "does not take (the reader)"),
        ("return new LowerCaseFilter(reader);", "line 6", "does not take"),
        ("return null;", "line 6", "returns null"),
        ("return TokenStream(fieldName, reader);", "line 6", "calls itself"),
        ("return new LowerCaseFilter(base.TokenStream(fieldName, reader));", "line 6", "the base"),
        ("KeywordTokenizer t; return t;", "line 6", "`t`"),
        ("return new KeywordTokenizer(reader)", "line 6", ";"),
        ("throw new System.Exception();", "line 6", "throw statement"),
    ] {
        let message = refused(&stream(body));
        assert!(message.contains(place) && message.contains(name), "{body}: {message}");
    }
}

#[test]
fn classes_that_are_no_analyzers_are_refused() {
    let fine = stream("return new KeywordTokenizer(reader);");
    for (code, name) in [
        (fine.replace("class X", "class Y"), "Could not find type 'X'"),
        (fine.replace("public class", "class"), "Could not find type 'X'"),
        (fine.replace(": Analyzer", ""), "does not derive"),
        (fine.replace(": Analyzer", ": SnowballAnalyzer"), "SnowballAnalyzer"),
        (fine.replace(": Analyzer", ": Analyzer, System.IDisposable"), "several bases"),
        (fine.replace("override ", ""), "must be `override`"),
        (class(""), "does not implement"),
        (
            class("public override int GetPositionIncrementGap(string f) { return 100; }"),
            "GetPositionIncrementGap",
        ),
        (class("private X() { }"), "constructor"),
        (class("public X(int a) { }"), "constructor"),
        (class("public event System.Action A;"), "event"),
        (fine.replace("X : Analyzer", "X : StandardAnalyzer"), "Version"),
        // A class of one's own by a name of Lucene's is not Lucene's.
        (
            fine.replace("new KeywordTokenizer(reader)", "new LowerCaseFilter(new KeywordTokenizer(reader))")
                + " public class LowerCaseFilter : TokenFilter { public override bool IncrementToken() { return false; } }",
            "LowerCaseFilter",
        ),
        (String::new(), "Could not find type"),
        ("class {".to_owned(), "line 1"),
    ] {
        let message = refused(&code);
        assert!(message.contains(name), "{code}: {message}");
    }
}

#[test]
fn what_grows_without_end_is_stopped() {
    let calls =
        (0..40).map(|i| format!("TokenStream F{i}(TokenStream t) {{ return F{n}(F{n}(t)); }}", n = i + 1));
    let body = calls.collect::<String>()
        + "TokenStream F40(TokenStream t) { return t; } public override TokenStream TokenStream(string f, TextReader r) { return F0(new KeywordTokenizer(r)); }";
    let message = refused(&class(&body));
    assert!(message.contains("too deeply"), "{message}");
    let deep = format!("return {}new KeywordTokenizer(reader){};", "(".repeat(5000), ")".repeat(5000));
    refused(&stream(&deep));
}
