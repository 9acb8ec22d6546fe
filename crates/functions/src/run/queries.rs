//! Query expressions: clauses as loops in each other.

use super::list::List;
use super::sequences::by_keys;
use super::{Run, Step, fault};
use crate::program::{Clause, Query, QueryResult};
use crate::value::Value;

/// What a query has returned so far.
struct Output<'r> {
    /// The values of `select`, or the elements of `group`.
    values: List<'r>,
    /// The keys of `group`.
    keys: Vec<Value<'r>>,
    /// What came as far as an `orderby`: its keys, and the variables to go on with.
    rows: Vec<(Vec<Value<'r>>, Vec<Value<'r>>)>,
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    pub(super) fn query(&mut self, query: &'r Query) -> Step<Value<'r>> {
        let mut output = Output { values: List::new(self.arena), keys: Vec::new(), rows: Vec::new() };
        self.clauses(query, &query.clauses, &mut output)?;
        for (place, clause) in query.clauses.iter().enumerate() {
            let Clause::OrderBy { keys, slots } = clause else { continue };
            let mut rows = std::mem::take(&mut output.rows);
            rows.sort_by(|(a, _), (b, _)| by_keys(a, b, keys.iter().map(|(_, descending)| *descending)));
            for (_, variables) in rows {
                for (slot, value) in slots.iter().zip(variables) {
                    self.set(*slot, value);
                }
                self.clauses(query, &query.clauses[place + 1..], &mut output)?;
            }
        }
        let Output { values, keys, .. } = output;
        let values = values.done();
        match query.result {
            QueryResult::Select(_) => Ok(Value::Array(values)),
            QueryResult::Group { .. } => {
                let pairs = keys.into_iter().zip(values.iter().copied());
                Ok(Value::Array(self.groups(pairs)?))
            }
        }
    }

    fn clauses(&mut self, query: &'r Query, clauses: &'r [Clause], output: &mut Output<'r>) -> Step<()> {
        let Some((clause, rest)) = clauses.split_first() else {
            match &query.result {
                QueryResult::Select(value) => {
                    let value = self.eval(value)?;
                    output.values.push(value);
                }
                QueryResult::Group { element, key } => {
                    let key = self.eval(key)?;
                    output.keys.push(key);
                    let element = self.eval(element)?;
                    output.values.push(element);
                }
            }
            return Ok(());
        };
        match clause {
            Clause::From { slot, source, line } => {
                let source = self.eval(source)?;
                if matches!(source, Value::Text(_)) {
                    return Err(fault("a string is no sequence", *line));
                }
                let mut elements = self.elements(source, *line)?;
                while let Some(value) = self.next(&mut elements) {
                    self.step()?;
                    self.set(*slot, value);
                    self.clauses(query, rest, output)?;
                }
                Ok(())
            }
            Clause::Let { slot, value } => {
                let value = self.eval(value)?;
                self.set(*slot, value);
                self.clauses(query, rest, output)
            }
            Clause::Where(condition) => {
                if self.condition(condition)? {
                    self.clauses(query, rest, output)?;
                }
                Ok(())
            }
            Clause::Join { slot, source, outer, inner, into, line } => {
                let source = self.eval(source)?;
                let key = self.eval(outer)?;
                let mut elements = self.elements(source, *line)?;
                let mut matches = List::new(self.arena);
                while let Some(value) = self.next(&mut elements) {
                    self.step()?;
                    self.set(*slot, value);
                    let other = self.eval(inner)?;
                    if !key.is_null() && super::compare::same(&key, &other) {
                        matches.push(value);
                    }
                }
                let matches = matches.done();
                if let Some(into) = into {
                    self.set(*into, Value::Array(matches));
                    return self.clauses(query, rest, output);
                }
                for value in matches {
                    self.set(*slot, *value);
                    self.clauses(query, rest, output)?;
                }
                Ok(())
            }
            // Sorting needs all rows; they go on from there.
            Clause::OrderBy { keys, slots } => {
                let mut row = Vec::with_capacity(keys.len());
                for (key, _) in keys {
                    row.push(self.eval(key)?);
                }
                output.rows.push((row, slots.iter().map(|slot| self.local(*slot)).collect()));
                Ok(())
            }
        }
    }
}
