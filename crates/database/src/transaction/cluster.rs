//! Cluster-wide transactions, on a cluster of one node: documents and compare-exchange values in one transaction, checked by indexes.

use std::borrow::Cow;

use crate::change_vector::{RAFT, TRXN, transaction_index};
use crate::error::{ClusterViolation, Error, Result, ViolationKind};
use crate::ids;
use crate::incoming::IncomingDocument;
use crate::metadata::Flags;
use crate::transaction::Transaction;
use crate::transaction::compare_exchange::{GUARD_PREFIX, check_key};
use crate::transaction::documents::PutResult;

/// What a cluster-wide transaction consists of.
#[derive(Clone, Debug)]
pub enum ClusterCommand {
    /// Stores a document.
    Put {
        /// Its id.
        id: String,
        /// It.
        document: IncomingDocument,
        /// The change vector that the client knows; empty for a new document.
        known: Option<String>,
    },
    /// Deletes a document.
    Delete {
        /// Its id.
        id: String,
        /// The change vector that the client knows.
        known: Option<String>,
    },
    /// Stores a compare-exchange value.
    PutCompareExchange {
        /// Its key.
        key: String,
        /// The index that it must have; 0 when there must be none.
        index: i64,
        /// A document `{"Object":...}`.
        value: Vec<u8>,
    },
    /// Removes a compare-exchange value.
    DeleteCompareExchange {
        /// Its key.
        key: String,
        /// The index that it must have.
        index: i64,
    },
}

/// How a cluster-wide transaction is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Keep and check a guard (a compare-exchange value) for each document.
    pub guards: bool,
}

/// What became of each command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterCommandResult {
    /// A document was stored.
    Put(PutResult),
    /// A document was deleted, or was not there.
    Delete {
        /// Its id.
        id: String,
        /// The change vector of the deletion.
        change_vector: String,
        /// When that was, in ticks.
        last_modified: i64,
    },
    /// A compare-exchange value was stored.
    PutCompareExchange {
        /// Its key.
        key: String,
    },
    /// A compare-exchange value was removed.
    DeleteCompareExchange {
        /// Its key.
        key: String,
    },
}

/// What became of a cluster-wide transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterResult {
    /// Its index.
    pub index: i64,
    /// What became of its commands, in their order.
    pub results: Vec<ClusterCommandResult>,
}

