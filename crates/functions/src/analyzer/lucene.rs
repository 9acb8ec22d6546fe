//! What Lucene.Net and RavenDB have ready: tokenizers, filters, sets of words, analyzers; and what becomes of their arguments.

use super::follow::{Value, Words};
use super::{Analyzer, TokenFilter, Tokenizer};

/// Longer tokens are left out, unless an analyzer says otherwise.
const LENGTH_MAX: u32 = 255;

/// Lucene's English stop words.
const ENGLISH: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// What an analyzer may derive from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Analyzer,
    Standard,
    Keyword,
    RavenStandard,
    LowerCaseKeyword,
}

/// The base class of this name.
pub(super) fn base(name: &str) -> Option<Base> {
    Some(match name {
        "Analyzer" => Base::Analyzer,
        "StandardAnalyzer" => Base::Standard,
        "KeywordAnalyzer" => Base::Keyword,
        "RavenStandardAnalyzer" => Base::RavenStandard,
        "LowerCaseKeywordAnalyzer" => Base::LowerCaseKeyword,
        _ => return None,
    })
}

/// What a base does when its constructor got these arguments; nothing for the abstract one.
pub(super) fn constructed(base: Base, arguments: &[Value]) -> Result<Option<Analyzer>, String> {
    let keyword = || Analyzer::of(Tokenizer::Keyword);
    Ok(match (base, arguments) {
        (Base::Analyzer, []) => None,
        (Base::Keyword, []) => Some(keyword()),
        (Base::LowerCaseKeyword, []) => Some(keyword().then(TokenFilter::LowerCase)),
        (Base::Standard, [Value::Version]) => Some(standard(english())),
        (Base::Standard, [Value::Version, Value::Words(words)]) => Some(standard(words.clone())),
        (Base::RavenStandard, [Value::Version]) => Some(Analyzer::of(Tokenizer::RavenStandard)),
        _ => return Err(wrong("the base class", arguments)),
    })
}

fn standard(words: Words) -> Analyzer {
    Analyzer::of(Tokenizer::Standard { length_max: LENGTH_MAX })
        .then(TokenFilter::Standard)
        .then(TokenFilter::LowerCase)
        .then(stop(words, false, true))
}

fn stop(words: Words, ignores_case: bool, leaves_gaps: bool) -> TokenFilter {
    // A set of Lucene's knows by itself whether it ignores case.
    let ignores_case = words.ignores_case.unwrap_or(ignores_case);
    TokenFilter::Stop { words: words.texts, ignores_case, leaves_gaps }
}

/// Lucene's English stop words, as a set that looks at case.
pub(super) fn english() -> Words {
    Words { texts: ENGLISH.map(str::to_owned).to_vec(), ignores_case: Some(false) }
}

/// What `new Name(arguments)` is; `None` for a class that is not known.
pub(super) fn created(name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
    let tokenizer = |tokenizer| Ok(Value::Stream(Analyzer::of(tokenizer)));
    let filtered = |input: &Analyzer, filter| Ok(Value::Stream(input.clone().then(filter)));
    let length = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
    let of = |analyzer: Analyzer| Ok(Value::Analyzer(analyzer));
    Some(match (name, arguments) {
        ("StandardTokenizer", [Value::Version, Value::Reader]) => {
            tokenizer(Tokenizer::Standard { length_max: LENGTH_MAX })
        }
        ("WhitespaceTokenizer", [Value::Reader]) => tokenizer(Tokenizer::Whitespace),
        ("LetterTokenizer", [Value::Reader]) => tokenizer(Tokenizer::Letter),
        ("LowerCaseTokenizer", [Value::Reader]) => {
            Ok(Value::Stream(Analyzer::of(Tokenizer::Letter).then(TokenFilter::LowerCase)))
        }
        ("KeywordTokenizer", [Value::Reader] | [Value::Reader, Value::Number(_)]) => {
            tokenizer(Tokenizer::Keyword)
        }
        ("LowerCaseKeywordTokenizer", [Value::Reader]) => {
            Ok(Value::Stream(Analyzer::of(Tokenizer::Keyword).then(TokenFilter::LowerCase)))
        }
        ("StandardFilter", [Value::Stream(input)]) => filtered(input, TokenFilter::Standard),
        ("LowerCaseFilter", [Value::Stream(input)]) => filtered(input, TokenFilter::LowerCase),
        ("ASCIIFoldingFilter", [Value::Stream(input)]) => filtered(input, TokenFilter::AsciiFolding),
        ("ISOLatin1AccentFilter", [Value::Stream(input)]) => filtered(input, TokenFilter::Latin1Accent),
        ("PorterStemFilter", [Value::Stream(input)]) => filtered(input, TokenFilter::PorterStem),
        // It only remembers tokens for who reads them again, which nobody here does.
        ("CachingTokenFilter", [Value::Stream(input)]) => Ok(Value::Stream(input.clone())),
        ("LengthFilter", [Value::Stream(input), Value::Number(min), Value::Number(max)]) => {
            filtered(input, TokenFilter::Length { min: length(*min), max: length(*max) })
        }
        ("StopFilter", [Value::Bool(gaps), Value::Stream(input), Value::Words(words)]) => {
            filtered(input, stop(words.clone(), false, *gaps))
        }
        (
            "StopFilter",
            [Value::Bool(gaps), Value::Stream(input), Value::Words(words), Value::Bool(ignores_case)],
        ) => filtered(input, stop(words.clone(), *ignores_case, *gaps)),
        ("HashSet" | "SortedSet" | "List", []) => Ok(Value::Words(Words::default())),
        ("HashSet" | "SortedSet" | "List", [Value::Words(words)]) => {
            Ok(Value::Words(Words { ignores_case: None, ..words.clone() }))
        }
        ("CharArraySet", [Value::Words(words), Value::Bool(ignores_case)]) => {
            Ok(Value::Words(Words { ignores_case: Some(*ignores_case), ..words.clone() }))
        }
        ("CharArraySet", [Value::Number(_), Value::Bool(ignores_case)]) => {
            Ok(Value::Words(Words { ignores_case: Some(*ignores_case), ..Words::default() }))
        }
        ("SimpleAnalyzer", []) => of(Analyzer::of(Tokenizer::Letter).then(TokenFilter::LowerCase)),
        ("WhitespaceAnalyzer", []) => of(Analyzer::of(Tokenizer::Whitespace)),
        ("StopAnalyzer", [Value::Version]) => of(Analyzer::of(Tokenizer::Letter)
            .then(TokenFilter::LowerCase)
            .then(stop(english(), false, true))),
        ("StopAnalyzer", [Value::Version, Value::Words(words)]) => of(Analyzer::of(Tokenizer::Letter)
            .then(TokenFilter::LowerCase)
            .then(stop(words.clone(), false, true))),
        (other, arguments) => match base(other) {
            Some(Base::Analyzer) | None if !is_known(other) => return None,
            Some(kind) => constructed(kind, arguments)
                .map_err(|_| wrong(&format!("`{other}`"), arguments))
                .and_then(|made| made.map(Value::Analyzer).ok_or_else(|| wrong("`Analyzer`", arguments))),
            None => Err(wrong(&format!("`{other}`"), arguments)),
        },
    })
}

