//! Waiting, after documents were written, until indexes have them: `waitForIndexesTimeout` and its kin.

use std::time::Duration;

use jackdaw_indexing::Cutoff;
use jackdaw_indexing::definition::parse_duration;

use crate::databases::{LoadedDatabase, blocking};
use crate::error::{ErrorKind, Result};
use crate::request::DatabaseRequest;

/// What a request asks for.
pub(crate) struct WaitForIndexes {
    timeout: Duration,
    throws: bool,
    /// Only these; all that are concerned when there are none.
    names: Vec<String>,
    /// The last etag before the request wrote.
    before: i64,
}

impl WaitForIndexes {
    /// To be called before anything is written. `None`: it does not ask to wait.
    ///
    /// Errors: a timeout that is none.
    pub(crate) fn of(request: &DatabaseRequest) -> Result<Option<WaitForIndexes>> {
        let query = request.query();
        let Some(text) = query.get_filled("waitForIndexesTimeout")? else { return Ok(None) };
        let timeout = parse_duration(&text).ok_or_else(|| {
            ErrorKind::Format
                .error(format!("'waitForIndexesTimeout' must be a duration hh:mm:ss, it was '{text}'"))
        })?;
        let names = query.all("waitForSpecificIndex").map(|name| Ok(name?.into_owned()));
        let names: Vec<String> = names.collect::<Result<_>>()?;
        Ok(Some(WaitForIndexes {
            timeout,
            throws: query.flag("waitForIndexThrow")?.unwrap_or(true),
            names: names.into_iter().filter(|name| !name.is_empty()).collect(),
            before: request.database.read()?.last_etag()?,
        }))
    }

    /// Waits until the indexes have what was written.
    ///
    /// Errors: there is no index of a name; the time is over and that is to be an error.
    pub(crate) async fn wait(self, database: &LoadedDatabase) -> Result<()> {
        let WaitForIndexes { timeout, throws, names, before } = self;
        let (indexes, source) = (database.indexes().clone(), jackdaw_database::Database::clone(database));
        // The first use of an index opens its files.
        let (concerned, cutoff) = blocking(move || {
            let concerned = indexes.concerned_since(before, &names)?;
            for index in concerned.iter().filter(|index| !index.is_faulty()) {
                index.view()?;
            }
            Ok((concerned, source.read()?.last_etag()?))
        })
        .await?;
        let all = async {
            for index in concerned.iter().filter(|index| !index.is_faulty()) {
                index.wait_for(Cutoff::Etag(cutoff)).await?;
            }
            Ok::<_, crate::error::WireError>(())
        };
        match tokio::time::timeout(timeout, all).await {
            Ok(waited) => waited,
            Err(_) if throws => {
                let mut behind = Vec::new();
                for index in concerned.iter().filter(|index| !index.is_faulty()) {
                    if index.is_stale()? {
                        behind.push(index.name());
                    }
                }
                Err(ErrorKind::IndexingTimeout
                    .error(format!(
                        "After waiting for {timeout:?}, could not verify that all indexes have caught up with the changes as of etag: {cutoff}. Total relevant indexes: {}, total stale indexes: {} ({})",
                        concerned.len(),
                        behind.len(),
                        behind.join(", ")
                    ))
                    .with("FailImmediately", true))
            }
            Err(_) => Ok(()),
        }
    }
}
