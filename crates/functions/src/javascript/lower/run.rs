//! Running what was lowered; documents that a run declines go to QuickJS.

use std::sync::Arc;

use jackdaw_document::{self as document, Document};

use crate::code::{Engine, MapCode, ReduceCode, RunMap, RunReduce};
use crate::error::RuntimeError;
use crate::input::{Each, Entry, Host, Input, NoHost};
use crate::limits::Limits;
use crate::program::Program;
use crate::run::{Memory, Run};
use crate::value::Value;

/// A lowered function.
#[derive(Clone)]
pub(in crate::javascript) struct Lowered {
    pub(in crate::javascript) program: Arc<Program>,
    /// The fields of its entries, when they are always the same.
    fields: Option<Arc<[Box<str>]>>,
}

impl Lowered {
    pub(in crate::javascript) fn new(program: Program, fields: Option<Arc<[Box<str>]>>) -> Lowered {
        Lowered { program: Arc::new(program), fields }
    }

    /// The entries of a run over a document, before anybody is given one.
    pub(in crate::javascript) fn run_map<'r, 'd: 'r>(
        &'r self,
        memory: &'r Memory,
        input: &Input<'d>,
        host: &mut dyn Host<'d>,
        limits: Limits,
    ) -> Result<Vec<Entry<'r>>, RuntimeError> {
        if input.document.object().is_none() {
            return Err(RuntimeError::value("the document is no object", 0));
        }
        let input: &Input<'_> = memory.arena().alloc(*input);
        let mut run = Run::new(&self.program, memory, Value::Document(input), host, limits);
        self.entries(&mut run)
    }

    pub(in crate::javascript) fn run_reduce<'r, 'd: 'r>(
        &'r self,
        memory: &'r Memory,
        entries: &[Document<'d>],
        limits: Limits,
    ) -> Result<Vec<Entry<'r>>, RuntimeError> {
        let arena = memory.arena();
        let roots = arena.alloc_slice_fill_copy(entries.len(), Value::Missing);
        for (root, entry) in roots.iter_mut().zip(entries) {
            *root = match entry.root() {
                root @ document::Value::Object(_) => Value::Json(arena.alloc(root)),
                _ => return Err(RuntimeError::value("an entry is no object", 0)),
            };
        }
        let mut host = NoHost;
        let mut run = Run::new(&self.program, memory, Value::Array(roots), &mut host, limits);
        self.entries(&mut run)
    }

    fn entries<'r, 'd: 'r>(&'r self, run: &mut Run<'r, 'd, '_>) -> Result<Vec<Entry<'r>>, RuntimeError> {
        let mut out = Vec::new();
        let result = run.body().map_err(|fault| *fault)?;
        run.entries(result, self.fields.as_deref(), &mut out, 0).map_err(|fault| *fault)?;
        Ok(out)
    }
}

/// What is kept from one run to the next.
struct Runner<S> {
    lowered: Lowered,
    memory: Memory,
    limits: Limits,
    /// QuickJS, and what was made of it once a document needed it.
    script: S,
}

impl<S> Runner<S> {
    fn new(lowered: &Lowered, limits: Limits, script: S) -> Box<Runner<S>> {
        Box::new(Runner { lowered: lowered.clone(), memory: Memory::new(&lowered.program), limits, script })
    }
}

/// A map that was lowered, and its text for QuickJS.
pub(in crate::javascript) struct LoweredMap {
    pub(in crate::javascript) lowered: Lowered,
    pub(in crate::javascript) script: Arc<dyn MapCode>,
}

impl MapCode for LoweredMap {
    fn runner(&self, limits: Limits) -> Box<dyn RunMap> {
        Runner::new(&self.lowered, limits, (Arc::clone(&self.script), None::<Box<dyn RunMap>>))
    }

    fn engine(&self) -> Engine {
        Engine::Program
    }
}

impl RunMap for Runner<(Arc<dyn MapCode>, Option<Box<dyn RunMap>>)> {
    fn run<'d>(
        &mut self,
        input: &Input<'d>,
        host: &mut dyn Host<'d>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        self.memory.reset();
        if let Ok(entries) = self.lowered.run_map(&self.memory, input, host, self.limits) {
            return entries.iter().try_for_each(each);
        }
        let (code, runner) = &mut self.script;
        runner.get_or_insert_with(|| code.runner(self.limits)).run(input, host, each)
    }
}

/// A reduce that was lowered, and its text for QuickJS.
pub(in crate::javascript) struct LoweredReduce {
    pub(in crate::javascript) lowered: Lowered,
    pub(in crate::javascript) script: Arc<dyn ReduceCode>,
}

impl ReduceCode for LoweredReduce {
    fn runner(&self, limits: Limits) -> Box<dyn RunReduce> {
        Runner::new(&self.lowered, limits, (Arc::clone(&self.script), None::<Box<dyn RunReduce>>))
    }

    fn engine(&self) -> Engine {
        Engine::Program
    }
}

impl RunReduce for Runner<(Arc<dyn ReduceCode>, Option<Box<dyn RunReduce>>)> {
    fn run<'d>(
        &mut self,
        given: &mut dyn Iterator<Item = Document<'d>>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError> {
        self.memory.reset();
        // Kept, for a run that is declined is done again.
        let given: Vec<Document<'d>> = given.collect();
        if let Ok(entries) = self.lowered.run_reduce(&self.memory, &given, self.limits) {
            return entries.iter().try_for_each(each);
        }
        let (code, runner) = &mut self.script;
        runner.get_or_insert_with(|| code.runner(self.limits)).run(&mut given.into_iter(), each)
    }
}
