//! Indexes as JSON: definitions, statistics, errors, what batches did.

use jackdaw_database::clock::date_text;
use jackdaw_indexing::definition::{FieldOptions, IndexDefinition};
use jackdaw_indexing::{BatchStatistics, CollectionStatistics, Index, Indexes, IndexingError};
use serde_json::{Map, Value, json};

use crate::dumps::analyzers_of_record;
use crate::error::Result;
use crate::wire::size::size;

/// A definition with all keys that clients know.
pub(crate) fn definition(index: &Index) -> Value {
    let definition = index.definition();
    let fields: Map<String, Value> =
        definition.fields.iter().map(|(name, options)| (name.clone(), field(options))).collect();
    json!({
        "Name": definition.name,
        "SourceType": "Documents",
        "Type": index.kind().as_str(),
        "LockMode": definition.lock_mode.unwrap_or_default().as_str(),
        "Priority": definition.priority.unwrap_or_default().as_str(),
        "State": definition.state.unwrap_or_default().as_str(),
        "OutputReduceToCollection": definition.output_reduce_to_collection,
        "DeploymentMode": definition.deployment_mode,
        "ReduceOutputIndex": definition.reduce_output_index,
        "PatternForOutputReduceToCollectionReferences": definition.pattern_for_output_reduce_to_collection_references,
        "PatternReferencesCollectionName": definition.pattern_references_collection_name,
        "Configuration": definition.configuration,
        "AdditionalSources": definition.additional_sources,
        "AdditionalAssemblies": definition.additional_assemblies,
        "Reduce": definition.reduce,
        "Maps": definition.maps,
        "Fields": fields,
    })
}

/// An index as an item of a dump; nothing for an automatic one.
pub(crate) fn dumped(index: &Index, remove_analyzers: bool) -> Option<Value> {
    let given = index.given_definition()?;
    let mut out = definition(index);
    // One that is built beside an index has that one's name.
    out["Name"] = given.name.as_str().into();
    if index.is_faulty() {
        // Functions that this version cannot run still have a type elsewhere.
        out["Type"] = if given.reduce.is_some() { "MapReduce" } else { "Map" }.into();
    }
    if let (true, Some(fields)) = (remove_analyzers, out["Fields"].as_object_mut()) {
        fields.values_mut().for_each(|field| field["Analyzer"] = Value::Null);
    }
    Some(json!({ "Type": out["Type"], "IndexDefinition": out }))
}

fn field(options: &FieldOptions) -> Value {
    json!({
        "Analyzer": options.analyzer,
        "Indexing": options.indexing,
        "Storage": options.storage,
        "Suggestions": options.suggestions,
        "TermVector": options.term_vector,
        "Spatial": options.spatial,
        "Vector": null,
    })
}

/// Fills in the definitions in the record of a database. A replacement is not there until it has taken its place.
pub(crate) fn add_to_record(indexes: &Indexes, record: &mut Value) {
    let (mut given, mut auto) = (Map::new(), Map::new());
    for index in indexes.list() {
        let name = index.name();
        if let Some(definition) = index.auto_definition() {
            auto.insert(name.clone(), definition.to_record(&name));
        } else if let Some(definition) = index.given_definition()
            && definition.name == name
        {
            given.insert(name, recorded(&index, &definition));
        }
    }
    record["Indexes"] = Value::Object(given);
    record["AutoIndexes"] = Value::Object(auto);
    record["Analyzers"] = analyzers_of_record(indexes);
}

/// A definition as it stands in the record of a database.
fn recorded(index: &Index, given: &IndexDefinition) -> Value {
    let mut out = definition(index);
    if let Value::Object(out) = &mut out {
        let name = |value: Option<&'static str>| value.map_or(Value::Null, Value::from);
        out.insert("LockMode".to_owned(), name(given.lock_mode.map(|mode| mode.as_str())));
        out.insert("Priority".to_owned(), name(given.priority.map(|priority| priority.as_str())));
        out.insert("State".to_owned(), name(given.state.map(|state| state.as_str())));
        out.insert(
            "ClusterState".to_owned(),
            json!({ "LastIndex": index.raft_index(), "LastStateIndex": 0, "LastRollingDeploymentIndex": 0 }),
        );
    }
    out
}

