//! Making, changing and deleting databases.

use http::{Method, StatusCode, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::databases::does_not_exist;
use crate::endpoints::topology::database_missing;
use crate::error::{ErrorKind, Result};
use crate::request::{ServerRequest, unquoted};
use crate::response::Response;
use crate::routes::Routes;
use crate::wire::database_record::{DatabaseRecord, LockMode, NODE_TAG};

pub(crate) fn routes(routes: &mut Routes) {
    routes.server(Method::PUT, "/admin/databases", put);
    routes.server(Method::GET, "/admin/databases", get);
    routes.server(Method::DELETE, "/admin/databases", delete);
    routes.server(Method::POST, "/admin/databases/enable", enable);
    routes.server(Method::POST, "/admin/databases/disable", disable);
    routes.server(Method::POST, "/admin/databases/set-lock", set_lock);
    routes.server(Method::POST, "/admin/databases/reorder", reorder);
    routes.server(Method::POST, "/admin/databases/promote", promote);
    routes.server(Method::PUT, "/admin/databases/node", add_node);
}

/// Makes a database, or with a number as `ETag` changes the record of one.
async fn put(mut request: ServerRequest) -> Result<Response> {
    let sent: Map<String, Value> = request.json().await?;
    let mut record = DatabaseRecord::from_wire(&sent)?;
    if record.database_name.is_empty() {
        record.database_name = request.query().require("name")?.into_owned();
    }
    if let Some(factor) = request.query().number::<i32>("replicationFactor")?
        && factor < 0
    {
        return Err(ErrorKind::Argument.error(format!("a database cannot have {factor} copies")));
    }
    // One client sends "undefined" when it makes a database.
    let etag = request.header(header::ETAG).and_then(|etag| unquoted(etag).parse::<i64>().ok());
    let databases = request.state.databases();
    let record = match etag.filter(|_| databases.entry(&record.database_name).is_some()) {
        Some(etag) => {
            let name = record.database_name.clone();
            databases.change(&name, |current, _| replace(current, record, etag)).await?
        }
        None => {
            record.made_by = request.query().get_filled("raft-request-id")?.map(|id| id.into_owned());
            databases.create(record).await?
        }
    };
    let answer = json!({
        "RaftCommandIndex": record.etag,
        "Name": record.database_name,
        "Topology": record.topology(),
        "NodesAddedTo": [request.state.url_for(request.headers())],
        "ShardsDefined": false,
    });
    Ok(Response::of(&answer)?.status(StatusCode::CREATED))
}

/// What a client may change of a record; the rest is the server's.
fn replace(current: &mut DatabaseRecord, sent: DatabaseRecord, etag: i64) -> Result<()> {
    if current.etag != etag {
        let name = &current.database_name;
        return Err(ErrorKind::Concurrency.error(format!(
            "the record of database '{name}' has etag {}, but {etag} was expected",
            current.etag
        )));
    }
    current.disabled = sent.disabled;
    current.lock_mode = sent.lock_mode;
    current.settings = sent.settings;
    current.client = sent.client;
    current.studio = sent.studio;
    Ok(())
}

async fn get(request: ServerRequest) -> Result<Response> {
    let name = request.query().require("name")?;
    match request.state.databases().entry(&name) {
        Some(entry) => Response::of(&entry.record().to_wire()),
        None => Ok(database_missing(StatusCode::NOT_FOUND, &name)),
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Deletion {
    database_names: Vec<String>,
    hard_delete: bool,
    from_nodes: Option<Vec<String>>,
}

async fn delete(mut request: ServerRequest) -> Result<Response> {
    let deletion: Deletion = request.json().await?;
    if let Some(other) = deletion.from_nodes.iter().flatten().find(|node| *node != NODE_TAG) {
        return Err(ErrorKind::InvalidOperation
            .error(format!("the database is not on node {other}: the only node is {NODE_TAG}")));
    }
    let mut index = -1;
    for name in &deletion.database_names {
        if let Some(deleted) = request.state.databases().delete(name, deletion.hard_delete).await? {
            index = deleted;
        }
    }
    Response::of(&json!({ "RaftCommandIndex": index, "PendingDeletes": [] }))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Names {
    database_names: Vec<String>,
}

async fn enable(request: ServerRequest) -> Result<Response> {
    switch(request, false).await
}

async fn disable(request: ServerRequest) -> Result<Response> {
    switch(request, true).await
}

async fn switch(mut request: ServerRequest, disabled: bool) -> Result<Response> {
    let names: Names = request.json().await?;
    let mut status = Vec::new();
    for name in names.database_names {
        let databases = request.state.databases();
        status.push(match databases.entry(&name) {
            None => json!({ "Name": name, "Success": false, "Reason": "database not found" }),
            Some(_) => {
                databases
                    .change(&name, |record, _| {
                        record.disabled = disabled;
                        Ok(())
                    })
                    .await?;
                let word = if disabled { "True" } else { "False" };
                json!({
                    "Name": name,
                    "Success": true,
                    "Disabled": disabled,
                    "Reason": format!("Database state={word} was propagated on the cluster"),
                })
            }
        });
    }
    Response::of(&json!({ "Status": status }))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Locks {
    database_names: Vec<String>,
    mode: LockMode,
}

async fn set_lock(mut request: ServerRequest) -> Result<Response> {
    let locks: Locks = request.json().await?;
    let databases = request.state.databases();
    // All or none, as far as it can be told before.
    if let Some(missing) = locks.database_names.iter().find(|name| databases.entry(name).is_none()) {
        return Err(does_not_exist(missing));
    }
    for name in &locks.database_names {
        databases
            .change(name, |record, _| {
                record.lock_mode = locks.mode;
                Ok(())
            })
            .await?;
    }
    Ok(Response::no_content())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Order {
    members_order: Vec<String>,
    #[serde(default)]
    fixed: bool,
}

async fn reorder(mut request: ServerRequest) -> Result<Response> {
    let order: Order = request.json().await?;
    let name = request.query().require("name")?;
    let change = |record: &mut DatabaseRecord, index| {
        if order.members_order != [NODE_TAG] {
            return Err(ErrorKind::Argument.error(
                "The reordered list doesn't correspond to the existing nodes of the database group.",
            ));
        }
        record.priority_order = if order.fixed { order.members_order } else { Vec::new() };
        record.topology_etag = index;
        Ok(())
    };
    request.state.databases().change(&name, change).await?;
    Ok(Response::no_content())
}

/// The only node is a member already, so this changes nothing but the record's etag.
async fn promote(request: ServerRequest) -> Result<Response> {
    let query = request.query();
    let (name, node) = (query.require("name")?, query.require("node")?);
    let change = |record: &mut DatabaseRecord, _| match &*node == NODE_TAG {
        true => Ok(()),
        false => {
            let name = &record.database_name;
            Err(ErrorKind::InvalidOperation
                .error(format!("node {node} is not in the topology of database '{name}'")))
        }
    };
    let record = request.state.databases().change(&name, change).await?;
    Response::of(&json!({ "Name": record.database_name, "RaftCommandIndex": record.etag }))
}

async fn add_node(request: ServerRequest) -> Result<Response> {
    let query = request.query();
    let name = query.require("name")?;
    request.state.databases().require(&name)?;
    let message = match query.get_filled("node")? {
        Some(node) if *node != *NODE_TAG => format!(
            "Can't add node {node} to database '{name}' topology, because node {node} (which is in the new topology) is not part of the cluster"
        ),
        _ => format!("Database {name} already exists on all the nodes of the cluster"),
    };
    Err(ErrorKind::InvalidOperation.error(message))
}
