//! What a function becomes when it is compiled: a tree of expressions with all names resolved.
//!
//! Every variable of a function has a place of its own in one flat array, for no function calls itself. Every name of a property has a number, under which each
//! runner keeps a [`Property`](jackdaw_document::Property) that remembers where the last document had it.

pub(crate) mod script;

use jackdaw_document::date::Date;
use regex::Regex;
use rust_decimal::Decimal;

/// The place of a variable.
pub(crate) type Slot = u32;

/// A compiled function.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// What it returns: the sequence of its entries.
    pub(crate) body: Expr,
    /// How many variables it has.
    pub(crate) slots: u32,
    /// The names of properties it reads.
    pub(crate) names: Vec<Box<str>>,
    /// The regular expressions it uses.
    pub(crate) patterns: Vec<Regex>,
    /// How many arrays it fills.
    pub(crate) lists: u32,
    /// A script asks for the metadata of documents, which then have more of it than is stored.
    pub(crate) reads_metadata: bool,
}

/// An expression.
#[derive(Debug, Default)]
pub(crate) enum Expr {
    #[default]
    Null,
    Bool(bool),
    Long(i64),
    Double(f64),
    Decimal(Decimal),
    Text(Box<str>),
    Date(Date),
    TimeSpan(i64),
    /// What the function is run over: the document of a map, the entries of a reduce.
    Source,
    Local(Slot),
    /// `target.Name`. `name` counts [`Program::names`].
    Member {
        target: Box<Expr>,
        name: u32,
        known: Option<Member>,
        line: u32,
    },
    /// `target[index]`.
    Index {
        target: Box<Expr>,
        index: Box<Expr>,
        line: u32,
    },
    /// `args[0].Method(args[1..])`.
    Call {
        method: Method,
        args: Box<[Expr]>,
        line: u32,
    },
    /// A function that belongs to no value.
    Function {
        function: Function,
        args: Box<[Expr]>,
        line: u32,
    },
    Not(Box<Expr>, u32),
    /// True for anything but `false`: what passes a `where` over all documents, which null does.
    UnlessFalse(Box<Expr>),
    Negate(Box<Expr>, u32),
    Arithmetic(Operator, Box<(Expr, Expr)>, u32),
    Compare(Comparison, Box<(Expr, Expr)>, u32),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    /// `a ?? b`.
    Coalesce(Box<(Expr, Expr)>),
    Conditional(Box<(Expr, Expr, Expr)>),
    Cast {
        to: Type,
        nullable: bool,
        value: Box<Expr>,
        line: u32,
    },
    /// `value is Type`.
    Is(Type, Box<Expr>),
    /// `value as Type`.
    As(Type, Box<Expr>),
    /// `new { A = a }`.
    Object {
        names: Box<[Box<str>]>,
        values: Box<[Expr]>,
    },
    /// `new [] { a, b }`.
    Array(Box<[Expr]>),
    /// `new Dictionary<,> { { key, value } }`.
    Dictionary(Box<[(Expr, Expr)]>, u32),
    /// `{value:format}` of an interpolated string; `width` is that of the text, negative to the left.
    Formatted {
        value: Box<Expr>,
        width: i32,
        format: Box<str>,
        line: u32,
    },
    /// Only as an argument.
    Lambda(Box<Lambda>),
    Query(Box<Query>),
    /// `OrderBy(..).ThenBy(..)`: the keys, and whether they descend.
    Sort {
        source: Box<Expr>,
        keys: Box<[(Lambda, bool)]>,
        line: u32,
    },
    /// Variables set before the result is computed.
    Block {
        variables: Box<[(Slot, Expr)]>,
        result: Box<Expr>,
    },
    /// `undefined`, or what is not there.
    Missing,
    /// What follows JavaScript's rules.
    Script(Box<script::Script>),
}

