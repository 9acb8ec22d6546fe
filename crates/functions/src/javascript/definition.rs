//! What is known of a definition or a function from its text alone: collections, fields, keys.

use oxc_ast::ast::{
    Argument, ArrowFunctionBody, CallExpression, Expression, FormalParameters, IdentifierReference,
    ObjectExpression, ObjectPropertyKind, PropertyKey, Statement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use crate::{Collections, Combine, ReduceField, Source, SourceKind};

/// A call of `map`.
#[derive(Debug)]
pub(super) struct MapCall {
    pub(super) source: Source,
    /// The fields of what it returns, if they are always the same.
    pub(super) fields: Option<Vec<Box<str>>>,
}

/// Why something is no definition: a place in the text, and what is wrong there.
pub(super) type Wrong = (u32, String);

/// What a text with definitions says.
#[derive(Default, Debug)]
pub(super) struct Definitions {
    pub(super) maps: Vec<MapCall>,
    pub(super) reduces: Vec<ReduceCall>,
    pub(super) loads: Vec<Box<str>>,
    pub(super) uses_compare_exchange: bool,
    pub(super) has_dynamic_fields: bool,
    pub(super) wrong: Option<Wrong>,
}

/// A call of `groupBy(..).aggregate(..)`.
#[derive(Debug)]
pub(super) struct ReduceCall {
    pub(super) key_fields: Vec<Box<str>>,
    pub(super) fields: Option<Vec<ReduceField>>,
}

impl Definitions {
    fn refuse(&mut self, span: Span, message: impl Into<String>) {
        self.wrong.get_or_insert((span.start, message.into()));
    }

    fn map_call(&mut self, kind: SourceKind, call: &CallExpression<'_>) {
        let mut names = Vec::new();
        let mut function = None;
        for argument in &call.arguments {
            match argument {
                Argument::StringLiteral(text) if function.is_none() => {
                    names.push(Box::from(text.value.as_str()))
                }
                Argument::ArrayExpression(array) if function.is_none() && names.is_empty() => {
                    for element in &array.elements {
                        match element.as_expression() {
                            Some(Expression::StringLiteral(text)) => {
                                names.push(Box::from(text.value.as_str()))
                            }
                            _ => {
                                return self
                                    .refuse(array.span, "the collections of a map must be string literals");
                            }
                        }
                    }
                }
                other => {
                    if function.is_some() {
                        return self.refuse(other.span(), "a map has a collection and one function");
                    }
                    function = other.as_expression();
                }
            }
        }
        let Some(function) = function else {
            return self.refuse(call.span, "a map needs a function");
        };
        let name = if kind != SourceKind::Documents && names.len() > 1 { names.pop() } else { None };
        let collections = if names.is_empty() { Collections::All } else { Collections::Named(names) };
        let fields = Body::of(function).and_then(|body| body.returned_fields());
        self.maps.push(MapCall { source: Source { kind, collections, name }, fields });
    }

    fn reduce_call(&mut self, key: &Expression<'_>, aggregate: &CallExpression<'_>) {
        let key_fields = match key_fields_of(key) {
            Ok(fields) => fields,
            Err(span) => {
                let message = "the key of groupBy must be a field of the entries, or an object of such fields: g => g.A, g => ({ A: g.A, B: g.B })";
                return self.refuse(span, message);
            }
        };
        let Some(function) = aggregate.arguments.first().and_then(Argument::as_expression) else {
            return self.refuse(aggregate.span, "aggregate needs a function");
        };
        let names: Vec<Box<str>> = key_names_of(key);
        let fields = Body::of(function).and_then(|body| {
            let objects = body.returned_objects()?;
            let [object] = &objects[..] else { return None };
            fields_of(object)?;
            let field = |property: &ObjectPropertyKind<'_>| match property {
                ObjectPropertyKind::ObjectProperty(property) => {
                    let name = name_of(&property.key)?;
                    let combine = key_place(&property.value, body.parameter.as_deref(), &names);
                    Some(ReduceField { name, combine: combine.map_or(Combine::Other, Combine::Key) })
                }
                ObjectPropertyKind::SpreadProperty(_) => None,
            };
            object.properties.iter().map(field).collect()
        });
        self.reduces.push(ReduceCall { key_fields, fields });
    }
}

