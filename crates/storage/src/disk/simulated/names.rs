//! The names of a simulated disk's files: those programs see, those that survive a power loss for certain, and the changes in between,
//! of which each directory keeps a first part, in order.

use std::collections::{BTreeMap, BTreeSet};

use super::chance::Chance;

/// A file, whatever it is called. Never reused on a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FileId(pub(super) u64);

/// Something done to names that is not durable yet.
#[derive(Clone)]
enum Change {
    Create { name: String, file: FileId },
    Remove { name: String },
    Rename { from: String, to: String, file: FileId },
}

impl Change {
    /// The directory in whose order of changes it stands.
    fn directory(&self) -> &str {
        match self {
            Change::Create { name, .. } | Change::Remove { name } => directory_of(name),
            Change::Rename { to, .. } => directory_of(to),
        }
    }

    /// Whether syncing a directory makes it durable.
    fn is_in(&self, directory: &str) -> bool {
        let from = match self {
            Change::Rename { from, .. } => directory_of(from) == directory,
            _ => false,
        };
        from || self.directory() == directory
    }

    fn apply(&self, names: &mut BTreeMap<String, FileId>) {
        match self {
            Change::Create { name, file } => {
                names.insert(name.clone(), *file);
            }
            Change::Remove { name } => {
                names.remove(name);
            }
            Change::Rename { from, to, file } => {
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
        }
    }
}

/// The directory part of a name; `""` is the environment's own.
pub(super) fn directory_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// All names of one disk.
#[derive(Clone, Default)]
pub(super) struct Names {
    seen: BTreeMap<String, FileId>,
    durable: BTreeMap<String, FileId>,
    changes: Vec<Change>,
    directories: BTreeSet<String>,
}

impl Names {
    pub(super) fn get(&self, name: &str) -> Option<FileId> {
        self.seen.get(name).copied()
    }

    pub(super) fn has_directory(&self, directory: &str) -> bool {
        self.directories.contains(directory)
    }

    /// Makes a directory and its parents, durably; false when a file is in the way.
    pub(super) fn add_directory(&mut self, directory: &str) -> bool {
        let ends = directory.match_indices('/').map(|(at, _)| at).chain([directory.len()]);
        let parts: Vec<&str> = [0].into_iter().chain(ends).map(|end| &directory[..end]).collect();
        if parts.iter().any(|part| self.seen.contains_key(*part)) {
            return false;
        }
        self.directories.extend(parts.into_iter().map(str::to_owned));
        true
    }

    pub(super) fn create(&mut self, name: &str, file: FileId) {
        self.change(Change::Create { name: name.to_owned(), file });
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.change(Change::Remove { name: name.to_owned() });
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, file: FileId) {
        if from != to {
            self.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), file });
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.changes.push(change);
    }

    pub(super) fn sync(&mut self, directory: &str) {
        let (now, later) =
            std::mem::take(&mut self.changes).into_iter().partition(|change| change.is_in(directory));
        self.changes = later;
        let now: Vec<Change> = now;
        for change in now {
            change.apply(&mut self.durable);
        }
    }

    /// The files in a directory, without its name.
    pub(super) fn list(&self, directory: &str) -> Vec<String> {
        let inside = self.seen.keys().filter(|name| directory_of(name) == directory);
        inside.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).collect()
    }

    /// All files that programs see.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, FileId)> {
        self.seen.iter().map(|(name, file)| (name.as_str(), *file))
    }

    /// Whether any name, seen or possible after a power loss, leads to the file.
    pub(super) fn leads_to(&self, file: FileId) -> bool {
        let pending = self.changes.iter().any(|change| match change {
            Change::Create { file: other, .. } | Change::Rename { file: other, .. } => *other == file,
            Change::Remove { .. } => false,
        });
        pending || self.seen.values().chain(self.durable.values()).any(|&other| other == file)
    }

    /// What a power loss leaves.
    pub(super) fn survivor(&self, chance: &mut Chance) -> Names {
        let mut names = self.durable.clone();
        for directory in &self.directories {
            let changes: Vec<&Change> =
                self.changes.iter().filter(|change| change.directory() == directory.as_str()).collect();
            let count = match chance.below(3) {
                0 => 0,
                1 => changes.len(),
                _ => chance.below(changes.len() as u64 + 1) as usize,
            };
            for change in &changes[..count] {
                change.apply(&mut names);
            }
        }
        Names {
            seen: names.clone(),
            durable: names,
            changes: Vec::new(),
            directories: self.directories.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn survivors(names: &Names) -> BTreeSet<Vec<(String, u64)>> {
        let one = |seed| {
            let names = names.survivor(&mut Chance::new(seed));
            names.iter().map(|(name, file)| (name.to_owned(), file.0)).collect()
        };
        (0..100).map(one).collect()
    }

    fn files(of: &[(&str, u64)]) -> Vec<(String, u64)> {
        of.iter().map(|&(name, file)| (name.to_owned(), file)).collect()
    }

    #[test]
    fn a_directory_keeps_its_first_changes() {
        let mut names = Names::default();
        assert!(names.add_directory("journal/old"));
        names.create("a", FileId(1));
        names.sync("");
        names.rename("a", "b", FileId(1));
        names.create("c", FileId(2));
        names.remove("c");
        names.create("journal/old/d", FileId(3));
        let seen = survivors(&names);
        for top in [files(&[("a", 1)]), files(&[("b", 1)]), files(&[("b", 1), ("c", 2)])] {
            assert!(seen.contains(&top), "{top:?} of {seen:?}");
            let mut with_other = top.clone();
            with_other.push(("journal/old/d".to_owned(), 3));
            assert!(seen.contains(&with_other));
        }
        assert_eq!(seen.len(), 6);
        names.sync("journal/old");
        names.sync("");
        assert_eq!(survivors(&names), BTreeSet::from([files(&[("b", 1), ("journal/old/d", 3)])]));
    }

    #[test]
    fn a_rename_between_directories_is_never_half_done() {
        let mut names = Names::default();
        assert!(names.add_directory("x") && names.add_directory("y"));
        names.create("x/f", FileId(1));
        names.sync("x");
        names.rename("x/f", "y/f", FileId(1));
        assert_eq!(survivors(&names), BTreeSet::from([files(&[("x/f", 1)]), files(&[("y/f", 1)])]));
        names.sync("x");
        assert_eq!(survivors(&names), BTreeSet::from([files(&[("y/f", 1)])]));
    }

    #[test]
    fn directories_and_files_do_not_share_names() {
        let mut names = Names::default();
        assert!(names.add_directory(""));
        names.create("a", FileId(1));
        assert!(!names.add_directory("a") && !names.add_directory("a/b"));
        assert!(names.add_directory("b/c") && names.has_directory("b") && names.has_directory(""));
        assert_eq!(names.list(""), ["a"]);
    }
}