/// A date, or null when there is none.
pub(crate) fn date_or_null(ticks: i64) -> Value {
    if ticks == 0 { Value::Null } else { date_text(ticks).into() }
}

/// An index among the statistics of its database.
pub(crate) fn brief(index: &Index) -> Result<Value> {
    Ok(json!({
        "IsStale": is_stale(index)?,
        "Name": index.name(),
        "LockMode": index.lock_mode().as_str(),
        "Priority": index.definition().priority.unwrap_or_default().as_str(),
        "State": index.state().as_str(),
        "Type": index.kind().as_str(),
        "SourceType": "Documents",
        "LastIndexingTime": last_indexed(index)?,
    }))
}

/// The same in the short statistics.
pub(crate) fn essential(index: &Index) -> Value {
    json!({
        "Name": index.name(),
        "LockMode": index.lock_mode().as_str(),
        "Priority": index.definition().priority.unwrap_or_default().as_str(),
        "State": index.state().as_str(),
        "Type": index.kind().as_str(),
        "SourceType": "Documents",
    })
}

/// One that does nothing is no staler than it says: who waits for it would wait for ever.
fn is_stale(index: &Index) -> Result<bool> {
    Ok(!index.is_faulty() && index.is_stale()?)
}

/// When the index last finished a batch.
pub(crate) fn last_indexed(index: &Index) -> Result<Value> {
    if index.is_faulty() {
        return Ok(Value::Null);
    }
    Ok(date_or_null(index.view()?.progress().last_indexed))
}

/// All there is to tell of an index.
pub(crate) fn statistics(index: &Index) -> Result<Value> {
    let definition = index.definition();
    let kind = index.kind();
    if index.is_faulty() {
        return Ok(json!({
            "Name": index.name(), "MapAttempts": 0, "MapSuccesses": 0, "MapErrors": 0, "Collections": {},
            "State": index.state().as_str(), "Priority": definition.priority, "CreatedTimestamp": date_text(index.created()),
            "IsStale": false, "LockMode": index.lock_mode().as_str(), "Type": kind.as_str(), "Status": index.status().as_str(),
            "EntriesCount": 0, "ErrorsCount": index.error_count(), "SourceType": "None", "IsInvalidIndex": true,
        }));
    }
    // Staleness first: what is told of entries may then be newer than it, and never older.
    let is_stale = is_stale(index)?;
    let view = index.view()?;
    let progress = view.progress();
    let references = !index.referenced_collections().is_empty();
    let when = |is_there: bool, number: u64| if is_there { Value::from(number) } else { Value::Null };
    let collections: Map<String, Value> =
        index.lags()?.into_iter().map(|(name, lag)| (name, collection(&lag))).collect();
    Ok(json!({
        "Name": index.name(),
        "MapAttempts": progress.map_attempts,
        "MapSuccesses": progress.map_successes,
        "MapErrors": progress.map_errors,
        "MapReferenceAttempts": when(references, progress.reference_attempts),
        "MapReferenceSuccesses": when(references, progress.reference_successes),
        "MapReferenceErrors": when(references, progress.reference_errors),
        "ReduceAttempts": when(kind.is_map_reduce(), progress.reduce_attempts),
        "ReduceSuccesses": when(kind.is_map_reduce(), progress.reduce_successes),
        "ReduceErrors": when(kind.is_map_reduce(), progress.reduce_errors),
        "ReduceOutputCollection": definition.output_reduce_to_collection,
        "ReduceOutputReferencePattern": definition.pattern_for_output_reduce_to_collection_references,
        "PatternReferencesCollectionName": definition.pattern_references_collection_name,
        "MappedPerSecondRate": index.rate(),
        "ReducedPerSecondRate": 0.0,
        "MaxNumberOfOutputsPerDocument": progress.outputs_max,
        "Collections": collections,
        "LastQueryingTime": date_or_null(index.last_queried()),
        "State": index.state().as_str(),
        "Priority": definition.priority.unwrap_or_default().as_str(),
        "CreatedTimestamp": date_text(index.created()),
        "LastIndexingTime": date_or_null(progress.last_indexed),
        "IsStale": is_stale,
        "LockMode": index.lock_mode().as_str(),
        "Type": kind.as_str(),
        "SearchEngineType": "Lucene",
        "Status": index.status().as_str(),
        "EntriesCount": view.searcher().entries_count(),
        "ErrorsCount": index.error_count(),
        "SourceType": "Documents",
        "ReferencedCollections": index.referenced_collections(),
        "IsInvalidIndex": index.is_invalid(),
        "Memory": { "DiskSize": size(index.size_on_disk()), "ThreadAllocations": size(0), "MemoryBudget": size(0) },
        "LastBatchStats": index.last_batch().map(|batch| batch_statistics(&batch)),
    }))
}

