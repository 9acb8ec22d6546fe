//! What all requests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use http::{HeaderMap, header};
use jackdaw_indexing::{AnalyzerDefinition, ServerAnalyzers};
use tokio_util::sync::CancellationToken;

use crate::body::BodyLimits;
use crate::connection::{Connections, Patience};
use crate::databases::{Databases, SystemStore};
use crate::error::Result;
use crate::logging::LogControl;
use crate::metrics::Metrics;
use crate::operations::Operations;
use crate::router::Router;
use crate::routes::Route;
use crate::settings::Settings;
use crate::websocket::Heartbeat;
use crate::wire::client_configuration::ClientConfiguration;

const SERVER_ID: &str = "server-id";
const TOPOLOGY_ID: &str = "topology-id";
const CLIENT_CONFIGURATION: &str = "client-configuration";
const ANALYZERS: &str = "analyzers";

/// The server: its settings, databases and counters.
pub(crate) struct ServerState {
    settings: Settings,
    /// The address really bound, as a URL.
    bound_url: String,
    started: Instant,
    router: Router<Route>,
    metrics: Arc<Metrics>,
    connections: Connections,
    heartbeat: Heartbeat,
    system: Arc<SystemStore>,
    databases: Arc<Databases>,
    operations: Arc<Operations>,
    client_configuration: ArcSwapOption<ClientConfiguration>,
    analyzers: Arc<ServerAnalyzers>,
    server_id: String,
    topology_id: String,
    log: LogControl,
    stopping: CancellationToken,
}

impl ServerState {
    /// Opens the system store and reads what the server remembers. Blocks on the disk.
    pub(crate) fn open(settings: Settings, bound_url: String, log: LogControl) -> Result<ServerState> {
        let system = Arc::new(SystemStore::open(&settings.data_dir.join("System"))?);
        let metrics = Arc::new(Metrics::default());
        let stored = system.get::<Vec<AnalyzerDefinition>>(ANALYZERS)?.unwrap_or_default();
        let analyzers = Arc::new(ServerAnalyzers::stored(stored));
        let index_options = jackdaw_indexing::Options {
            server_analyzers: analyzers.clone(),
            batch_memory: usize::try_from(settings.index_batch_memory).unwrap_or(usize::MAX),
            ..jackdaw_indexing::Options::default()
        };
        let databases = Databases::open(
            settings.data_dir.join("Databases"),
            system.clone(),
            metrics.clone(),
            index_options,
        )?;
        let id = |name: &str| -> Result<String> {
            if let Some(id) = system.get(name)? {
                return Ok(id);
            }
            let id = uuid::Uuid::new_v4().to_string();
            system.put(name, &id)?;
            Ok(id)
        };
        let patience = Patience {
            head: settings.request_head_timeout,
            idle: settings.idle_timeout,
            write: settings.write_timeout,
        };
        Ok(ServerState {
            server_id: id(SERVER_ID)?,
            topology_id: id(TOPOLOGY_ID)?,
            client_configuration: ArcSwapOption::from(system.get(CLIENT_CONFIGURATION)?.map(Arc::new)),
            started: Instant::now(),
            router: crate::endpoints::router(),
            connections: Connections::new(patience),
            heartbeat: Heartbeat::default(),
            databases: Arc::new(databases),
            analyzers,
            operations: Arc::default(),
            stopping: CancellationToken::new(),
            metrics,
            system,
            bound_url,
            settings,
            log,
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn router(&self) -> &Router<Route> {
        &self.router
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// What keeps idle sockets alive.
    pub(crate) fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    pub(crate) fn system(&self) -> &Arc<SystemStore> {
        &self.system
    }

    pub(crate) fn databases(&self) -> &Arc<Databases> {
        &self.databases
    }

    /// Work of the server as a whole.
    pub(crate) fn operations(&self) -> &Arc<Operations> {
        &self.operations
    }

    pub(crate) fn server_id(&self) -> &str {
        &self.server_id
    }

    pub(crate) fn topology_id(&self) -> &str {
        &self.topology_id
    }

    pub(crate) fn log(&self) -> &LogControl {
        &self.log
    }

    /// Becomes cancelled when the server stops; sockets and long streams end then.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    pub(crate) fn up_time(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn body_limits(&self) -> BodyLimits {
        BodyLimits {
            size_max: self.settings.request_body_size_max,
            silence_max: self.settings.request_body_timeout,
        }
    }

    /// The URL of this server as the client should use it: the public one, else the host that the client used, which reached us.
    pub(crate) fn url_for(&self, headers: &HeaderMap) -> String {
        if let Some(url) = &self.settings.public_url {
            return url.clone();
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_host = |host: &&str| {
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
        };
        match host.filter(is_host) {
            Some(host) => format!("http://{host}"),
            None => self.bound_url.clone(),
        }
    }

    /// What clients of all databases are told to do, unless their database says otherwise.
    pub(crate) fn client_configuration(&self) -> Option<Arc<ClientConfiguration>> {
        self.client_configuration.load_full()
    }

    /// Custom analyzers of all databases.
    pub(crate) fn analyzers(&self) -> &ServerAnalyzers {
        &self.analyzers
    }

    /// Puts custom analyzers of all databases, and deletes one. Blocks on the disk.
    pub(crate) fn change_analyzers(&self, put: &[AnalyzerDefinition], delete: Option<&str>) -> Result<()> {
        self.analyzers.change(put, delete, |all| self.system.put(ANALYZERS, &all))?;
        let names: Vec<String> =
            put.iter().map(|one| one.name.clone()).chain(delete.map(str::to_owned)).collect();
        // A database that is not loaded finds them when it is.
        for database in self.databases.all().iter().filter_map(|entry| entry.if_loaded()) {
            database.indexes().server_analyzers_changed(&names)?;
        }
        Ok(())
    }

    /// Stores a new configuration for clients. Blocks on the disk.
    pub(crate) fn set_client_configuration(&self, configuration: ClientConfiguration) -> Result<()> {
        self.system.put(CLIENT_CONFIGURATION, &configuration)?;
        self.client_configuration.store(Some(Arc::new(configuration)));
        Ok(())
    }
}
