//! Many at once, against the real program: ten thousand idle subscribers, a thousand writers.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod process;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use process::support::Client;
use process::support::websocket::{WebSocket, handshake};
use process::{Process, allow_files, documents};
use serde_json::{Value, json};

const SUBSCRIBERS: usize = 10_000;
/// Bytes of memory that an idle subscriber may cost the server.
const SUBSCRIBER_SIZE_MAX: u64 = 12 << 10;
const WRITERS: usize = 1000;
const WRITES_OF_EACH: usize = 20;

/// Small stacks: there are a thousand.
fn spawn<'s, T: Send + 's>(
    scope: &'s std::thread::Scope<'s, '_>,
    work: impl FnOnce() -> T + Send + 's,
) -> std::thread::ScopedJoinHandle<'s, T> {
    std::thread::Builder::new().stack_size(512 << 10).spawn_scoped(scope, work).expect("a thread")
}

fn subscribe(process: &Process, document: &str) -> WebSocket {
    let mut client = process.client();
    let answer = handshake(&mut client, "/databases/load/changes", &[]);
    let mut socket = WebSocket::after(client, &answer);
    socket.command("watch-doc", json!(document));
    socket
}

#[test]
fn ten_thousand_idle_subscribers_cost_little_and_hear_of_a_change() {
    if !allow_files(SUBSCRIBERS as u64 + 500) {
        eprintln!("SKIPPED: the system does not let a process open {SUBSCRIBERS} connections (ulimit -Hn)");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let process = Process::start(directory.path(), &[]);
    process.create_database("load");
    // A few first, so that what the server needs once is not counted.
    drop((0..100).map(|_| subscribe(&process, "x")).collect::<Vec<_>>());
    let before = process.anonymous_memory();
    let begun = Instant::now();
    let mut sockets: Vec<WebSocket> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..4)
            .map(|part| {
                let process = &process;
                spawn(scope, move || {
                    let share = part * SUBSCRIBERS / 4..(part + 1) * SUBSCRIBERS / 4;
                    // Most for one document, every tenth for one of its own.
                    share
                        .map(|index| match index % 10 {
                            0 => subscribe(process, &format!("own/{index}")),
                            _ => subscribe(process, "news"),
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("subscribed")).collect()
    });
    println!("{SUBSCRIBERS} subscribers after {:.1?}", begun.elapsed());
    let each = process.anonymous_memory().saturating_sub(before) / SUBSCRIBERS as u64;
    println!("{each} bytes of memory for each");
    assert!(each <= SUBSCRIBER_SIZE_MAX, "an idle subscriber costs {each} bytes");
    let (time, begun) = (process.processor_time(), Instant::now());
    std::thread::sleep(Duration::from_secs(9));
    let used = process.processor_time() - time;
    println!("{used:.1?} of processor time in {:.1?}, two rounds of heartbeats", begun.elapsed());

    let begun = Instant::now();
    assert_eq!(process.request("PUT", "/databases/load/docs?id=news", "{}").status, 201);
    println!("answered after {:.1?}", begun.elapsed());
    for (index, socket) in sockets.iter_mut().enumerate().filter(|(index, _)| index % 10 != 0) {
        assert_eq!(socket.message()["Value"]["Id"], "news", "subscriber {index}");
    }
    println!("all have heard after {:.1?}", begun.elapsed());
    // The others hear of theirs alone.
    let commands: Vec<Value> = (0..SUBSCRIBERS)
        .step_by(10)
        .map(|index| json!({ "Type": "PUT", "Id": format!("own/{index}"), "ChangeVector": null, "Document": {} }))
        .collect();
    let body = json!({ "Commands": commands }).to_string();
    assert_eq!(process.request("POST", "/databases/load/bulk_docs", &body).status, 201);
    for (index, socket) in sockets.iter_mut().enumerate().filter(|(index, _)| index % 10 == 0) {
        assert_eq!(socket.message()["Value"]["Id"], format!("own/{index}"));
    }
    // All are told goodbye when the server stops.
    process.terminate();
    for socket in &mut sockets {
        assert_eq!(socket.close_code(), Some(1001));
    }
    drop(sockets);
    assert!(process.wait().success());
}

#[test]
fn a_thousand_writers_at_once_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    if !allow_files(WRITERS as u64 + 500) {
        eprintln!("SKIPPED: the system does not let a process open {WRITERS} connections (ulimit -Hn)");
        return;
    }
    let process = Process::start(directory.path(), &[]);
    process.create_database("load");
    let begun = Instant::now();
    let retries = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (process, retries) = (&process, &retries);
            spawn(scope, move || {
                let mut client = process.client();
                for write in 0..WRITES_OF_EACH {
                    let url = format!("/databases/load/docs?id=writers/{writer}/{write}");
                    let body =
                        json!({ "Writer": writer, "Write": write, "Text": "x".repeat(500) }).to_string();
                    let answer = client.request("PUT", &url, &[], body.as_bytes());
                    assert_eq!(answer.status, 201, "{}", answer.text());
                }
                // Some fight for the same document, and must not lose each other's work.
                if writer < 20 {
                    for _ in 0..10 {
                        retries.fetch_add(increment(&mut client), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let elapsed = begun.elapsed();
    println!(
        "{} writes in {elapsed:.1?}, {:.0} a second; {} conflicts on one document",
        WRITERS * WRITES_OF_EACH,
        (WRITERS * WRITES_OF_EACH) as f64 / elapsed.as_secs_f64(),
        retries.load(Ordering::Relaxed)
    );
    let documents = documents(&mut process.client(), "load", "writers/");
    assert_eq!(documents.len(), WRITERS * WRITES_OF_EACH);
    for writer in 0..WRITERS {
        for write in 0..WRITES_OF_EACH {
            let document = &documents[&format!("writers/{writer}/{write}")];
            assert_eq!((&document["Writer"], &document["Write"]), (&json!(writer), &json!(write)));
        }
    }
    let counter = process.request("GET", "/databases/load/docs?id=counter", "").json();
    assert_eq!(counter["Results"][0]["Count"], 200);
}

/// Adds one with optimistic concurrency; how often somebody was faster.
fn increment(client: &mut Client) -> usize {
    for retries in 0.. {
        let answer = client.request("GET", "/databases/load/docs?id=counter", &[], b"");
        let (count, change_vector) = match answer.status {
            404 => (0, String::new()),
            _ => {
                let document = &answer.json()["Results"][0];
                let change_vector = document["@metadata"]["@change-vector"].as_str().expect("one").to_owned();
                (document["Count"].as_i64().expect("a number"), change_vector)
            }
        };
        let command = json!({
            "Commands": [{
                "Type": "PUT", "Id": "counter", "ChangeVector": change_vector, "Document": { "Count": count + 1 },
            }],
        });
        let body = command.to_string();
        let answer = client.request("POST", "/databases/load/bulk_docs", &[], body.as_bytes());
        match answer.status {
            201 => return retries,
            409 => {}
            status => panic!("{status}: {}", answer.text()),
        }
    }
    0
}
