//! The exit codes: scripts depend on them, so each has one meaning for all commands.

use std::process::ExitCode;

use jackdaw_storage::Error;

/// Shown below `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done, and nothing is wrong
  1  done, and what was looked at is damaged
  2  wrong usage
  3  could not be done
  4  could not be done: in use by another process";

/// Done, and what was looked at is damaged.
pub(crate) const DAMAGED: u8 = 1;
const FAILED: u8 = 3;
const IN_USE: u8 = 4;

/// The code of a command that ended with an error.
pub(crate) fn of_error(error: &anyhow::Error) -> ExitCode {
    let code = match error.downcast_ref::<Error>() {
        Some(Error::Locked { .. }) => IN_USE,
        Some(Error::PageDamaged { .. } | Error::FileDamaged { .. }) => DAMAGED,
        _ => FAILED,
    };
    code.into()
}
