//! Query expressions: `from`, `let`, `where`, `join`, `orderby`, `group`, `select`, `into`.

use tree_sitter::Node;

use super::lower::{Lower, Lowering};
use super::syntax::{children, named};
use crate::program::{Clause, Expr, Query, QueryResult};

impl Lowering<'_> {
    pub(super) fn query(&mut self, node: Node<'_>) -> Lower<Expr> {
        let scope = self.enter();
        let result = self.query_in_scope(node, scope);
        self.leave(scope);
        result
    }

    fn query_in_scope(&mut self, node: Node<'_>, scope: usize) -> Lower<Expr> {
        let mut clauses = Vec::new();
        let mut result = None;
        for clause in named(node) {
            match clause.kind() {
                "from_clause" if result.is_none() => {
                    let clause = self.from(clause)?;
                    clauses.push(clause);
                }
                "let_clause" => {
                    let parts = named(clause);
                    let [name, value] = parts[..] else { return Err(self.unsupported(clause, "let")) };
                    let value = self.expression(value)?;
                    clauses.push(Clause::Let { slot: self.declare(name, self.text(name))?, value });
                }
                "where_clause" => {
                    let condition = self.only_child(clause)?;
                    let condition = self.expression(condition)?;
                    let is_root =
                        matches!(clauses.first(), Some(Clause::From { source, .. }) if source.is_rooted());
                    clauses.push(Clause::Where(if is_root {
                        condition.into_root_condition()
                    } else {
                        condition
                    }));
                }
                "order_by_clause" => {
                    let mut keys: Vec<(Expr, bool)> = Vec::new();
                    for part in children(clause) {
                        if part.is_named() {
                            keys.push((self.expression(part)?, false));
                        } else if part.kind() == "descending"
                            && let Some(key) = keys.last_mut()
                        {
                            key.1 = true;
                        }
                    }
                    clauses.push(Clause::OrderBy { keys: keys.into(), slots: self.slots_since(scope) });
                }
                "join_clause" => {
                    let clause = self.join(clause)?;
                    clauses.push(clause);
                }
                "select_clause" => {
                    let value = self.only_child(clause)?;
                    result = Some(QueryResult::Select(self.expression(value)?));
                }
                "group_clause" => {
                    let parts = named(clause);
                    let [element, key] = parts[..] else { return Err(self.unsupported(clause, "group")) };
                    result = Some(QueryResult::Group {
                        element: self.expression(element)?,
                        key: self.expression(key)?,
                    });
                }
                // `into g`: what was computed so far is what the rest runs over.
                "identifier" if result.is_some() => {
                    let Some(done) = result.take() else { return Err(self.unsupported(clause, "into")) };
                    let query = Query { clauses: std::mem::take(&mut clauses).into(), result: done };
                    self.leave(scope);
                    let line = self.line(clause);
                    let slot = self.declare(clause, self.text(clause))?;
                    clauses.push(Clause::From { slot, source: Expr::Query(Box::new(query)), line });
                }
                kind => return Err(self.unsupported(clause, kind.trim_end_matches("_clause"))),
            }
        }
        let Some(result) = result else {
            return Err(self.refuse(node, "from", "a query ends in `select` or `group`".to_owned()));
        };
        Ok(Expr::Query(Box::new(Query { clauses: clauses.into(), result })))
    }

    fn from(&mut self, clause: Node<'_>) -> Lower<Clause> {
        let name = self.field(clause, "name")?;
        let Some(source) = named(clause).into_iter().last() else {
            return Err(self.unsupported(clause, "from"));
        };
        let source = self.expression(source)?;
        Ok(Clause::From { slot: self.declare(name, self.text(name))?, source, line: self.line(clause) })
    }

    /// `join y in source on outer equals inner [into g]`.
    fn join(&mut self, clause: Node<'_>) -> Lower<Clause> {
        let parts = named(clause);
        let group = parts.iter().find(|part| part.kind() == "join_into_clause").copied();
        // With a type the variable stands second.
        let of_type = clause.child_by_field_name("type").is_some();
        let parts: Vec<_> = parts
            .into_iter()
            .filter(|part| part.kind() != "join_into_clause")
            .skip(usize::from(of_type))
            .collect();
        let [name, source, outer, inner] = parts[..] else { return Err(self.unsupported(clause, "join")) };
        let source = self.expression(source)?;
        let outer = self.expression(outer)?;
        let scope = self.enter();
        let slot = self.declare(name, self.text(name))?;
        let inner = self.expression(inner)?;
        let line = self.line(clause);
        match group {
            None => Ok(Clause::Join { slot, source, outer, inner, into: None, line }),
            Some(into) => {
                // The single match is not seen after the clause, only the group of all.
                self.leave(scope);
                let name = self.only_child(into)?;
                let into = self.declare(name, self.text(name))?;
                Ok(Clause::Join { slot, source, outer, inner, into: Some(into), line })
            }
        }
    }
}
