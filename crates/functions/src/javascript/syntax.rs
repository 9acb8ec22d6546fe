//! Scripts as text: checked, and rewritten so that reading from nothing gives nothing.
//!
//! To RavenDB's users `order.ShipTo.City` of an order without `ShipTo` is null, in patches and index functions alike, and so it is here: each `a.b` becomes
//! `(a ?? nothing).b`, each `a.b()` becomes `(a ?? callOfNothing).b()`. What already is `a?.b` stays. Nothing else is changed, and no line is moved.
//!
//! The check also makes sure that a script is whole by itself, so that it cannot close the function that it is put into.

use oxc_allocator::Allocator;
use oxc_ast::ast::{AssignmentTarget, SimpleAssignmentTarget};
use oxc_ast::ast::{CallExpression, ChainElement, ChainExpression, Expression, IdentifierReference, Program};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan, SourceType};

use crate::CompileError;

/// The names of what stands for nothing, where scripts see them.
pub(super) const NOTHING: &str = "$nothing";
pub(super) const CALL_OF_NOTHING: &str = "$callOfNothing";

/// Texts beyond this are no scripts.
const TEXT_SIZE_MAX: usize = 4 << 20;
/// Commas that are put in where they are missing, at most.
const REPAIRS_MAX: usize = 64;

/// A text that is a script.
#[derive(Debug)]
pub(super) struct Checked {
    /// The rewritten text.
    pub(super) code: String,
    /// Names it uses that begin with `$`, each once.
    pub(super) parameters: Vec<String>,
}

/// Checks and rewrites a script.
///
/// Error: where and why it is none.
pub(super) fn check(text: &str) -> Result<Checked, CompileError> {
    parse(text, |program| rewrite(text, program))
}

/// Checks that a text is a plain name.
pub(super) fn check_name(name: &str) -> Result<(), CompileError> {
    let mut letters = name.chars();
    let starts = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_' || first == '$');
    if starts && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$') {
        return Ok(());
    }
    Err(error_at("", 0, format!("'{name}' cannot be a name in a script")))
}

/// Parses a text and shows the tree to `read`.
pub(super) fn parse<R>(text: &str, read: impl FnOnce(&Program<'_>) -> R) -> Result<R, CompileError> {
    if text.len() > TEXT_SIZE_MAX {
        let message =
            format!("a script of {} bytes is too long; the longest allowed has {TEXT_SIZE_MAX}", text.len());
        return Err(CompileError { message, line: 1, column: 1, construct: String::new() });
    }
    if let Some(at) = text.find('\0') {
        return Err(error_at(text, at, "a script cannot have a NUL character".to_owned()));
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, text, SourceType::script()).with_options(options).parse();
    match parsed.diagnostics.first() {
        None => Ok(read(&parsed.program)),
        Some(first) => {
            let at = first.labels.first().map_or(0, |label| label.offset() as usize);
            Err(error_at(text, at, first.message.to_string()))
        }
    }
}

/// The text with commas put in between properties where they are missing, which RavenDB's parser does not mind. Any other error is left for [`check`].
pub(super) fn with_missing_commas(text: &str) -> String {
    let mut repaired = text.to_owned();
    for _ in 0..REPAIRS_MAX {
        let allocator = Allocator::default();
        let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
        let parsed = Parser::new(&allocator, &repaired, SourceType::script()).with_options(options).parse();
        let Some(first) = parsed.diagnostics.first() else { break };
        let at = first.labels.first().map(|label| label.offset() as usize);
        let Some(at) =
            at.filter(|at| first.message.contains("Expected `,`") && repaired.is_char_boundary(*at))
        else {
            break;
        };
        repaired.insert(at, ',');
    }
    repaired
}

/// An error at a place of a text.
pub(super) fn error_at(text: &str, at: usize, message: String) -> CompileError {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    CompileError {
        message,
        line: before.matches('\n').count() as u32 + 1,
        column: before[line_start..].chars().count() as u32 + 1,
        construct: String::new(),
    }
}

fn rewrite(text: &str, program: &Program<'_>) -> Checked {
    let mut found = Rewrites::default();
    found.visit_program(program);
    found.insertions.sort_by_key(|(at, _)| *at);
    let mut code = String::with_capacity(text.len() + found.insertions.len() * 12);
    let mut done = 0;
    for (at, insertion) in found.insertions {
        code.push_str(&text[done..at]);
        code.push_str(insertion);
        done = at;
    }
    code.push_str(&text[done..]);
    Checked { code, parameters: found.parameters }
}

#[derive(Default)]
struct Rewrites {
    insertions: Vec<(usize, &'static str)>,
    parameters: Vec<String>,
}

impl Rewrites {
    fn guard(&mut self, object: &Expression<'_>, is_call: bool) {
        if is_something(object) {
            return;
        }
        let span = object.span();
        self.insertions.push((span.start as usize, "("));
        self.insertions
            .push((span.end as usize, if is_call { " ?? $callOfNothing)" } else { " ?? $nothing)" }));
    }

    /// The object of a member expression that is assigned to: what it is read from may be nothing, it itself may not.
    fn target<'a>(&mut self, target: &SimpleAssignmentTarget<'a>) {
        match target {
            SimpleAssignmentTarget::StaticMemberExpression(member) => self.visit_expression(&member.object),
            SimpleAssignmentTarget::ComputedMemberExpression(member) => {
                self.visit_expression(&member.object);
                self.visit_expression(&member.expression);
            }
            other => walk::walk_simple_assignment_target(self, other),
        }
    }

    /// An expression within `a?.b.c`: only what lies below the chain is rewritten.
    fn chained<'a>(&mut self, expression: &Expression<'a>) {
        match expression {
            Expression::StaticMemberExpression(member) => self.chained(&member.object),
            Expression::ComputedMemberExpression(member) => {
                self.chained(&member.object);
                self.visit_expression(&member.expression);
            }
            Expression::CallExpression(call) => self.chained_call(call),
            other => self.visit_expression(other),
        }
    }

    fn chained_call<'a>(&mut self, call: &CallExpression<'a>) {
        self.chained(&call.callee);
        self.visit_arguments(&call.arguments);
    }
}