impl Expr {
    /// Whether this is what the function runs over, or made of it element by element.
    pub(crate) fn is_rooted(&self) -> bool {
        match self {
            Expr::Source => true,
            Expr::Call { method, args, .. } => {
                *method != Method::GroupBy && args.first().is_some_and(Expr::is_rooted)
            }
            Expr::Sort { source, .. } => source.is_rooted(),
            Expr::Query(query) => match query.clauses.first() {
                Some(Clause::From { source, .. }) => {
                    matches!(query.result, QueryResult::Select(_)) && source.is_rooted()
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The condition of a `where` over all documents. RavenDB keeps a document whose condition is null, but not when the condition is made of `&&` or `||`.
    pub(crate) fn into_root_condition(self) -> Expr {
        match self {
            Expr::And(_) | Expr::Or(_) => self,
            condition => Expr::UnlessFalse(Box::new(condition)),
        }
    }
}

/// An anonymous function.
#[derive(Debug)]
pub(crate) struct Lambda {
    /// Where its arguments go.
    pub(crate) parameters: Box<[Slot]>,
    pub(crate) body: Expr,
}

/// A query expression up to `select`, or up to `group` where that ends it or has an `into`.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) clauses: Box<[Clause]>,
    pub(crate) result: QueryResult,
}

#[derive(Debug)]
pub(crate) enum QueryResult {
    Select(Expr),
    Group { element: Expr, key: Expr },
}

#[derive(Debug)]
pub(crate) enum Clause {
    From {
        slot: Slot,
        source: Expr,
        line: u32,
    },
    Let {
        slot: Slot,
        value: Expr,
    },
    Where(Expr),
    OrderBy {
        /// Keys and whether they descend.
        keys: Box<[(Expr, bool)]>,
        /// The variables that are set by now.
        slots: Box<[Slot]>,
    },
    Join {
        slot: Slot,
        source: Expr,
        outer: Expr,
        inner: Expr,
        /// Where the matches of one element go together, if they do.
        into: Option<Slot>,
        line: u32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Types as far as casts and tests tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    /// `object`, `dynamic`, arrays and other types that change nothing.
    Object,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Decimal,
    Bool,
    Char,
    Text,
    Date,
    DateOffset,
    TimeSpan,
    Guid,
    /// Sequences and arrays.
    Sequence,
}

/// Members of values that are no objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Member {
    Length,
    Count,
    Key,
    Value,
    HasValue,
    Keys,
    Values,
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Ticks,
    Date,
    TimeOfDay,
    DayOfWeek,
    DayOfYear,
    DateTime,
    UtcDateTime,
    Kind,
    Offset,
    Days,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
    TotalDays,
    TotalHours,
    TotalMinutes,
    TotalSeconds,
    TotalMilliseconds,
}

impl Member {
    /// The member of this name.
    pub(crate) fn named(name: &str) -> Option<Member> {
        Some(match name {
            "Length" => Member::Length,
            "Count" => Member::Count,
            "Key" => Member::Key,
            "Value" => Member::Value,
            "HasValue" => Member::HasValue,
            "Keys" => Member::Keys,
            "Values" => Member::Values,
            "Year" => Member::Year,
            "Month" => Member::Month,
            "Day" => Member::Day,
            "Hour" => Member::Hour,
            "Minute" => Member::Minute,
            "Second" => Member::Second,
            "Millisecond" => Member::Millisecond,
            "Ticks" => Member::Ticks,
            "Date" => Member::Date,
            "TimeOfDay" => Member::TimeOfDay,
            "DayOfWeek" => Member::DayOfWeek,
            "DayOfYear" => Member::DayOfYear,
            "DateTime" => Member::DateTime,
            "UtcDateTime" => Member::UtcDateTime,
            "Kind" => Member::Kind,
            "Offset" => Member::Offset,
            "Days" => Member::Days,
            "Hours" => Member::Hours,
            "Minutes" => Member::Minutes,
            "Seconds" => Member::Seconds,
            "Milliseconds" => Member::Milliseconds,
            "TotalDays" => Member::TotalDays,
            "TotalHours" => Member::TotalHours,
            "TotalMinutes" => Member::TotalMinutes,
            "TotalSeconds" => Member::TotalSeconds,
            "TotalMilliseconds" => Member::TotalMilliseconds,
            _ => return None,
        })
    }
}

/// What an argument of a method must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Argument {
    /// Any value.
    Value,
    /// A lambda of one parameter, or of two, of which the second is the element's index.
    Lambda,
    /// A lambda of exactly two parameters.
    Lambda2,
}

macro_rules! methods {
    ($($variant:ident $required:literal [$($argument:ident),*],)*) => {
        /// Methods that values have, by name; what one does depends on the value it is called on.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Method {
            $($variant,)*
        }

        impl Method {
            /// The method of this name.
            pub(crate) fn named(name: &str) -> Option<Method> {
                match name {
                    $(stringify!($variant) => Some(Method::$variant),)*
                    _ => None,
                }
            }

            /// How many arguments it needs, and what each is.
            pub(crate) fn arguments(self) -> (usize, &'static [Argument]) {
                match self {
                    $(Method::$variant => ($required, &[$(Argument::$argument),*]),)*
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Method::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

methods! {
    // Sequences.
    Select 1 [Lambda],
    SelectMany 1 [Lambda, Lambda2],
    Where 1 [Lambda],
    GroupBy 1 [Lambda, Lambda, Lambda2],
    Join 4 [Value, Lambda, Lambda, Lambda2],
    GroupJoin 4 [Value, Lambda, Lambda, Lambda2],
    Zip 1 [Value, Lambda2],
    Sum 0 [Lambda],
    Count 0 [Lambda],
    LongCount 0 [Lambda],
    Average 0 [Lambda],
    Min 0 [Lambda],
    Max 0 [Lambda],
    First 0 [Lambda],
    FirstOrDefault 0 [Lambda],
    Last 0 [Lambda],
    LastOrDefault 0 [Lambda],
    Single 0 [Lambda],
    SingleOrDefault 0 [Lambda],
    Any 0 [Lambda],
    All 1 [Lambda],
    Distinct 0 [],
    Union 1 [Value],
    Intersect 1 [Value],
    Except 1 [Value],
    Take 1 [Value],
    Skip 1 [Value],
    TakeWhile 1 [Lambda],
    SkipWhile 1 [Lambda],
    Reverse 0 [],
    ToArray 0 [],
    ToList 0 [],
    ToHashSet 0 [],
    AsEnumerable 0 [],
    ToDictionary 1 [Lambda, Lambda],
    ElementAt 1 [Value],
    ElementAtOrDefault 1 [Value],
    DefaultIfEmpty 0 [Value],
    Cast 0 [],
    OfType 0 [],
    SequenceEqual 1 [Value],
    Append 1 [Value],
    Prepend 1 [Value],
    // Two arguments are a seed and a lambda; with one, the seed is left out.
    Aggregate 2 [Value, Lambda2, Lambda],
    // Sequences and text.
    Contains 1 [Value, Value],
    Concat 1 [Value],
    // Text.
    ToLower 0 [Value],
    ToLowerInvariant 0 [],
    ToUpper 0 [Value],
    ToUpperInvariant 0 [],
    Trim 0 [Value, Value, Value, Value],
    TrimStart 0 [Value, Value, Value, Value],
    TrimEnd 0 [Value, Value, Value, Value],
    Substring 1 [Value, Value],
    IndexOf 1 [Value, Value, Value],
    LastIndexOf 1 [Value, Value],
    StartsWith 1 [Value, Value],
    EndsWith 1 [Value, Value],
    Replace 2 [Value, Value],
    Split 0 [Value, Value, Value, Value, Value, Value],
    PadLeft 1 [Value, Value],
    PadRight 1 [Value, Value],
    Insert 2 [Value, Value],
    Remove 1 [Value, Value],
    ToCharArray 0 [],
    // Dates and lengths of time.
    AddDays 1 [Value],
    AddHours 1 [Value],
    AddMinutes 1 [Value],
    AddSeconds 1 [Value],
    AddMilliseconds 1 [Value],
    AddTicks 1 [Value],
    AddMonths 1 [Value],
    AddYears 1 [Value],
    Add 1 [Value],
    Subtract 1 [Value],
    ToUniversalTime 0 [],
    ToLocalTime 0 [],
    Negate 0 [],
    Duration 0 [],
    // Objects.
    ContainsKey 1 [Value],
    Value 1 [Value],
    // Anything.
    ToString 0 [Value, Value],
    Equals 1 [Value, Value],
    CompareTo 1 [Value],
    GetValueOrDefault 0 [Value],
    ParseInt 0 [Value],
    ParseLong 0 [Value],
    ParseDouble 0 [Value],
    ParseDecimal 0 [Value],
    Boost 1 [Value],
}

/// Functions that belong to no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    // Of documents.
    Id,
    Metadata,
    AsJson,
    LoadDocument,
    LoadUntracked,
    LoadCompareExchange,
    CreateField,
    CreateSpatialField,
    AttachmentsFor,
    LoadAttachment,
    LoadAttachments,
    CounterNamesFor,
    TimeSeriesNamesFor,
    Recurse,
    /// Whether the document is of one of the collections that follow.
    InCollections,
    // `Math`.
    Abs,
    Round,
    Floor,
    Ceiling,
    Truncate,
    MathMin,
    MathMax,
    Pow,
    Sqrt,
    Sign,
    Exp,
    Log,
    Log10,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    // `String`.
    Format,
    JoinText,
    ConcatText,
    IsNullOrEmpty,
    IsNullOrWhiteSpace,
    CompareText,
    CompareOrdinal,
    // Of all types.
    EqualsStatic,
    // Dates.
    NewDate,
    NewTimeSpan,
    ParseDate,
    ParseTimeSpan,
    FromDays,
    FromHours,
    FromMinutes,
    FromSeconds,
    FromMilliseconds,
    FromTicks,
    DaysInMonth,
    IsLeapYear,
    // Numbers.
    Parse(Type),
    Convert(Type),
    IsNan,
    IsInfinity,
    // Regular expressions; the number counts `Program::patterns`.
    RegexIsMatch(u32),
    RegexMatch(u32),
    RegexMatches(u32),
    RegexReplace(u32),
    RegexSplit(u32),
    // Characters.
    IsDigit,
    IsLetter,
    IsLetterOrDigit,
    IsUpper,
    IsLower,
    IsWhiteSpace,
    // Sequences.
    Range,
    Repeat,
    // Texts of others: JSON.
    GuidParse,
}
