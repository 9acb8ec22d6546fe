//! Conditions and values, by precedence: `or`, `and`, `not`, comparisons, operands.

use std::borrow::Cow;

use crate::error::{ErrorKind, Result};
use crate::lex::{Keyword, Kind};
use crate::parse::Parser;
use crate::tree::{
    Argument, Between, Call, Comparison, ComparisonOperator, Expression, In, Junction, Literal, Name, Not,
    Path, Step, Text, Value,
};

impl<'a> Parser<'a> {
    /// An expression that must be a condition.
    pub(super) fn condition(&mut self) -> Result<Expression<'a>> {
        let expression = self.expression()?;
        self.require_condition(&expression)?;
        Ok(expression)
    }

    fn require_condition(&self, expression: &Expression<'_>) -> Result<()> {
        if expression.is_condition() {
            return Ok(());
        }
        Err(match expression {
            Expression::Field(_) => self
                .unexpected("an operator (=, !=, <, <=, >, >=, `between`, `in` or `all in`) after the field"),
            other => self.unexpected_at(other.span(), "a condition"),
        })
    }

    pub(super) fn expression(&mut self) -> Result<Expression<'a>> {
        let first = self.conjunction()?;
        if !self.at_word(Keyword::Or) {
            return Ok(first);
        }
        Ok(Expression::Or(self.junction(first, Keyword::Or, Parser::conjunction)?))
    }

    fn conjunction(&mut self) -> Result<Expression<'a>> {
        let first = self.negation()?;
        if !self.at_word(Keyword::And) {
            return Ok(first);
        }
        Ok(Expression::And(self.junction(first, Keyword::And, Parser::negation)?))
    }

    /// The conditions joined by `word`, of which the first is read.
    fn junction(
        &mut self,
        first: Expression<'a>,
        word: Keyword,
        operand: fn(&mut Self) -> Result<Expression<'a>>,
    ) -> Result<Junction<'a>> {
        let start = first.span();
        self.require_condition(&first)?;
        let mut operands = vec![first];
        while self.eat_word(word)? {
            let next = operand(self)?;
            self.require_condition(&next)?;
            operands.push(next);
        }
        Ok(Junction { operands, span: self.since(start) })
    }

    fn negation(&mut self) -> Result<Expression<'a>> {
        if !self.at_word(Keyword::Not) || !self.negates()? {
            return self.comparison();
        }
        let start = self.bump()?;
        self.descend()?;
        let operand = self.negation()?;
        self.depth -= 1;
        self.require_condition(&operand)?;
        Ok(Expression::Not(Box::new(Not { operand, span: self.since(start) })))
    }

    /// Whether the `not` at hand negates what follows; else it is a field of that name.
    fn negates(&self) -> Result<bool> {
        Ok(match self.peek()? {
            Kind::Word(Keyword::In | Keyword::Between | Keyword::And | Keyword::Or | Keyword::All) => false,
            Kind::Word(keyword) => !keyword.is_reserved(),
            Kind::String { .. } | Kind::ParenthesisOpen => true,
            _ => false,
        })
    }

    fn comparison(&mut self) -> Result<Expression<'a>> {
        let start = self.token.span;
        let left = self.operand()?;
        let operator = match self.token.kind {
            Kind::Equal => ComparisonOperator::Equal,
            Kind::NotEqual => ComparisonOperator::NotEqual,
            Kind::Less => ComparisonOperator::Less,
            Kind::LessEqual => ComparisonOperator::LessEqual,
            Kind::Greater => ComparisonOperator::Greater,
            Kind::GreaterEqual => ComparisonOperator::GreaterEqual,
            Kind::Word(Keyword::Between) => {
                let operand = self.compared(left)?;
                self.bump()?;
                let low = self.plain_value("the lower end after `between`")?;
                self.expect(Kind::Word(Keyword::And), "`and` between the ends of `between`")?;
                let high = self.plain_value("the upper end of `between`")?;
                return Ok(Expression::Between(Box::new(Between {
                    operand,
                    low,
                    high,
                    span: self.since(start),
                })));
            }
            Kind::Word(Keyword::In) => {
                let operand = self.compared(left)?;
                return self.list(operand, false);
            }
            Kind::Word(Keyword::All) if self.peek()? == Kind::Word(Keyword::In) => {
                let operand = self.compared(left)?;
                self.bump()?;
                return self.list(operand, true);
            }
            _ => return Ok(left),
        };
        let left = self.compared(left)?;
        self.bump()?;
        const EXPECTED: &str = "a value after the operator";
        if let Kind::Word(Keyword::And | Keyword::Or | Keyword::Not) = self.token.kind {
            return Err(self.unexpected(EXPECTED));
        }
        let right = self.value(EXPECTED)?;
        Ok(Expression::Comparison(Box::new(Comparison { left, operator, right, span: self.since(start) })))
    }

    /// The left side of an operator: a field or call. A string there is a field in quotes, and `true` is a field of that name.
    fn compared(&self, left: Expression<'a>) -> Result<Expression<'a>> {
        match left {
            Expression::Field(_) | Expression::Call(_) => Ok(left),
            Expression::Literal(Literal { value, span }) => {
                let text = match value {
                    Value::String(text) => text,
                    Value::True | Value::False | Value::Null => self.word_text(span),
                    Value::Number(_) => {
                        return Err(self.unexpected_at(span, "a field or function left of the operator"));
                    }
                };
                Ok(Expression::Field(Path { first: Name { text, span }, rest: Vec::new(), span }))
            }
            other => Err(self.unexpected_at(other.span(), "a field or function left of the operator")),
        }
    }

    /// The list of `in`, which is the token at hand.
    fn list(&mut self, operand: Expression<'a>, all: bool) -> Result<Expression<'a>> {
        self.bump()?;
        self.expect(Kind::ParenthesisOpen, "`(` and a list after `in`")?;
        let mut values = Vec::new();
        if !self.at(Kind::ParenthesisClose) {
            loop {
                values.push(self.plain_value("a value in the list of `in`")?);
                if !self.eat(Kind::Comma)? {
                    break;
                }
            }
        }
        self.expect(Kind::ParenthesisClose, "`,` or `)` in the list of `in`")?;
        let span = self.since(operand.span());
        Ok(Expression::In(Box::new(In { operand, all, values, span })))
    }

    fn operand(&mut self) -> Result<Expression<'a>> {
        if !self.at(Kind::ParenthesisOpen) {
            return self.value("a field, a function, a value or `(`");
        }
        self.bump()?;
        self.descend()?;
        let inner = self.condition()?;
        self.depth -= 1;
        self.expect(Kind::ParenthesisClose, "`)`, `and` or `or`")?;
        Ok(inner)
    }

    /// A literal, parameter or call.
    fn plain_value(&mut self, expected: &'static str) -> Result<Expression<'a>> {
        let value = self.value(expected)?;
        match value {
            Expression::Field(path) => Err(self.unexpected_at(path.span, expected)),
            value => Ok(value),
        }
    }

    /// A field, literal, parameter or call.
    pub(super) fn value(&mut self, expected: &'static str) -> Result<Expression<'a>> {
        let span = self.token.span;
        let value = match self.token.kind {
            Kind::Word(Keyword::True) if !self.path_goes_on()? => Value::True,
            Kind::Word(Keyword::False) if !self.path_goes_on()? => Value::False,
            Kind::Word(Keyword::Null) if !self.path_goes_on()? => Value::Null,
            Kind::Word(keyword) if keyword.is_reserved() => {
                return Err(self.error(span, ErrorKind::Reserved(span.of(self.text).to_owned())));
            }
            Kind::Word(_) => return self.key(expected),
            Kind::String { .. } if self.path_goes_on()? => {
                return Ok(Expression::Field(self.path(expected)?));
            }
            Kind::String { escaped } => Value::String(self.string_text(span, escaped)?),
            Kind::Number => Value::Number(self.word_text(span)),
            Kind::Parameter => return Ok(Expression::Parameter(self.parameter()?)),
            _ => return Err(self.unexpected(expected)),
        };
        self.bump()?;
        Ok(Expression::Literal(Literal { value, span }))
    }

    fn path_goes_on(&self) -> Result<bool> {
        Ok(matches!(self.peek()?, Kind::Dot | Kind::BracketOpen))
    }

    /// A field or call. In quotes it is a field.
    pub(super) fn key(&mut self, expected: &'static str) -> Result<Expression<'a>> {
        let quoted = matches!(self.token.kind, Kind::String { .. });
        let path = self.path(expected)?;
        if !quoted
            && self.at(Kind::ParenthesisOpen)
            && let Some(name) = self.function_name(&path)
        {
            return Ok(Expression::Call(self.call(name, path)?));
        }
        Ok(Expression::Field(path))
    }

    /// The path as the name of a function, if it is one: words and dots.
    fn function_name(&self, path: &Path<'a>) -> Option<Text<'a>> {
        let source = path.span.of(self.text);
        let steps =
            || path.rest.iter().map(|step| if let Step::Name(name) = step { Some(name) } else { None });
        if path.rest.is_empty() {
            return Some(path.first.text.clone());
        }
        if steps().any(|name| name.is_none_or(|name| name.span.of(self.text) != name.text)) {
            return None;
        }
        if source
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'@'))
        {
            return Some(Cow::Borrowed(source));
        }
        // There is white space around a dot.
        let mut name = path.first.text.to_string();
        for step in steps().flatten() {
            name.push('.');
            name.push_str(&step.text);
        }
        Some(Cow::Owned(name))
    }

    /// The arguments of a call; its opening parenthesis is at hand.
    fn call(&mut self, name: Text<'a>, path: Path<'a>) -> Result<Call<'a>> {
        self.bump()?;
        self.descend()?;
        let mut arguments = Vec::new();
        if !self.at(Kind::ParenthesisClose) {
            loop {
                let expression = self.expression()?;
                arguments.push(Argument { expression, alias: self.alias()? });
                if !self.eat(Kind::Comma)? {
                    break;
                }
            }
        }
        self.depth -= 1;
        self.expect(Kind::ParenthesisClose, "`,` or `)` among the arguments")?;
        let property = if self.eat(Kind::Dot)? {
            Some(self.any_name("the name of a property after `.`")?)
        } else {
            None
        };
        Ok(Call { name, arguments, property, span: self.since(path.span) })
    }
}