fn collection(lag: &CollectionStatistics) -> Value {
    json!({
        "LastProcessedDocumentEtag": lag.last_processed_document,
        "LastProcessedTombstoneEtag": lag.last_processed_tombstone,
        "LastProcessedTimeSeriesDeletedRangeEtag": 0,
        "DocumentLag": lag.document_lag,
        "TombstoneLag": lag.tombstone_lag,
    })
}

/// How far an index is that is not done.
pub(crate) fn progress(index: &Index) -> Result<Value> {
    let lags = index.lags()?;
    let collections: Map<String, Value> = lags
        .into_iter()
        .map(|(name, lag)| {
            let value = json!({
                "LastProcessedItemEtag": lag.last_processed_document,
                "LastProcessedTombstoneEtag": lag.last_processed_tombstone,
                "NumberOfItemsToProcess": lag.document_lag,
                "NumberOfTombstonesToProcess": lag.tombstone_lag,
                "TotalNumberOfItems": lag.documents,
                "TotalNumberOfTombstones": lag.tombstone_lag,
                "NumberOfTimeSeriesDeletedRangesToProcess": 0,
                "TotalNumberOfTimeSeriesDeletedRanges": 0,
            });
            (name, value)
        })
        .collect();
    Ok(json!({
        "Name": index.name(),
        "Type": index.kind().as_str(),
        "SourceType": "Documents",
        "IsStale": is_stale(index)?,
        "IndexRunningStatus": index.status().as_str(),
        "ProcessedPerSecond": index.rate(),
        "Collections": collections,
        "IndexRollingStatus": null,
    }))
}

/// The last batches of an index.
pub(crate) fn performance(index: &Index) -> Value {
    let batches: Vec<Value> = index.batches().iter().map(performance_of).collect();
    json!({ "Name": index.name(), "Performance": batches })
}

fn performance_of(batch: &BatchStatistics) -> Value {
    let step = |name: &str, ms: f64, operations: Vec<Value>| {
        json!({
            "Name": name, "DurationInMs": ms, "Operations": operations,
            "ReduceDetails": null, "MapDetails": null, "CleanupDetails": null, "LuceneMergeDetails": null,
            "CommitDetails": null, "ReferenceDetails": null,
        })
    };
    let mut map = step("Map", batch.map_ms, Vec::new());
    map["MapDetails"] = json!({ "BatchCompleteReason": batch.reason });
    let steps = vec![map, step("Lucene/Commit", batch.commit_ms, Vec::new())];
    let mut out = batch_statistics(batch);
    out["Id"] = batch.id.into();
    out["Completed"] = date_text(batch.completed).into();
    out["Details"] = step("Indexing", batch.duration_ms, steps);
    out
}

fn batch_statistics(batch: &BatchStatistics) -> Value {
    json!({
        "InputCount": batch.inputs,
        "FailedCount": batch.failed,
        "OutputCount": batch.outputs,
        "SuccessCount": batch.inputs.saturating_sub(batch.failed),
        "Started": date_text(batch.started),
        "DurationInMs": batch.duration_ms,
        "AllocatedBytes": size(0),
        "DocumentsSize": size(batch.bytes),
    })
}

/// An index's errors.
pub(crate) fn errors(index: &Index) -> Result<Value> {
    let errors: Vec<Value> = index.errors()?.iter().map(error).collect();
    Ok(json!({ "Name": index.name(), "Errors": errors }))
}

fn error(error: &IndexingError) -> Value {
    json!({
        "Timestamp": date_text(error.timestamp),
        "Document": error.document,
        "Action": error.action,
        "Error": error.error,
    })
}
