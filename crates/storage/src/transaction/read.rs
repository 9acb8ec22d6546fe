//! The read transaction: a pinned snapshot.

use std::sync::Arc;

use crate::environment::Inner;
use crate::error::{Error, Result};
use crate::format::{PAGE_HEADER_SIZE, PageNumber, ROOT_PAGE, TransactionId, read_u64};
use crate::page::Page;
use crate::page::header::{self, PageKind};
use crate::pages::Pages;
use crate::root::RootState;
use crate::snapshot::readers::Pin;

/// A snapshot of one durable state; nothing that is committed later shows in it. Values are slices of mapped or scratch memory
/// tied to the transaction's lifetime.
///
/// It holds no lock and can be sent to another thread. Keep it short: the pages that it sees cannot be flushed beyond it, so
/// scratch memory grows while writers go on (see [`crate::Stats`]).
pub struct ReadTransaction {
    pub(crate) inner: Arc<Inner>,
    pin: Option<Pin>,
    id: TransactionId,
}

impl ReadTransaction {
    pub(crate) fn begin(inner: Arc<Inner>) -> Result<ReadTransaction> {
        let (pin, id) = inner.readers.pin(&inner.visible)?;
        Ok(ReadTransaction { inner, pin: Some(pin), id })
    }

    /// The transaction whose state this is.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    pub(crate) fn root(&self) -> Result<RootState> {
        if self.id.0 == 0 {
            return Ok(RootState::empty());
        }
        RootState::read(self.page(ROOT_PAGE)?)
    }
}

impl Drop for ReadTransaction {
    fn drop(&mut self) {
        if let Some(pin) = self.pin.take() {
            self.inner.readers.unpin(pin);
        }
    }
}

impl Pages for ReadTransaction {
    #[inline]
    fn page(&self, number: PageNumber) -> Result<&Page> {
        match self.inner.table.find(number, self.id) {
            // SAFETY: the snapshot is pinned as long as `self` lives (see `page_table`).
            Some(found) if !found.is_tombstone() => Ok(unsafe { found.page() }),
            Some(_) => Err(freed(number)),
            None => self.inner.data.page(number),
        }
    }

    fn run(&self, number: PageNumber) -> Result<&[u8]> {
        match self.inner.table.find(number, self.id) {
            Some(found) if found.is_tombstone() => Err(freed(number)),
            // SAFETY: as above.
            Some(found) => run_value(number, unsafe { found.bytes() }),
            None => self.inner.data.run(number),
        }
    }

    fn will_need(&self, numbers: &[PageNumber]) {
        self.inner.data.will_need(numbers);
    }
}

#[cold]
pub(crate) fn freed(number: PageNumber) -> Error {
    Error::damaged(number, "it is referred to, but free")
}

/// The value in the bytes of a run (or of one page that holds a run).
pub(crate) fn run_value(number: PageNumber, bytes: &[u8]) -> Result<&[u8]> {
    if header::kind(bytes) != Some(PageKind::Overflow) {
        return Err(Error::damaged(number, "a value's run is expected to start here"));
    }
    let length = read_u64(bytes, header::RUN_LENGTH_AT) as usize;
    bytes
        .get(PAGE_HEADER_SIZE..PAGE_HEADER_SIZE.saturating_add(length))
        .ok_or_else(|| Error::damaged(number, format!("its run says {length} bytes and has {}", bytes.len())))
}
