//! Compiled C# functions as maps and reduces, and what their shape tells about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jackdaw_document::{self as document, Document};

use super::lower::{Lowered, Role, lower};
use crate::code::{Engine, MapCode, MapFacts, ReduceCode, ReduceFacts, RunMap, RunReduce};
use crate::error::{CompileError, RuntimeError};
use crate::input::{Each, Entry, Host, Input, NoHost};
use crate::limits::Limits;
use crate::program::{Clause, Expr, Lambda, Member, Method, Program, Query, QueryResult, Slot};
use crate::reduce::{Combine, ReduceField};
use crate::run::{Memory, Run};
use crate::value::Value;

/// Compiles a map.
pub(crate) fn compile_map(
    text: &str,
    sources: &BTreeMap<String, String>,
) -> Result<(MapFacts, Arc<dyn MapCode>), CompileError> {
    let Lowered { program, source, loads, uses_compare_exchange, has_dynamic_fields } =
        lower(text, Role::Map, sources)?;
    let field_names = shape(&program.body).map(|(names, _)| names.into());
    let facts = MapFacts { source, field_names, has_dynamic_fields, loads, uses_compare_exchange };
    Ok((facts, Arc::new(Code(Arc::new(program)))))
}

/// Compiles a reduce.
pub(crate) fn compile_reduce(
    text: &str,
    sources: &BTreeMap<String, String>,
) -> Result<(ReduceFacts, Arc<dyn ReduceCode>), CompileError> {
    let Lowered { program, .. } = lower(text, Role::Reduce, sources)?;
    let refuse = |message: &str| CompileError {
        message: message.to_owned(),
        line: 1,
        column: 1,
        construct: "group by".to_owned(),
    };
    let Some(grouping) = grouping(&program.body) else {
        return Err(refuse("a reduce groups its results: `group result by ...` or `GroupBy` is expected"));
    };
    let Some((key_fields, key_names)) = key_fields(&program, grouping.key, grouping.element) else {
        return Err(refuse("the key of a reduce is made of fields of the results"));
    };
    let fields = shape(&program.body).map(|(names, values)| {
        names
            .iter()
            .zip(values)
            .map(|(name, value)| {
                let combine = match grouping.group {
                    Some(group) => combine(&program, name, value, group, key_names.as_deref()),
                    None => Combine::Other,
                };
                ReduceField { name: name.clone(), combine }
            })
            .collect()
    });
    let facts = ReduceFacts { key_fields, fields };
    Ok((facts, Arc::new(Code(Arc::new(program)))))
}

struct Code(Arc<Program>);

struct Runner {
    program: Arc<Program>,
    memory: Memory,
    limits: Limits,
}

impl Code {
    fn of(&self, limits: Limits) -> Box<Runner> {
        Box::new(Runner { memory: Memory::new(&self.0), program: Arc::clone(&self.0), limits })
    }
}

impl MapCode for Code {
    fn engine(&self) -> Engine {
        Engine::Program
    }

    fn runner(&self, limits: Limits) -> Box<dyn RunMap> {
        self.of(limits)
    }
}

impl ReduceCode for Code {
    fn engine(&self) -> Engine {
        Engine::Program
    }

    fn runner(&self, limits: Limits) -> Box<dyn RunReduce> {
        self.of(limits)
    }
}

impl RunMap for Runner {
    fn run<'d>(
        &mut self,
        input: &Input<'d>,
        host: &mut dyn Host<'d>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        self.memory.reset();
        let arena = self.memory.arena();
        let input: &Input<'_> = arena.alloc(*input);
        let source = Value::Array(arena.alloc([Value::Document(input)]));
        let mut run = Run::new(&self.program, &self.memory, source, host, self.limits);
        let result = run.body().map_err(|fault| *fault)?;
        emit(result, &mut run, self.limits.entries_max, each)
    }
}

impl RunReduce for Runner {
    fn run<'d>(
        &mut self,
        entries: &mut dyn Iterator<Item = Document<'d>>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        self.memory.reset();
        let arena = self.memory.arena();
        let mut roots: Vec<Value<'_>> = Vec::with_capacity(entries.size_hint().0.min(1 << 16));
        for entry in entries {
            let root: &document::Value<'_> = arena.alloc(entry.root());
            roots.push(Value::Json(root));
        }
        let source = Value::Array(&roots);
        let mut host = NoHost;
        let mut run = Run::new(&self.program, &self.memory, source, &mut host, self.limits);
        let result = run.body().map_err(|fault| *fault)?;
        emit(result, &mut run, self.limits.entries_max, each)
    }
}

