//! The files of one index, opened when it first runs or is queried.

use std::path::Path;
use std::sync::Arc;

use jackdaw_search as search;

use crate::directory;
use crate::error::{Error, Result};
use crate::groups::Groups;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::references::References;

/// Files, open.
pub(crate) struct Files {
    pub(crate) search: search::Index,
    pub(crate) references: Option<References>,
    /// Of a map/reduce index.
    pub(crate) groups: Option<Arc<Groups>>,
}

impl Files {
    /// Opens the files in a directory, making them when there are none, and tells how far they are. What is damaged is deleted, so that the index
    /// is built anew: nothing in it is more than what documents say.
    pub(crate) fn open(path: &Path, name: &str, plan: &Plan) -> Result<(Files, Option<Progress>)> {
        match Files::try_open(path, name, plan) {
            Err(error) if is_damage(&error) => {
                tracing::warn!(index = %name, %error, "built anew, since what there was cannot be read");
                directory::delete(path)?;
                Files::try_open(path, name, plan)
            }
            opened => opened,
        }
    }

    fn try_open(path: &Path, name: &str, plan: &Plan) -> Result<(Files, Option<Progress>)> {
        std::fs::create_dir_all(path).map_err(|error| Error::io("make", path, error))?;
        let search = search::Index::open(&path.join("search"), plan.schema.clone())
            .map_err(|error| failed(name, error))?;
        let progress = Progress::from_bytes(&search.payload())?;
        let references = path.join("references");
        let references = plan.has_references().then(|| References::open(&references)).transpose()?;
        let groups =
            plan.grouping.is_some().then(|| Groups::open(&path.join("reduce")).map(Arc::new)).transpose()?;
        Ok((Files { search, references, groups }, progress))
    }

    /// Writes everything out and closes.
    pub(crate) fn close(self, name: &str) -> Result<()> {
        if let Some(references) = self.references {
            references.close()?;
        }
        self.search.close().map_err(|error| failed(name, error))?;
        match self.groups {
            Some(groups) => {
                groups.settle()?;
                // Somebody may still look at it, and closes it then.
                Arc::into_inner(groups).map_or(Ok(()), Groups::close)
            }
            None => Ok(()),
        }
    }
}

/// An error of an index's search index.
pub(crate) fn failed(name: &str, error: search::Error) -> Error {
    Error::Search { index: name.to_owned(), source: Arc::new(error) }
}

fn is_damage(error: &Error) -> bool {
    match error {
        Error::Damaged(_) => true,
        Error::Search { source, .. } => {
            matches!(**source, search::Error::Damaged { .. } | search::Error::OtherSchema { .. })
        }
        Error::Database(jackdaw_database::Error::Storage(error)) => matches!(
            **error,
            jackdaw_storage::Error::PageDamaged { .. }
                | jackdaw_storage::Error::FileDamaged { .. }
                | jackdaw_storage::Error::Foreign { .. }
        ),
        _ => false,
    }
}