impl Transaction<'_> {
    /// Runs a cluster-wide transaction: all commands or, when any expectation fails, none.
    ///
    /// Errors: [`Error::ClusterConcurrency`] with all violations; [`Error::InvalidId`] for ids that the server would have to complete; those of
    /// keys; those of storage.
    pub fn run_cluster_transaction(
        &mut self,
        commands: &[ClusterCommand],
        options: ClusterOptions,
    ) -> Result<ClusterResult> {
        let commands = &*self.with_identities(commands)?;
        let violations = self.violations(commands, options)?;
        if !violations.is_empty() {
            return Err(Error::ClusterConcurrency { message: describe(&violations), violations });
        }
        let index = self.next_cluster_index();
        let mut results = Vec::with_capacity(commands.len());
        for command in commands {
            results.push(match command {
                ClusterCommand::Put { id, document, .. } => {
                    ClusterCommandResult::Put(self.cluster_put(id, document, index, options)?)
                }
                ClusterCommand::Delete { id, .. } => {
                    let key = ids::key(id)?.into_owned();
                    self.state.cluster_writes += 1;
                    let change_vector = self.cluster_vector(index, options);
                    if let Some(before) = self.before(&key, None)? {
                        let etag = self.next_etag();
                        self.remove(&key, before, etag, Some(change_vector.clone()))?;
                    }
                    if options.guards {
                        self.remove_compare_exchange(&guard_of(&key))?;
                    }
                    ClusterCommandResult::Delete { id: id.clone(), change_vector, last_modified: self.now() }
                }
                ClusterCommand::PutCompareExchange { key, value, .. } => {
                    self.write_compare_exchange(key, index, value)?;
                    ClusterCommandResult::PutCompareExchange { key: key.clone() }
                }
                ClusterCommand::DeleteCompareExchange { key, .. } => {
                    self.remove_compare_exchange(key)?;
                    ClusterCommandResult::DeleteCompareExchange { key: key.clone() }
                }
            });
        }
        Ok(ClusterResult { index, results })
    }

    /// The commands with ids that end in a bar completed by the next identity.
    fn with_identities<'c>(&mut self, commands: &'c [ClusterCommand]) -> Result<Cow<'c, [ClusterCommand]>> {
        let is_identity =
            |command: &ClusterCommand| matches!(command, ClusterCommand::Put { id, .. } if id.ends_with('|'));
        if !commands.iter().any(is_identity) {
            return Ok(Cow::Borrowed(commands));
        }
        let mut commands = commands.to_vec();
        for command in &mut commands {
            if let ClusterCommand::Put { id, .. } = command
                && id.ends_with('|')
            {
                let value = self.next_identity(id)?;
                *id = format!("{}/{value}", id.trim_end_matches('|'));
            }
        }
        Ok(Cow::Owned(commands))
    }

    fn cluster_put(
        &mut self,
        id: &str,
        document: &IncomingDocument,
        index: i64,
        options: ClusterOptions,
    ) -> Result<PutResult> {
        let key = ids::key(id)?.into_owned();
        let before = self.before(&key, None)?;
        let etag = self.next_etag();
        self.state.cluster_writes += 1;
        let vector = self.cluster_vector(index, options);
        let result =
            self.write(id, &key, document, before, etag, Some(vector), Flags::FROM_CLUSTER_TRANSACTION)?;
        if options.guards {
            let guard = self.state.context.build(jackdaw_document::Mode::Memory, |builder| {
                builder.begin_object()?;
                builder.name("Object")?;
                builder.begin_object()?;
                builder.name("Id")?;
                builder.str(&result.id)?;
                builder.end()?;
                builder.end()
            })?;
            let guard = guard.as_bytes().to_vec();
            self.state.built += 1;
            self.write_compare_exchange(&guard_of(&key), index, &guard)?;
        }
        Ok(result)
    }

    fn cluster_vector(&self, index: i64, options: ClusterOptions) -> String {
        let writes = self.state.cluster_writes;
        let vector = format!("{RAFT}:{writes}-{}", self.shared.id.as_str());
        match options.guards {
            true => format!("{vector},{TRXN}:{index}-{}", self.shared.cluster_transaction_id.as_str()),
            false => vector,
        }
    }

    /// What is not as the commands expect.
    fn violations(
        &self,
        commands: &[ClusterCommand],
        options: ClusterOptions,
    ) -> Result<Vec<ClusterViolation>> {
        let mut violations = Vec::new();
        let mut violation = |kind, id: &str, expected, actual| {
            violations.push(ClusterViolation { kind, id: id.to_owned(), expected, actual });
        };
        for command in commands {
            match command {
                ClusterCommand::PutCompareExchange { key, index, .. }
                | ClusterCommand::DeleteCompareExchange { key, index } => {
                    check_key(key)?;
                    let actual = self.get_compare_exchange(key)?.map_or(-1, |current| current.index);
                    if actual != *index && (actual, *index) != (-1, 0) {
                        violation(ViolationKind::CompareExchange, key, *index, actual);
                    }
                }
                ClusterCommand::Put { id, known, .. } | ClusterCommand::Delete { id, known } => {
                    let key = ids::key(id)?;
                    if id.ends_with('/') {
                        return Err(Error::NotInCluster(format!(
                            "the id '{id}' ends in '/': a cluster-wide transaction must say the whole id"
                        )));
                    }
                    if !options.guards {
                        continue;
                    }
                    let guard_key = guard_of(&key);
                    let actual = self.get_compare_exchange(&guard_key)?.map_or(-1, |guard| guard.index);
                    let known = known.as_deref();
                    let expected = known.and_then(transaction_index);
                    match (known, expected) {
                        (_, Some(expected)) if expected != actual => {
                            violation(ViolationKind::Document, &guard_key, expected, actual);
                        }
                        // Known to be without a transaction, but now there is one.
                        (Some(_), None) if actual > 0 => {
                            violation(ViolationKind::Document, &guard_key, 0, actual)
                        }
                        (None, None) if actual > 0 && matches!(command, ClusterCommand::Put { .. }) => {
                            violation(ViolationKind::Document, &guard_key, 0, actual);
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(violations)
    }
}

fn guard_of(key: &str) -> String {
    format!("{GUARD_PREFIX}{key}")
}

fn describe(violations: &[ClusterViolation]) -> String {
    let each = violations.iter().map(|violation| {
        let kind = match violation.kind {
            ViolationKind::Document => "document",
            ViolationKind::CompareExchange => "compare-exchange value",
        };
        format!(
            "the {kind} '{}' has index {}, expected was {}",
            violation.id, violation.actual, violation.expected
        )
    });
    format!("Cluster transaction failed: {}", each.collect::<Vec<_>>().join("; "))
}
