//! What is measured: our server, the peer, and bare hyper. Each is started when a workload first needs it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::Options;
use crate::http::Connection;
use crate::measure::Target;

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Ours,
    Peer,
    Hello,
}

/// A server that runs.
pub(crate) struct Subject {
    pub(crate) who: Who,
    pub(crate) target: Target,
    /// `None` for one that somebody else started.
    child: Option<Child>,
    /// Whether the documents for reading are there.
    pub(crate) is_loaded: bool,
}

/// Those that run, and how to start the others.
pub(crate) struct Subjects {
    options: Options,
    running: Vec<Subject>,
}

impl Subjects {
    pub(crate) fn new(options: &Options) -> Result<Subjects> {
        let dir = &options.dir;
        if dir.exists() {
            std::fs::remove_dir_all(dir).with_context(|| format!("cannot empty {}", dir.display()))?;
        }
        std::fs::create_dir_all(dir)?;
        Ok(Subjects { options: options.clone(), running: Vec::new() })
    }

    /// Ours, and the peer when there is one.
    pub(crate) fn both(&self) -> Vec<Who> {
        let has_peer = self.options.peer_command.is_some() || self.options.peer_address.is_some();
        if has_peer { vec![Who::Ours, Who::Peer] } else { vec![Who::Ours] }
    }

    /// One of them, started if it is not.
    pub(crate) async fn get(&mut self, who: Who) -> Result<&mut Subject> {
        let at = match self.running.iter().position(|subject| subject.who == who) {
            Some(at) => at,
            None => {
                let subject = self.start(who).await?;
                self.running.push(subject);
                self.running.len() - 1
            }
        };
        Ok(&mut self.running[at])
    }

    async fn start(&self, who: Who) -> Result<Subject> {
        let (child, address) = match who {
            Who::Ours => self.start_ours()?,
            Who::Hello => printed_address(Command::new(std::env::current_exe()?).arg("hello"))?,
            Who::Peer => return self.start_peer().await,
        };
        let folder = (who == Who::Ours).then(|| self.dir(who));
        let target = Target { address, pid: Some(child.id()), folder };
        Ok(Subject { who, target, child: Some(child), is_loaded: false })
    }

    fn start_ours(&self) -> Result<(Child, String)> {
        let mut command = Command::new(&self.options.server);
        command.args(["serve", "--port", "0", "--log-level", "warn", "--data-dir"]).arg(self.dir(Who::Ours));
        printed_address(command.args(&self.options.server_arguments))
    }

    async fn start_peer(&self) -> Result<Subject> {
        if let Some(address) = &self.options.peer_address {
            let target = Target {
                address: address.clone(),
                pid: self.options.peer_pid,
                folder: self.options.peer_dir.clone(),
            };
            return Ok(Subject { who: Who::Peer, target, child: None, is_loaded: false });
        }
        let template = self.options.peer_command.as_deref().context("there is no peer")?;
        let dir = self.dir(Who::Peer);
        std::fs::create_dir_all(&dir)?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let line = template.replace("{port}", &port.to_string()).replace("{dir}", &dir.display().to_string());
        let child = Command::new("sh")
            .args(["-c", &format!("exec {line}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let target =
            Target { address: format!("127.0.0.1:{port}"), pid: Some(child.id()), folder: Some(dir) };
        wait_for(&target.address, "/build/version").await?;
        Ok(Subject { who: Who::Peer, target, child: Some(child), is_loaded: false })
    }

    fn dir(&self, who: Who) -> PathBuf {
        self.options.dir.join(if who == Who::Ours { "jackdaw" } else { "peer" })
    }

    /// Stops ours and starts it again; returns when a document can be read, with the time that took.
    pub(crate) async fn restart_ours(&mut self, path: &str) -> Result<Duration> {
        self.get(Who::Ours).await?.stop()?;
        let begun = Instant::now();
        let (child, address) = self.start_ours()?;
        wait_for(&address, path).await?;
        let took = begun.elapsed();
        let ours = self.get(Who::Ours).await?;
        (ours.target.address, ours.target.pid, ours.child) = (address, Some(child.id()), Some(child));
        Ok(took)
    }

    /// Stops all that were started here.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.running.iter_mut().try_for_each(Subject::stop)
    }
}

impl Subject {
    fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let stopped = Command::new("kill").arg(child.id().to_string()).status()?;
        ensure!(stopped.success(), "cannot stop process {}", child.id());
        let begun = Instant::now();
        while child.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                child.kill()?;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // An error on the way here is what the user hears of; the process must not stay behind.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a server that prints its URL as its first line.
fn printed_address(command: &mut Command) -> Result<(Child, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let output = child.stdout.take().context("no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    match line.trim().strip_prefix("http://") {
        Some(address) => Ok((child, address.to_owned())),
        None => bail!("{command:?} did not say where it listens"),
    }
}

/// Asks every millisecond until the answer is good.
async fn wait_for(address: &str, path: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        if let Ok(mut connection) = Connection::open(address).await
            && connection.call("GET", path, b"").await.is_ok()
        {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "{path}: no good answer in {} s", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Bytes that the files under a folder take on disk: blocks, not lengths, since servers preallocate and punch holes.
pub(crate) fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => disk_bytes(&entry.path()),
        _ => entry.metadata().map_or(0, |about| about.blocks() * 512),
    };
    entries.flatten().map(size).sum()
}
