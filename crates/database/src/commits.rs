//! Telling one listener of every commit: which collections changed. It costs a writer next to nothing, unlike an event for each document.

use std::sync::Arc;

use parking_lot::RwLock;

/// What a commit changed.
#[derive(Debug, Default)]
pub struct Changed {
    collections: Vec<Arc<str>>,
    has_compare_exchange: bool,
}

impl Changed {
    /// The collections of which documents were stored or deleted, each once. It may name one that a failed job only wanted to change.
    pub fn collections(&self) -> &[Arc<str>] {
        &self.collections
    }

    /// Whether compare-exchange values were written or removed.
    pub fn has_compare_exchange(&self) -> bool {
        self.has_compare_exchange
    }

    pub(crate) fn add_collection(&mut self, name: &Arc<str>) {
        // Neighbours are mostly of one collection, and their names one allocation.
        if self.collections.last().is_some_and(|last| Arc::ptr_eq(last, name))
            || self.collections.contains(name)
        {
            return;
        }
        self.collections.push(name.clone());
    }

    pub(crate) fn add_compare_exchange(&mut self) {
        self.has_compare_exchange = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.collections.is_empty() && !self.has_compare_exchange
    }

    pub(crate) fn clear(&mut self) {
        self.collections.clear();
        self.has_compare_exchange = false;
    }
}

/// Who is told of commits.
pub trait CommitWatcher: Send + Sync {
    /// Something changed, and readers see it. Called on the thread that answers writes, in their order, so it must be quick and must not wait for the database.
    fn committed(&self, changed: &Changed);
}

/// The listener, if there is one.
#[derive(Default)]
pub(crate) struct Commits(RwLock<Option<Arc<dyn CommitWatcher>>>);

impl Commits {
    pub(crate) fn set(&self, watcher: Option<Arc<dyn CommitWatcher>>) {
        *self.0.write() = watcher;
    }

    pub(crate) fn tell(&self, changed: &Changed) {
        let watcher = self.0.read().clone();
        if let Some(watcher) = watcher {
            watcher.committed(changed);
        }
    }
}
