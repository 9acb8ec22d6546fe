//! Where the files of indexes are: a directory for each under the database's, named by the index's number and, for people, by its name.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::IndexId;

/// Under the database's directory.
const DIRECTORY: &str = "indexes";
/// Characters of the index's name that are shown.
const SHOWN_MAX: usize = 64;

/// The directory of all indexes of a database.
pub(crate) fn of_database(database: &Path) -> PathBuf {
    database.join(DIRECTORY)
}

/// The directory of an index.
pub(crate) fn of_index(root: &Path, id: IndexId, name: &str) -> PathBuf {
    let shown: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .take(SHOWN_MAX)
        .collect();
    root.join(format!("{id:06}-{shown}"))
}

/// Deletes what belongs to none of `ids`: indexes that were being deleted when the process ended.
pub(crate) fn clean(root: &Path, ids: &HashSet<IndexId>) -> Result<()> {
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", root, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("read", root, error))?;
        let name = entry.file_name();
        let id =
            name.to_str().and_then(|name| name.split('-').next()).and_then(|id| id.parse::<IndexId>().ok());
        // What does not look like ours is left alone.
        if id.is_some_and(|id| !ids.contains(&id)) {
            delete(&entry.path())?;
        }
    }
    Ok(())
}

/// Deletes a directory with all that is in it, if it is there.
pub(crate) fn delete(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("delete", path, error)),
        _ => Ok(()),
    }
}

/// Bytes of all files in a directory; what goes away meanwhile is not counted.
pub(crate) fn size(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_leftovers_go() {
        let root = tempfile::tempdir().unwrap();
        let path = of_index(root.path(), 7, "Users/ByName../é");
        assert_eq!(path.file_name().unwrap(), "000007-Users-ByName----");
        std::fs::create_dir_all(path.join("search")).unwrap();
        let other = of_index(root.path(), 8, "Other");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::create_dir_all(root.path().join("lost+found")).unwrap();
        clean(root.path(), &HashSet::from([8])).unwrap();
        assert!(!path.exists() && other.exists() && root.path().join("lost+found").exists());
        clean(&root.path().join("none"), &HashSet::new()).unwrap();
    }
}
