//! Bodies of functions: declarations, branches, loops, and arrays that are filled with `push`.

use oxc_ast::ast::{
    BindingPattern, CallExpression, Expression, ForStatementInit, ForStatementLeft, PropertyKey,
    Statement as Js, VariableDeclaration, VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};

use super::scope::Known;
use super::{Lower, Lowering, NotLowered, without_parentheses};
use crate::program::script::{Binary, Function, Reading, Script, Statement};
use crate::program::{Expr, Slot};

/// How a name is declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Var,
    Let,
    Const,
}

/// The names on which `push` is called.
#[derive(Default)]
pub(super) struct Pushed(pub(super) Vec<String>);

impl<'a> Visit<'a> for Pushed {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(name) = pushed_name(call) {
            self.0.push(name.to_owned());
        }
        walk::walk_call_expression(self, call);
    }
}

/// The name of `name.push(..)`.
fn pushed_name<'b>(call: &'b CallExpression<'_>) -> Option<&'b str> {
    match &call.callee {
        Expression::StaticMemberExpression(member) if member.property.name == "push" => {
            match &member.object {
                Expression::Identifier(name) if !member.optional => Some(name.name.as_str()),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Lowering {
    /// Announces what the statements of a block declare.
    pub(super) fn announce(&mut self, statements: &[Js<'_>]) -> Lower<()> {
        for statement in statements {
            match statement {
                Js::VariableDeclaration(declaration) if kind_of(declaration)? != Kind::Var => {
                    for declarator in &declaration.declarations {
                        self.scopes.announce_pattern(&declarator.id)?;
                    }
                }
                Js::FunctionDeclaration(_) | Js::ClassDeclaration(_) => {
                    return Err(NotLowered("a function or class that is declared"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Declares the variables of a function's `var`s, which are undefined until they are set.
    pub(super) fn announce_variables(&mut self, body: &[Js<'_>], out: &mut Vec<Statement>) -> Lower<()> {
        let mut names = Variables::default();
        body.iter().for_each(|statement| names.visit_statement(statement));
        for name in names.0 {
            if !self.scopes.is_own(&name) {
                let slot = self.slot()?;
                self.scopes.declare_var(&name, slot)?;
                out.push(Statement::Set(slot, Expr::Missing));
            }
        }
        Ok(())
    }

    pub(super) fn statements(&mut self, statements: &[Js<'_>], out: &mut Vec<Statement>) -> Lower<()> {
        statements.iter().try_for_each(|each| self.deeper(|lowering| lowering.statement(each, out)))
    }

    fn statement(&mut self, statement: &Js<'_>, out: &mut Vec<Statement>) -> Lower<()> {
        match statement {
            Js::EmptyStatement(_) => {}
            Js::VariableDeclaration(declaration) => self.declaration(declaration, out)?,
            Js::ExpressionStatement(statement) => {
                let made = self.expression_statement(&statement.expression)?;
                out.push(made);
            }
            Js::BlockStatement(block) => {
                self.scopes.open();
                let lowered = self.announce(&block.body).and_then(|()| self.statements(&block.body, out));
                self.scopes.close();
                lowered?;
            }
            Js::IfStatement(branch) => {
                let test = self.value(&branch.test)?;
                let then = self.block(&branch.consequent)?;
                let otherwise = match &branch.alternate {
                    Some(otherwise) => self.block(otherwise)?,
                    None => Box::default(),
                };
                out.push(Statement::If(test, then, otherwise));
            }
            Js::ReturnStatement(returned) => {
                let value = match &returned.argument {
                    Some(value) => {
                        self.returning = true;
                        let value = self.value(value);
                        self.returning = false;
                        value?
                    }
                    None => Expr::Missing,
                };
                out.push(Statement::Return(value));
            }
            Js::ForOfStatement(it) => {
                let ForStatementLeft::VariableDeclaration(left) = &it.left else {
                    return Err(NotLowered("a for..of without a declaration"));
                };
                let ([declarator], false) = (&left.declarations[..], it.r#await) else {
                    return Err(NotLowered("a for..of with several variables"));
                };
                let source = self.value(&it.right)?;
                let kind = kind_of(left)?;
                let slot = self.slot()?;
                let mut body = Vec::new();
                self.scopes.open();
                let lowered = self.for_of_body(&declarator.id, kind, slot, &it.body, &mut body);
                self.scopes.close();
                lowered?;
                out.push(Statement::ForOf { slot, source, body: body.into() });
            }
            Js::ForStatement(it) => {
                self.scopes.open();
                let lowered = self.for_loop(it, out);
                self.scopes.close();
                lowered?;
            }
            Js::WhileStatement(it) => {
                let test = self.value(&it.test)?;
                let body = self.loop_body(&it.body)?;
                out.push(Statement::Loop { test: Some(test), update: None, body });
            }
            Js::BreakStatement(it) if it.label.is_none() && self.loops > 0 => out.push(Statement::Break),
            Js::ContinueStatement(it) if it.label.is_none() && self.loops > 0 => {
                out.push(Statement::Continue);
            }
            _ => return Err(NotLowered("a statement of another kind")),
        }
        Ok(())
    }

    fn for_of_body(
        &mut self,
        pattern: &BindingPattern<'_>,
        kind: Kind,
        slot: Slot,
        body: &Js<'_>,
        out: &mut Vec<Statement>,
    ) -> Lower<()> {
        if kind != Kind::Var {
            self.scopes.announce_pattern(pattern)?;
        }
        match pattern.get_binding_identifier() {
            Some(name) if kind != Kind::Var => {
                self.scopes.declare(&name.name, Known::Variable { slot, is_const: kind == Kind::Const });
            }
            _ => self.pattern(pattern, slot, kind, out)?,
        }
        self.loops += 1;
        let lowered = self.block(body);
        self.loops -= 1;
        out.extend(lowered?);
        Ok(())
    }

    fn for_loop(&mut self, it: &oxc_ast::ast::ForStatement<'_>, out: &mut Vec<Statement>) -> Lower<()> {
        match &it.init {
            None => {}
            Some(ForStatementInit::VariableDeclaration(declaration)) => {
                if kind_of(declaration)? != Kind::Var {
                    for declarator in &declaration.declarations {
                        self.scopes.announce_pattern(&declarator.id)?;
                    }
                }
                self.declaration(declaration, out)?;
            }
            Some(init) => {
                let init = init.as_expression().ok_or(NotLowered("a for of another kind"))?;
                let init = self.value(init)?;
                out.push(Statement::Do(init));
            }
        }
        let test = it.test.as_ref().map(|test| self.value(test)).transpose()?;
        let update = it.update.as_ref().map(|update| self.value(update)).transpose()?;
        let body = self.loop_body(&it.body)?;
        out.push(Statement::Loop { test, update, body });
        Ok(())
    }

    fn loop_body(&mut self, body: &Js<'_>) -> Lower<Box<[Statement]>> {
        self.loops += 1;
        let body = self.block(body);
        self.loops -= 1;
        body
    }

    /// A statement as a block of its own.
    fn block(&mut self, statement: &Js<'_>) -> Lower<Box<[Statement]>> {
        if matches!(statement, Js::VariableDeclaration(it) if kind_of(it) != Ok(Kind::Var)) {
            return Err(NotLowered("a declaration without a block"));
        }
        let mut out = Vec::new();
        self.deeper(|lowering| lowering.statement(statement, &mut out))?;
        Ok(out.into())
    }

    /// A value during whose computation no list grows.
    fn value(&mut self, expression: &Expression<'_>) -> Lower<Expr> {
        self.without_appends(|lowering| lowering.expression(expression))
    }

    fn expression_statement(&mut self, expression: &Expression<'_>) -> Lower<Statement> {
        if let Some(append) = self.append(expression)? {
            return Ok(append);
        }
        if let Expression::CallExpression(call) = without_parentheses(expression)
            && let Some(for_each) = self.for_each(call)?
        {
            return Ok(Statement::Do(for_each));
        }
        Ok(Statement::Do(self.value(expression)?))
    }

    /// `list.push(values)`, when that is what an expression is.
    pub(super) fn append(&mut self, expression: &Expression<'_>) -> Lower<Option<Statement>> {
        let Expression::CallExpression(call) = without_parentheses(expression) else { return Ok(None) };
        let Some(name) = pushed_name(call) else { return Ok(None) };
        let Some(Known::List { list, functions }) = self.scopes.find(name) else { return Ok(None) };
        if functions < self.appends_from || call.optional {
            return Err(NotLowered("push where the array may be seen"));
        }
        let mut values = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let value = argument.as_expression().ok_or(NotLowered("spread arguments"))?;
            values.push(self.value(value)?);
        }
        Ok(Some(Statement::Append(list, values.into())))
    }

    fn declaration(&mut self, declaration: &VariableDeclaration<'_>, out: &mut Vec<Statement>) -> Lower<()> {
        let kind = kind_of(declaration)?;
        for declarator in &declaration.declarations {
            let Some(name) = declarator.id.get_binding_identifier() else {
                let init = declarator.init.as_ref().ok_or(NotLowered("a pattern without a value"))?;
                let init = self.value(init)?;
                let slot = self.slot()?;
                out.push(Statement::Set(slot, init));
                self.pattern(&declarator.id, slot, kind, out)?;
                continue;
            };
            let name = name.name.as_str();
            if let Some(Expression::ArrayExpression(array)) =
                declarator.init.as_ref().map(without_parentheses)
                && self.pushed.iter().any(|pushed| pushed == name)
            {
                if kind == Kind::Var {
                    return self.list_of_var(name, array.elements.is_empty(), out);
                }
                let mut values = Vec::new();
                for element in &array.elements {
                    let element =
                        element.as_expression().ok_or(NotLowered("a filled array with spread elements"))?;
                    values.push(self.value(element)?);
                }
                let list = self.list(name);
                out.push(Statement::NewList(list));
                if !values.is_empty() {
                    out.push(Statement::Append(list, values.into()));
                }
                continue;
            }
            let value = match (&declarator.init, kind) {
                (Some(init), _) => self.value(init)?,
                (None, Kind::Var) => continue,
                (None, _) => Expr::Missing,
            };
            let slot = self.bind(name, kind)?;
            out.push(Statement::Set(slot, value));
        }
        Ok(())
    }

    fn list(&mut self, name: &str) -> u32 {
        let list = self.lists;
        self.lists += 1;
        self.scopes.declare(name, Known::List { list, functions: self.functions });
        list
    }

    /// `var list = []`: only as a statement of the function itself, for it is seen in all of it.
    fn list_of_var(&mut self, name: &str, is_empty: bool, out: &mut Vec<Statement>) -> Lower<()> {
        if !is_empty
            || !self.scopes.is_own(name)
            || self.loops > 0
            || self.scopes.depth() != self.functions as usize
        {
            return Err(NotLowered("a filled array in a var"));
        }
        let list = self.list(name);
        out.push(Statement::NewList(list));
        Ok(())
    }

    /// The slot of a name that is declared here.
    fn bind(&mut self, name: &str, kind: Kind) -> Lower<Slot> {
        if kind == Kind::Var {
            return match self.scopes.find(name) {
                Some(Known::Variable { slot, is_const: false }) => Ok(slot),
                _ => Err(NotLowered("a var that something else hides")),
            };
        }
        let slot = self.slot()?;
        self.scopes.declare(name, Known::Variable { slot, is_const: kind == Kind::Const });
        Ok(slot)
    }

    /// Takes a value apart into variables.
    pub(super) fn pattern(
        &mut self,
        pattern: &BindingPattern<'_>,
        from: Slot,
        kind: Kind,
        out: &mut Vec<Statement>,
    ) -> Lower<()> {
        self.deeper(|lowering| match pattern {
            BindingPattern::BindingIdentifier(name) => {
                let slot = lowering.bind(&name.name, kind)?;
                out.push(Statement::Set(slot, Expr::Local(from)));
                Ok(())
            }
            BindingPattern::ObjectPattern(object) => {
                if object.rest.is_some() || object.properties.is_empty() {
                    return Err(NotLowered("a pattern with a rest, or an empty one"));
                }
                for property in &object.properties {
                    let name = match &property.key {
                        PropertyKey::StaticIdentifier(name) => lowering.name(&name.name)?,
                        PropertyKey::StringLiteral(text) => lowering.name(&text.value)?,
                        _ => return Err(NotLowered("a computed name in a pattern")),
                    };
                    let slot = lowering.slot()?;
                    let get = Script::Get { target: Expr::Local(from), name, reading: Reading::Plain };
                    out.push(Statement::Set(slot, Expr::Script(Box::new(get))));
                    lowering.pattern(&property.value, slot, kind, out)?;
                }
                Ok(())
            }
            BindingPattern::ArrayPattern(array) => {
                if array.rest.is_some() || array.elements.is_empty() {
                    return Err(NotLowered("a pattern with a rest, or an empty one"));
                }
                for (place, element) in array.elements.iter().enumerate() {
                    let Some(element) = element else { continue };
                    let slot = lowering.slot()?;
                    let get =
                        Script::Function(Function::Element(place as u32), Box::new([Expr::Local(from)]));
                    out.push(Statement::Set(slot, Expr::Script(Box::new(get))));
                    lowering.pattern(element, slot, kind, out)?;
                }
                Ok(())
            }
            BindingPattern::AssignmentPattern(with_default) => {
                let default = lowering.value(&with_default.right)?;
                let slot = lowering.slot()?;
                let is_missing = Script::Binary(Binary::Same, Expr::Local(from), Expr::Missing);
                let value =
                    Script::Conditional(Expr::Script(Box::new(is_missing)), default, Expr::Local(from));
                out.push(Statement::Set(slot, Expr::Script(Box::new(value))));
                lowering.pattern(&with_default.left, slot, kind, out)
            }
        })
    }
}

fn kind_of(declaration: &VariableDeclaration<'_>) -> Lower<Kind> {
    match declaration.kind {
        VariableDeclarationKind::Var => Ok(Kind::Var),
        VariableDeclarationKind::Let => Ok(Kind::Let),
        VariableDeclarationKind::Const => Ok(Kind::Const),
        _ => Err(NotLowered("a using declaration")),
    }
}

/// The names that the `var`s of a function declare.
#[derive(Default)]
struct Variables(Vec<String>);

impl<'a> Visit<'a> for Variables {
    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        if declaration.kind == VariableDeclarationKind::Var {
            for declarator in &declaration.declarations {
                self.0
                    .extend(declarator.id.get_binding_identifiers().iter().map(|name| name.name.to_string()));
            }
        }
    }

    // Those of functions within are theirs.
    fn visit_expression(&mut self, _: &Expression<'a>) {}
}
