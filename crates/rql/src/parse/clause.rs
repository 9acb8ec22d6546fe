//! The query and its clauses, in their order.

use crate::error::{ErrorKind, Result};
use crate::lex::{Keyword, Kind};
use crate::parse::Parser;
use crate::tree::{
    CodeLanguage, Declaration, Direction, Expression, GroupKey, Literal, Load, Nulls, OrderKey, OrderType,
    Paging, Parameter, Projection, Query, Select, SelectItem, Source, SourceKind, Value,
};

/// Clauses with a place in the order, by that place. What may follow `select` may do so in any order.
const ORDERED: [&str; 6] = ["group by", "where", "order by", "load", "filter", "select"];

impl<'a> Parser<'a> {
    pub(super) fn query(&mut self) -> Result<Query<'a>> {
        let start = self.token.span;
        let mut declarations = Vec::new();
        while self.at_word(Keyword::Declare) {
            declarations.push(self.declaration()?);
        }
        if matches!(self.token.kind, Kind::Word(Keyword::Match | Keyword::With)) {
            let what = "graph queries (`match` and `with`)";
            return Err(self.error(self.token.span, ErrorKind::Unsupported { what }));
        }
        let mut query = Query {
            declarations,
            from: self.source()?,
            group_by: Vec::new(),
            condition: None,
            order_by: Vec::new(),
            load: Vec::new(),
            filter: None,
            select: None,
            include: Vec::new(),
            update: None,
            paging: Paging::default(),
            span: start,
        };
        self.clauses(&mut query)?;
        query.span = self.since(start);
        Ok(query)
    }

    fn clauses(&mut self, query: &mut Query<'a>) -> Result<()> {
        // How many of ORDERED can no longer follow.
        let mut passed = 0;
        // The first of the clauses that follow all of ORDERED.
        let mut tail = None;
        loop {
            let span = self.token.span;
            let Kind::Word(keyword) = self.token.kind else { return Ok(()) };
            let place = match keyword {
                Keyword::Group => 0,
                Keyword::Where => 1,
                Keyword::Order => 2,
                Keyword::Load => 3,
                Keyword::Filter => 4,
                Keyword::Select => 5,
                Keyword::Include
                | Keyword::Update
                | Keyword::Limit
                | Keyword::Offset
                | Keyword::FilterLimit => {
                    let clause = self.tail_clause(keyword, query)?;
                    tail.get_or_insert(clause);
                    continue;
                }
                _ => return Ok(()),
            };
            let clause = ORDERED[place];
            if let Some(before) = tail {
                return Err(self.error(span, ErrorKind::Order { clause, before }));
            }
            if place + 1 == passed {
                return Err(self.error(span, ErrorKind::Twice { clause }));
            }
            if place < passed {
                return Err(self.error(span, ErrorKind::Order { clause, before: ORDERED[passed - 1] }));
            }
            passed = place + 1;
            self.bump()?;
            match keyword {
                Keyword::Group => self.group_by(query)?,
                Keyword::Where => query.condition = Some(self.condition()?),
                Keyword::Order => self.order_by(query)?,
                Keyword::Load => self.load(query)?,
                Keyword::Filter => query.filter = Some(self.condition()?),
                _ => query.select = Some(self.select()?),
            }
        }
    }

    /// One of the clauses that follow the ordered ones; returns its name.
    fn tail_clause(&mut self, keyword: Keyword, query: &mut Query<'a>) -> Result<&'static str> {
        let span = self.token.span;
        let (clause, twice) = match keyword {
            Keyword::Include => ("include", !query.include.is_empty()),
            Keyword::Update => ("update", query.update.is_some()),
            Keyword::Limit => ("limit", query.paging.take.is_some()),
            Keyword::Offset => ("offset", query.paging.skip.is_some()),
            _ => ("filter_limit", query.paging.filter_limit.is_some()),
        };
        if twice {
            return Err(self.error(span, ErrorKind::Twice { clause }));
        }
        self.bump()?;
        match keyword {
            Keyword::Include => self.include(query)?,
            Keyword::Update => query.update = Some(self.braces("`{` and a script after `update`")?),
            Keyword::Limit if query.paging.skip.is_some() => {
                return Err(self.error(span, ErrorKind::Order { clause, before: "offset" }));
            }
            Keyword::Limit => {
                query.paging.take = Some(self.count()?);
                if self.eat(Kind::Comma)? {
                    query.paging.skip = query.paging.take.replace(self.count()?);
                }
            }
            Keyword::Offset => query.paging.skip = Some(self.count()?),
            _ => query.paging.filter_limit = Some(self.count()?),
        }
        Ok(clause)
    }

    /// `declare function name(a, b) { ... }`, `declare timeseries name(a) { ... }`.
    fn declaration(&mut self) -> Result<Declaration<'a>> {
        let start = self.bump()?;
        let language = match self.token.kind {
            Kind::Word(Keyword::Function) => CodeLanguage::JavaScript,
            Kind::Word(Keyword::TimeSeries) => CodeLanguage::TimeSeries,
            _ => return Err(self.unexpected("`function` or `timeseries` after `declare`")),
        };
        self.bump()?;
        let name = self.name("the name of the function")?;
        self.expect(Kind::ParenthesisOpen, "`(` and the parameters of the function")?;
        let mut parameters = Vec::new();
        if !self.at(Kind::ParenthesisClose) {
            loop {
                parameters.push(self.any_name("the name of a parameter")?);
                if !self.eat(Kind::Comma)? {
                    break;
                }
            }
        }
        self.expect(Kind::ParenthesisClose, "`,` or `)`")?;
        let mut body = self.braces("`{` and the body of the function")?;
        body.language = language;
        Ok(Declaration { name, parameters, body, span: self.since(start) })
    }

    fn source(&mut self) -> Result<Source<'a>> {
        let start = self.expect(Kind::Word(Keyword::From), "`from` or `declare`")?;
        let kind = if self.at_word(Keyword::Index) {
            self.bump()?;
            SourceKind::Index(self.name("the name of an index")?)
        } else {
            let name = self.name("a collection, or `index` and the name of an index")?;
            if name.text.eq_ignore_ascii_case("@all_docs") {
                SourceKind::AllDocuments
            } else {
                SourceKind::Collection(name)
            }
        };
        let mut revisions = false;
        if !matches!(kind, SourceKind::Index(_)) && self.eat(Kind::ParenthesisOpen)? {
            const EXPECTED: &str = "`Revisions = true` in parentheses";
            if !self.token.span.of(self.text).eq_ignore_ascii_case("revisions") {
                return Err(self.unexpected(EXPECTED));
            }
            self.bump()?;
            self.expect(Kind::Equal, EXPECTED)?;
            revisions = self.at_word(Keyword::True);
            if !revisions && !self.at_word(Keyword::False) {
                return Err(self.unexpected(EXPECTED));
            }
            self.bump()?;
            self.expect(Kind::ParenthesisClose, "`)`")?;
        }
        let alias = if self.alias_without_as()? { Some(self.name("an alias")?) } else { self.alias()? };
        Ok(Source { kind, revisions, alias, span: self.since(start) })
    }

    /// Whether the token at hand is an alias, and not the first word of a clause.
    fn alias_without_as(&mut self) -> Result<bool> {
        Ok(match self.token.kind {
            Kind::String { .. } => true,
            Kind::Word(Keyword::Filter) => false,
            Kind::Word(Keyword::FilterLimit) => {
                !matches!(self.peek()?, Kind::Number | Kind::Parameter | Kind::Word(Keyword::Null))
            }
            Kind::Word(keyword) => !keyword.is_reserved(),
            _ => false,
        })
    }

    fn group_by(&mut self, query: &mut Query<'a>) -> Result<()> {
        self.expect(Kind::Word(Keyword::By), "`by` after `group`")?;
        loop {
            let expression = self.key("a field or `array(...)` to group by")?;
            query.group_by.push(GroupKey { expression, alias: self.alias()? });
            if !self.eat(Kind::Comma)? {
                return Ok(());
            }
        }
    }

    fn order_by(&mut self, query: &mut Query<'a>) -> Result<()> {
        self.expect(Kind::Word(Keyword::By), "`by` after `order`")?;
        loop {
            let start = self.token.span;
            let expression = self.key("a field or function to order by")?;
            let order_type = if self.eat_word(Keyword::As)? { Some(self.order_type()?) } else { None };
            let direction = match self.token.kind {
                Kind::Word(Keyword::Asc | Keyword::Ascending) => Some(Direction::Ascending),
                Kind::Word(Keyword::Desc | Keyword::Descending) => Some(Direction::Descending),
                _ => None,
            };
            if direction.is_some() {
                self.bump()?;
            }
            let nulls = if self.eat_word(Keyword::Nulls)? { Some(self.nulls()?) } else { None };
            query.order_by.push(OrderKey {
                expression,
                order_type,
                direction: direction.unwrap_or_default(),
                nulls,
                span: self.since(start),
            });
            if !self.eat(Kind::Comma)? {
                return Ok(());
            }
        }
    }

    fn order_type(&mut self) -> Result<OrderType> {
        let order_type = match self.token.kind {
            Kind::Word(Keyword::String) => OrderType::String,
            Kind::Word(Keyword::Long) => OrderType::Long,
            Kind::Word(Keyword::Double) => OrderType::Double,
            Kind::Word(Keyword::AlphaNumeric) => OrderType::AlphaNumeric,
            _ => return Err(self.unexpected("`string`, `long`, `double` or `alphaNumeric` after `as`")),
        };
        self.bump()?;
        Ok(order_type)
    }

    fn nulls(&mut self) -> Result<Nulls> {
        let nulls = match self.token.kind {
            Kind::Word(Keyword::First) => Nulls::First,
            Kind::Word(Keyword::Last) => Nulls::Last,
            _ => return Err(self.unexpected("`first` or `last` after `nulls`")),
        };
        self.bump()?;
        Ok(nulls)
    }

    fn load(&mut self, query: &mut Query<'a>) -> Result<()> {
        loop {
            let start = self.token.span;
            let path = self.path("a field that holds the id to load")?;
            self.eat_word(Keyword::As)?;
            let alias = self.name("`as` and an alias for what is loaded")?;
            let many = self.eat(Kind::BracketOpen)?;
            if many {
                self.expect(Kind::BracketClose, "`]`")?;
            }
            query.load.push(Load { path, alias, many, span: self.since(start) });
            if !self.eat(Kind::Comma)? {
                return Ok(());
            }
        }
    }

    fn select(&mut self) -> Result<Select<'a>> {
        let start = self.last;
        let distinct = self.at_word(Keyword::Distinct)
            && !matches!(
                self.peek()?,
                Kind::Comma | Kind::Dot | Kind::BracketOpen | Kind::ParenthesisOpen | Kind::Word(Keyword::As)
            );
        if distinct {
            self.bump()?;
        }
        let projection = match self.token.kind {
            Kind::Star => {
                self.bump()?;
                Projection::All
            }
            Kind::BraceOpen => Projection::Object(self.braces("`{`")?),
            _ => Projection::Items(self.select_items()?),
        };
        Ok(Select { distinct, projection, span: self.since(start) })
    }

    fn select_items(&mut self) -> Result<Vec<SelectItem<'a>>> {
        let mut items = Vec::new();
        loop {
            let start = self.token.span;
            let expression = if self.at_word(Keyword::TimeSeries) && self.peek()? == Kind::ParenthesisOpen {
                self.bump()?;
                let mut code = self.time_series()?;
                code.span = start.to(code.span);
                Expression::TimeSeries(code)
            } else {
                self.value("a field, function or value to select")?
            };
            items.push(SelectItem { expression, alias: self.alias()? });
            if !self.eat(Kind::Comma)? {
                return Ok(items);
            }
        }
    }

    fn include(&mut self, query: &mut Query<'a>) -> Result<()> {
        const EXPECTED: &str = "a field, or a function such as `counters()`, to include";
        loop {
            let included = self.value(EXPECTED)?;
            match &included {
                Expression::Field(_) | Expression::Call(_) => {}
                Expression::Literal(literal) if matches!(literal.value, Value::String(_)) => {}
                other => return Err(self.unexpected_at(other.span(), EXPECTED)),
            }
            query.include.push(included);
            if !self.eat(Kind::Comma)? {
                return Ok(());
            }
        }
    }

    /// A number for paging: digits, a parameter, or `null`.
    fn count(&mut self) -> Result<Expression<'a>> {
        let text = self.word_text(self.token.span);
        let value = match self.token.kind {
            Kind::Number if text.bytes().all(|byte| byte.is_ascii_digit()) => Value::Number(text),
            Kind::Word(Keyword::Null) => Value::Null,
            Kind::Parameter => return Ok(Expression::Parameter(self.parameter()?)),
            _ => return Err(self.unexpected("a whole number, a parameter or `null`")),
        };
        Ok(Expression::Literal(Literal { value, span: self.bump()? }))
    }

    /// The parameter at hand.
    pub(super) fn parameter(&mut self) -> Result<Parameter<'a>> {
        let span = self.bump()?;
        Ok(Parameter { name: span.of(self.text)[1..].into(), span })
    }
}
