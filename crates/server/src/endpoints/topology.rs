//! Which nodes there are: one, the leader of itself.

use std::sync::OnceLock;

use http::Method;
use jackdaw_database::clock;
use serde_json::{Value, json};

use crate::databases::Entry;
use crate::endpoints::build::{BUILD_VERSION, COMMIT_HASH, FULL_VERSION, PRODUCT_VERSION};
use crate::error::{ErrorKind, Result};
use crate::request::{Request, ServerRequest};
use crate::response::{DATABASE_MISSING, Response, SERVER_VERSION};
use crate::routes::Routes;
use crate::service::CLUSTER_TOPOLOGY_ETAG;
use crate::state::ServerState;
use crate::wire::database_record::NODE_TAG;

/// What the version whose protocol this is calls its storage.
const SCHEMA_VERSION: i32 = 71000;

pub(crate) fn routes(routes: &mut Routes) {
    routes.server(Method::GET, "/topology", database_topology);
    routes.server(Method::GET, "/cluster/topology", cluster_topology);
    routes.server(Method::GET, "/cluster/node-info", node_info);
    routes.server(Method::GET, "/info/tcp", tcp_info);
    routes.server(Method::GET, "/debug/server-id", server_id);
}

/// The answer where there is no database of a name: the topology says 503, the record 404.
pub(crate) fn database_missing(status: http::StatusCode, name: &str) -> Response {
    let body = json!({ "Type": "Error", "Message": format!("Database {name} wasn't found") });
    Response::json(body.to_string()).status(status).header(DATABASE_MISSING, name)
}

async fn database_topology(request: ServerRequest) -> Result<Response> {
    let name = request.query().require("name")?;
    let Some(entry) = request.state.databases().entry(&name) else {
        return Ok(database_missing(http::StatusCode::SERVICE_UNAVAILABLE, &name));
    };
    Response::of(&topology_of(&request.state, &request, &entry))
}

fn topology_of(state: &ServerState, request: &Request, entry: &Entry) -> Value {
    let record = entry.record();
    json!({
        "Promotables": [],
        "Nodes": [{
            "Url": state.url_for(request.headers()),
            "ClusterTag": NODE_TAG,
            "ServerRole": "Member",
            "Database": record.database_name,
            "ServerVersion": SERVER_VERSION,
        }],
        "Etag": record.topology_etag,
    })
}

async fn cluster_topology(request: ServerRequest) -> Result<Response> {
    let state = &request.state;
    let url = state.url_for(request.headers());
    Response::of(&json!({
        "@metadata": metadata(&url),
        "Topology": {
            "TopologyId": state.topology_id(),
            "AllNodes": { NODE_TAG: url },
            "Members": { NODE_TAG: url },
            "Promotables": {},
            "Watchers": {},
            "LastNodeId": NODE_TAG,
            "Etag": CLUSTER_TOPOLOGY_ETAG,
        },
        "Etag": CLUSTER_TOPOLOGY_ETAG,
        "Leader": NODE_TAG,
        "LeaderShipDuration": state.up_time().as_millis() as u64,
        "CurrentState": "Leader",
        "NodeTag": NODE_TAG,
        "ServerRole": "Member",
        "CurrentTerm": 1,
        "NodeLicenseDetails": null,
        "LastStateChangeReason": LAST_STATE_CHANGE,
        "Status": {},
    }))
}

const LAST_STATE_CHANGE: &str = "Leader, I'm the only one in the cluster, so I'm the leader";

/// What administrative answers begin with.
pub(crate) fn metadata(url: &str) -> Value {
    json!({ "DateTime": clock::date_text(clock::now_ticks()), "WebUrl": url, "NodeTag": NODE_TAG })
}

async fn node_info(request: ServerRequest) -> Result<Response> {
    let state = &request.state;
    let machine = machine();
    Response::of(&json!({
        "NodeTag": NODE_TAG,
        "TopologyId": state.topology_id(),
        "Certificate": null,
        "ClusterStatus": null,
        "NumberOfCores": machine.cores,
        "InstalledMemoryInGb": machine.memory_gb,
        "UsableMemoryInGb": machine.memory_gb,
        "BuildInfo": {
            "ProductVersion": PRODUCT_VERSION,
            "BuildVersion": BUILD_VERSION,
            "CommitHash": COMMIT_HASH,
            "FullVersion": FULL_VERSION,
            "AssemblyVersion": SERVER_VERSION,
        },
        "OsInfo": {
            "Type": "Linux",
            "FullName": machine.system,
            "Version": machine.release,
            "BuildVersion": machine.release,
            "Is64Bit": cfg!(target_pointer_width = "64"),
        },
        "ServerId": state.server_id(),
        "CurrentState": "Leader",
        "ServerRole": "Member",
        "HasFixedPort": state.settings().port != 0,
        "ServerSchemaVersion": SCHEMA_VERSION,
        "LastStateChangeReason": LAST_STATE_CHANGE,
    }))
}

struct Machine {
    cores: usize,
    memory_gb: f64,
    system: String,
    release: String,
}

/// Asked once: none of it changes while the server runs.
fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let info = rustix::system::sysinfo();
        let name = rustix::system::uname();
        let bytes = info.totalram as f64 * f64::from(info.mem_unit.max(1));
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gb: bytes / (1u64 << 30) as f64,
            system: name.sysname().to_string_lossy().into_owned(),
            release: name.release().to_string_lossy().into_owned(),
        }
    })
}

/// Asked for by clients that look whether the node is alive.
async fn tcp_info(request: ServerRequest) -> Result<Response> {
    let state = &request.state;
    let is_health_check = request.query().get("tcp")?.is_none_or(|what| what == "health-check");
    if !is_health_check {
        return Err(ErrorKind::NotSupported.error("this server has no TCP endpoint"));
    }
    let url = state.url_for(request.headers()).replacen("http", "tcp", 1);
    Response::of(&json!({
        "Url": url,
        "Certificate": null,
        "NodeTag": NODE_TAG,
        "ServerId": state.server_id(),
        "Urls": [url],
    }))
}

async fn server_id(request: ServerRequest) -> Result<Response> {
    let url = request.state.url_for(request.headers());
    Response::of(&json!({ "@metadata": metadata(&url), "ServerId": request.state.server_id() }))
}
