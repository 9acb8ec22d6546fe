//! `/databases`: which there are.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::databases::{Entry, blocking};
use crate::error::Result;
use crate::request::ServerRequest;
use crate::response::{DATABASE_MISSING, Response};
use crate::routes::Routes;
use crate::wire::database_record::NODE_TAG;
use crate::wire::size::size;

pub(crate) fn routes(routes: &mut Routes) {
    routes.server(Method::GET, "/databases", list);
}

async fn list(request: ServerRequest) -> Result<Response> {
    let query = request.query();
    let start = query.number::<usize>("start")?.unwrap_or(0);
    let page_size = query.number::<usize>("pageSize")?.unwrap_or(usize::MAX);
    let mut entries = request.state.databases().all();
    if let Some(name) = query.get_filled("name")? {
        let Some(entry) = request.state.databases().entry(&name) else {
            return Ok(Response::not_found().header(DATABASE_MISSING, &*name));
        };
        entries = vec![entry];
    }
    let page = entries.into_iter().skip(start).take(page_size);
    if query.flag("namesOnly")?.unwrap_or(false) {
        let names: Vec<String> = page.map(|entry| entry.record().database_name.clone()).collect();
        return Response::of(&json!({ "Databases": names }));
    }
    let url = request.state.url_for(request.headers());
    let page: Vec<_> = page.collect();
    let described =
        blocking(move || page.iter().map(|entry| describe(entry, &url)).collect::<Result<Vec<_>>>());
    Ok(Response::of(&json!({ "Databases": described.await? }))?.status(StatusCode::OK))
}

/// What the list says of a database. One that is not loaded stays so, and has no figures.
fn describe(entry: &Entry, url: &str) -> Result<Value> {
    let record = entry.record();
    let loaded = entry.if_loaded();
    let (mut documents, mut up_time, mut bytes) = (Value::Null, Value::Null, 0);
    if let Some(loaded) = &loaded {
        documents = loaded.read()?.document_count()?.into();
        up_time = time_span(loaded.up_time()).into();
        let stats = loaded.storage_stats();
        bytes = stats.data_file_size + stats.journal_size + stats.journal_spare_size;
    }
    Ok(json!({
        "Name": record.database_name,
        "TotalSize": size(bytes),
        "TempBuffersSize": size(0),
        "UpTime": up_time,
        "BackupInfo": null,
        "Alerts": 0,
        "PerformanceHints": 0,
        "IndexingErrors": 0,
        "DocumentsCount": documents,
        "IndexingStatus": if record.disabled { "Disabled" } else { "Running" },
        "Disabled": record.disabled,
        "LockMode": record.lock_mode,
        "IsAdmin": true,
        "IsEncrypted": false,
        "RejectClients": false,
        "HasRevisionsConfiguration": false,
        "HasExpirationConfiguration": false,
        "HasRefreshConfiguration": false,
        "HasDataArchivalConfiguration": false,
        "IndexesCount": 0,
        "NodesTopology": {
            "Members": [{ "NodeTag": NODE_TAG, "NodeUrl": url, "ResponsibleNode": null }],
            "Promotables": [],
            "Rehabs": [],
            "Status": { NODE_TAG: { "LastStatus": "Ok", "LastError": null } },
            "PriorityOrder": record.priority_order,
            "DynamicNodesDistribution": false,
        },
        "ReplicationFactor": 1,
        "DynamicNodesDistribution": false,
        "DeletionInProgress": if record.is_being_deleted { json!({ NODE_TAG: "HardDelete" }) } else { json!({}) },
        "Environment": "None",
        "IsLoaded": loaded.is_some(),
    }))
}

/// `[d.]hh:mm:ss.fffffff`
fn time_span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let days = if days > 0 { format!("{days}.") } else { String::new() };
    format!("{days}{hours:02}:{:02}:{:02}.{:07}", seconds / 60 % 60, seconds % 60, time.subsec_nanos() / 100)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_time_span_is_spelt_as_the_reference_does() {
        assert_eq!(time_span(Duration::from_micros(860_050)), "00:00:00.8600500");
        assert_eq!(time_span(Duration::from_secs(90_061)), "1.01:01:01.0000000");
    }
}
