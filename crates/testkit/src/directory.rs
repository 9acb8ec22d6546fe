//! Temporary folders.

use tempfile::TempDir;

/// A fresh folder that is removed when dropped, or kept for a look when `KEEP_DIRECTORIES` is set. It is made
/// where `TMPDIR` says.
///
/// Panics when it cannot be made: without it there is no test.
#[expect(clippy::expect_used, reason = "only tests call this, and they cannot go on")]
pub fn temporary_directory() -> TempDir {
    let mut directory = tempfile::Builder::new().prefix("jackdaw-").tempdir().expect("a temporary folder");
    if std::env::var_os("KEEP_DIRECTORIES").is_some() {
        directory.disable_cleanup(true);
        println!("keeping {}", directory.path().display());
    }
    directory
}
