//! The printer: canonical text, one form for each tree.
//!
//! Keywords are in lower case, `=` and `!=` have one spelling, `asc` is left out, parentheses stand where the tree needs them, and names are in
//! quotes where they must be: when they are no word, or a word that would mean something else at that place. Sources are always in quotes, as the
//! official clients write them. Blocks in other languages are printed byte by byte.
//!
//! Whoever builds a tree by hand keeps the rules of the tree's types; then the text parses back to an equal tree. A field of one name that stands
//! as a value must be a word that is not reserved, because in quotes it would be a string.

use std::fmt::{self, Display, Formatter, Write};

use crate::lex::Keyword;
use crate::lex::lexer::is_word;
use crate::lex::string::write_quoted;
use crate::tree::{
    Argument, Call, Code, CodeLanguage, Declaration, Direction, Expression, GroupKey, Literal, Load, Name,
    Nulls, OrderKey, Paging, Path, Projection, Query, Select, SelectItem, Source, SourceKind, Step, Value,
};

/// Which first names of a path are put in quotes.
#[derive(Clone, Copy)]
enum Quotes {
    /// Those that are no word or reserved.
    Reserved,
    /// All keywords too: the name stands where an expression begins.
    Keywords,
    /// None, if the path has just one name; as `Keywords`, if it has more.
    Never,
}

/// How tightly the place of an expression binds: what binds less is put in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Whole,
    OperandOfOr,
    OperandOfAnd,
}

impl Display for Query<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for declaration in &self.declarations {
            write!(f, "{declaration} ")?;
        }
        self.from.fmt(f)?;
        list(f, " group by ", &self.group_by)?;
        if let Some(condition) = &self.condition {
            write!(f, " where {condition}")?;
        }
        list(f, " order by ", &self.order_by)?;
        list(f, " load ", &self.load)?;
        if let Some(filter) = &self.filter {
            write!(f, " filter {filter}")?;
        }
        if let Some(select) = &self.select {
            write!(f, " {select}")?;
        }
        list(f, " include ", &self.include)?;
        if let Some(update) = &self.update {
            write!(f, " update {update}")?;
        }
        self.paging.fmt(f)
    }
}

/// The items between commas behind `introduction`; nothing when there are none.
fn list<T: Display>(f: &mut Formatter<'_>, introduction: &str, items: &[T]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        f.write_str(if index == 0 { introduction } else { ", " })?;
        item.fmt(f)?;
    }
    Ok(())
}

impl Display for Declaration<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = match self.body.language {
            CodeLanguage::JavaScript => "function",
            CodeLanguage::TimeSeries => "timeseries",
        };
        write!(f, "declare {what} ")?;
        name(f, &self.name)?;
        f.write_char('(')?;
        for (index, parameter) in self.parameters.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            any_name(f, parameter)?;
        }
        write!(f, ") {}", self.body)
    }
}

/// The block in braces.
impl Display for Code<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.text)
    }
}

impl Display for Source<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SourceKind::Collection(name) => {
                f.write_str("from ")?;
                write_quoted(f, &name.text)?;
            }
            SourceKind::Index(name) => {
                f.write_str("from index ")?;
                write_quoted(f, &name.text)?;
            }
            SourceKind::AllDocuments => f.write_str("from @all_docs")?,
        }
        if self.revisions {
            f.write_str(" (Revisions = true)")?;
        }
        alias(f, self.alias.as_ref())
    }
}

impl Display for GroupKey<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        expression(f, &self.expression, Binding::Whole, Quotes::Reserved)?;
        alias(f, self.alias.as_ref())
    }
}

impl Display for OrderKey<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        expression(f, &self.expression, Binding::Whole, Quotes::Reserved)?;
        if let Some(order_type) = self.order_type {
            write!(f, " as {}", order_type.as_str())?;
        }
        if self.direction == Direction::Descending {
            f.write_str(" desc")?;
        }
        f.write_str(match self.nulls {
            None => "",
            Some(Nulls::First) => " nulls first",
            Some(Nulls::Last) => " nulls last",
        })
    }
}

impl Display for Load<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        alias(f, Some(&self.alias))?;
        f.write_str(if self.many { "[]" } else { "" })
    }
}

impl Display for Select<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.distinct { "select distinct" } else { "select" })?;
        match &self.projection {
            Projection::All => f.write_str(" *"),
            Projection::Items(items) => list(f, " ", items),
            Projection::Object(code) => write!(f, " {code}"),
        }
    }
}

impl Display for SelectItem<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)?;
        alias(f, self.alias.as_ref())
    }
}

