//! The exit codes: scripts depend on them, so each has one meaning for all commands.

use std::process::ExitCode;

use jackdaw_storage::Error;

/// Shown below `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done, and nothing is wrong
  1  done, and what was looked at is damaged, or some of it was refused
  2  wrong usage
  3  could not be done
  4  could not be done: in use by another process";

/// Done, and what was looked at is damaged.
pub(crate) const DAMAGED: u8 = 1;
/// Done, and some records were refused.
pub(crate) const REFUSED: u8 = 1;
const FAILED: u8 = 3;
const IN_USE: u8 = 4;

/// The code of a command that ended with an error.
pub(crate) fn of_error(error: &anyhow::Error) -> ExitCode {
    match error.chain().find_map(storage_error) {
        Some(Error::Locked { .. }) => IN_USE,
        Some(Error::PageDamaged { .. } | Error::FileDamaged { .. }) => DAMAGED,
        _ => FAILED,
    }
    .into()
}

/// The storage engine's error, also inside a database's.
fn storage_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Error> {
    match error.downcast_ref::<jackdaw_database::Error>() {
        Some(jackdaw_database::Error::Storage(error)) => Some(error),
        _ => error.downcast_ref::<Error>(),
    }
}
