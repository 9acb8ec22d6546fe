//! The real program, killed, filled and stopped under load; what it acknowledged is looked for from outside.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod process;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jackdaw_testkit::Random;
use process::support::{Answer, Client};
use process::{JACKDAW, Process, documents, serve, wait};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::json;

const ROUNDS: u64 = 20;
const WRITERS: usize = 8;
/// Documents of one batch.
const BATCH: usize = 10;

/// What one writer knows at the end of a round.
#[derive(Default)]
struct Known {
    /// Documents that were acknowledged, with their number.
    acknowledged: Vec<(String, u64)>,
    /// Batches without an answer: all of it or nothing.
    open_batches: Vec<Vec<String>>,
    /// The last value of the writer's own document that was acknowledged in this round; 0 for none.
    last: u64,
    /// The last that was sent.
    last_sent: u64,
    /// Identities that were handed out.
    identities: Vec<u64>,
}

/// Writes until the server is gone or `is_over` is set.
fn write(address: SocketAddr, round: u64, writer: usize, start: u64, is_over: &AtomicBool) -> Known {
    let mut known = Known { last_sent: start, ..Known::default() };
    let Some(mut client) = Client::try_connect(address) else { return known };
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let outcome = match number % 4 {
            0 | 1 => {
                let id = format!("rounds/{round}/{writer}/{number}");
                let answer = put(&mut client, &id, number);
                known.acknowledged.extend(answer.is_some().then_some((id, number)));
                answer
            }
            2 => {
                let ids: Vec<String> =
                    (0..BATCH).map(|part| format!("rounds/{round}/{writer}/{number}/{part}")).collect();
                let answer = put_all(&mut client, &ids, number);
                match answer {
                    Some(()) => known.acknowledged.extend(ids.into_iter().map(|id| (id, number))),
                    None => known.open_batches.push(ids),
                }
                answer
            }
            _ => {
                known.last_sent += 1;
                let answer = put(&mut client, &format!("writers/{writer}"), known.last_sent);
                if answer.is_some() {
                    known.last = known.last_sent;
                }
                let identity =
                    client.try_request("POST", "/databases/kill/identity/next?name=orders|", &[], b"");
                let identity = identity.filter(|answer| answer.status == 200);
                known
                    .identities
                    .extend(identity.and_then(|answer| answer.json()["NewIdentityValue"].as_u64()));
                answer
            }
        };
        if outcome.is_none() {
            break;
        }
    }
    known
}

/// `None` when there was no answer. Any answer but "stored" is a failure.
fn put(client: &mut Client, id: &str, number: u64) -> Option<()> {
    let body = json!({ "Number": number, "Text": "x".repeat(300) }).to_string();
    let answer = client.try_request("PUT", &format!("/databases/kill/docs?id={id}"), &[], body.as_bytes())?;
    stored(&answer)
}

fn put_all(client: &mut Client, ids: &[String], number: u64) -> Option<()> {
    let put = |id| json!({ "Type": "PUT", "Id": id, "ChangeVector": null, "Document": { "Number": number } });
    let body = json!({ "Commands": ids.iter().map(put).collect::<Vec<_>>() }).to_string();
    stored(&client.try_request("POST", "/databases/kill/bulk_docs", &[], body.as_bytes())?)
}

/// A server that is stopping may refuse, which acknowledges nothing.
fn stored(answer: &Answer) -> Option<()> {
    if answer.status == 503 {
        return None;
    }
    assert_eq!(answer.status, 201, "{}", answer.text());
    Some(())
}

/// What was acknowledged is there, and no batch is there in part.
fn verify(client: &mut Client, round: u64, known: &[Known]) {
    let found = documents(client, "kill", &format!("rounds/{round}/"));
    for known in known {
        for (id, number) in &known.acknowledged {
            assert_eq!(
                found.get(id).map(|found| &found["Number"]),
                Some(&json!(number)),
                "{id} in round {round}"
            );
        }
        for batch in &known.open_batches {
            let there = batch.iter().filter(|id| found.contains_key(*id)).count();
            assert!(there == 0 || there == batch.len(), "{there} of {batch:?}");
        }
    }
    let own = documents(client, "kill", "writers/");
    for (writer, known) in known.iter().enumerate() {
        let value =
            own.get(&format!("writers/{writer}")).map_or(0, |own| own["Number"].as_u64().expect("one"));
        assert!((known.last..=known.last_sent).contains(&value), "writer {writer} in round {round}: {value}");
    }
}

