//! Running a program: a walk over its expressions, with values in place and everything computed in an arena that the next run uses again.

mod arithmetic;
mod calls;
mod compare;
mod convert;
mod dates;
pub(crate) mod format;
mod functions;
mod list;
mod members;
mod numbers;
mod queries;
pub(crate) mod script;
mod sequences;
mod texts;

use bumpalo::Bump;
use jackdaw_document::Property;

use crate::error::RuntimeError;
use crate::input::Host;
use crate::limits::Limits;
use crate::program::{Comparison, Expr, Lambda, Program, Slot};
use crate::value::Value;

use list::List;

/// A boxed error: results are returned at every step, so they are kept small.
pub(crate) type Fault = Box<RuntimeError>;

/// The result of every step.
pub(crate) type Step<T> = Result<T, Fault>;

/// What runs of one program keep from one to the next.
pub(crate) struct Memory {
    arena: Bump,
    properties: Vec<Property>,
}

/// An arena that a large document has grown beyond this is given back after the run.
const ARENA_KEPT_BYTES_MAX: usize = 4 << 20;

impl Memory {
    pub(crate) fn new(program: &Program) -> Memory {
        let properties = program.names.iter().map(|name| Property::new(name)).collect();
        Memory { arena: Bump::new(), properties }
    }

    /// Takes back what the last run used.
    pub(crate) fn reset(&mut self) {
        if self.arena.allocated_bytes() > ARENA_KEPT_BYTES_MAX {
            self.arena = Bump::new();
        } else {
            self.arena.reset();
        }
    }

    pub(crate) fn arena(&self) -> &Bump {
        &self.arena
    }
}

/// One run of a program.
pub(crate) struct Run<'r, 'd, 'h> {
    program: &'r Program,
    properties: &'r [Property],
    pub(crate) arena: &'r Bump,
    locals: &'r mut [Value<'r>],
    source: Value<'r>,
    host: &'h mut dyn Host<'d>,
    steps_left: u64,
    limits: Limits,
    /// The arrays that a function fills.
    lists: Vec<List<'r>>,
}

