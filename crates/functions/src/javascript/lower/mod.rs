//! Index functions in JavaScript, lowered to programs: what the rest of this folder does in QuickJS, without it.
//!
//! | part | module |
//! | --- | --- |
//! | names and what they stand for | `scope` |
//! | bodies of functions: declarations, branches, loops | `statements` |
//! | expressions | `expressions` |
//! | calls of methods and functions | `calls` |
//! | running what was lowered | `run` |
//!
//! A function is lowered as a whole or not at all: one construct that is not known here leaves it to QuickJS. What is lowered gives the same entries as QuickJS
//! does; where that cannot be told before a document is seen, the run is declined and QuickJS runs over that document (`run/script`).

mod calls;
mod expressions;
mod run;
mod scope;
mod statements;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use oxc_ast::ast::{
    Argument, ArrowFunctionBody, Expression, FormalParameters, FunctionBody, Program as Syntax,
    Statement as Js,
};

use crate::program::script::{Script, Statement};
use crate::program::{Expr, Lambda, Program, Slot};

use oxc_ast_visit::Visit as _;
pub(super) use run::{Lowered, LoweredMap, LoweredReduce};
use scope::{Known, Scopes};
use statements::Kind;

/// Expressions and statements may stand in each other this deep. Each level costs stack, here and when the function runs.
const DEPTH_MAX: u32 = 100;
/// A function may have this many variables.
const SLOTS_MAX: u32 = 10_000;

/// Why something is not lowered, in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotLowered(pub(super) &'static str);

type Lower<T> = Result<T, NotLowered>;

/// What a text is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Map,
    Reduce,
}

/// Lowers a text with one call of `map`.
pub(super) fn map(text: &Syntax<'_>) -> Lower<Program> {
    let Expression::CallExpression(call) = only_expression(text)? else {
        return Err(NotLowered("a definition that is not a call"));
    };
    match &call.callee {
        Expression::Identifier(name) if name.name == "map" => {}
        _ => return Err(NotLowered("a definition that does not call map")),
    }
    let function = call.arguments.last().and_then(Argument::as_expression);
    let function = function.ok_or(NotLowered("a map without a function"))?;
    let mut lowering = Lowering::new(Role::Map, text);
    let lambda = lowering.function(function, 1, false)?;
    lowering.program(lambda, |lambda| Expr::Block {
        variables: lambda.parameters.iter().map(|slot| (*slot, Expr::Source)).collect(),
        result: Box::new(lambda.body),
    })
}

/// Lowers a text with one `groupBy(key).aggregate(function)`.
pub(super) fn reduce(text: &Syntax<'_>) -> Lower<Program> {
    let unknown = NotLowered("a definition that is not groupBy(key).aggregate(function)");
    let Expression::CallExpression(aggregate) = only_expression(text)? else { return Err(unknown) };
    let Expression::StaticMemberExpression(member) = &aggregate.callee else { return Err(unknown) };
    let Expression::CallExpression(grouping) = &member.object else { return Err(unknown) };
    match &grouping.callee {
        Expression::Identifier(name) if name.name == "groupBy" && member.property.name == "aggregate" => {}
        _ => return Err(unknown),
    }
    let ([key], [result]) = (&grouping.arguments[..], &aggregate.arguments[..]) else { return Err(unknown) };
    let (Some(key), Some(result)) = (key.as_expression(), result.as_expression()) else {
        return Err(unknown);
    };
    let mut lowering = Lowering::new(Role::Reduce, text);
    let key = lowering.function(key, 1, false)?;
    let result = lowering.function(result, 1, false)?;
    lowering.program((key, result), |(key, result)| Expr::Script(Box::new(Script::Aggregate { key, result })))
}

fn only_expression<'b, 'a>(text: &'b Syntax<'a>) -> Lower<&'b Expression<'a>> {
    match (&text.body[..], &text.directives[..]) {
        ([Js::ExpressionStatement(statement)], []) => Ok(without_parentheses(&statement.expression)),
        _ => Err(NotLowered("a definition with more than one statement")),
    }
}

