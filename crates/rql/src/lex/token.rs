//! What the lexer makes of the text.

use crate::span::Span;

/// A piece of the text that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// The kinds of tokens. Words carry their keyword, since the same word is a keyword in one place and a name in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Word(Keyword),
    /// The span holds the quotes; the flag tells whether the text between them needs [`super::string::unescape`].
    String {
        escaped: bool,
    },
    Number,
    /// The span holds the dollar sign.
    Parameter,
    Comma,
    Dot,
    Star,
    BracketOpen,
    BracketClose,
    ParenthesisOpen,
    ParenthesisClose,
    BraceOpen,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    End,
}

macro_rules! keywords {
    ($($name:ident $text:literal,)*) => {
        /// The words that mean something somewhere; `None` is any other word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Keyword {
            None,
            $($name,)*
        }

        impl Keyword {
            /// The keyword that `word` is, whatever its case.
            #[inline]
            pub(crate) fn of(word: &[u8]) -> Keyword {
                // The longest is `alphanumeric`.
                let mut lower = [0; 12];
                let Some(lower) = lower.get_mut(..word.len()) else { return Keyword::None };
                for (lower, byte) in lower.iter_mut().zip(word) {
                    *lower = byte.to_ascii_lowercase();
                }
                match &*lower {
                    $($text => Keyword::$name,)*
                    _ => Keyword::None,
                }
            }
        }
    };
}

keywords! {
    All b"all",
    AlphaNumeric b"alphanumeric",
    And b"and",
    As b"as",
    Asc b"asc",
    Ascending b"ascending",
    Between b"between",
    By b"by",
    Declare b"declare",
    Desc b"desc",
    Descending b"descending",
    Distinct b"distinct",
    Double b"double",
    False b"false",
    Filter b"filter",
    FilterLimit b"filter_limit",
    First b"first",
    From b"from",
    Function b"function",
    Group b"group",
    In b"in",
    Include b"include",
    Index b"index",
    Last b"last",
    Limit b"limit",
    Load b"load",
    Long b"long",
    Match b"match",
    Not b"not",
    Null b"null",
    Nulls b"nulls",
    Offset b"offset",
    Or b"or",
    Order b"order",
    Select b"select",
    String b"string",
    TimeSeries b"timeseries",
    True b"true",
    Update b"update",
    Where b"where",
    With b"with",
}

impl Keyword {
    /// Whether the word is never a name, except in quotes or after a dot. These are the words that can follow any clause.
    #[inline]
    pub(crate) fn is_reserved(self) -> bool {
        use Keyword::{As, Group, Include, Limit, Load, Offset, Order, Select, Update, Where};
        matches!(self, As | Group | Include | Limit | Load | Offset | Order | Select | Update | Where)
    }
}