/// Gives the entries of a result to who wants them.
fn emit<'r, 'd: 'r>(
    result: Value<'r>,
    run: &mut Run<'r, 'd, '_>,
    entries_max: usize,
    each: &mut Each<'_>,
) -> Result<(), RuntimeError> {
    let mut count = 0;
    let values = run.all_of(result).map_err(|fault| *fault)?;
    for value in values {
        count += 1;
        if count > entries_max {
            return Err(RuntimeError::Limit { what: "entries", limit: entries_max as u64 });
        }
        let (value, boost) = match value {
            Value::Boosted(boosted) => (boosted.value, boosted.boost),
            value => (*value, 1.0),
        };
        match value {
            Value::Object(fields) => each(&Entry { fields, boost })?,
            Value::Missing | Value::Null => {}
            value => {
                let fields = run.fields_of(value).map_err(|fault| *fault)?;
                each(&Entry { fields, boost })?;
            }
        }
    }
    Ok(())
}

/// The names and values of the objects that an expression returns, if they are always the same.
fn shape(expr: &Expr) -> Option<(&[Box<str>], &[Expr])> {
    match expr {
        Expr::Query(query) => match &query.result {
            QueryResult::Select(value) => object(value),
            QueryResult::Group { .. } => None,
        },
        Expr::Call { method, args, .. } => match (method, &**args) {
            (Method::Select, [_, Expr::Lambda(lambda)]) => object(&lambda.body),
            (Method::SelectMany, [_, _, Expr::Lambda(result)]) => object(&result.body),
            (Method::SelectMany, [_, Expr::Lambda(lambda)]) => shape(&lambda.body),
            (Method::GroupBy, [.., Expr::Lambda(result)]) if result.parameters.len() == 2 => {
                object(&result.body)
            }
            (
                Method::Where
                | Method::Distinct
                | Method::Take
                | Method::Skip
                | Method::Reverse
                | Method::ToArray
                | Method::ToList
                | Method::AsEnumerable
                | Method::TakeWhile
                | Method::SkipWhile,
                [source, ..],
            ) => shape(source),
            _ => None,
        },
        Expr::Sort { source, .. } => shape(source),
        _ => None,
    }
}

fn object(expr: &Expr) -> Option<(&[Box<str>], &[Expr])> {
    match expr {
        Expr::Object { names, values } => Some((names, values)),
        Expr::Call { method: Method::Boost, args, .. } => object(args.first()?),
        Expr::Block { result, .. } => object(result),
        Expr::Conditional(parts) => {
            let (_, then, otherwise) = &**parts;
            match (object(then), object(otherwise)) {
                (Some(then), Some(otherwise)) if then.0 == otherwise.0 => Some(then),
                _ => None,
            }
        }
        _ => None,
    }
}

/// How a reduce groups.
struct Grouping<'p> {
    /// The key, and the variable of the element in it.
    key: &'p Expr,
    element: Slot,
    /// The variable of the group in the result, when the result is made from it alone.
    group: Option<Slot>,
}

/// The grouping of the results in an expression.
fn grouping(expr: &Expr) -> Option<Grouping<'_>> {
    match expr {
        Expr::Query(query) => grouping_of_query(query),
        Expr::Call { method: Method::Select, args, .. } => match &**args {
            [source, Expr::Lambda(lambda)] => {
                let mut found = grouping(source)?;
                found.group = is_direct(source).then(|| lambda.parameters.first().copied()).flatten();
                Some(found)
            }
            _ => None,
        },
        Expr::Call { method: Method::GroupBy, args, .. } => match &**args {
            [Expr::Source, Expr::Lambda(key), ..] => {
                Some(Grouping { key: &key.body, element: *key.parameters.first()?, group: None })
            }
            _ => None,
        },
        Expr::Call { args, .. } => grouping(args.first()?),
        Expr::Sort { source, .. } => grouping(source),
        _ => None,
    }
}

/// Whether the expression is nothing but the grouping.
fn is_direct(expr: &Expr) -> bool {
    match expr {
        Expr::Call { method: Method::GroupBy, args, .. } => args.len() == 2,
        Expr::Query(query) => plain_group(query).is_some(),
        _ => false,
    }
}