impl<'r, 'd: 'r, 'h> Run<'r, 'd, 'h> {
    pub(crate) fn new(
        program: &'r Program,
        memory: &'r Memory,
        source: Value<'r>,
        host: &'h mut dyn Host<'d>,
        limits: Limits,
    ) -> Run<'r, 'd, 'h> {
        let locals = memory.arena.alloc_slice_fill_copy(program.slots as usize, Value::Missing);
        Run {
            program,
            properties: &memory.properties,
            arena: &memory.arena,
            locals,
            source,
            host,
            steps_left: limits.steps_max,
            limits,
            lists: (0..program.lists).map(|_| List::new(&memory.arena)).collect(),
        }
    }

    /// The program's result.
    pub(crate) fn body(&mut self) -> Step<Value<'r>> {
        let program = self.program;
        self.eval(&program.body)
    }

    /// The elements of a result.
    pub(crate) fn all_of(&mut self, value: Value<'r>) -> Step<&'r [Value<'r>]> {
        self.values_of(value, 0)
    }

    /// The fields of a value that is an object or document; a document's metadata is none.
    pub(crate) fn fields_of(&mut self, value: Value<'r>) -> Step<&'r [(&'r str, Value<'r>)]> {
        let object = match value {
            Value::Object(fields) => return Ok(fields),
            Value::Document(input) => input.document.object(),
            Value::Json(json) => json.as_object(),
            _ => None,
        };
        let Some(object) = object else {
            return Err(fault(format!("a function returns objects, not {}", kind_of(&value)), 0));
        };
        let fields: Vec<_> = object
            .iter()
            .filter(|(name, _)| *name != "@metadata")
            .map(|(name, value)| (self.text_in(&name), self.value_of(value)))
            .collect();
        Ok(self.arena.alloc_slice_copy(&fields))
    }

    pub(crate) fn eval(&mut self, expr: &'r Expr) -> Step<Value<'r>> {
        match expr {
            Expr::Local(slot) => Ok(self.local(*slot)),
            Expr::Member { target, name, known, line } => {
                let target = self.eval(target)?;
                self.member(target, *name, *known, *line)
            }
            Expr::Null => Ok(Value::Null),
            Expr::Bool(value) => Ok(Value::Bool(*value)),
            Expr::Long(value) => Ok(Value::Long(*value)),
            Expr::Double(value) => Ok(Value::Double(*value)),
            Expr::Decimal(value) => Ok(Value::Decimal(*value)),
            Expr::Text(value) => Ok(Value::Text(value)),
            Expr::Date(value) => Ok(Value::Date(*value)),
            Expr::TimeSpan(value) => Ok(Value::TimeSpan(*value)),
            Expr::Source => Ok(self.source),
            Expr::Object { names, values } => self.object(names, values),
            Expr::Query(query) => self.query(query),
            Expr::Call { method, args, line } => self.call(*method, args, *line),
            Expr::Function { function, args, line } => self.function(*function, args, *line),
            Expr::Conditional(parts) => {
                let (condition, then, otherwise) = &**parts;
                if self.condition(condition)? { self.eval(then) } else { self.eval(otherwise) }
            }
            Expr::And(pair) => self.and(pair),
            Expr::Or(pair) => self.or(pair),
            Expr::Coalesce(pair) => match self.eval(&pair.0)? {
                Value::Null | Value::Missing => self.eval(&pair.1),
                value => Ok(value),
            },
            Expr::Compare(comparison, pair, line) => self.comparison(*comparison, pair, *line),
            Expr::Arithmetic(operator, pair, line) => {
                let left = self.eval(&pair.0)?;
                let right = self.eval(&pair.1)?;
                self.arithmetic(*operator, left, right, *line)
            }
            Expr::Not(value, line) => match self.eval(value)? {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                value @ (Value::Null | Value::Missing) => Ok(value),
                value => Err(fault(format!("`!` cannot be applied to {}", kind_of(&value)), *line)),
            },
            Expr::UnlessFalse(condition) => match self.eval(condition)? {
                value @ Value::Bool(_) => Ok(value),
                Value::Null | Value::Missing => Ok(Value::Bool(true)),
                value => Err(fault(format!("a condition is true or false, not {}", kind_of(&value)), 0)),
            },
            Expr::Negate(value, line) => {
                let value = self.eval(value)?;
                self.negate(value, *line)
            }
            Expr::Cast { to, nullable, value, line } => {
                let value = self.eval(value)?;
                self.cast(*to, *nullable, value, *line)
            }
            Expr::Is(of, value) => {
                let value = self.eval(value)?;
                Ok(Value::Bool(convert::is_of(*of, &value)))
            }
            Expr::As(of, value) => {
                let value = self.eval(value)?;
                Ok(if convert::is_of(*of, &value) { value } else { Value::Null })
            }
            Expr::Index { target, index, line } => {
                let target = self.eval(target)?;
                let index = self.eval(index)?;
                self.index(target, index, *line)
            }
            Expr::Array(values) => {
                let mut list = List::with_room(self.arena, values.len());
                for value in values {
                    let value = self.eval(value)?;
                    list.push(value);
                }
                Ok(Value::Array(list.done()))
            }
            Expr::Dictionary(pairs, line) => self.dictionary(pairs, *line),
            Expr::Formatted { value, width, format, line } => {
                let value = self.eval(value)?;
                let text = format::with_format(&value, format).map_err(|message| fault(message, *line))?;
                Ok(Value::Text(self.keep(&format::padded(text, *width))?))
            }
            Expr::Sort { source, keys, line } => {
                let source = self.eval(source)?;
                self.sort(source, keys, *line)
            }
            Expr::Block { variables, result } => {
                for (slot, value) in variables {
                    let value = self.eval(value)?;
                    self.set(*slot, value);
                }
                self.eval(result)
            }
            Expr::Missing => Ok(Value::Missing),
            Expr::Script(script) => self.script(script),
            Expr::Lambda(_) => Err(fault("a lambda is no value", 0)),
        }
    }

    #[inline]
    fn local(&self, slot: Slot) -> Value<'r> {
        self.locals.get(slot as usize).copied().unwrap_or(Value::Missing)
    }

    #[inline]
    fn set(&mut self, slot: Slot, value: Value<'r>) {
        if let Some(local) = self.locals.get_mut(slot as usize) {
            *local = value;
        }
    }

    /// Calls a lambda with one argument.
    #[inline]
    fn apply(&mut self, lambda: &'r Lambda, value: Value<'r>) -> Step<Value<'r>> {
        self.step()?;
        if let Some(slot) = lambda.parameters.first() {
            self.set(*slot, value);
        }
        self.eval(&lambda.body)
    }

    /// Calls a lambda with two arguments, or with the first where it takes one.
    fn apply2(&mut self, lambda: &'r Lambda, first: Value<'r>, second: Value<'r>) -> Step<Value<'r>> {
        if let Some(slot) = lambda.parameters.get(1) {
            self.set(*slot, second);
        }
        self.apply(lambda, first)
    }

    /// Counts a step of work that a document may repeat.
    #[inline]
    fn step(&mut self) -> Step<()> {
        match self.steps_left.checked_sub(1) {
            Some(left) => {
                self.steps_left = left;
                if left & 0x3FF == 0 { self.check_memory(0) } else { Ok(()) }
            }
            None => Err(Box::new(RuntimeError::Limit { what: "steps", limit: self.limits.steps_max })),
        }
    }

    /// Fails when the run has used the memory it may use, or would by `more` bytes.
    fn check_memory(&self, more: usize) -> Step<()> {
        if self.arena.allocated_bytes().saturating_add(more) > self.limits.memory_bytes_max {
            let limit = self.limits.memory_bytes_max as u64;
            return Err(Box::new(RuntimeError::Limit { what: "bytes of memory", limit }));
        }
        Ok(())
    }

    /// Keeps a text for the rest of the run.
    fn keep(&self, text: &str) -> Step<&'r str> {
        if text.len() > 4096 {
            self.check_memory(text.len())?;
        }
        Ok(self.arena.alloc_str(text))
    }

    /// Whether a condition holds; null does not.
    fn condition(&mut self, expr: &'r Expr) -> Step<bool> {
        Ok(match expr {
            Expr::And(pair) => self.condition(&pair.0)? && self.condition(&pair.1)?,
            Expr::Or(pair) => self.condition(&pair.0)? || self.condition(&pair.1)?,
            expr => matches!(self.eval(expr)?, Value::Bool(true)),
        })
    }

    /// As RavenDB has it, null on the left is the result.
    fn and(&mut self, pair: &'r (Expr, Expr)) -> Step<Value<'r>> {
        match self.eval(&pair.0)? {
            Value::Bool(true) => self.eval(&pair.1),
            Value::Bool(false) => Ok(Value::Bool(false)),
            value @ (Value::Null | Value::Missing) => Ok(value),
            value => Err(fault(format!("`&&` cannot be applied to {}", kind_of(&value)), 0)),
        }
    }

    fn or(&mut self, pair: &'r (Expr, Expr)) -> Step<Value<'r>> {
        match self.eval(&pair.0)? {
            Value::Bool(true) => Ok(Value::Bool(true)),
            Value::Bool(false) => self.eval(&pair.1),
            value @ (Value::Null | Value::Missing) => Ok(value),
            value => Err(fault(format!("`||` cannot be applied to {}", kind_of(&value)), 0)),
        }
    }

    fn comparison(&mut self, comparison: Comparison, pair: &'r (Expr, Expr), line: u32) -> Step<Value<'r>> {
        let left = self.eval(&pair.0)?;
        let right = self.eval(&pair.1)?;
        compare::compare(comparison, left, right, line).map(Value::Bool)
    }

    fn object(&mut self, names: &'r [Box<str>], values: &'r [Expr]) -> Step<Value<'r>> {
        let fields: &'r mut [(&'r str, Value<'r>)] =
            self.arena.alloc_slice_fill_with(names.len(), |at| (&*names[at], Value::Missing));
        for (field, value) in fields.iter_mut().zip(values) {
            field.1 = self.eval(value)?;
        }
        Ok(Value::Object(fields))
    }

    fn dictionary(&mut self, pairs: &'r [(Expr, Expr)], line: u32) -> Step<Value<'r>> {
        let mut fields = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let key = self.eval(key)?;
            if key.is_null() {
                return Err(fault("a key of a dictionary is null", line));
            }
            let key = self.text_of(key)?;
            fields.push((key, self.eval(value)?));
        }
        Ok(Value::Object(self.arena.alloc_slice_copy(&fields)))
    }
}

/// An error about a value.
#[cold]
pub(crate) fn fault(message: impl Into<String>, line: u32) -> Fault {
    Box::new(RuntimeError::value(message, line))
}

/// What a value is, for messages.
pub(crate) fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Missing | Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Long(_) => "an integer",
        Value::Double(_) | Value::Decimal(_) | Value::Number(_) => "a number",
        Value::Text(_) => "a string",
        Value::Date(_) => "a date",
        Value::TimeSpan(_) => "a length of time",
        Value::Array(_) | Value::Group(_) => "an array",
        Value::Object(_) => "an object",
        Value::Json(value) => value.type_name(),
        Value::Document(_) => "a document",
        Value::Field(_) | Value::Spatial(_) | Value::Boosted(_) => "an index field",
    }
}
