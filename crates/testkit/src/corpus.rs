//! The inputs that fuzzing found and people wrote, run again on stable.

use std::path::Path;

/// Gives `check` every input in `fuzz/{area}/corpus/{target}`, in the order of their names, printing each name first.
///
/// # Panics
///
/// When the folder cannot be read or has nothing in it: then nothing would be tested.
pub fn replay_corpus(area: &str, target: &str, mut check: impl FnMut(&[u8])) {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(area).join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs.sort();
    for path in inputs {
        println!("{}", path.display());
        let input = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        check(&input);
    }
}
