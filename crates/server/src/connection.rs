//! What the server knows of each open connection, and the one timer that closes those whose peer does not keep up.
//!
//! A connection stores when it last changed its phase in a few atomics of its own; the timer looks at all of them a few times a
//! second. A request therefore sets no timer, and ten thousand idle connections cost one pass over a list.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::metrics::Metrics;
use crate::state::ServerState;

/// Between requests: nothing of the next one has arrived.
const IDLE: u8 = 0;
/// The first bytes of a request arrived, its head is not complete.
const HEAD: u8 = 1;
/// A request is being answered, or its body is still arriving.
const BUSY: u8 = 2;
/// The connection is a WebSocket now, which may be silent for as long as it likes.
const UPGRADED: u8 = 3;

/// Nothing special.
const RUN: u8 = 0;
/// End after the request that is being answered.
const FINISH: u8 = 1;
/// End now.
const ABORT: u8 = 2;

/// Head and body of a small answer are copied together: the system takes longer for two pieces than for one and a copy.
const GATHERED_SIZE_MAX: usize = 2048;

/// A client that asks one request after the other is waited for awake for so long: going to sleep and being woken takes longer, and more processor time.
const PROMPT: Duration = Duration::from_micros(90);
/// Who was waited for in vain is waited for again after twice as many requests each time, up to two to the power of this.
const MISSES_MAX: u32 = 6;
/// So many requests on end must a thread have read from one connection before it waits for that alone.
const STREAK_MIN: u32 = 8;

thread_local! {
    /// The connection from which this thread read last, and how many requests on end.
    static STREAK: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
}

/// How long a peer may take for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// From the first byte of a request to the end of its head.
    pub(crate) head: Duration,
    /// Between two requests.
    pub(crate) idle: Duration,
    /// To take bytes of an answer that the system's buffers have no room for.
    pub(crate) write: Duration,
}

/// One connection, seen from outside its task.
pub(crate) struct Connection {
    peer: SocketAddr,
    phase: AtomicU8,
    /// When the phase began, in milliseconds of the list's clock.
    phase_since_ms: AtomicU64,
    /// Since when a write waits for the peer, in the same milliseconds; 0 when none does.
    write_blocked_since_ms: AtomicU64,
    command: AtomicU8,
    waker: AtomicWaker,
    /// Bytes not yet added to the server's totals.
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    clock: Arc<Clock>,
}

/// Milliseconds since the server's start, as of the timer's last pass.
struct Clock {
    start: Instant,
    now_ms: AtomicU64,
}

impl Clock {
    fn now(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }
}

impl Connection {
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// A request's head is complete.
    pub(crate) fn request_begins(&self) {
        self.enter(BUSY);
    }

    /// The answer's last byte was handed over.
    pub(crate) fn request_ends(&self) {
        if self.phase.load(Ordering::Relaxed) == BUSY {
            self.enter(IDLE);
        }
    }

    /// The connection is no longer HTTP.
    pub(crate) fn is_upgraded(&self) {
        self.enter(UPGRADED);
    }