/// Whether an expression is never null or undefined.
fn is_something(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::Identifier(name) => matches!(
            name.name.as_str(),
            "Math"
                | "JSON"
                | "Object"
                | "Array"
                | "String"
                | "Number"
                | "Boolean"
                | "Date"
                | "RegExp"
                | "Reflect"
                | "Symbol"
                | "Map"
                | "Set"
                | "BigInt"
                | "spatial"
                | "includes"
                | "console"
                | "noTracking"
                | "args"
                | "timeSeries"
                | "counters"
        ),
        Expression::ThisExpression(_)
        | Expression::Super(_)
        | Expression::StringLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::TemplateLiteral(_)
        | Expression::RegExpLiteral(_)
        | Expression::ArrayExpression(_)
        | Expression::NewExpression(_) => true,
        Expression::ParenthesizedExpression(inner) => is_something(&inner.expression),
        _ => false,
    }
}

impl<'a> Visit<'a> for Rewrites {
    fn visit_static_member_expression(&mut self, it: &oxc_ast::ast::StaticMemberExpression<'a>) {
        self.guard(&it.object, false);
        walk::walk_static_member_expression(self, it);
    }

    fn visit_computed_member_expression(&mut self, it: &oxc_ast::ast::ComputedMemberExpression<'a>) {
        self.guard(&it.object, false);
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        match &it.callee {
            Expression::StaticMemberExpression(member) => {
                self.guard(&member.object, true);
                self.visit_expression(&member.object);
                self.visit_arguments(&it.arguments);
            }
            Expression::ComputedMemberExpression(member) => {
                self.guard(&member.object, true);
                self.visit_expression(&member.object);
                self.visit_expression(&member.expression);
                self.visit_arguments(&it.arguments);
            }
            _ => walk::walk_call_expression(self, it),
        }
    }

    fn visit_simple_assignment_target(&mut self, it: &SimpleAssignmentTarget<'a>) {
        self.target(it);
    }

    fn visit_assignment_target(&mut self, it: &AssignmentTarget<'a>) {
        match it.as_simple_assignment_target() {
            Some(simple) => self.target(simple),
            None => walk::walk_assignment_target(self, it),
        }
    }

    fn visit_chain_expression(&mut self, it: &ChainExpression<'a>) {
        match &it.expression {
            ChainElement::CallExpression(call) => self.chained_call(call),
            ChainElement::StaticMemberExpression(member) => self.chained(&member.object),
            ChainElement::ComputedMemberExpression(member) => {
                self.chained(&member.object);
                self.visit_expression(&member.expression);
            }
            other => walk::walk_chain_element(self, other),
        }
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        let name = it.name.as_str();
        if name.len() > 1 && name.starts_with('$') && !self.parameters.iter().any(|known| known == name) {
            self.parameters.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn rewritten(text: &str, expected: &str) {
        let expected = expected.replace("|n)", " ?? $nothing)").replace("|c)", " ?? $callOfNothing)");
        assert_eq!(check(text).unwrap().code, expected);
    }

    #[test]
    fn reading_from_nothing() {
        rewritten("this.a", "this.a");
        rewritten("x.a", "(x|n).a");
        rewritten("this.a.b.c", "((this.a|n).b|n).c");
        rewritten("this.a.b()", "(this.a|c).b()");
        rewritten("a[b.c].d", "((a|n)[(b|n).c]|n).d");
        rewritten("a?.b.c", "a?.b.c");
        rewritten("a?.b(c.d)", "a?.b((c|n).d)");
        rewritten("this.a.b = c.d", "this.a.b = (c|n).d");
        rewritten("this.a.b.c += 1", "(this.a|n).b.c += 1");
        rewritten("this.a.b++", "this.a.b++");
        rewritten("delete this.a.b", "delete (this.a|n).b");
        rewritten("Math.max(1)", "Math.max(1)");
        rewritten("new a.B(c.d)", "new (a|n).B((c|n).d)");
        rewritten("'x'.length", "'x'.length");
        rewritten("[x.a, this.b.c] = d.e", "[x.a, this.b.c] = (d|n).e");
        rewritten("for (x.y of z.w) ;", "for (x.y of (z|n).w) ;");
        rewritten("`${a.b}`", "`${(a|n).b}`");
        rewritten("f(x => x.y)", "f(x => (x|n).y)");
    }

    #[test]
    fn errors_say_where() {
        for (text, line, column) in
            [("this.a = ;", 1, 10), ("var a = 5;\nvar b = }", 2, 9), ("}); x(function () {", 1, 1)]
        {
            let error = check(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        }
        assert!(check("a\0b").unwrap_err().message.contains("NUL"));
    }

    #[test]
    fn missing_commas() {
        let text = "({ a: g.key.a\n b: 1 c: 2, d: f(1) })";
        let repaired = with_missing_commas(text);
        assert_eq!(repaired, "({ a: g.key.a\n ,b: 1 ,c: 2, d: f(1) })");
        assert!(check(&repaired).is_ok());
        assert_eq!(with_missing_commas("({ a: }"), "({ a: }");
    }

    #[test]
    fn parameters_are_found() {
        assert_eq!(check("this.a = $b + $c.d; this.$e = $b").unwrap().parameters, ["$b", "$c"]);
    }
}
