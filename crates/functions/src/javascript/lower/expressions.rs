//! Expressions.

use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, AssignmentExpression, AssignmentOperator, AssignmentTarget,
    BinaryOperator, ChainElement, Expression, LogicalOperator, ObjectExpression, ObjectPropertyKind,
    PropertyKey, PropertyKind, SimpleAssignmentTarget, TemplateLiteral, UnaryOperator, UpdateOperator,
};

use super::scope::Known;
use super::{Lower, Lowering, NotLowered};
use crate::program::script::{Binary, Part, Reading, Script, Unary};
use crate::program::{Expr, Slot};

pub(super) fn script(script: Script) -> Expr {
    Expr::Script(Box::new(script))
}

impl Lowering {
    pub(super) fn expression(&mut self, expression: &Expression<'_>) -> Lower<Expr> {
        self.deeper(|lowering| lowering.expression_within(expression))
    }

    fn expression_within(&mut self, expression: &Expression<'_>) -> Lower<Expr> {
        Ok(match expression {
            Expression::ParenthesizedExpression(inner) => self.expression(&inner.expression)?,
            Expression::BooleanLiteral(literal) => Expr::Bool(literal.value),
            Expression::NullLiteral(_) => Expr::Null,
            Expression::NumericLiteral(literal) => {
                let raw = literal.raw.as_ref().map_or("", |raw| raw.as_str()).as_bytes();
                if raw.len() > 1 && raw[0] == b'0' && raw[1].is_ascii_digit() {
                    return Err(NotLowered("a number that strict code does not have"));
                }
                Expr::Double(literal.value)
            }
            Expression::StringLiteral(literal) => {
                let raw = literal.raw.as_ref().map_or("", |raw| raw.as_str()).as_bytes();
                let has_octal = raw.windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit());
                if literal.lone_surrogates || has_octal {
                    return Err(NotLowered("half a surrogate pair, or an octal escape"));
                }
                Expr::Text(literal.value.as_str().into())
            }
            Expression::TemplateLiteral(template) => self.template(template)?,
            Expression::Identifier(name) => self.variable(&name.name)?,
            Expression::ArrayExpression(array) => self.array(array)?,
            Expression::ObjectExpression(object) => self.object(object)?,
            Expression::ConditionalExpression(it) => {
                let test = self.expression(&it.test)?;
                let then = self.expression(&it.consequent)?;
                script(Script::Conditional(test, then, self.expression(&it.alternate)?))
            }
            Expression::LogicalExpression(it) => {
                let left = self.expression(&it.left)?;
                let right = self.expression(&it.right)?;
                script(match it.operator {
                    LogicalOperator::And => Script::And(left, right),
                    LogicalOperator::Or => Script::Or(left, right),
                    LogicalOperator::Coalesce => Script::Coalesce(left, right),
                })
            }
            Expression::BinaryExpression(it) => {
                let operator = binary(it.operator)?;
                let left = self.expression(&it.left)?;
                script(Script::Binary(operator, left, self.expression(&it.right)?))
            }
            Expression::UnaryExpression(it) => self.unary(it.operator, &it.argument)?,
            Expression::SequenceExpression(it) => {
                let values: Lower<Vec<Expr>> =
                    it.expressions.iter().map(|each| self.expression(each)).collect();
                script(Script::Sequence(values?.into()))
            }
            Expression::AssignmentExpression(it) => self.assignment(it)?,
            Expression::UpdateExpression(it) => {
                let SimpleAssignmentTarget::AssignmentTargetIdentifier(name) = &it.argument else {
                    return Err(NotLowered("a change of an object"));
                };
                let slot = self.assignable(&name.name)?;
                let by = if it.operator == UpdateOperator::Increment { 1.0 } else { -1.0 };
                match it.prefix {
                    false => script(Script::Update(slot, by)),
                    true => {
                        let update = script(Script::Update(slot, by));
                        script(Script::Sequence(Box::new([update, Expr::Local(slot)])))
                    }
                }
            }
            Expression::StaticMemberExpression(member) => {
                self.static_member(&member.object, &member.property.name, Reading::Guarded)?
            }
            Expression::ComputedMemberExpression(member) => {
                self.computed_member(&member.object, &member.expression, Reading::Guarded)?
            }
            Expression::CallExpression(call) => self.call(call, Reading::Guarded)?,
            Expression::ChainExpression(chain) => {
                let link = match &chain.expression {
                    ChainElement::CallExpression(call) => self.call(call, Reading::Plain)?,
                    ChainElement::StaticMemberExpression(member) => {
                        let reading = reading(member.optional);
                        self.static_member(&member.object, &member.property.name, reading)?
                    }
                    ChainElement::ComputedMemberExpression(member) => {
                        let reading = reading(member.optional);
                        self.computed_member(&member.object, &member.expression, reading)?
                    }
                    _ => return Err(NotLowered("a chain of another kind")),
                };
                script(Script::Chain(link))
            }
            Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => {
                return Err(NotLowered("a function as a value"));
            }
            Expression::RegExpLiteral(_) => return Err(NotLowered("a regular expression")),
            Expression::NewExpression(_) => return Err(NotLowered("new")),
            Expression::ThisExpression(_) => return Err(NotLowered("this")),
            _ => return Err(NotLowered("an expression of another kind")),
        })
    }

    /// What stands before a `.` or `[`: below a `?.`, the link before; and a list may be read there.
    pub(super) fn target(&mut self, target: &Expression<'_>, reading_here: Reading) -> Lower<Expr> {
        if let Expression::Identifier(name) = target
            && let Some(Known::List { list, .. }) = self.scopes.find(&name.name)
        {
            return Ok(script(Script::List(list)));
        }
        if reading_here == Reading::Guarded {
            return self.expression(target);
        }
        self.deeper(|lowering| match target {
            Expression::StaticMemberExpression(member) => {
                let reading = reading(member.optional);
                lowering.static_member(&member.object, &member.property.name, reading)
            }
            Expression::ComputedMemberExpression(member) => {
                let reading = reading(member.optional);
                lowering.computed_member(&member.object, &member.expression, reading)
            }
            Expression::CallExpression(call) => lowering.call(call, Reading::Plain),
            // What lies below the chain is as everywhere.
            other => lowering.expression(other),
        })
    }

    fn static_member(&mut self, object: &Expression<'_>, name: &str, reading: Reading) -> Lower<Expr> {
        if let Expression::Identifier(of) = object {
            match self.scopes.find(&of.name) {
                Some(Known::List { list, .. }) if name == "length" => {
                    return Ok(script(Script::ListLength(list)));
                }
                Some(Known::List { .. }) => return Err(NotLowered("a member of a filled array")),
                _ => {}
            }
        }
        let target = self.target(object, reading)?;
        let name = self.name(name)?;
        Ok(script(Script::Get { target, name, reading }))
    }

    fn computed_member(
        &mut self,
        object: &Expression<'_>,
        key: &Expression<'_>,
        reading: Reading,
    ) -> Lower<Expr> {
        if let Expression::StringLiteral(name) = key
            && !name.lone_surrogates
            && !name.value.starts_with(|letter: char| letter.is_ascii_digit())
        {
            return self.static_member(object, &name.value, reading);
        }
        let target = self.target(object, reading)?;
        let key = self.expression(key)?;
        Ok(script(Script::GetComputed { target, key, reading }))
    }

    /// A name as a value.
    fn variable(&mut self, name: &str) -> Lower<Expr> {
        match self.scopes.find(name) {
            Some(Known::Variable { slot, .. }) => Ok(Expr::Local(slot)),
            Some(Known::List { list, functions }) => {
                if functions == self.functions && self.returning {
                    return Ok(script(Script::List(list)));
                }
                Err(NotLowered("a filled array before it is returned"))
            }
            Some(Known::Unready) => Err(NotLowered("a name before its declaration")),
            None => match name {
                "undefined" => Ok(Expr::Missing),
                "NaN" => Ok(Expr::Double(f64::NAN)),
                "Infinity" => Ok(Expr::Double(f64::INFINITY)),
                _ => Err(NotLowered("a name that nobody declared")),
            },
        }
    }

    fn assignable(&mut self, name: &str) -> Lower<Slot> {
        match self.scopes.find(name) {
            Some(Known::Variable { slot, is_const: false }) => Ok(slot),
            _ => Err(NotLowered("an assignment to what is no variable")),
        }
    }

    fn assignment(&mut self, it: &AssignmentExpression<'_>) -> Lower<Expr> {
        let AssignmentTarget::AssignmentTargetIdentifier(name) = &it.left else {
            return Err(NotLowered("a change of an object"));
        };
        let slot = self.assignable(&name.name)?;
        let value = self.expression(&it.right)?;
        let operator = match it.operator {
            AssignmentOperator::Assign => return Ok(script(Script::Assign(slot, value))),
            AssignmentOperator::LogicalOr => {
                return Ok(script(Script::Or(Expr::Local(slot), script(Script::Assign(slot, value)))));
            }
            AssignmentOperator::LogicalAnd => {
                return Ok(script(Script::And(Expr::Local(slot), script(Script::Assign(slot, value)))));
            }
            AssignmentOperator::LogicalNullish => {
                return Ok(script(Script::Coalesce(Expr::Local(slot), script(Script::Assign(slot, value)))));
            }
            AssignmentOperator::Addition => Binary::Add,
            AssignmentOperator::Subtraction => Binary::Subtract,
            AssignmentOperator::Multiplication => Binary::Multiply,
            AssignmentOperator::Division => Binary::Divide,
            AssignmentOperator::Remainder => Binary::Remainder,
            AssignmentOperator::Exponential => Binary::Power,
            AssignmentOperator::ShiftLeft => Binary::ShiftLeft,
            AssignmentOperator::ShiftRight => Binary::ShiftRight,
            AssignmentOperator::ShiftRightZeroFill => Binary::ShiftRightUnsigned,
            AssignmentOperator::BitwiseOR => Binary::BitOr,
            AssignmentOperator::BitwiseXOR => Binary::BitXor,
            AssignmentOperator::BitwiseAnd => Binary::BitAnd,
        };
        Ok(script(Script::Assign(slot, script(Script::Binary(operator, Expr::Local(slot), value)))))
    }

    fn unary(&mut self, operator: UnaryOperator, argument: &Expression<'_>) -> Lower<Expr> {
        if operator == UnaryOperator::Typeof
            && let Expression::Identifier(name) = argument
            && self.scopes.find(&name.name).is_none()
            && name.name != "undefined"
        {
            return Err(NotLowered("typeof of a name that nobody declared"));
        }
        let operator = match operator {
            UnaryOperator::UnaryPlus => Unary::Plus,
            UnaryOperator::UnaryNegation => Unary::Negate,
            UnaryOperator::LogicalNot => Unary::Not,
            UnaryOperator::BitwiseNot => Unary::BitNot,
            UnaryOperator::Typeof => Unary::TypeOf,
            UnaryOperator::Void => Unary::Void,
            UnaryOperator::Delete => return Err(NotLowered("delete")),
        };
        match (operator, self.expression(argument)?) {
            (Unary::Negate, Expr::Double(number)) => Ok(Expr::Double(-number)),
            (operator, value) => Ok(script(Script::Unary(operator, value))),
        }
    }

    fn template(&mut self, template: &TemplateLiteral<'_>) -> Lower<Expr> {
        let mut texts: Vec<Box<str>> = Vec::with_capacity(template.quasis.len());
        for part in &template.quasis {
            match &part.value.cooked {
                Some(text) if !part.lone_surrogates => texts.push(text.as_str().into()),
                _ => return Err(NotLowered("half a surrogate pair")),
            }
        }
        let values: Lower<Vec<Expr>> =
            template.expressions.iter().map(|value| self.expression(value)).collect();
        Ok(script(Script::Template { texts: texts.into(), values: values?.into() }))
    }

    fn array(&mut self, array: &ArrayExpression<'_>) -> Lower<Expr> {
        let mut values = Vec::with_capacity(array.elements.len());
        for element in &array.elements {
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    values.push((self.expression(&spread.argument)?, true));
                }
                ArrayExpressionElement::Elision(_) => return Err(NotLowered("a hole in an array")),
                element => {
                    let element = element.as_expression().ok_or(NotLowered("an element of another kind"))?;
                    values.push((self.expression(element)?, false));
                }
            }
        }
        if values.iter().any(|(_, is_spread)| *is_spread) {
            return Ok(script(Script::Spread(values.into())));
        }
        Ok(Expr::Array(values.into_iter().map(|(value, _)| value).collect()))
    }

    fn object(&mut self, object: &ObjectExpression<'_>) -> Lower<Expr> {
        let mut parts = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            parts.push(match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    Part::Spread(self.expression(&spread.argument)?)
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    if property.kind != PropertyKind::Init || property.method {
                        return Err(NotLowered("a method of an object"));
                    }
                    let name = match &property.key {
                        _ if property.computed => None,
                        PropertyKey::StaticIdentifier(name) => Some(name.name.as_str()),
                        PropertyKey::StringLiteral(text) if !text.lone_surrogates => {
                            Some(text.value.as_str())
                        }
                        _ => return Err(NotLowered("a name of another kind")),
                    };
                    match name {
                        Some("__proto__") => return Err(NotLowered("__proto__")),
                        Some(name) => Part::Named(name.into(), self.expression(&property.value)?),
                        None => {
                            let key =
                                property.key.as_expression().ok_or(NotLowered("a name of another kind"))?;
                            Part::Computed(self.expression(key)?, self.expression(&property.value)?)
                        }
                    }
                }
            });
        }
        let is_place = |name: &str| name.starts_with(|letter: char| letter.is_ascii_digit());
        let is_plain = parts.iter().enumerate().all(|(at, part)| match part {
            Part::Named(name, _) => {
                !is_place(name)
                    && !parts[..at]
                        .iter()
                        .any(|other| matches!(other, Part::Named(known, _) if known == name))
            }
            _ => false,
        });
        if !is_plain {
            return Ok(script(Script::Object(parts.into())));
        }
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for part in parts {
            if let Part::Named(name, value) = part {
                names.push(name);
                values.push(value);
            }
        }
        Ok(Expr::Object { names: names.into(), values: values.into() })
    }
}

