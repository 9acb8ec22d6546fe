//! Conditions and values.

use crate::span::Span;
use crate::tree::{Code, Name, Path, Text};

/// A condition or a value. Where which can stand:
///
/// - A *condition* (in `where` and `filter`, and what `and`, `or` and `not` combine) is anything but a field, a parameter, and a literal other
///   than `true` and `false`.
/// - A *value* (right of an operator) is a field, a literal, a parameter or a call; in `between` and `in` it is no field. A field of one name that
///   stands as a value or an argument is a word without quotes (in quotes it would be a string), and none that is reserved, `true`, `false` or
///   `null`; right of an operator neither `and`, `or` nor `not`.
/// - An argument of a call is a condition or a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expression<'a> {
    /// `a and b and c`.
    And(Junction<'a>),
    /// `a or b or c`. `and` binds tighter.
    Or(Junction<'a>),
    /// `not a`. It binds tighter than `and`.
    Not(Box<Not<'a>>),
    /// `Price > 10`.
    Comparison(Box<Comparison<'a>>),
    /// `Price between 10 and 20`.
    Between(Box<Between<'a>>),
    /// `Name in ('a', 'b')`, `Tags all in ('x', 'y')`.
    In(Box<In<'a>>),
    /// `startsWith(Name, 'a')`, `id()`, `spatial.point(Lat, Lng)`.
    Call(Call<'a>),
    /// A path to a field, or an alias.
    Field(Path<'a>),
    /// `'text'`, `1.5`, `true`, `false`, `null`.
    Literal(Literal<'a>),
    /// `$name`.
    Parameter(Parameter<'a>),
    /// `timeseries(from ...)` in `select`: a query in the time series language, as exact text.
    TimeSeries(Code<'a>),
}

impl Expression<'_> {
    /// The place.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Expression::And(junction) | Expression::Or(junction) => junction.span,
            Expression::Not(not) => not.span,
            Expression::Comparison(comparison) => comparison.span,
            Expression::Between(between) => between.span,
            Expression::In(one_of) => one_of.span,
            Expression::Call(call) => call.span,
            Expression::Field(path) => path.span,
            Expression::Literal(literal) => literal.span,
            Expression::Parameter(parameter) => parameter.span,
            Expression::TimeSeries(code) => code.span,
        }
    }

    /// Whether this can stand as a condition; see the type's text.
    #[must_use]
    pub fn is_condition(&self) -> bool {
        match self {
            Expression::Field(_) | Expression::Parameter(_) | Expression::TimeSeries(_) => false,
            Expression::Literal(literal) => matches!(literal.value, Value::True | Value::False),
            _ => true,
        }
    }
}

/// Conditions joined by the same word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Junction<'a> {
    /// The conditions, at least two. What stood in parentheses is a junction of its own, so that parentheses are never lost.
    pub operands: Vec<Expression<'a>>,
    /// The place.
    pub span: Span,
}

/// A negated condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Not<'a> {
    /// The condition.
    pub operand: Expression<'a>,
    /// The place, from `not` on.
    pub span: Span,
}

/// A comparison of two values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Comparison<'a> {
    /// A field or a call such as `id()`.
    pub left: Expression<'a>,
    /// How they are compared.
    pub operator: ComparisonOperator,
    /// A value.
    pub right: Expression<'a>,
    /// The place.
    pub span: Span,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComparisonOperator {
    /// `=`, also written `==`.
    Equal,
    /// `!=`, also written `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
}

impl ComparisonOperator {
    /// The operator as it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ComparisonOperator::Equal => "=",
            ComparisonOperator::NotEqual => "!=",
            ComparisonOperator::Less => "<",
            ComparisonOperator::LessEqual => "<=",
            ComparisonOperator::Greater => ">",
            ComparisonOperator::GreaterEqual => ">=",
        }
    }
}

/// A range, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Between<'a> {
    /// A field or a call.
    pub operand: Expression<'a>,
    /// The lower end: a literal, a parameter or a call.
    pub low: Expression<'a>,
    /// The upper end: a literal, a parameter or a call.
    pub high: Expression<'a>,
    /// The place.
    pub span: Span,
}

/// Membership in a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct In<'a> {
    /// A field or a call.
    pub operand: Expression<'a>,
    /// Whether the field must have all the values (`all in`) and not just one of them.
    pub all: bool,
    /// Literals, parameters (that may hold lists) and calls; may be empty.
    pub values: Vec<Expression<'a>>,
    /// The place.
    pub span: Span,
}

/// A call of a function, built in or declared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call<'a> {
    /// The name as it is written, with dots where it has any: `startsWith`, `spatial.point`. Never in quotes. [`Call::is`] compares it.
    pub name: Text<'a>,
    /// The arguments.
    pub arguments: Vec<Argument<'a>>,
    /// The property of the result: `Year` in `now().Year`.
    pub property: Option<Name<'a>>,
    /// The place.
    pub span: Span,
}

impl Call<'_> {
    /// Whether this calls the built-in function `name`, whatever the case.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Argument<'a> {
    /// What is given. The words of `search(f, $terms, and)` and `search(f, $terms, or)` are fields of these names.
    pub expression: Expression<'a>,
    /// The name of the result, for arguments of `facet`: `max(Price) as Dearest`.
    pub alias: Option<Name<'a>>,
}

impl<'a> Argument<'a> {
    /// An argument without an alias.
    #[must_use]
    pub fn new(expression: Expression<'a>) -> Argument<'a> {
        Argument { expression, alias: None }
    }
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Literal<'a> {
    /// What it is.
    pub value: Value<'a>,
    /// The place, quotes included.
    pub span: Span,
}

/// What a literal says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value<'a> {
    /// The text between the quotes, without escapes.
    String(Text<'a>),
    /// A number as it is written: `-1`, `1.50`, `1_000`, `5.`, `2e-7`. [`Value::as_i64`] and [`Value::as_f64`] read it.
    Number(Text<'a>),
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`.
    Null,
}

impl Value<'_> {
    /// The number, if it is written as an integer and fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(text) => without_underscores(text).parse().ok(),
            _ => None,
        }
    }

    /// The number nearest to what is written; infinite when that is too large.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Number(text) => without_underscores(text).parse().ok(),
            _ => None,
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

fn without_underscores(text: &str) -> Text<'_> {
    if text.contains('_') { text.replace('_', "").into() } else { text.into() }
}

/// A parameter of the query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parameter<'a> {
    /// The name without the dollar sign.
    pub name: Text<'a>,
    /// The place, dollar sign included.
    pub span: Span,
}
