//! `is` and `switch` with patterns.

use tree_sitter::Node;

use super::lower::{Lower, Lowering};
use super::syntax::named;
use crate::program::{Comparison, Expr, Slot};

impl Lowering<'_> {
    pub(super) fn is_pattern(&mut self, node: Node<'_>) -> Lower<Expr> {
        let subject = self.field(node, "expression")?;
        let pattern = self.field(node, "pattern")?;
        let subject = self.expression(subject)?;
        let scope = self.enter();
        let slot = self.declare(node, "")?;
        let test = self.pattern(slot, pattern)?;
        self.leave(scope);
        Ok(Expr::Block { variables: [(slot, subject)].into(), result: Box::new(test) })
    }

    pub(super) fn switch(&mut self, node: Node<'_>) -> Lower<Expr> {
        let parts = named(node);
        let Some((subject, arms)) = parts.split_first() else { return Err(self.unsupported(node, "switch")) };
        let subject = self.expression(*subject)?;
        let scope = self.enter();
        let slot = self.declare(node, "")?;
        let mut tests = Vec::new();
        for arm in arms.iter().filter(|arm| arm.kind() == "switch_expression_arm") {
            let parts = named(*arm);
            let (pattern, when, value) = match parts[..] {
                [pattern, value] => (pattern, None, value),
                [pattern, when, value] => (pattern, Some(when), value),
                _ => return Err(self.unsupported(*arm, "switch arm")),
            };
            let mut test = self.pattern(slot, pattern)?;
            if let Some(when) = when {
                let condition = self.only_child(when)?;
                test = Expr::And(Box::new((test, self.expression(condition)?)));
            }
            tests.push((test, self.expression(value)?));
        }
        self.leave(scope);
        // Without an arm that fits, C# throws; here the value is null, as everywhere where something is not there.
        let result = tests
            .into_iter()
            .rev()
            .fold(Expr::Null, |rest, (test, value)| Expr::Conditional(Box::new((test, value, rest))));
        Ok(Expr::Block { variables: [(slot, subject)].into(), result: Box::new(result) })
    }

    /// Whether the variable fits the pattern.
    fn pattern(&mut self, slot: Slot, node: Node<'_>) -> Lower<Expr> {
        let line = self.line(node);
        match node.kind() {
            "discard" => Ok(Expr::Bool(true)),
            "parenthesized_pattern" => {
                let inner = self.only_child(node)?;
                self.pattern(slot, inner)
            }
            "negated_pattern" => {
                let inner = self.only_child(node)?;
                Ok(Expr::Not(Box::new(self.pattern(slot, inner)?), line))
            }
            "and_pattern" | "or_pattern" => {
                let (left, right) = (self.field(node, "left")?, self.field(node, "right")?);
                let pair = Box::new((self.pattern(slot, left)?, self.pattern(slot, right)?));
                Ok(if node.kind() == "and_pattern" { Expr::And(pair) } else { Expr::Or(pair) })
            }
            "relational_pattern" => {
                let operator = match node.child(0).map(|child| self.text(child)) {
                    Some("<") => Comparison::Less,
                    Some("<=") => Comparison::LessOrEqual,
                    Some(">") => Comparison::Greater,
                    Some(">=") => Comparison::GreaterOrEqual,
                    _ => return Err(self.unsupported(node, "pattern")),
                };
                let inner = self.only_child(node)?;
                Ok(Expr::Compare(operator, Box::new((Expr::Local(slot), self.expression(inner)?)), line))
            }
            "constant_pattern" => {
                let inner = self.only_child(node)?;
                if inner.kind() == "predefined_type"
                    || (inner.kind() == "identifier" && self.type_of(inner).is_ok())
                {
                    return Ok(Expr::Is(self.type_of(inner)?.0, Box::new(Expr::Local(slot))));
                }
                let value = self.expression(inner)?;
                Ok(Expr::Compare(Comparison::Equal, Box::new((Expr::Local(slot), value)), line))
            }
            "type_pattern" => {
                let of = self.only_child(node)?;
                Ok(Expr::Is(self.type_of(of)?.0, Box::new(Expr::Local(slot))))
            }
            kind => Err(self.unsupported(node, &kind.replace('_', " "))),
        }
    }
}