fn without_parentheses<'b, 'a>(mut expression: &'b Expression<'a>) -> &'b Expression<'a> {
    while let Expression::ParenthesizedExpression(inner) = expression {
        expression = &inner.expression;
    }
    expression
}

struct Lowering {
    role: Role,
    names: Vec<Box<str>>,
    name_numbers: HashMap<Box<str>, u32>,
    scopes: Scopes,
    slots: u32,
    lists: u32,
    depth: u32,
    /// How many functions stand around.
    functions: u32,
    /// How many loops of the innermost function do.
    loops: u32,
    /// Lists of functions that lie at least this deep may be appended to here: nobody sees meanwhile what is in them.
    appends_from: u32,
    /// What is lowered is returned by the innermost function, and nothing runs after it.
    returning: bool,
    /// The names on which `push` is called.
    pushed: Vec<String>,
    /// The function asks for metadata, and it reads what is stored of it.
    reads_metadata: bool,
    reads_stored_metadata: bool,
}

impl Lowering {
    fn new(role: Role, text: &Syntax<'_>) -> Lowering {
        let mut pushed = statements::Pushed::default();
        pushed.visit_program(text);
        Lowering {
            role,
            names: Vec::new(),
            name_numbers: HashMap::new(),
            scopes: Scopes::default(),
            slots: 0,
            lists: 0,
            depth: 0,
            functions: 0,
            loops: 0,
            appends_from: u32::MAX,
            returning: false,
            pushed: pushed.0,
            reads_metadata: false,
            reads_stored_metadata: false,
        }
    }

    fn program<T>(self, made: T, body: impl FnOnce(T) -> Expr) -> Lower<Program> {
        if self.reads_metadata && self.reads_stored_metadata {
            return Err(NotLowered("@metadata beside getMetadata"));
        }
        Ok(Program {
            body: body(made),
            slots: self.slots,
            names: self.names,
            lists: self.lists,
            reads_metadata: self.reads_metadata,
            ..Program::default()
        })
    }

    fn slot(&mut self) -> Lower<Slot> {
        if self.slots >= SLOTS_MAX {
            return Err(NotLowered("too many variables"));
        }
        self.slots += 1;
        Ok(self.slots - 1)
    }