pub(super) fn reading(is_optional: bool) -> Reading {
    if is_optional { Reading::Optional } else { Reading::Plain }
}

fn binary(operator: BinaryOperator) -> Lower<Binary> {
    Ok(match operator {
        BinaryOperator::Equality => Binary::Equal,
        BinaryOperator::Inequality => Binary::NotEqual,
        BinaryOperator::StrictEquality => Binary::Same,
        BinaryOperator::StrictInequality => Binary::NotSame,
        BinaryOperator::LessThan => Binary::Less,
        BinaryOperator::LessEqualThan => Binary::LessOrEqual,
        BinaryOperator::GreaterThan => Binary::Greater,
        BinaryOperator::GreaterEqualThan => Binary::GreaterOrEqual,
        BinaryOperator::Addition => Binary::Add,
        BinaryOperator::Subtraction => Binary::Subtract,
        BinaryOperator::Multiplication => Binary::Multiply,
        BinaryOperator::Division => Binary::Divide,
        BinaryOperator::Remainder => Binary::Remainder,
        BinaryOperator::Exponential => Binary::Power,
        BinaryOperator::ShiftLeft => Binary::ShiftLeft,
        BinaryOperator::ShiftRight => Binary::ShiftRight,
        BinaryOperator::ShiftRightZeroFill => Binary::ShiftRightUnsigned,
        BinaryOperator::BitwiseOR => Binary::BitOr,
        BinaryOperator::BitwiseXOR => Binary::BitXor,
        BinaryOperator::BitwiseAnd => Binary::BitAnd,
        BinaryOperator::In => Binary::In,
        BinaryOperator::Instanceof => return Err(NotLowered("instanceof")),
    })
}