/// `from r in results group r by ...`: the element's variable and the key.
fn plain_group(query: &Query) -> Option<(Slot, &Expr)> {
    match (&*query.clauses, &query.result) {
        (
            [Clause::From { slot, source: Expr::Source, .. }],
            QueryResult::Group { element: Expr::Local(element), key },
        ) if element == slot => Some((*slot, key)),
        _ => None,
    }
}

fn grouping_of_query(query: &Query) -> Option<Grouping<'_>> {
    if let (Clause::From { slot, source: Expr::Source, .. }, QueryResult::Group { key, .. }) =
        (query.clauses.first()?, &query.result)
    {
        return Some(Grouping { key, element: *slot, group: None });
    }
    let Clause::From { slot, source, .. } = query.clauses.first()? else { return None };
    let mut found = grouping(source)?;
    found.group = (query.clauses.len() == 1 && is_direct(source)).then_some(*slot);
    Some(found)
}

/// The fields that a key is made of as paths, and the names they have in it where it is an object.
#[expect(clippy::type_complexity, reason = "one caller, which takes it apart at once")]
fn key_fields(
    program: &Program,
    key: &Expr,
    element: Slot,
) -> Option<(Vec<Box<str>>, Option<Vec<Box<str>>>)> {
    match key {
        Expr::Object { names, values } => {
            let mut fields = Vec::new();
            let mut known = Vec::new();
            for (name, value) in names.iter().zip(values) {
                if is_constant(value) {
                    continue;
                }
                fields.push(path(program, value, element)?.into());
                known.push(name.clone());
            }
            Some((fields, Some(known)))
        }
        key if is_constant(key) => Some((Vec::new(), None)),
        key => Some((vec![path(program, key, element)?.into()], None)),
    }
}

fn is_constant(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Null | Expr::Bool(_) | Expr::Long(_) | Expr::Double(_) | Expr::Decimal(_) | Expr::Text(_)
    )
}

/// `element.A.B` as `A.B`.
fn path(program: &Program, expr: &Expr, element: Slot) -> Option<String> {
    match expr {
        Expr::Member { target, name, .. } => {
            let name = &**program.names.get(*name as usize)?;
            if matches!(&**target, Expr::Local(slot) if *slot == element) {
                return Some(name.to_owned());
            }
            Some(format!("{}.{name}", path(program, target, element)?))
        }
        Expr::Cast { value, .. } => path(program, value, element),
        _ => None,
    }
}

/// What a field of the result is.
fn combine(
    program: &Program,
    name: &str,
    value: &Expr,
    group: Slot,
    key_names: Option<&[Box<str>]>,
) -> Combine {
    let is_group = |expr: &Expr| matches!(expr, Expr::Local(slot) if *slot == group);
    let is_key = |expr: &Expr| matches!(expr, Expr::Member { target, known: Some(Member::Key), .. } if is_group(target));
    // `x => x.Name`
    let is_field = |lambda: &Lambda| {
        let Expr::Member { target, name: field, .. } = &lambda.body else { return false };
        matches!((&**target, &*lambda.parameters), (Expr::Local(slot), [parameter]) if slot == parameter)
            && program.names.get(*field as usize).is_some_and(|field| **field == *name)
    };
    match (value, key_names) {
        (value, None) if is_key(value) => Combine::Key(0),
        (Expr::Member { target, name: field, .. }, Some(names)) if is_key(target) => {
            let field = program.names.get(*field as usize);
            names.iter().position(|name| Some(name) == field).map_or(Combine::Other, Combine::Key)
        }
        (Expr::Call { method, args, .. }, _) => match (method, &**args) {
            (Method::Count | Method::LongCount, [target]) if is_group(target) => Combine::Count,
            (Method::Sum, [target, Expr::Lambda(lambda)]) if is_group(target) && is_field(lambda) => {
                Combine::Sum
            }
            (Method::Min, [target, Expr::Lambda(lambda)]) if is_group(target) && is_field(lambda) => {
                Combine::Min
            }
            (Method::Max, [target, Expr::Lambda(lambda)]) if is_group(target) && is_field(lambda) => {
                Combine::Max
            }
            _ => Combine::Other,
        },
        _ => Combine::Other,
    }
}
