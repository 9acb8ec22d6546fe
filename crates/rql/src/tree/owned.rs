//! Trees that outlive their text.

use std::borrow::Cow;

use crate::tree::*;

fn own(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

fn own_all<T, U>(list: Vec<T>, own: impl FnMut(T) -> U) -> Vec<U> {
    list.into_iter().map(own).collect()
}

impl Query<'_> {
    /// The same query with all text copied, so that it can be kept longer than the text it was parsed from.
    #[must_use]
    pub fn into_owned(self) -> Query<'static> {
        Query {
            declarations: own_all(self.declarations, Declaration::into_owned),
            from: self.from.into_owned(),
            group_by: own_all(self.group_by, |key| GroupKey {
                expression: key.expression.into_owned(),
                alias: key.alias.map(Name::into_owned),
            }),
            condition: self.condition.map(Expression::into_owned),
            order_by: own_all(self.order_by, |key| OrderKey {
                expression: key.expression.into_owned(),
                order_type: key.order_type,
                direction: key.direction,
                nulls: key.nulls,
                span: key.span,
            }),
            load: own_all(self.load, |load| Load {
                path: load.path.into_owned(),
                alias: load.alias.into_owned(),
                many: load.many,
                span: load.span,
            }),
            filter: self.filter.map(Expression::into_owned),
            select: self.select.map(Select::into_owned),
            include: own_all(self.include, Expression::into_owned),
            update: self.update.map(Code::into_owned),
            paging: Paging {
                skip: self.paging.skip.map(Expression::into_owned),
                take: self.paging.take.map(Expression::into_owned),
                filter_limit: self.paging.filter_limit.map(Expression::into_owned),
            },
            span: self.span,
        }
    }
}

impl Declaration<'_> {
    fn into_owned(self) -> Declaration<'static> {
        Declaration {
            name: self.name.into_owned(),
            parameters: own_all(self.parameters, Name::into_owned),
            body: self.body.into_owned(),
            span: self.span,
        }
    }
}

impl Code<'_> {
    fn into_owned(self) -> Code<'static> {
        Code { language: self.language, text: own(self.text), span: self.span }
    }
}

impl Name<'_> {
    fn into_owned(self) -> Name<'static> {
        Name { text: own(self.text), span: self.span }
    }
}

impl Source<'_> {
    fn into_owned(self) -> Source<'static> {
        Source {
            kind: match self.kind {
                SourceKind::Collection(name) => SourceKind::Collection(name.into_owned()),
                SourceKind::Index(name) => SourceKind::Index(name.into_owned()),
                SourceKind::AllDocuments => SourceKind::AllDocuments,
            },
            revisions: self.revisions,
            alias: self.alias.map(Name::into_owned),
            span: self.span,
        }
    }
}

impl Select<'_> {
    fn into_owned(self) -> Select<'static> {
        Select {
            distinct: self.distinct,
            projection: match self.projection {
                Projection::All => Projection::All,
                Projection::Items(items) => Projection::Items(own_all(items, |item| SelectItem {
                    expression: item.expression.into_owned(),
                    alias: item.alias.map(Name::into_owned),
                })),
                Projection::Object(code) => Projection::Object(code.into_owned()),
            },
            span: self.span,
        }
    }
}

impl Path<'_> {
    /// The same path with all text copied.
    #[must_use]
    pub fn into_owned(self) -> Path<'static> {
        Path {
            first: self.first.into_owned(),
            rest: own_all(self.rest, |step| match step {
                Step::Name(name) => Step::Name(name.into_owned()),
                Step::Elements => Step::Elements,
                Step::Index(text) => Step::Index(own(text)),
            }),
            span: self.span,
        }
    }
}

impl Expression<'_> {
    /// The same expression with all text copied.
    #[must_use]
    pub fn into_owned(self) -> Expression<'static> {
        match self {
            Expression::And(junction) => Expression::And(junction.into_owned()),
            Expression::Or(junction) => Expression::Or(junction.into_owned()),
            Expression::Not(not) => {
                Expression::Not(Box::new(Not { operand: not.operand.into_owned(), span: not.span }))
            }
            Expression::Comparison(comparison) => Expression::Comparison(Box::new(Comparison {
                left: comparison.left.into_owned(),
                operator: comparison.operator,
                right: comparison.right.into_owned(),
                span: comparison.span,
            })),
            Expression::Between(between) => Expression::Between(Box::new(Between {
                operand: between.operand.into_owned(),
                low: between.low.into_owned(),
                high: between.high.into_owned(),
                span: between.span,
            })),
            Expression::In(one_of) => Expression::In(Box::new(In {
                operand: one_of.operand.into_owned(),
                all: one_of.all,
                values: own_all(one_of.values, Expression::into_owned),
                span: one_of.span,
            })),
            Expression::Call(call) => Expression::Call(call.into_owned()),
            Expression::Field(path) => Expression::Field(path.into_owned()),
            Expression::Literal(literal) => Expression::Literal(Literal {
                value: match literal.value {
                    Value::String(text) => Value::String(own(text)),
                    Value::Number(text) => Value::Number(own(text)),
                    Value::True => Value::True,
                    Value::False => Value::False,
                    Value::Null => Value::Null,
                },
                span: literal.span,
            }),
            Expression::Parameter(parameter) => {
                Expression::Parameter(Parameter { name: own(parameter.name), span: parameter.span })
            }
            Expression::TimeSeries(code) => Expression::TimeSeries(code.into_owned()),
        }
    }
}

impl Junction<'_> {
    fn into_owned(self) -> Junction<'static> {
        Junction { operands: own_all(self.operands, Expression::into_owned), span: self.span }
    }
}

impl Call<'_> {
    fn into_owned(self) -> Call<'static> {
        Call {
            name: own(self.name),
            arguments: own_all(self.arguments, |argument| Argument {
                expression: argument.expression.into_owned(),
                alias: argument.alias.map(Name::into_owned),
            }),
            property: self.property.map(Name::into_owned),
            span: self.span,
        }
    }
}
