//! Ranges of ids for clients (HiLo), kept in documents `Raven/Hilo/<tag>`.

use jackdaw_document::Value;

use crate::clock;
use crate::error::Result;
use crate::ids;
use crate::incoming::IncomingDocument;
use crate::metadata::{COLLECTION, HILO_COLLECTION, METADATA};
use crate::transaction::Transaction;

/// The fewest and the most ids in a range.
const RANGE_MIN: i64 = 32;
const RANGE_MAX: i64 = 1 << 20;

/// A client that comes back within this time gets twice as many; one that takes longer than four times this, half.
const RECENT_TICKS: i64 = 30 * jackdaw_document::date::TICKS_PER_SECOND;

/// Ids `low..=high` that nobody else gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiloRange {
    /// The first.
    pub low: i64,
    /// The last.
    pub high: i64,
    /// How many.
    pub size: i64,
    /// When they were handed out, in ticks.
    pub at: i64,
}

fn id_of(tag: &str) -> String {
    format!("Raven/Hilo/{tag}")
}

impl Transaction<'_> {
    /// The next range for a tag. `last_size` and `last_at` are what the client got last (0 for nothing), by which it gets more or less this
    /// time; `last_max` is the greatest id it knows of.
    pub fn next_hilo_range(
        &mut self,
        tag: &str,
        last_size: i64,
        last_at: i64,
        last_max: i64,
    ) -> Result<HiloRange> {
        let now = clock::now_ticks();
        let size = match now - last_at {
            _ if last_size <= 0 || last_at <= 0 => last_size,
            since if since < RECENT_TICKS => last_size.saturating_mul(2),
            since if since > 4 * RECENT_TICKS => last_size / 2,
            _ => last_size,
        };
        let size = size.clamp(RANGE_MIN, RANGE_MAX);
        let max = self.hilo_max(tag)?.max(last_max);
        let high = max.saturating_add(size);
        self.set_hilo_max(tag, high)?;
        Ok(HiloRange { low: max + 1, high, size, at: now })
    }

    /// Takes back what a client did not use: the ids after `last`, when it was the last to get any.
    pub fn return_hilo_range(&mut self, tag: &str, end: i64, last: i64) -> Result<()> {
        if last < end && self.hilo_max(tag)? == end {
            self.set_hilo_max(tag, last)?;
        }
        Ok(())
    }

    fn hilo_max(&self, tag: &str) -> Result<i64> {
        let document = self.get(&id_of(tag))?;
        let max = document.and_then(|document| document.document.get("Max").and_then(|max| max.as_i64()));
        Ok(max.unwrap_or(0))
    }

    fn set_hilo_max(&mut self, tag: &str, max: i64) -> Result<()> {
        let id = id_of(tag);
        let key = ids::key(&id)?.into_owned();
        let incoming = {
            // Whatever else somebody put into the document stays.
            let before = self.storage.table(crate::schema::DOCUMENTS)?.get(key.as_bytes())?;
            let before = before.map(|row| self.shared.document(row)).transpose()?;
            let object = before.as_ref().and_then(|before| before.document.object());
            let document = self.state.context.build(self.shared.document_mode, |builder| {
                builder.begin_object()?;
                builder.name("Max")?;
                builder.i64(max)?;
                for (name, value) in object.iter().flat_map(|object| object.iter()) {
                    let name = name.to_str();
                    if name != "Max" && name != METADATA {
                        builder.name(&name)?;
                        builder.value(&value)?;
                    }
                }
                builder.name(METADATA)?;
                let metadata = object
                    .as_ref()
                    .and_then(|object| object.get(METADATA))
                    .filter(|m| m.as_object().is_some());
                match metadata {
                    Some(metadata @ Value::Object(_)) => builder.value(&metadata)?,
                    _ => {
                        builder.begin_object()?;
                        builder.name(COLLECTION)?;
                        builder.str(HILO_COLLECTION)?;
                        builder.end()?;
                    }
                }
                builder.end()
            })?;
            let collection = match &before {
                Some(before) => self.collection_name(before.collection).to_string(),
                None => HILO_COLLECTION.to_owned(),
            };
            IncomingDocument::built(document.as_bytes().to_vec(), collection)
        };
        self.state.built += 1;
        self.put(&id, &incoming, Default::default())?;
        Ok(())
    }
}
