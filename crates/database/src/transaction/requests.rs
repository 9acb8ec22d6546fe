//! Requests that must not be executed twice: a client that got no answer sends the same one again.

use jackdaw_storage::Order;

use crate::error::{Error, Result};
use crate::schema::{self, REQUESTS_KEPT, request};
use crate::transaction::Transaction;

/// The most bytes of a request's id.
const REQUEST_ID_SIZE_MAX: usize = 256;

impl Transaction<'_> {
    /// The answer of an earlier request of this id.
    pub fn answer_of_request(&self, id: &str) -> Result<Option<&[u8]>> {
        if id.is_empty() || id.len() > REQUEST_ID_SIZE_MAX {
            return Ok(None);
        }
        let found = self.storage.table(schema::REQUESTS)?.get(id.as_bytes())?;
        Ok(found.map(|row| row.column(request::ANSWER)))
    }

    /// Keeps the answer of a request; the oldest go when there are too many.
    ///
    /// Error: [`Error::InvalidArgument`] for an id that is too long.
    pub fn keep_answer_of_request(&mut self, id: &str, answer: &[u8]) -> Result<()> {
        if id.is_empty() {
            return Ok(());
        }
        if id.len() > REQUEST_ID_SIZE_MAX {
            let (size, max) = (id.len(), REQUEST_ID_SIZE_MAX);
            return Err(Error::InvalidArgument(format!(
                "a request's id has {size} bytes; the longest allowed has {max}"
            )));
        }
        let mut requests = self.storage.table_mut(schema::REQUESTS)?;
        let (first, last) = {
            let read = requests.read();
            let edge = |order, from| -> Result<Option<i64>> {
                let row = read.from_etag(0, from, order)?.next()?;
                row.map(|row| schema::number(&row, request::NUMBER)).transpose()
            };
            (edge(Order::Ascending, 0)?, edge(Order::Descending, i64::MAX)?)
        };
        if let Some(first) = first.filter(|_| requests.len() >= REQUESTS_KEPT) {
            requests.delete_etag_range(0, first, first)?;
        }
        let row = self.state.row.push(id.as_bytes()).push_i64(last.unwrap_or(0) + 1).push(answer).finish()?;
        requests.upsert(row)?;
        Ok(())
    }
}