#[test]
fn what_was_acknowledged_survives_twenty_kills() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random::new(4);
    let mut starts = [0; WRITERS];
    let mut identities = 0;
    let mut all = Vec::new();
    let mut process = Process::start(directory.path(), &[]);
    process.create_database("kill");
    for round in 0..ROUNDS {
        let address = process.address;
        let never = AtomicBool::new(false);
        let known: Vec<Known> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (start, never) = (starts[writer], &never);
                    scope.spawn(move || write(address, round, writer, start, never))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(100 + random.below(400) as u64));
            process.kill();
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
        });
        process = Process::start(directory.path(), &[]);
        verify(&mut process.client(), round, &known);
        for (start, known) in starts.iter_mut().zip(&known) {
            // What had no answer may have been stored: the next round goes on above it.
            *start = known.last_sent;
        }
        let mut given: Vec<u64> = known.iter().flat_map(|known| known.identities.iter().copied()).collect();
        given.sort_unstable();
        assert!(given.windows(2).all(|pair| pair[0] < pair[1]), "an identity was given twice");
        assert!(given.first().is_none_or(|first| *first > identities), "an identity was given again");
        identities = given.last().copied().unwrap_or(identities);
        all.push(known);
    }
    // Not only those of the last round.
    let count: usize = all.iter().flatten().map(|known| known.acknowledged.len()).sum();
    println!("{count} acknowledged documents in {ROUNDS} rounds");
    assert!(count > 0, "nothing was written");
    let found = documents(&mut process.client(), "kill", "rounds/");
    for (id, number) in all.iter().flatten().flat_map(|known| &known.acknowledged) {
        assert_eq!(found.get(id).map(|found| &found["Number"]), Some(&json!(number)), "{id} at the end");
    }
    process.terminate();
    assert!(process.wait().success());
}

#[test]
fn a_stop_under_load_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut starts = [0; WRITERS];
    for round in 0..5 {
        let process = Process::start(directory.path(), &[]);
        if round == 0 {
            process.create_database("kill");
        }
        let address = process.address;
        let is_over = AtomicBool::new(false);
        let known: Vec<Known> = std::thread::scope(|scope| {
            let is_over = &is_over;
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let start = starts[writer];
                    scope.spawn(move || write(address, round, writer, start, is_over))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(200));
            process.terminate();
            let status = process.wait();
            assert_eq!(status.code(), Some(0), "{status}");
            is_over.store(true, Ordering::Relaxed);
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
        });
        assert!(known.iter().any(|known| !known.acknowledged.is_empty()), "nothing was written");
        let process = Process::start(directory.path(), &[]);
        verify(&mut process.client(), round, &known);
        starts.iter_mut().zip(&known).for_each(|(start, known)| *start = known.last_sent);
        process.terminate();
        assert!(process.wait().success());
    }
}

#[test]
fn a_directory_has_one_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let process = Process::start(directory.path(), &[]);
    process.create_database("kill");
    let mut second = serve(directory.path(), &[]);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it ends");
    assert_eq!(second.status.code(), Some(3), "{second:?}");
    let text = String::from_utf8_lossy(&second.stderr);
    let named = directory.path().join("System").display().to_string();
    assert!(text.contains(&named) && text.contains(&process.pid().as_raw_nonzero().to_string()), "{text}");
    assert!(second.stdout.is_empty(), "no URL was printed");
    put(&mut process.client(), "rounds/0", 1).expect("the first goes on");
    process.kill();
    // A lock does not outlive its holder.
    let process = Process::start(directory.path(), &[]);
    assert_eq!(documents(&mut process.client(), "kill", "rounds/").len(), 1);
}

/// Kilobytes that no compression makes smaller.
fn incompressible(random: &mut Random, size_kb: usize) -> String {
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    random.bytes(size_kb << 10).into_iter().map(|byte| char::from(digits[usize::from(byte) % 64])).collect()
}

/// Documents that were acknowledged, with what they hold.
type Stored = BTreeMap<String, String>;

/// Stores a document; whether there was room for it.
fn try_store(client: &mut Client, stored: &mut Stored, random: &mut Random, size_kb: usize) -> bool {
    let id = format!("large/{}", stored.len());
    let text = incompressible(random, size_kb);
    let body = json!({ "Text": text }).to_string();
    let answer = client.request("PUT", &format!("/databases/full/docs?id={id}"), &[], body.as_bytes());
    match answer.status {
        201 => {
            stored.insert(id, text);
            true
        }
        507 => {
            assert_eq!(answer.error_type(), "IOException");
            assert!(answer.text().contains("the disk is full"), "{}", answer.text());
            false
        }
        status => panic!("{status}: {}", answer.text()),
    }
}

