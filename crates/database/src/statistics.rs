//! What there is in a database, in numbers.

use crate::Etag;
use crate::database::Database;
use crate::error::Result;

/// What there is in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Documents.
    pub documents: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Identities.
    pub identities: u64,
    /// Compare-exchange values.
    pub compare_exchange: u64,
    /// The etag of the last written document; 0 when there is none.
    pub last_document_etag: Etag,
    /// The last etag given out.
    pub last_etag: Etag,
    /// The change vector of the whole database.
    pub change_vector: String,
    /// Bytes on disk: data file and journal.
    pub size_on_disk: u64,
    /// Jobs that wait for the writer.
    pub queued_jobs: usize,
}

impl Database {
    /// Counts what there is; takes no time by how much it is.
    pub fn statistics(&self) -> Result<Statistics> {
        let snapshot = self.read()?;
        let mut last_document_etag = 0;
        snapshot.documents_by_etag(i64::MAX, jackdaw_storage::Order::Descending, |document| {
            last_document_etag = document.etag;
            Ok(std::ops::ControlFlow::Break(()))
        })?;
        let last_etag = snapshot.last_etag()?;
        let storage = self.storage_stats();
        Ok(Statistics {
            documents: snapshot.document_count()?,
            tombstones: snapshot.tombstone_count()?,
            identities: snapshot.identity_count()?,
            compare_exchange: snapshot.compare_exchange_count()?,
            last_document_etag,
            last_etag,
            change_vector: snapshot.change_vector()?,
            size_on_disk: storage.data_file_size + storage.journal_size + storage.journal_spare_size,
            queued_jobs: self.queued_jobs(),
        })
    }
}
