//! Expressions with JavaScript's rules.
//!
//! A number is a [`Value::Double`], `undefined` is [`Value::Missing`]; documents are read in place. Where an answer would need more than is here (an error with its
//! message, half of a surrogate pair, the identity of objects), the run is declined: it ends with an error, nothing was given to anybody, and QuickJS runs the
//! function over the document instead. So whatever a run returns is what QuickJS returns.

mod arrays;
mod functions;
mod members;
mod numbers;
mod operators;
mod results;
mod texts;

use crate::error::RuntimeError;
use crate::program::script::{Reading, Script, Statement};
use crate::program::{Expr, Lambda};
use crate::value::Value;

use super::list::List;
use super::{Fault, Run, Step};

pub(crate) use texts::is_object_name;

/// What goes on after a statement.
enum Flow<'r> {
    Next,
    Return(Value<'r>),
    Break,
    Continue,
}

/// The run does not know the answer.
#[cold]
pub(super) fn declined() -> Fault {
    Box::new(RuntimeError::Value { message: String::new(), line: 0 })
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    pub(super) fn script(&mut self, script: &'r Script) -> Step<Value<'r>> {
        match script {
            Script::Get { .. } | Script::GetComputed { .. } | Script::Call { .. } => {
                // A chain that ends early is held by its `Chain`; outside of one nothing does.
                Ok(self.link(script)?.unwrap_or(Value::Missing))
            }
            Script::Chain(link) => match link {
                Expr::Script(link) => Ok(self.link(link)?.unwrap_or(Value::Missing)),
                link => self.eval(link),
            },
            Script::Unary(operator, value) => {
                let value = self.eval(value)?;
                self.unary(*operator, value)
            }
            Script::Binary(operator, left, right) => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                self.binary(*operator, left, right)
            }
            Script::And(left, right) => {
                let left = self.eval(left)?;
                if operators::is_truthy(&left) { self.eval(right) } else { Ok(left) }
            }
            Script::Or(left, right) => {
                let left = self.eval(left)?;
                if operators::is_truthy(&left) { Ok(left) } else { self.eval(right) }
            }
            Script::Coalesce(left, right) => match self.eval(left)? {
                Value::Missing | Value::Null => self.eval(right),
                left => Ok(left),
            },
            Script::Conditional(condition, then, otherwise) => {
                let condition = self.eval(condition)?;
                self.eval(if operators::is_truthy(&condition) { then } else { otherwise })
            }
            Script::Sequence(values) => {
                let mut last = Value::Missing;
                for value in values {
                    last = self.eval(value)?;
                }
                Ok(last)
            }
            Script::Template { texts, values } => self.template(texts, values),
            Script::Object(parts) => self.made_object(parts),
            Script::Spread(elements) => self.spread(elements),
            Script::Assign(slot, value) => {
                let value = self.eval(value)?;
                self.set(*slot, value);
                Ok(value)
            }
            Script::Update(slot, by) => {
                let value = self.local(*slot);
                let before = self.script_number(&value)?;
                self.set(*slot, Value::Double(before + by));
                Ok(Value::Double(before))
            }
            Script::Function(function, args) => self.script_function(*function, args),
            Script::List(list) => {
                let list = self.lists.get(*list as usize).ok_or_else(declined)?;
                self.check_memory(size_of_val(list.so_far()))?;
                Ok(Value::Array(self.arena.alloc_slice_copy(list.so_far())))
            }
            Script::ListLength(list) => {
                let list = self.lists.get(*list as usize).ok_or_else(declined)?;
                Ok(Value::Double(list.len() as f64))
            }
            Script::Body(statements) => match self.statements(statements)? {
                Flow::Return(value) => Ok(value),
                _ => Ok(Value::Missing),
            },
            Script::Aggregate { key, result } => self.group_and_aggregate(key, result),
        }
    }

    /// A link of a chain; `None` when the chain ended at a `?.`.
    fn link(&mut self, script: &'r Script) -> Step<Option<Value<'r>>> {
        match script {
            Script::Get { target, name, reading } => match self.below(target, *reading)? {
                Below::Value(target) => self.property(target, *name).map(Some),
                Below::Nothing => {
                    let is_length = &*self.program.names[*name as usize] == "length";
                    Ok(Some(if is_length { Value::Double(0.0) } else { Value::Null }))
                }
                Below::End => Ok(None),
            },
            Script::GetComputed { target, key, reading } => match self.below(target, *reading)? {
                Below::Value(target) => {
                    let key = self.eval(key)?;
                    self.computed_property(target, key).map(Some)
                }
                Below::Nothing => {
                    let key = self.eval(key)?;
                    let is_length = matches!(key, Value::Text("length"));
                    if operators::is_object(&key) {
                        return Err(declined());
                    }
                    Ok(Some(if is_length { Value::Double(0.0) } else { Value::Null }))
                }
                Below::End => Ok(None),
            },
            Script::Call { target, method, args, reading } => match self.below(target, *reading)? {
                Below::Value(target) => self.method(target, *method, args).map(Some),
                Below::Nothing => self.method_of_nothing(*method, args).map(Some),
                Below::End => Ok(None),
            },
            _ => Err(declined()),
        }
    }

    /// What stands before a `.`.
    #[inline]
    fn below(&mut self, target: &'r Expr, reading: Reading) -> Step<Below<'r>> {
        let target = match (target, reading) {
            (Expr::Script(link), Reading::Optional | Reading::Plain)
                if matches!(
                    **link,
                    Script::Get { .. } | Script::GetComputed { .. } | Script::Call { .. }
                ) =>
            {
                match self.link(link)? {
                    Some(value) => value,
                    None => return Ok(Below::End),
                }
            }
            (target, _) => self.eval(target)?,
        };
        match (target, reading) {
            (Value::Missing | Value::Null, Reading::Guarded) => Ok(Below::Nothing),
            (Value::Missing | Value::Null, Reading::Optional) => Ok(Below::End),
            (Value::Missing | Value::Null, Reading::Plain) => Err(declined()),
            (target, _) => Ok(Below::Value(target)),
        }
    }

    fn statements(&mut self, statements: &'r [Statement]) -> Step<Flow<'r>> {
        for statement in statements {
            match statement {
                Statement::Set(slot, value) => {
                    let value = self.eval(value)?;
                    self.set(*slot, value);
                }
                Statement::Do(value) => {
                    self.eval(value)?;
                }
                Statement::If(condition, then, otherwise) => {
                    let condition = self.eval(condition)?;
                    let branch = if operators::is_truthy(&condition) { then } else { otherwise };
                    match self.statements(branch)? {
                        Flow::Next => {}
                        flow => return Ok(flow),
                    }
                }
                Statement::Return(value) => return Ok(Flow::Return(self.eval(value)?)),
                Statement::ForOf { slot, source, body } => {
                    let source = self.eval(source)?;
                    let items = arrays::Items::of(&source).ok_or_else(declined)?;
                    for at in 0..items.len() {
                        self.step()?;
                        let item = self.item(&items, at);
                        self.set(*slot, item);
                        match self.statements(body)? {
                            Flow::Next | Flow::Continue => {}
                            Flow::Break => break,
                            flow @ Flow::Return(_) => return Ok(flow),
                        }
                    }
                }
                Statement::Loop { test, update, body } => loop {
                    self.step()?;
                    if let Some(test) = test {
                        let test = self.eval(test)?;
                        if !operators::is_truthy(&test) {
                            break;
                        }
                    }
                    match self.statements(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        flow @ Flow::Return(_) => return Ok(flow),
                    }
                    if let Some(update) = update {
                        self.eval(update)?;
                    }
                },
                Statement::Break => return Ok(Flow::Break),
                Statement::Continue => return Ok(Flow::Continue),
                Statement::NewList(list) => {
                    let list = self.lists.get_mut(*list as usize).ok_or_else(declined)?;
                    *list = List::new(self.arena);
                }
                Statement::Append(list, values) => {
                    for value in values {
                        self.step()?;
                        let value = self.eval(value)?;
                        self.lists.get_mut(*list as usize).ok_or_else(declined)?.push(value);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Calls a function with an element, its place and, for `reduce`, what was gathered before.
    #[inline]
    fn call_back(&mut self, lambda: &'r Lambda, values: &[Value<'r>]) -> Step<Value<'r>> {
        self.step()?;
        for (slot, value) in lambda.parameters.iter().zip(values) {
            self.set(*slot, *value);
        }
        self.eval(&lambda.body)
    }
}

enum Below<'r> {
    Value(Value<'r>),
    /// Null or undefined, of which reading gives nothing.
    Nothing,
    /// Null or undefined before a `?.`, or the chain ended before.
    End,
}