fn is_known(name: &str) -> bool {
    matches!(
        name,
        "StandardTokenizer"
            | "WhitespaceTokenizer"
            | "LetterTokenizer"
            | "LowerCaseTokenizer"
            | "KeywordTokenizer"
            | "LowerCaseKeywordTokenizer"
            | "StandardFilter"
            | "LowerCaseFilter"
            | "ASCIIFoldingFilter"
            | "ISOLatin1AccentFilter"
            | "PorterStemFilter"
            | "CachingTokenFilter"
            | "LengthFilter"
            | "StopFilter"
            | "HashSet"
            | "SortedSet"
            | "List"
            | "CharArraySet"
            | "SimpleAnalyzer"
            | "WhitespaceAnalyzer"
            | "StopAnalyzer"
    )
}

fn wrong(what: &str, arguments: &[Value]) -> String {
    let given: Vec<&str> = arguments.iter().map(Value::describe).collect();
    format!("{what} does not take ({})", given.join(", "))
}

/// What a static call is: `StopFilter.MakeStopSet(..)` and the like; `None` for what is not known.
pub(super) fn called(class: &str, name: &str, arguments: Vec<Value>) -> Option<Result<Value, String>> {
    match (class, name) {
        ("StopFilter", "MakeStopSet") => Some(stop_set(&arguments)),
        ("StopFilter", "GetEnablePositionIncrementsVersionDefault") => match arguments[..] {
            [Value::Version] => Some(Ok(Value::Bool(true))),
            _ => Some(Err(wrong("the method", &arguments))),
        },
        ("CharArraySet", "UnmodifiableSet") => match <[Value; 1]>::try_from(arguments) {
            Ok([words @ Value::Words(_)]) => Some(Ok(words)),
            Ok(other) => Some(Err(wrong("the method", &other))),
            Err(other) => Some(Err(wrong("the method", &other))),
        },
        _ => None,
    }
}

fn stop_set(arguments: &[Value]) -> Result<Value, String> {
    let mut words = Words { ignores_case: Some(false), ..Words::default() };
    for argument in arguments {
        match argument {
            Value::Text(text) => words.texts.push(text.clone()),
            Value::Words(more) => words.texts.extend(more.texts.iter().cloned()),
            Value::Bool(ignores_case) => words.ignores_case = Some(*ignores_case),
            _ => return Err(wrong("the method", arguments)),
        }
    }
    Ok(Value::Words(words))
}

/// What a member of a class is: `StopAnalyzer.ENGLISH_STOP_WORDS_SET`, `Version.LUCENE_30`; `None` for what is not known.
pub(super) fn member(class: &str, name: &str) -> Option<Result<Value, String>> {
    Some(Ok(match (class, name) {
        ("StopAnalyzer", "ENGLISH_STOP_WORDS_SET") | ("StandardAnalyzer", "STOP_WORDS_SET") => {
            Value::Words(english())
        }
        ("int" | "Int32", "MaxValue") => Value::Number(i64::from(i32::MAX)),
        (_, "LUCENE_30" | "LUCENE_29" | "LUCENE_CURRENT") => Value::Version,
        (_, older) if older.starts_with("LUCENE_") => {
            return Some(Err(format!(
                "`{older}` is not supported: Lucene's analyzers worked otherwise then; LUCENE_29, LUCENE_30 and LUCENE_CURRENT are"
            )));
        }
        _ => return None,
    }))
}
