//! Custom analyzers: classes in C# that derive from Lucene.Net's, read as what nearly all of them are, a tokenizer with filters behind it.
//!
//! Nothing of a class is run as C# would run it. Its `ReusableTokenStream`, or else its `TokenStream`, is followed with symbols in the place of the reader and of token
//! streams: whatever is no tokenizer, filter, set of words or number that this crate knows is refused, by name and position. So a class either means here
//! what it means to Lucene.Net, or is not taken.
//!
//! | part | file |
//! | --- | --- |
//! | what an analyzer does, in the end | here |
//! | the class in the text, its constructor and methods | `class.rs` |
//! | statements and expressions | `follow.rs` |
//! | Lucene.Net's tokenizers, filters, sets and analyzers | `lucene.rs` |

mod class;
mod follow;
mod lucene;
#[cfg(test)]
mod tests;

use crate::error::CompileError;
use crate::linq::Syntax;

/// How text becomes terms: a tokenizer, and what its tokens go through, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analyzer {
    /// What cuts the text.
    pub tokenizer: Tokenizer,
    /// What each token goes through.
    pub filters: Vec<TokenFilter>,
}

/// What cuts a text into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokenizer {
    /// Lucene's grammar of words, numbers, host names and the like; longer tokens than this many UTF-16 units are left out.
    Standard {
        /// The units.
        length_max: u32,
    },
    /// RavenDB's own standard analyzer, whole: its filter works on what its tokenizer says of a token.
    RavenStandard,
    /// What stands between spaces.
    Whitespace,
    /// Runs of letters.
    Letter,
    /// The whole text.
    Keyword,
}

/// What becomes of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFilter {
    /// `'s` at the end of words with an apostrophe goes, and so do the dots of acronyms.
    Standard,
    /// They become lower-case.
    LowerCase,
    /// Some go.
    Stop {
        /// Those of these texts.
        words: Vec<String>,
        /// Whether they go in any case.
        ignores_case: bool,
        /// Whether a phrase notices that something stood there.
        leaves_gaps: bool,
    },
    /// Letters and signs become what they look like in ASCII.
    AsciiFolding,
    /// Letters of ISO Latin 1 lose their accents.
    Latin1Accent,
    /// Those that are shorter or longer go.
    Length {
        /// UTF-16 units at least.
        min: u32,
        /// UTF-16 units at most.
        max: u32,
    },
    /// They lose English endings, by Porter's algorithm.
    PorterStem,
}

impl Analyzer {
    /// Reads the analyzer of this name from a file of C#.
    ///
    /// # Errors
    ///
    /// The text is not C#, has no such class, or the class does what is not understood here.
    pub fn compile(name: &str, code: &str) -> Result<Analyzer, CompileError> {
        let syntax = Syntax::of_file(code)?;
        class::Class::find(&syntax, name)?.analyzer()
    }

    fn of(tokenizer: Tokenizer) -> Analyzer {
        Analyzer { tokenizer, filters: Vec::new() }
    }

    fn then(mut self, filter: TokenFilter) -> Analyzer {
        self.filters.push(filter);
        self
    }
}