fn store_until_full(client: &mut Client, stored: &mut Stored, random: &mut Random, size_kb: usize) {
    for _ in 0..5000 {
        if !try_store(client, stored, random, size_kb) {
            return;
        }
    }
    panic!("the disk is not full after {} documents of {size_kb} KB", stored.len());
}

fn assert_stored(client: &mut Client, stored: &Stored) {
    let found = documents(client, "full", "large/");
    assert_eq!(found.keys().collect::<Vec<_>>(), stored.keys().collect::<Vec<_>>());
    for (id, text) in stored {
        assert!(found[id]["Text"] == text.as_str(), "{id} has changed");
    }
}

/// While there is no room: errors that say so, reads as always, a server that is well. Then there is room again.
fn check_full_disk(process: &Process, stored: &mut Stored, random: &mut Random, make_room: impl FnOnce()) {
    let mut client = process.client();
    store_until_full(&mut client, stored, random, 100);
    println!("full after {} documents", stored.len());
    assert!(!stored.is_empty(), "there was no room from the start");
    // Many at once, some of them small enough to find room: each is stored or refused, and nothing else.
    let shared = Mutex::new(&mut *stored);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let shared = &shared;
            scope.spawn(move || {
                let mut random = Random::new(100 + writer);
                let mut client = process.client();
                for _ in 0..10 {
                    let mut own = Stored::new();
                    let text = incompressible(&mut random, if writer < 4 { 200 } else { 1 });
                    let id = format!("large/w{writer}/{}", random.below(usize::MAX));
                    let body = json!({ "Text": text }).to_string();
                    let url = format!("/databases/full/docs?id={id}");
                    let answer = client.request("PUT", &url, &[], body.as_bytes());
                    match answer.status {
                        201 => drop(own.insert(id, text)),
                        507 => {}
                        status => panic!("{status}: {}", answer.text()),
                    }
                    shared.lock().expect("no panic").append(&mut own);
                }
            });
        }
    });
    assert_stored(&mut client, stored);
    assert_eq!(process.request("GET", "/health/live", "").status, 204);
    assert_eq!(process.request("GET", "/databases/full/stats", "").status, 200);
    make_room();
    for _ in 0..20 {
        assert!(try_store(&mut client, stored, random, 100), "there is room again, but nothing is stored");
    }
    assert_eq!(process.request("GET", "/databases/full/healthcheck", "").status, 204);
    assert_stored(&mut client, stored);
}

/// Allows a process to make files this long; `None` as long as it likes.
fn limit_file_size(pid: Pid, current: Option<u64>) {
    let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
    prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum }).expect("a limit");
}

