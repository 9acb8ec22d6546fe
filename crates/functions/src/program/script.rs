//! The expressions of a program that follow JavaScript's rules: what C# has in common with it (variables, texts, truth values) stays in [`Expr`].
//!
//! Numbers are doubles, `undefined` is the missing value, and reading from nothing gives nothing, as [`Reading`] says. There are no objects that change: what
//! would change one is not lowered, save for arrays that a function fills itself ([`Statement::Append`]).

use super::{Expr, Lambda, Slot};

/// What a member of null or undefined is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// `a.b`: null, and 0 for a length; calls do nothing.
    Guarded,
    /// `a?.b`: the whole chain is undefined.
    Optional,
    /// `.b` after a `?.`: an error.
    Plain,
}

/// An expression with JavaScript's rules.
#[derive(Debug)]
pub(crate) enum Script {
    /// `target.name`. `name` counts the names of the program.
    Get {
        target: Expr,
        name: u32,
        reading: Reading,
    },
    /// `target[key]`.
    GetComputed {
        target: Expr,
        key: Expr,
        reading: Reading,
    },
    /// `target.method(args)`.
    Call {
        target: Expr,
        method: Method,
        args: Box<[Expr]>,
        reading: Reading,
    },
    /// Where a chain with `?.` ends.
    Chain(Expr),
    Unary(Unary, Expr),
    Binary(Binary, Expr, Expr),
    And(Expr, Expr),
    Or(Expr, Expr),
    Coalesce(Expr, Expr),
    Conditional(Expr, Expr, Expr),
    /// Expressions of which the last is the value.
    Sequence(Box<[Expr]>),
    /// `${a}b`: texts, and a value behind each but the last.
    Template {
        texts: Box<[Box<str>]>,
        values: Box<[Expr]>,
    },
    /// An object some of whose names are computed, or that takes over another's properties.
    Object(Box<[Part]>),
    /// An array with elements of others in it.
    Spread(Box<[(Expr, bool)]>),
    /// `a = value`; the value is that of the expression.
    Assign(Slot, Expr),
    /// `a++`: adds to a variable; the value is that before.
    Update(Slot, f64),
    /// A function that belongs to no value.
    Function(Function, Box<[Expr]>),
    /// The elements so far of an array that the function fills.
    List(u32),
    /// How many they are.
    ListLength(u32),
    /// What a function with a body returns.
    Body(Box<[Statement]>),
    /// `groupBy(key).aggregate(result)` over the source: the results of all groups.
    Aggregate {
        key: Lambda,
        result: Lambda,
    },
}

/// A part of an object.
#[derive(Debug)]
pub(crate) enum Part {
    Named(Box<str>, Expr),
    Computed(Expr, Expr),
    /// `...other`.
    Spread(Expr),
}

/// A statement of a function's body.
#[derive(Debug)]
pub(crate) enum Statement {
    Set(Slot, Expr),
    Do(Expr),
    If(Expr, Box<[Statement]>, Box<[Statement]>),
    Return(Expr),
    /// `for (const slot of source) body`.
    ForOf {
        slot: Slot,
        source: Expr,
        body: Box<[Statement]>,
    },
    /// `for (; test; update) body`.
    Loop {
        test: Option<Expr>,
        update: Option<Expr>,
        body: Box<[Statement]>,
    },
    Break,
    Continue,
    /// An array that the function fills begins empty.
    NewList(u32),
    /// `list.push(values)`.
    Append(u32, Box<[Expr]>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unary {
    Not,
    Negate,
    Plus,
    BitNot,
    TypeOf,
    Void,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    /// `==`.
    Equal,
    NotEqual,
    /// `===`.
    Same,
    NotSame,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

macro_rules! methods {
    ($($variant:ident $name:literal $min:literal $max:literal $callback:literal,)*) => {
        /// Methods of arrays, texts and numbers.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Method {
            $($variant,)*
        }

        impl Method {
            /// The method of this name.
            pub(crate) fn named(name: &str) -> Option<Method> {
                match name {
                    $($name => Some(Method::$variant),)*
                    _ => None,
                }
            }

            /// How many arguments it may have, at least and at most.
            pub(crate) fn arguments(self) -> (usize, usize) {
                match self {
                    $(Method::$variant => ($min, $max),)*
                }
            }

            /// How many parameters the function may have that is its first argument; 0 when that is a value.
            pub(crate) fn callback(self) -> usize {
                match self {
                    $(Method::$variant => $callback,)*
                }
            }
        }
    };
}

methods! {
    Map "map" 1 1 2,
    Filter "filter" 1 1 2,
    FlatMap "flatMap" 1 1 2,
    ForEach "forEach" 1 1 2,
    Some "some" 1 1 2,
    Every "every" 1 1 2,
    Find "find" 1 1 2,
    FindIndex "findIndex" 1 1 2,
    FindLast "findLast" 1 1 2,
    Reduce "reduce" 1 2 3,
    Includes "includes" 1 1 0,
    IndexOf "indexOf" 1 1 0,
    LastIndexOf "lastIndexOf" 1 1 0,
    Slice "slice" 0 2 0,
    Concat "concat" 0 16 0,
    At "at" 1 1 0,
    Join "join" 0 1 0,
    Flat "flat" 0 0 0,
    ToLowerCase "toLowerCase" 0 0 0,
    ToUpperCase "toUpperCase" 0 0 0,
    Trim "trim" 0 0 0,
    TrimStart "trimStart" 0 0 0,
    TrimEnd "trimEnd" 0 0 0,
    Split "split" 1 1 0,
    StartsWith "startsWith" 1 1 0,
    EndsWith "endsWith" 1 1 0,
    Substring "substring" 1 2 0,
    Substr "substr" 1 2 0,
    CharAt "charAt" 1 1 0,
    CharCodeAt "charCodeAt" 1 1 0,
    Repeat "repeat" 1 1 0,
    PadStart "padStart" 1 2 0,
    PadEnd "padEnd" 1 2 0,
    Replace "replace" 2 2 0,
    ReplaceAll "replaceAll" 2 2 0,
    ToString "toString" 0 0 0,
    ToFixed "toFixed" 0 1 0,
    HasOwnProperty "hasOwnProperty" 1 1 0,
}

/// Functions that belong to no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    // Of documents.
    Id,
    /// `load(id, collection)`; the collection is a text or missing.
    Load,
    LoadUntracked,
    Metadata,
    LastModified,
    CompareExchange,
    CreateField,
    CreateSpatialField,
    Boost,
    // Conversions.
    ToText,
    ToNumber,
    ToBool,
    ParseInt,
    ParseFloat,
    IsNan,
    IsFinite,
    NumberIsNan,
    NumberIsFinite,
    NumberIsInteger,
    // Arrays and objects.
    IsArray,
    Keys,
    Values,
    Entries,
    /// An element of an array or text by its place, for `const [a, b] = value`.
    Element(u32),
    // `Math`.
    Abs,
    Floor,
    Ceil,
    Round,
    Trunc,
    Sign,
    Sqrt,
    Min,
    Max,
    Pow,
}
