//! The server's life: bind, accept, serve, stop.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use crate::connection::{Again, Command, WatchedSocket};
use crate::error::with_causes;
use crate::logging::LogControl;
use crate::service;
use crate::settings::{Settings, SettingsError};
use crate::state::ServerState;
use crate::websocket::BEAT;

/// Connections that the system holds until they are accepted.
const BACKLOG: i32 = 4096;
/// How often connections are looked at, and the heartbeat beats.
const TICK: Duration = BEAT;
/// How often idle databases are looked for.
const IDLE_CHECK: Duration = Duration::from_secs(5);
/// How often it is looked whether the process has done nothing for so long, so that freed memory may be given back.
const QUIET_CHECK: Duration = Duration::from_secs(5);
/// After a failed accept (too many open files), before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The settings cannot be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The data directory cannot be used.
    #[error("{0}")]
    Data(String),
}

/// A server that accepts requests.
pub struct Server {
    state: Arc<ServerState>,
    url: String,
    address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
    housekeeping: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Opens the data directory and listens. To be called on a tokio runtime of several threads.
    pub async fn start(settings: Settings, log: LogControl) -> Result<Server, ServerError> {
        let begun = Instant::now();
        settings.check()?;
        let address = SocketAddr::new(settings.host, settings.port);
        let listen = |source| ServerError::Listen { address, source };
        let listener = bind(address).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let bound_url = format!("http://{address}");
        let url = settings.public_url.clone().unwrap_or_else(|| bound_url.clone());
        raise_file_limit(settings.connections_max);
        let opened = tokio::task::spawn_blocking(move || ServerState::open(settings, bound_url, log)).await;
        let state = match opened {
            Ok(Ok(state)) => Arc::new(state),
            Ok(Err(error)) => return Err(ServerError::Data(error.to_string())),
            Err(error) => return Err(ServerError::Data(with_causes(&error))),
        };
        let accepting = tokio::spawn(accept(listener, state.clone()));
        let housekeeping = tokio::spawn(keep_house(state.clone()));
        let took_ms = begun.elapsed().as_secs_f64() * 1e3;
        tracing::info!(%url, databases = state.databases().count(), took_ms, "ready");
        Ok(Server { state, url, address, accepting, housekeeping })
    }

    /// The URL for clients.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address really bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets the requests that are going on end, and closes all databases.
    pub async fn stop(self) {
        let begun = Instant::now();
        self.accepting.abort();
        let connections = self.state.connections();
        self.state.stopping().cancel();
        connections.finish_all();
        let patience = self.state.settings().shutdown_timeout;
        if tokio::time::timeout(patience, connections.wait_until_none()).await.is_err() {
            tracing::warn!(open = connections.count(), "ending connections that did not end by themselves");
            self.state.operations().kill_all();
            connections.abort_all();
            let _ = tokio::time::timeout(Duration::from_secs(1), connections.wait_until_none()).await;
        }
        self.housekeeping.abort();
        self.state.databases().close_all().await;
        let state = self.state.clone();
        match tokio::task::spawn_blocking(move || state.system().close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "closing the system store failed"),
            Err(error) => tracing::error!(%error, "closing the system store panicked"),
        }
        tracing::info!(took_ms = begun.elapsed().as_secs_f64() * 1e3, "stopped");
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for connections of the last run to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Each connection is an open file; databases have some too. Where the system does not allow as many, it does what it allows.
fn raise_file_limit(connections_max: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections_max as u64 + 4096;
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }) {
            tracing::warn!(%error, wanted, "the limit of open files cannot be raised");
        }
    }
}

async fn accept(listener: TcpListener, state: Arc<ServerState>) {
    let connections_max = state.settings().connections_max;
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Of one connection that ended before it began, or of all: then a pause lets some end.
                if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
                {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        let metrics = state.metrics();
        if state.connections().count() >= connections_max {
            metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        metrics.connections_accepted.fetch_add(1, Ordering::Relaxed);
        // Answers are written whole, so waiting for more to send only costs time.
        let _ = socket.set_nodelay(true);
        let socket = WatchedSocket::new(socket, peer, state.clone());
        tokio::spawn(serve_connection(socket, state.clone()));
    }
}

async fn serve_connection(socket: WatchedSocket, state: Arc<ServerState>) {
    let connection = socket.connection().clone();
    let head_size_max = usize::try_from(state.settings().request_head_size_max).unwrap_or(64 << 10);
    let socket = TokioIo::new(socket);
    let service = {
        let connection = connection.clone();
        service_fn(move |request| service::serve(state.clone(), connection.clone(), request))
    };
    let serving = http1::Builder::new()
        .max_buf_size(head_size_max)
        // The connection list has a timer for all.
        .header_read_timeout(None)
        .serve_connection(socket, service)
        .with_upgrades();
    let mut serving = pin!(serving);
    let mut is_finishing = false;
    let again = Again::new();
    let outcome = std::future::poll_fn(|context| {
        match connection.poll_command(context) {
            Command::Abort => return Poll::Ready(Ok(())),
            Command::Finish if !is_finishing => {
                is_finishing = true;
                serving.as_mut().graceful_shutdown();
            }
            _ => {}
        }
        again.poll(context, &connection, serving.as_mut())
    })
    .await;
    if let Err(error) = outcome {
        // The peer's doing: what it sent is no HTTP, or it went away.
        tracing::debug!(peer = %connection.peer(), error = %with_causes(&error), "a connection ended early");
    }
}

/// Of all threads of the process, since its start.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// What happens by the clock. Work on databases takes its time, for which connections and the heartbeat do not wait.
async fn keep_house(state: Arc<ServerState>) {
    let watch_connections = async {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            state.connections().tick(state.metrics());
            state.heartbeat().beat();
        }
    };
    let close_idle = async {
        let idle_after = state.settings().database_idle_after;
        loop {
            tokio::time::sleep(IDLE_CHECK.min(idle_after / 2).max(TICK)).await;
            state.databases().close_idle(idle_after).await;
        }
    };
    let clean_tombstones = async {
        let clean_after = state.settings().tombstone_cleanup_interval;
        while !clean_after.is_zero() {
            tokio::time::sleep(clean_after).await;
            state.databases().clean_tombstones().await;
        }
    };
    let give_back_memory = async {
        let (mut before, mut is_due) = (processor_time(), false);
        loop {
            tokio::time::sleep(QUIET_CHECK).await;
            let now = processor_time();
            let is_quiet = now.saturating_sub(before) <= QUIET_CHECK / 100;
            before = now;
            if !is_quiet {
                is_due = true;
            } else if std::mem::take(&mut is_due)
                && tokio::task::spawn_blocking(jackdaw_storage::give_back_freed_memory).await.is_err()
            {
                tracing::error!("freed memory could not be given back");
            }
        }
    };
    tokio::join!(watch_connections, close_idle, clean_tombstones, give_back_memory);
}
