//! Names, and what they stand for where a text uses them.

use oxc_ast::ast::BindingPattern;

use super::{Lower, NotLowered};
use crate::program::Slot;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    Variable {
        slot: Slot,
        is_const: bool,
    },
    /// An array that the function at this depth fills with `push`.
    List {
        list: u32,
        functions: u32,
    },
    /// Declared further down in its block: reading it is an error.
    Unready,
}

/// Blocks within blocks, the innermost last.
#[derive(Default, Debug)]
pub(super) struct Scopes {
    names: Vec<(String, Known)>,
    /// Where each open block begins in `names`.
    starts: Vec<usize>,
    /// The names of all `var`s so far, which nothing else may have.
    vars: Vec<String>,
}

/// Names that strict code cannot declare.
const RESERVED: [&str; 11] = [
    "eval",
    "arguments",
    "implements",
    "interface",
    "let",
    "package",
    "private",
    "protected",
    "public",
    "static",
    "yield",
];

impl Scopes {
    pub(super) fn open(&mut self) {
        self.starts.push(self.names.len());
    }

    pub(super) fn close(&mut self) {
        if let Some(start) = self.starts.pop() {
            self.names.truncate(start);
        }
    }

    /// How many blocks are open.
    pub(super) fn depth(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<Known> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, known)| *known)
    }

    /// Whether the innermost block has the name.
    pub(super) fn is_own(&self, name: &str) -> bool {
        let start = self.starts.last().copied().unwrap_or(0);
        self.names[start..].iter().any(|(known, _)| known == name)
    }

    /// Says what a name of the innermost block stands for.
    pub(super) fn declare(&mut self, name: &str, known: Known) {
        let start = self.starts.last().copied().unwrap_or(0);
        match self.names[start..].iter_mut().find(|(other, _)| other == name) {
            Some(other) => other.1 = known,
            None => self.names.push((name.to_owned(), known)),
        }
    }

    /// Announces a name that is declared further down.
    pub(super) fn announce(&mut self, name: &str) -> Lower<()> {
        if self.is_own(name) || self.vars.iter().any(|var| var == name) {
            return Err(NotLowered("a name that is declared twice"));
        }
        allowed(name)?;
        self.declare(name, Known::Unready);
        Ok(())
    }

    /// Declares a `var` in the innermost block, which is that of a function.
    pub(super) fn declare_var(&mut self, name: &str, slot: Slot) -> Lower<()> {
        allowed(name)?;
        self.vars.push(name.to_owned());
        self.declare(name, Known::Variable { slot, is_const: false });
        Ok(())
    }

    pub(super) fn announce_pattern(&mut self, pattern: &BindingPattern<'_>) -> Lower<()> {
        for name in pattern.get_binding_identifiers() {
            self.announce(&name.name)?;
        }
        Ok(())
    }
}

fn allowed(name: &str) -> Lower<()> {
    if RESERVED.contains(&name) { Err(NotLowered("a name that strict code cannot declare")) } else { Ok(()) }
}
