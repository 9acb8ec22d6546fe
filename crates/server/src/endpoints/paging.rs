//! Which of the documents that are found are asked for, and what of them.

use std::ops::ControlFlow;

use jackdaw_database::Fields;

use crate::error::{ErrorKind, Result};
use crate::query_string::Query;

/// `start` and `pageSize`: how many to pass over, and how many to give then.
pub(crate) struct Paging {
    skip: u64,
    take: u64,
}

impl Paging {
    pub(crate) fn of(query: Query<'_>) -> Result<Paging> {
        let whole = |name: &'static str| -> Result<Option<u64>> {
            match query.number::<i64>(name)? {
                Some(number) if number < 0 => {
                    Err(ErrorKind::Argument.error(format!("'{name}' must not be negative, it was {number}")))
                }
                number => Ok(number.map(i64::unsigned_abs)),
            }
        };
        Ok(Paging { skip: whole("start")?.unwrap_or(0), take: whole("pageSize")?.unwrap_or(u64::MAX) })
    }

    /// With a limit of its own, unless the request named one.
    pub(crate) fn at_most(mut self, limit: u64, is_named: bool) -> Paging {
        if !is_named {
            self.take = self.take.min(limit);
        }
        self
    }

    /// Gives the next one to `each` if it is asked for. Breaks when no more are, or when `each` does.
    pub(crate) fn page(&mut self, each: impl FnOnce() -> ControlFlow<()>) -> ControlFlow<()> {
        if self.take == 0 {
            return ControlFlow::Break(());
        }
        if self.skip > 0 {
            self.skip -= 1;
            return ControlFlow::Continue(());
        }
        self.take -= 1;
        match each() {
            ControlFlow::Continue(()) if self.take > 0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

/// `metadataOnly`: whether documents are asked for whole.
pub(crate) fn fields(query: Query<'_>) -> Result<Fields> {
    Ok(match query.flag("metadataOnly")?.unwrap_or(false) {
        true => Fields::Metadata,
        false => Fields::All,
    })
}