fn longest_file(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory").filter_map(Result::ok);
    entries
        .map(|entry| match entry.file_type().expect("a type").is_dir() {
            true => longest_file(&entry.path()),
            false => entry.metadata().expect("a size").len(),
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn a_limit_of_file_sizes_is_a_full_disk_until_it_is_raised() {
    let directory = tempfile::tempdir().expect("a directory");
    let process = Process::start(directory.path(), &[]);
    process.create_database("full");
    let (mut stored, mut random) = (Stored::new(), Random::new(1));
    for _ in 0..20 {
        assert!(try_store(&mut process.client(), &mut stored, &mut random, 100));
    }
    let limit = longest_file(directory.path());
    println!("files of up to {limit} bytes");
    limit_file_size(process.pid(), Some(limit));
    check_full_disk(&process, &mut stored, &mut random, || limit_file_size(process.pid(), None));
    process.kill();
    let process = Process::start(directory.path(), &[]);
    assert_stored(&mut process.client(), &stored);
}

/// A file system of its own for two servers, the second of which starts when the first has ended.
fn on_a_small_disk(mount_point: &Path, size_mb: u64, filler_mb: u64) -> Command {
    let script = format!(
        "mount -t tmpfs -o size={size_mb}m none \"$1\" && head -c {filler_mb}M /dev/zero >\"$1/filler\" && mkdir \"$1/data\" || exit 3
         for start in 1 2; do \"$2\" serve --port 0 --log-level error --data-dir \"$1/data\"; done"
    );
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", &script, "sh"]).arg(mount_point).arg(JACKDAW);
    command
}

#[test]
fn a_full_disk_stops_writes_until_there_is_room_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut process) = Process::run(on_a_small_disk(directory.path(), 200, 60)) else {
        eprintln!("SKIPPED: this system lets nobody mount a small file system of their own (unshare -Urm)");
        return;
    };
    // The mount is to be seen by its processes alone.
    let inside =
        PathBuf::from(format!("/proc/{}/root{}", process.pid().as_raw_nonzero(), directory.path().display()));
    process.create_database("full");
    process.create_database("kill");
    put(&mut process.client(), "rounds/0", 1).expect("stored");
    let (mut stored, mut random) = (Stored::new(), Random::new(2));
    let make_room = || std::fs::remove_file(inside.join("filler")).expect("the filler is gone");
    check_full_disk(&process, &mut stored, &mut random, make_room);
    // Full again, and killed in that state.
    let mut client = process.client();
    store_until_full(&mut client, &mut stored, &mut random, 100);
    let holder = std::fs::read_to_string(inside.join("data/System/lock")).expect("the lock's holder");
    let holder = Pid::from_raw(holder.trim().parse().expect("a process id")).expect("a process id");
    kill_process(holder, Signal::KILL).expect("killed");
    process.address = process.next_address().expect("a second server");
    assert_stored(&mut process.client(), &stored);
    assert_eq!(documents(&mut process.client(), "kill", "rounds/").len(), 1);
    let holder = std::fs::read_to_string(inside.join("data/System/lock")).expect("the lock's holder");
    let holder = Pid::from_raw(holder.trim().parse().expect("a process id")).expect("a process id");
    kill_process(holder, Signal::TERM).expect("asked to stop");
    assert!(process.wait().success(), "it stops well on a full disk");
}

#[test]
fn a_damaged_database_does_not_stop_the_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let process = Process::start(directory.path(), &[]);
    let names = ["sound", "headers", "pages", "short", "gone"];
    for name in names {
        process.create_database(name);
        for index in 0..200 {
            let body = json!({ "Index": index, "Text": "x".repeat(1000) }).to_string();
            let answer = process.request("PUT", &format!("/databases/{name}/docs?id=a/{index}"), &body);
            assert_eq!(answer.status, 201);
        }
    }
    process.terminate();
    assert!(process.wait().success());
    let files = |name: &str| {
        let directory = directory.path().join("Databases").join(name);
        let entries = std::fs::read_dir(directory).expect("a directory").filter_map(Result::ok);
        entries.filter(|entry| entry.path().is_file()).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    for path in files("headers") {
        std::fs::write(&path, vec![0x5a; 1 << 16]).expect("damaged");
    }
    for path in files("pages") {
        let mut bytes = std::fs::read(&path).expect("readable");
        let begin = bytes.len().min(8192);
        bytes[begin..].iter_mut().step_by(97).for_each(|byte| *byte ^= 0xff);
        std::fs::write(&path, bytes).expect("damaged");
    }
    for path in files("short") {
        let length = std::fs::metadata(&path).expect("a size").len();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(length / 3))
            .expect("cut");
    }
    for path in files("gone") {
        std::fs::remove_file(path).expect("removed");
    }
    let mut process = Process::start(directory.path(), &[]);
    for name in names {
        let url = format!("/databases/{name}/docs?id=a/7");
        let answer = process.request("GET", &url, "");
        if name == "sound" {
            assert_eq!((answer.status, &answer.json()["Results"][0]["Index"]), (200, &json!(7)));
            continue;
        }
        println!("{name}: {} {}", answer.status, answer.text());
        match answer.status {
            // What was hit was not this document.
            200 => assert_eq!(
                answer.json()["Results"][0]["Index"],
                7,
                "{name}: a damaged document is no document"
            ),
            500 => assert_eq!(answer.error_type(), "DatabaseLoadFailureException"),
            status => panic!("{name}: {status}: {}", answer.text()),
        }
        // Writes too are refused or good, and the server goes on.
        let answer = process.request("PUT", &format!("/databases/{name}/docs?id=b"), "{}");
        assert!(matches!(answer.status, 201 | 500), "{name}: {}", answer.text());
        assert!(process.is_running());
    }
    assert_eq!(process.request("PUT", "/databases/sound/docs?id=b", "{}").status, 201);
    // What cannot be opened can be deleted and made anew.
    let body = json!({ "DatabaseNames": names[1..], "HardDelete": true }).to_string();
    assert_eq!(process.request("DELETE", "/admin/databases", &body).status, 200);
    process.create_database("headers");
    assert_eq!(process.request("PUT", "/databases/headers/docs?id=b", "{}").status, 201);
    process.terminate();
    assert!(process.wait().success());
}

#[test]
fn a_directory_that_cannot_be_made_is_a_clear_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "x").expect("a file");
    let mut child =
        serve(&file, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
    assert_eq!(wait(&mut child).code(), Some(3));
    let text = std::io::read_to_string(child.stderr.take().expect("a pipe")).expect("text");
    assert!(text.contains(&file.display().to_string()), "{text}");
}
