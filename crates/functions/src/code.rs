//! What the two languages have in common behind [`Map`](crate::Map) and [`Reduce`](crate::Reduce): what is known of a function once it is compiled, and how it is run.

use crate::error::RuntimeError;
use crate::input::{Each, Host, Input};
use crate::limits::Limits;
use crate::reduce::ReduceField;
use crate::source::Source;

/// What is known of a compiled map.
#[derive(Clone, Debug)]
pub(crate) struct MapFacts {
    pub(crate) source: Source,
    /// The fields of every entry, if they are always the same.
    pub(crate) field_names: Option<Box<[Box<str>]>>,
    pub(crate) has_dynamic_fields: bool,
    /// The collections from which it loads documents.
    pub(crate) loads: Vec<Box<str>>,
    pub(crate) uses_compare_exchange: bool,
}

/// What a compiled function runs in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// The walk over a program, in place over documents: C#, and JavaScript that was lowered.
    Program,
    /// QuickJS.
    QuickJs,
}

/// A compiled map.
pub(crate) trait MapCode: Send + Sync {
    /// What it runs in.
    fn engine(&self) -> Engine;

    /// What one thread needs to run it.
    fn runner(&self, limits: Limits) -> Box<dyn RunMap>;
}

/// A map on one thread.
pub(crate) trait RunMap {
    /// Runs the map over a document.
    fn run<'d>(
        &mut self,
        input: &Input<'d>,
        host: &mut dyn Host<'d>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError>;
}

/// What is known of a compiled reduce.
#[derive(Clone, Debug)]
pub(crate) struct ReduceFacts {
    /// The fields of map entries that make the key, nested ones as paths.
    pub(crate) key_fields: Vec<Box<str>>,
    /// The fields of every entry, if they are always the same.
    pub(crate) fields: Option<Vec<ReduceField>>,
}

/// A compiled reduce.
pub(crate) trait ReduceCode: Send + Sync {
    /// What it runs in.
    fn engine(&self) -> Engine;

    /// What one thread needs to run it.
    fn runner(&self, limits: Limits) -> Box<dyn RunReduce>;
}

/// A reduce on one thread.
pub(crate) trait RunReduce {
    /// Runs the reduce over entries.
    fn run<'d>(
        &mut self,
        entries: &mut dyn Iterator<Item = jackdaw_document::Document<'d>>,
        each: &mut Each<'_>,
    ) -> Result<(), RuntimeError>;
}