    fn enter(&self, phase: u8) {
        self.phase_since_ms.store(self.clock.now(), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    fn order(&self, command: u8) {
        self.command.fetch_max(command, Ordering::Release);
        self.waker.wake();
    }

    /// To be asked whenever the connection's task runs; the task is woken when the answer changes.
    pub(crate) fn poll_command(&self, context: &mut Context<'_>) -> Command {
        self.waker.register(context.waker());
        match self.command.load(Ordering::Acquire) {
            ABORT => Command::Abort,
            FINISH => Command::Finish,
            _ => Command::Run,
        }
    }

    /// What the timer should do about this connection.
    fn overdue(&self, now_ms: u64, patience: &Patience) -> bool {
        let longer_than =
            |since_ms: u64, limit: Duration| u128::from(now_ms.saturating_sub(since_ms)) > limit.as_millis();
        let blocked_since = self.write_blocked_since_ms.load(Ordering::Relaxed);
        if blocked_since > 0 && longer_than(blocked_since, patience.write) {
            return true;
        }
        let since = self.phase_since_ms.load(Ordering::Relaxed);
        match self.phase.load(Ordering::Relaxed) {
            IDLE => longer_than(since, patience.idle),
            HEAD => longer_than(since, patience.head),
            _ => false,
        }
    }

    fn move_counts_to(&self, metrics: &Metrics) {
        metrics.bytes_read.fetch_add(self.bytes_read.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        metrics.bytes_written.fetch_add(self.bytes_written.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// What a connection's task is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run,
    Finish,
    Abort,
}

/// All open connections.
pub(crate) struct Connections {
    list: Mutex<Vec<Arc<Connection>>>,
    open: AtomicUsize,
    clock: Arc<Clock>,
    patience: Patience,
    emptied: tokio::sync::Notify,
}

impl Connections {
    pub(crate) fn new(patience: Patience) -> Connections {
        Connections {
            list: Mutex::new(Vec::new()),
            open: AtomicUsize::new(0),
            // From 1, because 0 means "not blocked".
            clock: Arc::new(Clock { start: Instant::now(), now_ms: AtomicU64::new(1) }),
            patience,
            emptied: tokio::sync::Notify::new(),
        }
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Lists a connection, which must be removed again when its socket closes.
    pub(crate) fn add(&self, peer: SocketAddr) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            peer,
            phase: AtomicU8::new(IDLE),
            phase_since_ms: AtomicU64::new(self.clock.now()),
            write_blocked_since_ms: AtomicU64::new(0),
            command: AtomicU8::new(RUN),
            waker: AtomicWaker::new(),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            clock: self.clock.clone(),
        });
        self.list.lock().push(connection.clone());
        self.open.fetch_add(1, Ordering::Relaxed);
        connection
    }

    pub(crate) fn remove(&self, connection: &Arc<Connection>, metrics: &Metrics) {
        connection.move_counts_to(metrics);
        let mut list = self.list.lock();
        if let Some(index) = list.iter().position(|other| Arc::ptr_eq(other, connection)) {
            list.swap_remove(index);
            if self.open.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.emptied.notify_waiters();
            }
        }
    }

    /// One pass of the timer: closes what is overdue, collects byte counts.
    pub(crate) fn tick(&self, metrics: &Metrics) {
        let now_ms = self.clock.start.elapsed().as_millis() as u64 + 1;
        self.clock.now_ms.store(now_ms, Ordering::Relaxed);
        for connection in self.list.lock().iter() {
            connection.move_counts_to(metrics);
            if connection.overdue(now_ms, &self.patience) {
                metrics.connections_timed_out.fetch_add(1, Ordering::Relaxed);
                connection.order(ABORT);
            }
        }
    }

    /// Asks every connection to end after the request it is answering.
    pub(crate) fn finish_all(&self) {
        self.list.lock().iter().for_each(|connection| connection.order(FINISH));
    }

    /// Ends every connection now.
    pub(crate) fn abort_all(&self) {
        self.list.lock().iter().for_each(|connection| connection.order(ABORT));
    }

    /// Waits until none is open.
    pub(crate) async fn wait_until_none(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// Polls a connection's future again at once when it asks for that, as HTTP does after some requests on end, and the thread serves nobody else. Going by the queue of
/// tasks would wake another thread, which takes the task over and wakes the next.
pub(crate) struct Again {
    state: Arc<AgainState>,
    waker: Waker,
}

#[derive(Default)]
struct AgainState {
    /// [`AWAY`], [`POLLED`] or [`ASKED`].
    now: AtomicU8,
    task: AtomicWaker,
}

/// The future is not being polled.
const AWAY: u8 = 0;
/// It is being polled.
const POLLED: u8 = 1;
/// It was woken while it was being polled.
const ASKED: u8 = 2;

impl Wake for AgainState {
    fn wake(self: Arc<AgainState>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<AgainState>) {
        let asks = self.now.compare_exchange(POLLED, ASKED, Ordering::AcqRel, Ordering::Acquire);
        if asks == Err(AWAY) {
            self.task.wake();
        }
    }
}

impl Again {
    pub(crate) fn new() -> Again {
        let state = Arc::<AgainState>::default();
        Again { waker: Waker::from(state.clone()), state }
    }

    pub(crate) fn poll<F: Future>(
        &self,
        context: &mut Context<'_>,
        connection: &Arc<Connection>,
        mut future: Pin<&mut F>,
    ) -> Poll<F::Output> {
        /// Then others have their turn.
        const POLLS_MAX: u32 = 8;
        self.state.task.register(context.waker());
        let mut inner = Context::from_waker(&self.waker);
        for _ in 0..POLLS_MAX {
            self.state.now.store(POLLED, Ordering::Release);
            let outcome = future.as_mut().poll(&mut inner);
            let asked = self.state.now.swap(AWAY, Ordering::AcqRel) == ASKED;
            if outcome.is_ready() || !asked {
                return outcome;
            }
            if !is_alone(number_of(connection)) {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// What tells a connection from other open ones.
fn number_of(connection: &Arc<Connection>) -> usize {
    Arc::as_ptr(connection) as usize
}

/// Whether this thread has served only this connection for a while.
fn is_alone(number: usize) -> bool {
    let (last, streak) = STREAK.get();
    last == number && streak >= STREAK_MIN
}

/// The socket, which tells the connection what happens on it. The connection is listed for as long as this lives, whoever holds it: HTTP,
/// or after an upgrade another protocol.
pub(crate) struct WatchedSocket {
    socket: TcpStream,
    connection: Arc<Connection>,
    state: Arc<ServerState>,
    /// An answer was sent, and the next request has not come.
    has_answered: bool,
    /// How often on end its client was waited for in vain.
    misses: u32,
    /// Answers after which it is not waited for.
    pause: u32,
}

impl WatchedSocket {
    /// Takes in a new socket and lists its connection.
    pub(crate) fn new(socket: TcpStream, peer: SocketAddr, state: Arc<ServerState>) -> WatchedSocket {
        let connection = state.connections().add(peer);
        WatchedSocket { socket, connection, state, has_answered: false, misses: 0, pause: 0 }
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The first bytes of a request are there.
    fn hears(&mut self) {
        let number = number_of(&self.connection);
        let (last, streak) = STREAK.get();
        STREAK.set((number, if last == number { streak.saturating_add(1) } else { 1 }));
        self.has_answered = false;
        self.connection.enter(HEAD);
    }

    /// An answer was sent. A prompt client's next request is looked out for, for a moment and if the thread serves nobody else.
    fn answers(&mut self) {
        if self.has_answered || self.connection.phase.load(Ordering::Relaxed) != IDLE {
            return;
        }
        self.has_answered = true;
        if !is_alone(number_of(&self.connection)) {
            return;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        let begun = Instant::now();
        let mut looks_for = [PollFd::new(&self.socket, PollFlags::IN)];
        while rustix::event::poll(&mut looks_for, Some(&Timespec::default())) == Ok(0) {
            if begun.elapsed() >= PROMPT {
                self.misses = (self.misses + 1).min(MISSES_MAX);
                self.pause = 1 << self.misses;
                return;
            }
            std::hint::spin_loop();
        }
        self.misses = 0;
    }

    fn wrote(&self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let connection = &self.connection;
        match &outcome {
            Poll::Ready(Ok(bytes)) => {
                connection.write_blocked_since_ms.store(0, Ordering::Relaxed);
                connection.bytes_written.fetch_add(*bytes as u64, Ordering::Relaxed);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                if connection.write_blocked_since_ms.load(Ordering::Relaxed) == 0 {
                    connection.write_blocked_since_ms.store(connection.clock.now(), Ordering::Relaxed);
                }
            }
        }
        outcome
    }
}

impl Drop for WatchedSocket {
    fn drop(&mut self) {
        self.state.connections().remove(&self.connection, self.state.metrics());
    }
}

impl AsyncRead for WatchedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            self.connection.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
            if self.connection.phase.load(Ordering::Relaxed) == IDLE {
                self.hears();
            }
        }
        outcome
    }
}

impl AsyncWrite for WatchedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.wrote(outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.socket).poll_flush(context);
        if outcome.is_ready() {
            self.answers();
        }
        outcome
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let size: usize = slices.iter().map(|slice| slice.len()).sum();
        let outcome = match size <= GATHERED_SIZE_MAX {
            true => {
                let mut gathered = [0; GATHERED_SIZE_MAX];
                let mut end = 0;
                for slice in slices {
                    gathered[end..end + slice.len()].copy_from_slice(slice);
                    end += slice.len();
                }
                Pin::new(&mut self.socket).poll_write(context, &gathered[..end])
            }
            false => Pin::new(&mut self.socket).poll_write_vectored(context, slices),
        };
        self.wrote(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        head: Duration::from_millis(10),
        idle: Duration::from_millis(100),
        write: Duration::from_millis(50),
    };

    fn connection() -> Arc<Connection> {
        Connections::new(PATIENCE).add(SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    #[test]
    fn each_phase_has_its_own_limit() {
        let connection = connection();
        assert!(!connection.overdue(101, &PATIENCE) && connection.overdue(102, &PATIENCE));
        connection.enter(HEAD);
        assert!(!connection.overdue(11, &PATIENCE) && connection.overdue(12, &PATIENCE));
        connection.request_begins();
        assert!(!connection.overdue(1_000_000, &PATIENCE));
        connection.write_blocked_since_ms.store(1000, Ordering::Relaxed);
        assert!(!connection.overdue(1050, &PATIENCE) && connection.overdue(1051, &PATIENCE));
        connection.write_blocked_since_ms.store(0, Ordering::Relaxed);
        connection.request_ends();
        assert!(connection.overdue(102, &PATIENCE));
        connection.is_upgraded();
        connection.request_ends();
        assert!(!connection.overdue(1_000_000, &PATIENCE));
    }

    #[test]
    fn an_abort_is_not_taken_back_by_a_finish() {
        let connection = connection();
        connection.order(ABORT);
        connection.order(FINISH);
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert_eq!(connection.poll_command(&mut context), Command::Abort);
    }
}
