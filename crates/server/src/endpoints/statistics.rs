//! `/stats` and `/collections`: what there is in a database, in numbers.

use http::Method;
use jackdaw_database::Snapshot;
use serde_json::{Map, Value, json};

use crate::databases::{LoadedDatabase, blocking};
use crate::error::Result;
use crate::request::DatabaseRequest;
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::indexes;
use crate::wire::size::size;

pub(crate) fn routes(routes: &mut Routes) {
    routes.database(Method::GET, "/stats", |request: DatabaseRequest| stats(request, Detail::Plain));
    routes.database(Method::GET, "/stats/detailed", |request: DatabaseRequest| {
        stats(request, Detail::Detailed)
    });
    routes.database(Method::GET, "/stats/essential", |request: DatabaseRequest| {
        stats(request, Detail::Essential)
    });
    routes.database(Method::GET, "/collections/stats", collections);
    routes.database(Method::GET, "/collections/stats/detailed", collections_detailed);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Essential,
    Plain,
    Detailed,
}

async fn stats(request: DatabaseRequest, detail: Detail) -> Result<Response> {
    let database = request.database.clone();
    blocking(move || Response::of(&stats_of(&database, detail)?)).await
}

fn stats_of(database: &LoadedDatabase, detail: Detail) -> Result<Value> {
    let statistics = database.statistics()?;
    let mut stats = json!({
        "CountOfIndexes": database.indexes().count(),
        "CountOfDocuments": statistics.documents,
        "CountOfRevisionDocuments": 0,
        "CountOfTombstones": statistics.tombstones,
        "CountOfDocumentsConflicts": 0,
        "CountOfConflicts": 0,
        "CountOfAttachments": 0,
        "CountOfCounterEntries": 0,
        "CountOfTimeSeriesSegments": 0,
    });
    let mut add = |more: Value| {
        if let (Value::Object(stats), Value::Object(more)) = (&mut stats, more) {
            stats.extend(more);
        }
    };
    if detail != Detail::Essential {
        add(json!({
            "CountOfUniqueAttachments": 0,
            "LastDocEtag": statistics.last_document_etag,
            "LastDatabaseEtag": statistics.last_etag,
            "DatabaseChangeVector": statistics.change_vector,
            "DatabaseId": database.id().as_str(),
            "Is64Bit": cfg!(target_pointer_width = "64"),
            "NumberOfTransactionMergerQueueOperations": statistics.queued_jobs,
            "LastIndexingTime": last_indexing_time(database)?,
            "SizeOnDisk": size(statistics.size_on_disk),
            "TempBuffersSizeOnDisk": size(0),
            "Pager": "Jackdaw",
        }));
    }
    if detail == Detail::Detailed {
        add(json!({
            "CountOfIdentities": statistics.identities,
            "CountOfCompareExchange": statistics.compare_exchange,
            "CountOfCompareExchangeTombstones": 0,
            "CountOfTimeSeriesDeletedRanges": 0,
        }));
    }
    let all = database.indexes().list();
    let indexes: Vec<Value> = match detail {
        Detail::Essential => all.iter().map(|index| indexes::essential(index)).collect(),
        _ => all.iter().map(|index| indexes::brief(index)).collect::<Result<_>>()?,
    };
    stats["Indexes"] = indexes.into();
    Ok(stats)
}

/// When any index last finished a batch.
fn last_indexing_time(database: &LoadedDatabase) -> Result<Value> {
    let mut last = 0;
    for index in database.indexes().list().iter().filter(|index| !index.is_faulty()) {
        last = last.max(index.view()?.progress().last_indexed);
    }
    Ok(indexes::date_or_null(last))
}

async fn collections(request: DatabaseRequest) -> Result<Response> {
    let database = request.database.clone();
    blocking(move || {
        let snapshot = database.read()?;
        let collections = snapshot
            .collections()?
            .into_iter()
            .filter(|collection| collection.documents > 0)
            .map(|collection| (collection.name, collection.documents.into()))
            .collect();
        Response::of(&counts(&snapshot, collections)?)
    })
    .await
}

/// What there is in all collections.
fn counts(snapshot: &Snapshot, collections: Map<String, Value>) -> Result<Value> {
    Ok(json!({
        "CountOfDocuments": snapshot.document_count()?,
        "CountOfDocumentsConflicts": 0,
        "CountOfConflicts": 0,
        "CountOfRevisionDocuments": 0,
        "CountOfTombstones": snapshot.tombstone_count()?,
        "CountOfTimeSeriesDeletedRanges": 0,
        "CountOfAttachments": 0,
        "CountOfCounterEntries": 0,
        "CountOfTimeSeriesSegments": 0,
        "Collections": collections,
    }))
}

async fn collections_detailed(request: DatabaseRequest) -> Result<Response> {
    let database = request.database.clone();
    blocking(move || {
        let snapshot = database.read()?;
        let mut collections = Map::new();
        for collection in snapshot.collections()?.into_iter().filter(|collection| collection.documents > 0) {
            let bytes = snapshot.estimate_size_of_collection(&collection.name)?;
            let entry = json!({
                "Name": collection.name,
                "CountOfDocuments": collection.documents,
                "Size": size(bytes),
                "DocumentsSize": size(bytes),
                "CountOfTombstones": snapshot.tombstone_count_of_collection(&collection.name)?,
                "TombstonesSize": size(0),
                "CountOfRevisions": 0,
                "RevisionsSize": size(0),
                "CountOfTimeSeriesDeletedRanges": 0,
                "TimeSeriesDeletedRangesSize": size(0),
                "CountOfCounterEntries": 0,
                "CounterEntriesSize": size(0),
                "CountOfTimeSeriesSegments": 0,
                "TimeSeriesSegmentsSize": size(0),
            });
            collections.insert(collection.name, entry);
        }
        Response::of(&counts(&snapshot, collections)?)
    })
    .await
}
