//! Settings of one index: the keys `Indexing.*` of a definition.
//!
//! Keys that mean nothing here are kept with the definition and have no effect; a known key with a value that cannot be is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Error, Result};

/// What the settings of an index say; `None` where they say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// `Indexing.MapBatchSize`: documents in one batch at most.
    pub map_batch_size: Option<u64>,
    /// `Indexing.MapTimeoutInSec`: how long one batch may go on.
    pub map_timeout: Option<Duration>,
    /// `Indexing.IndexMissingFieldsAsNull`: a field that a document lacks is indexed as null.
    pub index_missing_fields_as_null: Option<bool>,
    /// `Indexing.IndexEmptyEntries`: an entry without any value is indexed all the same.
    pub index_empty_entries: Option<bool>,
    /// `Indexing.MaxTimeForDocumentTransactionToRemainOpenInSec` and others that bound one batch: how long a snapshot may be held.
    pub snapshot_timeout: Option<Duration>,
    /// `Indexing.Analyzers.Default`.
    pub default_analyzer: Option<String>,
    /// `Indexing.Analyzers.Exact.Default`.
    pub default_exact_analyzer: Option<String>,
    /// `Indexing.Analyzers.Search.Default`.
    pub default_search_analyzer: Option<String>,
    /// `Indexing.TimeToWaitBeforeMarkingAutoIndexAsIdleInMin`.
    pub idle_after: Option<Duration>,
    /// `Indexing.TimeToWaitBeforeDeletingAutoIndexMarkedAsIdleInHrs`.
    pub delete_after: Option<Duration>,
    /// `Indexing.TimeBeforeDeletionOfSupersededAutoIndexInSec`.
    pub delete_superseded_after: Option<Duration>,
}

impl Configuration {
    /// Reads settings by key; keys are compared without regard to case.
    ///
    /// Error: [`Error::InvalidOperation`] when a known one has a value that cannot be.
    pub fn of(settings: &BTreeMap<String, Option<String>>) -> Result<Configuration> {
        let mut read = Configuration::default();
        for (key, value) in settings {
            let Some(value) = value.as_deref() else { continue };
            read.set(key, value)?;
        }
        Ok(read)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let number = || value.trim().parse::<u64>().map_err(|_| wrong(key));
        let seconds = |unit: u64| number().map(|count| Some(Duration::from_secs(count.saturating_mul(unit))));
        let flag = || match value.trim() {
            value if value.eq_ignore_ascii_case("true") => Ok(Some(true)),
            value if value.eq_ignore_ascii_case("false") => Ok(Some(false)),
            _ => Err(wrong(key)),
        };
        match key.to_ascii_lowercase().as_str() {
            "indexing.mapbatchsize" => {
                self.map_batch_size = Some(number()?.max(1));
            }
            "indexing.maptimeoutinsec" => {
                // -1 says that there is none.
                self.map_timeout = if value.trim() == "-1" { None } else { seconds(1)? };
            }
            "indexing.indexmissingfieldsasnull" => self.index_missing_fields_as_null = flag()?,
            "indexing.indexemptyentries" => self.index_empty_entries = flag()?,
            "indexing.maxtimefordocumenttransactiontoremainopeninsec" => self.snapshot_timeout = seconds(1)?,
            "indexing.analyzers.default" => self.default_analyzer = Some(value.to_owned()),
            "indexing.analyzers.exact.default" => self.default_exact_analyzer = Some(value.to_owned()),
            "indexing.analyzers.search.default" => self.default_search_analyzer = Some(value.to_owned()),
            "indexing.timetowaitbeforemarkingautoindexasidleinmin" => self.idle_after = seconds(60)?,
            "indexing.timetowaitbeforedeletingautoindexmarkedasidleinhrs" => {
                self.delete_after = seconds(3600)?
            }
            "indexing.timebeforedeletionofsupersededautoindexinsec" => {
                self.delete_superseded_after = seconds(1)?
            }
            _ => {}
        }
        Ok(())
    }
}

fn wrong(key: &str) -> Error {
    Error::InvalidOperation(format!("Could not set '{key}' configuration setting value."))
}

/// A duration as .NET writes it, `[d.]hh:mm:ss[.fffffff]`; `None` when the text is none.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (head, rest) = text.split_once(':')?;
    let (days, hours) = match head.split_once('.') {
        Some((days, hours)) => (days.parse::<u64>().ok()?, hours),
        None => (0, head),
    };
    let hours = hours.parse::<u64>().ok()?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let minutes = minutes.parse::<u64>().ok()?;
    let seconds = seconds.parse::<f64>().ok().filter(|seconds| (0.0..60.0).contains(seconds))?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    let whole = days.checked_mul(86_400)?.checked_add(hours * 3600 + minutes * 60)?;
    Duration::from_secs(whole).checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}