impl<'a> Visit<'a> for Definitions {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        match &call.callee {
            Expression::Identifier(name) if name.name == "map" => self.map_call(SourceKind::Documents, call),
            Expression::Identifier(name) if name.name == "load" => {
                if let Some(Argument::StringLiteral(collection)) = call.arguments.get(1)
                    && !self.loads.iter().any(|known| **known == *collection.value.as_str())
                {
                    self.loads.push(collection.value.as_str().into());
                }
            }
            Expression::Identifier(name) if name.name == "createField" => self.has_dynamic_fields = true,
            Expression::StaticMemberExpression(member) => {
                match (&member.object, member.property.name.as_str()) {
                    (Expression::Identifier(object), "map") if object.name == "timeSeries" => {
                        self.map_call(SourceKind::TimeSeries, call);
                    }
                    (Expression::Identifier(object), "map") if object.name == "counters" => {
                        self.map_call(SourceKind::Counters, call);
                    }
                    (Expression::CallExpression(grouping), "aggregate") if matches!(&grouping.callee, Expression::Identifier(name) if name.name == "groupBy") => {
                        match grouping.arguments.first().and_then(Argument::as_expression) {
                            Some(key) => self.reduce_call(key, call),
                            None => self.refuse(grouping.span, "groupBy needs a function"),
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        self.uses_compare_exchange |= name.name == "cmpxchg";
    }

    fn visit_property_key(&mut self, key: &PropertyKey<'a>) {
        self.has_dynamic_fields |= name_of(key).is_some_and(|name| &*name == "$name");
        walk::walk_property_key(self, key);
    }
}

/// What a function returns.
struct Body<'b, 'a> {
    /// The name of its only parameter.
    parameter: Option<String>,
    returned: Vec<&'b Expression<'a>>,
}

impl<'b, 'a> Body<'b, 'a> {
    fn of(function: &'b Expression<'a>) -> Option<Body<'b, 'a>> {
        match function {
            Expression::ParenthesizedExpression(inner) => Body::of(&inner.expression),
            Expression::ArrowFunctionExpression(arrow) => {
                let parameter = parameter_of(&arrow.params);
                let returned = match &arrow.body {
                    ArrowFunctionBody::FunctionBody(body) => returns_of(&body.statements),
                    body => vec![body.as_expression()?],
                };
                Some(Body { parameter, returned })
            }
            Expression::FunctionExpression(function) => Some(Body {
                parameter: parameter_of(&function.params),
                returned: returns_of(&function.body.as_ref()?.statements),
            }),
            _ => None,
        }
    }

    /// The objects that it returns; `None` when it returns anything else than objects and nothing.
    fn returned_objects(&self) -> Option<Vec<&'b ObjectExpression<'a>>> {
        let mut objects = Vec::new();
        for returned in &self.returned {
            match without_parentheses(returned) {
                Expression::ObjectExpression(object) => objects.push(&**object),
                Expression::NullLiteral(_) => {}
                Expression::Identifier(name) if name.name == "undefined" => {}
                _ => return None,
            }
        }
        Some(objects)
    }

    fn returned_fields(&self) -> Option<Vec<Box<str>>> {
        let mut objects = self.returned_objects()?.into_iter();
        let fields = fields_of(objects.next()?)?;
        objects.all(|object| fields_of(object).as_ref() == Some(&fields)).then_some(fields)
    }
}

fn parameter_of(parameters: &FormalParameters<'_>) -> Option<String> {
    let [only] = &parameters.items[..] else { return None };
    only.pattern.get_identifier_name().map(|name| name.to_string())
}

fn without_parentheses<'b, 'a>(mut expression: &'b Expression<'a>) -> &'b Expression<'a> {
    while let Expression::ParenthesizedExpression(inner) = expression {
        expression = &inner.expression;
    }
    expression
}

/// The names of an object's properties; `None` when some are computed, or come from another object.
fn fields_of(object: &ObjectExpression<'_>) -> Option<Vec<Box<str>>> {
    let name = |property: &ObjectPropertyKind<'_>| match property {
        ObjectPropertyKind::ObjectProperty(property) if !property.computed => name_of(&property.key),
        _ => None,
    };
    object.properties.iter().map(name).collect()
}

fn name_of(key: &PropertyKey<'_>) -> Option<Box<str>> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(name.name.as_str().into()),
        PropertyKey::StringLiteral(text) => Some(text.value.as_str().into()),
        _ => None,
    }
}

/// The fields that a key is made of. Error: where something else stands.
fn key_fields_of(key: &Expression<'_>) -> Result<Vec<Box<str>>, Span> {
    let body = Body::of(key).ok_or(key.span())?;
    let [returned] = &body.returned[..] else { return Err(key.span()) };
    let parameter = body.parameter.as_deref().ok_or(key.span())?;
    let path = |expression: &Expression<'_>| path_of(expression, parameter).ok_or(expression.span());
    match without_parentheses(returned) {
        Expression::ObjectExpression(object) => {
            let field = |property: &ObjectPropertyKind<'_>| match property {
                ObjectPropertyKind::ObjectProperty(property) => path(&property.value),
                ObjectPropertyKind::SpreadProperty(spread) => Err(spread.span),
            };
            object.properties.iter().map(field).collect()
        }
        Expression::StringLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::NullLiteral(_)
        | Expression::BooleanLiteral(_) => Ok(Vec::new()),
        other => Ok(vec![path(other)?]),
    }
}

/// The names that a key of several parts gives to them.
fn key_names_of(key: &Expression<'_>) -> Vec<Box<str>> {
    let body = Body::of(key);
    let returned = body.as_ref().and_then(|body| body.returned.first().copied());
    match returned.map(without_parentheses) {
        Some(Expression::ObjectExpression(object)) => fields_of(object).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// `a.b.c` below a parameter, as a path.
fn path_of(expression: &Expression<'_>, parameter: &str) -> Option<Box<str>> {
    let (object, name) = match without_parentheses(expression) {
        Expression::StaticMemberExpression(member) => (&member.object, member.property.name.as_str()),
        Expression::ComputedMemberExpression(member) => match &member.expression {
            Expression::StringLiteral(name) => (&member.object, name.value.as_str()),
            _ => return None,
        },
        _ => return None,
    };
    match without_parentheses(object) {
        Expression::Identifier(name_of_object) if name_of_object.name == parameter => Some(name.into()),
        object => Some(format!("{}.{name}", path_of(object, parameter)?).into()),
    }
}

/// Which part of the key an expression is: `g.key`, `g.key.A`.
fn key_place(expression: &Expression<'_>, parameter: Option<&str>, names: &[Box<str>]) -> Option<usize> {
    let path = path_of(expression, parameter?)?;
    match path.strip_prefix("key")? {
        "" if names.is_empty() => Some(0),
        rest => names.iter().position(|name| rest.strip_prefix('.') == Some(name)),
    }
}

/// The values that a function's own statements return.
fn returns_of<'b, 'a>(statements: &'b [Statement<'a>]) -> Vec<&'b Expression<'a>> {
    let mut found = Vec::new();
    statements.iter().for_each(|statement| returns_in(statement, &mut found));
    found
}

fn returns_in<'b, 'a>(statement: &'b Statement<'a>, found: &mut Vec<&'b Expression<'a>>) {
    match statement {
        Statement::ReturnStatement(returned) => found.extend(returned.argument.as_ref()),
        Statement::BlockStatement(block) => block.body.iter().for_each(|each| returns_in(each, found)),
        Statement::IfStatement(branch) => {
            returns_in(&branch.consequent, found);
            branch.alternate.iter().for_each(|each| returns_in(each, found));
        }
        Statement::ForStatement(it) => returns_in(&it.body, found),
        Statement::ForInStatement(it) => returns_in(&it.body, found),
        Statement::ForOfStatement(it) => returns_in(&it.body, found),
        Statement::WhileStatement(it) => returns_in(&it.body, found),
        Statement::DoWhileStatement(it) => returns_in(&it.body, found),
        Statement::LabeledStatement(it) => returns_in(&it.body, found),
        Statement::WithStatement(it) => returns_in(&it.body, found),
        Statement::SwitchStatement(switch) => {
            switch.cases.iter().flat_map(|case| &case.consequent).for_each(|each| returns_in(each, found));
        }
        Statement::TryStatement(it) => {
            it.block.body.iter().for_each(|each| returns_in(each, found));
            it.handler.iter().flat_map(|handler| &handler.body.body).for_each(|each| returns_in(each, found));
            it.finalizer.iter().flat_map(|block| &block.body).for_each(|each| returns_in(each, found));
        }
        _ => {}
    }
}