    /// The number of a property's name.
    fn name(&mut self, name: &str) -> Lower<u32> {
        if crate::run::script::is_object_name(name) {
            return Err(NotLowered("a property that every object inherits"));
        }
        self.reads_stored_metadata |= name == "@metadata";
        if let Some(number) = self.name_numbers.get(name) {
            return Ok(*number);
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.name_numbers.insert(name.into(), number);
        Ok(number)
    }

    /// Runs `lower` one level deeper.
    fn deeper<T>(&mut self, lower: impl FnOnce(&mut Self) -> Lower<T>) -> Lower<T> {
        if self.depth >= DEPTH_MAX {
            return Err(NotLowered("expressions too deep in each other"));
        }
        self.depth += 1;
        let lowered = lower(self);
        self.depth -= 1;
        lowered
    }

    /// A function of at most so many parameters. `appends`: its body may add to lists of functions around it.
    fn function(&mut self, function: &Expression<'_>, parameters_max: usize, appends: bool) -> Lower<Lambda> {
        match without_parentheses(function) {
            Expression::ArrowFunctionExpression(arrow) => {
                if arrow.r#async {
                    return Err(NotLowered("an async function"));
                }
                match &arrow.body {
                    ArrowFunctionBody::FunctionBody(body) => {
                        self.function_of(&arrow.params, parameters_max, appends, Body::Statements(body))
                    }
                    body => {
                        let value = body.as_expression().ok_or(NotLowered("a function without a body"))?;
                        self.function_of(&arrow.params, parameters_max, appends, Body::Value(value))
                    }
                }
            }
            Expression::FunctionExpression(function) => {
                if function.r#async || function.generator || function.id.is_some() {
                    return Err(NotLowered("a function that is async, a generator or named"));
                }
                let body = function.body.as_ref().ok_or(NotLowered("a function without a body"))?;
                self.function_of(&function.params, parameters_max, appends, Body::Statements(body))
            }
            _ => Err(NotLowered("a function that is not written where it is used")),
        }
    }

    fn function_of(
        &mut self,
        parameters: &FormalParameters<'_>,
        parameters_max: usize,
        appends: bool,
        body: Body<'_, '_>,
    ) -> Lower<Lambda> {
        if parameters.rest.is_some() || parameters.items.len() > parameters_max {
            return Err(NotLowered("more parameters than are given"));
        }
        self.deeper(|lowering| {
            let around = (lowering.loops, lowering.appends_from, lowering.returning);
            lowering.functions += 1;
            lowering.loops = 0;
            lowering.returning = false;
            if !appends {
                lowering.appends_from = lowering.functions;
            }
            lowering.scopes.open();
            let lambda = lowering.function_within(parameters, body);
            lowering.scopes.close();
            lowering.functions -= 1;
            (lowering.loops, lowering.appends_from, lowering.returning) = around;
            lambda
        })
    }

    fn function_within(&mut self, parameters: &FormalParameters<'_>, body: Body<'_, '_>) -> Lower<Lambda> {
        let mut slots = Vec::with_capacity(parameters.items.len());
        let mut statements = Vec::new();
        for parameter in &parameters.items {
            if parameter.initializer.is_some() {
                return Err(NotLowered("a parameter with a default"));
            }
            let slot = self.slot()?;
            slots.push(slot);
            match parameter.pattern.get_binding_identifier() {
                Some(name) => {
                    self.scopes.announce(&name.name)?;
                    self.scopes.declare(&name.name, Known::Variable { slot, is_const: false });
                }
                None => {
                    self.scopes.announce_pattern(&parameter.pattern)?;
                    self.pattern(&parameter.pattern, slot, Kind::Let, &mut statements)?;
                }
            }
        }
        let body = match body {
            Body::Value(value) if statements.is_empty() => self.body_value(value)?,
            Body::Value(value) => {
                let value = self.body_value(value)?;
                statements.push(Statement::Return(value));
                Expr::Script(Box::new(Script::Body(statements.into())))
            }
            Body::Statements(body) => {
                if !body.directives.is_empty() {
                    return Err(NotLowered("a directive"));
                }
                self.function_body(body, &mut statements)?;
                match &mut statements[..] {
                    [Statement::Return(value)] => std::mem::take(value),
                    _ => Expr::Script(Box::new(Script::Body(statements.into()))),
                }
            }
        };
        Ok(Lambda { parameters: slots.into(), body })
    }

    /// `x => value`. A list that is appended to there gives no value that anybody sees.
    fn body_value(&mut self, value: &Expression<'_>) -> Lower<Expr> {
        match self.append(value)? {
            Some(append) => Ok(Expr::Script(Box::new(Script::Body(Box::new([append]))))),
            None => self.without_appends(|lowering| lowering.expression(value)),
        }
    }

    fn function_body(&mut self, body: &FunctionBody<'_>, statements: &mut Vec<Statement>) -> Lower<()> {
        self.announce_variables(&body.statements, statements)?;
        self.announce(&body.statements)?;
        self.statements(&body.statements, statements)
    }

    /// Lowers what may see lists, so that none may be appended to meanwhile.
    fn without_appends<T>(&mut self, lower: impl FnOnce(&mut Self) -> Lower<T>) -> Lower<T> {
        let around = std::mem::replace(&mut self.appends_from, u32::MAX);
        let lowered = lower(self);
        self.appends_from = around;
        lowered
    }
}

#[derive(Clone, Copy)]
enum Body<'b, 'a> {
    Value(&'b Expression<'a>),
    Statements(&'b FunctionBody<'a>),
}