/// The clauses, each with a space before it.
impl Display for Paging<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (&self.skip, &self.take) {
            (Some(skip), Some(take)) => write!(f, " limit {skip}, {take}")?,
            (None, Some(take)) => write!(f, " limit {take}")?,
            (Some(skip), None) => write!(f, " offset {skip}")?,
            (None, None) => {}
        }
        if let Some(filter_limit) = &self.filter_limit {
            write!(f, " filter_limit {filter_limit}")?;
        }
        Ok(())
    }
}

impl Display for Expression<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        expression(f, self, Binding::Whole, Quotes::Never)
    }
}

fn expression(f: &mut Formatter<'_>, node: &Expression<'_>, binding: Binding, quotes: Quotes) -> fmt::Result {
    match node {
        Expression::And(junction) => joined(f, " and ", &junction.operands, binding, Binding::OperandOfAnd),
        Expression::Or(junction) => joined(f, " or ", &junction.operands, binding, Binding::OperandOfOr),
        Expression::Not(not) => {
            f.write_str("not ")?;
            expression(f, &not.operand, Binding::OperandOfAnd, Quotes::Never)
        }
        Expression::Comparison(comparison) => {
            expression(f, &comparison.left, Binding::OperandOfAnd, Quotes::Keywords)?;
            write!(f, " {} ", comparison.operator.as_str())?;
            comparison.right.fmt(f)
        }
        Expression::Between(between) => {
            expression(f, &between.operand, Binding::OperandOfAnd, Quotes::Keywords)?;
            write!(f, " between {} and {}", between.low, between.high)
        }
        Expression::In(one_of) => {
            expression(f, &one_of.operand, Binding::OperandOfAnd, Quotes::Keywords)?;
            f.write_str(if one_of.all { " all in (" } else { " in (" })?;
            list(f, "", &one_of.values)?;
            f.write_char(')')
        }
        Expression::Call(call) => call.fmt(f),
        Expression::Field(path) => write_path(f, path, quotes),
        Expression::Literal(literal) => literal.fmt(f),
        Expression::Parameter(parameter) => write!(f, "${}", parameter.name),
        Expression::TimeSeries(code) => write!(f, "timeseries({})", code.text),
    }
}

fn joined(
    f: &mut Formatter<'_>,
    word: &str,
    operands: &[Expression<'_>],
    outside: Binding,
    inside: Binding,
) -> fmt::Result {
    let parentheses = outside >= inside;
    f.write_str(if parentheses { "(" } else { "" })?;
    for (index, operand) in operands.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { word })?;
        expression(f, operand, inside, Quotes::Never)?;
    }
    f.write_str(if parentheses { ")" } else { "" })
}

impl Display for Call<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        list(f, "", &self.arguments)?;
        f.write_char(')')?;
        if let Some(property) = &self.property {
            f.write_char('.')?;
            any_name(f, property)?;
        }
        Ok(())
    }
}

impl Display for Argument<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)?;
        alias(f, self.alias.as_ref())
    }
}

impl Display for Literal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::String(text) => write_quoted(f, text),
            Value::Number(text) => f.write_str(text),
            Value::True => f.write_str("true"),
            Value::False => f.write_str("false"),
            Value::Null => f.write_str("null"),
        }
    }
}

/// The path as [`parse_path`](crate::parse_path) reads it, with quotes where they must be.
impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_path(f, self, Quotes::Reserved)
    }
}

fn write_path(f: &mut Formatter<'_>, path: &Path<'_>, quotes: Quotes) -> fmt::Result {
    let text = &*path.first.text;
    let bare = match quotes {
        Quotes::Never if path.rest.is_empty() => true,
        Quotes::Never | Quotes::Keywords => is_word(text) && Keyword::of(text.as_bytes()) == Keyword::None,
        Quotes::Reserved => is_word(text) && !Keyword::of(text.as_bytes()).is_reserved(),
    };
    if bare { f.write_str(text) } else { write_quoted(f, text) }?;
    for step in &path.rest {
        match step {
            Step::Name(name) => {
                f.write_char('.')?;
                any_name(f, name)?;
            }
            Step::Elements => f.write_str("[]")?,
            Step::Index(index) => write!(f, "[{index}]")?,
        }
    }
    Ok(())
}

fn alias(f: &mut Formatter<'_>, alias: Option<&Name<'_>>) -> fmt::Result {
    match alias {
        Some(alias) => {
            f.write_str(" as ")?;
            name(f, alias)
        }
        None => Ok(()),
    }
}

/// A name where reserved words are none.
fn name(f: &mut Formatter<'_>, name: &Name<'_>) -> fmt::Result {
    if is_word(&name.text) && !Keyword::of(name.text.as_bytes()).is_reserved() {
        f.write_str(&name.text)
    } else {
        write_quoted(f, &name.text)
    }
}

/// A name where any word is one.
fn any_name(f: &mut Formatter<'_>, name: &Name<'_>) -> fmt::Result {
    if is_word(&name.text) { f.write_str(&name.text) } else { write_quoted(f, &name.text) }
}
