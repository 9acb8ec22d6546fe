//! The query and its clauses.

use crate::span::Span;
use crate::tree::{Expression, Name, Path, Text};

/// A whole query. The clauses stand in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Query<'a> {
    /// `declare function f(x) { ... }`, `declare timeseries t(x) { ... }`.
    pub declarations: Vec<Declaration<'a>>,
    /// `from`.
    pub from: Source<'a>,
    /// `group by`; empty without it.
    pub group_by: Vec<GroupKey<'a>>,
    /// `where`: a condition. On a grouped query, over its results.
    pub condition: Option<Expression<'a>>,
    /// `order by`; empty without it.
    pub order_by: Vec<OrderKey<'a>>,
    /// `load`; empty without it.
    pub load: Vec<Load<'a>>,
    /// `filter`: a condition, checked by scanning.
    pub filter: Option<Expression<'a>>,
    /// `select`.
    pub select: Option<Select<'a>>,
    /// `include`: fields, strings that hold paths of fields, and calls such as `counters('likes')`; empty without it.
    pub include: Vec<Expression<'a>>,
    /// `update { ... }`: JavaScript that changes each document.
    pub update: Option<Code<'a>>,
    /// `limit`, `offset` and `filter_limit`.
    pub paging: Paging<'a>,
    /// From the first word to the last.
    pub span: Span,
}

/// A declared function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Declaration<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// The names of its parameters.
    pub parameters: Vec<Name<'a>>,
    /// The body, whose language tells what was declared.
    pub body: Code<'a>,
    /// The place.
    pub span: Span,
}

/// A piece of the text in another language, kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Code<'a> {
    /// The language.
    pub language: CodeLanguage,
    /// The text between the braces or parentheses, every byte of it.
    pub text: Text<'a>,
    /// The place, with the braces; of `timeseries(...)`, from that word on.
    pub span: Span,
}

/// The language of a [`Code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeLanguage {
    /// JavaScript: the body of a function, of an object literal, or of a script.
    JavaScript,
    /// A time series query, from its `from` on.
    TimeSeries,
}

/// What is queried.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source<'a> {
    /// The collection or index.
    pub kind: SourceKind<'a>,
    /// `(Revisions = true)`, which only subscriptions know.
    pub revisions: bool,
    /// `as alias`; the `as` can be left out.
    pub alias: Option<Name<'a>>,
    /// The place, from `from` on.
    pub span: Span,
}

/// The kinds of sources.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SourceKind<'a> {
    /// `from Users`, `from 'Users'`. `from @empty` too, a collection that has no documents.
    Collection(Name<'a>),
    /// `from index 'Users/ByName'`.
    Index(Name<'a>),
    /// `from @all_docs`, in whatever case.
    AllDocuments,
}

/// A key of `group by`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupKey<'a> {
    /// A field, or a call: `array(Lines[].Product)`.
    pub expression: Expression<'a>,
    /// `as alias`.
    pub alias: Option<Name<'a>>,
}

/// A key of `order by`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderKey<'a> {
    /// A field, or a call: `score()`, `random('seed')`, `custom(Name, 'Sorter')`, `spatial.distance(...)`, `id()`, `count()`.
    pub expression: Expression<'a>,
    /// `as long` and such; without it, the terms compare as text.
    pub order_type: Option<OrderType>,
    /// `asc` (which need not be said) or `desc`.
    pub direction: Direction,
    /// `nulls first`, `nulls last`.
    pub nulls: Option<Nulls>,
    /// The place.
    pub span: Span,
}

/// As what `order by` compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderType {
    /// `as string`.
    String,
    /// `as long`: 64-bit integers.
    Long,
    /// `as double`.
    Double,
    /// `as alphaNumeric`: digits within text by their value.
    AlphaNumeric,
}

impl OrderType {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OrderType::String => "string",
            OrderType::Long => "long",
            OrderType::Double => "double",
            OrderType::AlphaNumeric => "alphaNumeric",
        }
    }
}

/// Which end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// `asc`, `ascending`, or nothing.
    #[default]
    Ascending,
    /// `desc`, `descending`.
    Descending,
}

/// Where nulls come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nulls {
    /// Before everything else, whatever the direction.
    First,
    /// After everything else.
    Last,
}

/// A loaded document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Load<'a> {
    /// The field that holds its id, or the ids.
    pub path: Path<'a>,
    /// The name it gets.
    pub alias: Name<'a>,
    /// `as alias[]`: the field holds several ids, and the name means a list.
    pub many: bool,
    /// The place.
    pub span: Span,
}

/// What the results are made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Select<'a> {
    /// `select distinct`.
    pub distinct: bool,
    /// Of what.
    pub projection: Projection<'a>,
    /// The place, from `select` on.
    pub span: Span,
}

/// The forms of a projection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Projection<'a> {
    /// `*`: whole documents.
    All,
    /// Fields, calls, literals and parameters; at least one.
    Items(Vec<SelectItem<'a>>),
    /// `{ Name: x.Name }`: an object literal of JavaScript.
    Object(Code<'a>),
}

/// One property of the results.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SelectItem<'a> {
    /// A field, literal, parameter, call or time series query.
    pub expression: Expression<'a>,
    /// `as name`.
    pub alias: Option<Name<'a>>,
}

/// Which part of the results is wanted. Each is a number without a sign, a parameter or `null`, which says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Paging<'a> {
    /// Results to leave out: `offset skip`, the first of `limit skip, take`.
    pub skip: Option<Expression<'a>>,
    /// Results to give at most: `limit take`, the second of `limit skip, take`.
    pub take: Option<Expression<'a>>,
    /// Documents that `filter` may scan: `filter_limit n`.
    pub filter_limit: Option<Expression<'a>>,
}
