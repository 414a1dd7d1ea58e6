//! Thousands of calls over links, some of which are cancelled, late or cut, and what they leave behind: nothing.
//!
//! What a process holds is measured after a first storm of calls, and again after more of them. A call carries 8 KiB, so
//! that a process that keeps one in four of them is found by its memory, and one that keeps a connection or a task of
//! one in a thousand by its files and its gauges.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::mcp::scripted::{begun, result, sessions_with_streams, stream};
use crate::random::dice::Dice;
use crate::scene::{answer, rpc_failure};
use crate::stdio;
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::ends::{End, accept, opened};

/// Clients at a time, and what each of them asks in a storm.
const CLIENTS: u64 = 4;
const CALLS: u64 = 200;
/// How many calls of a client may find no link, beside them.
const MOST_REFUSED: u64 = 100 * CALLS;
/// The storms after the one that all is compared with.
const STORMS: u64 = 2;
/// How much more memory may be held, which an allocator keeps for later: 3 MiB, where the calls have carried 12 MiB.
const SLACK_KIB: usize = 3 * 1024;

/// The number of additional threads that may read files. Tokio keeps such a thread for ten seconds after its last use, and
/// several overlap on a loaded machine.
const SPARE_READERS: usize = 8;

/// The number of samples of [`Held::least`].
const SAMPLES: usize = 32;

const KEYS: &str = "timeout = \"300ms\"\nunanswered = 0\n";

/// What a process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    files: usize,
    /// The threads that do not read files.
    threads: usize,
    /// The threads that read files.
    readers: usize,
    pub(crate) resident_kib: usize,
}

impl Held {
    pub(crate) fn by(proxy: &Proxy) -> Held {
        let process = format!("/proc/{}", proxy.process());
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.unwrap().parse().unwrap()
        };
        let tasks = fs::read_dir(format!("{process}/task")).unwrap();
        // A thread may end while the folder is read.
        let names =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        let (readers, threads): (Vec<String>, Vec<String>) =
            names.partition(|name| name.trim_end() == "files");
        Held {
            files: fs::read_dir(format!("{process}/fd")).unwrap().count(),
            threads: threads.len(),
            readers: readers.len(),
            resident_kib: value("VmRSS:"),
        }
    }

    /// Returns the least of several samples: the process reads its configuration twice a second, with a file and
    /// perhaps a thread that exist only for that moment.
    pub(crate) fn least(proxy: &Proxy) -> Held {
        let samples = (0..SAMPLES).map(|_| {
            // A request between two samples spreads them over time.
            let _ = proxy.metrics();
            Held::by(proxy)
        });
        let least = samples.reduce(|one, other| Held {
            files: one.files.min(other.files),
            threads: one.threads.min(other.threads),
            readers: one.readers.min(other.readers),
            resident_kib: one.resident_kib.min(other.resident_kib),
        });
        least.unwrap()
    }

    /// How many more files, and KiB beyond the slack, are held.
    pub(crate) fn beyond(&self, before: &Held) -> (usize, usize) {
        let most = before.resident_kib + SLACK_KIB;
        (
            self.files.saturating_sub(before.files),
            self.resident_kib.saturating_sub(most),
        )
    }

    /// Whether it is no more than before, but for the slack.
    pub(crate) fn is_back_at(&self, before: &Held) -> bool {
        self.more_than(before).is_empty()
    }

    /// What is more than before, but for the slack: now, and before.
    fn more_than(&self, before: &Held) -> Vec<(&'static str, usize, usize)> {
        let mut held = vec![
            ("files", self.files, before.files),
            ("threads", self.threads, before.threads),
            (
                "threads that read files",
                self.readers,
                before.readers + SPARE_READERS,
            ),
            (
                "resident KiB",
                self.resident_kib,
                before.resident_kib + SLACK_KIB,
            ),
        ];
        held.retain(|(_, now, before)| now > before);
        held
    }

    /// Waits until a proxy holds no more than before.
    pub(crate) fn is_again(&self, proxy: &Proxy) {
        becomes(|| Held::by(proxy).more_than(self), &Vec::new());
    }
}

/// Nobody waits for anything, on either side.
pub(crate) fn is_calm(proxy: &Proxy, upstream: &str) -> bool {
    let metrics = proxy.metrics();
    let calls = ["written", "waiting"].map(|state| {
        format!(r#"dualgauge_link_calls_in_flight{{upstream="{upstream}",state="{state}"}}"#)
    });
    let levels = calls.iter().map(|series| metrics.value(series));
    let own = ["dualgauge_calls_in_flight", "dualgauge_client_connections"];
    let own = own.iter().map(|series| metrics.value(series));
    levels.chain(own).all(|level| level == 0.0)
}

fn post(body: &str) -> String {
    let length = body.len();
    format!("POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// What one client does in a storm: calls that are answered, that nobody answers in time, and from which it goes away.
/// Tells how many were answered.
fn client(proxy: &Proxy, seed: u64) -> u64 {
    let (mut turn, mut answered, mut refused) = (0, 0, 0);
    let mut dice = Dice::of(seed);
    let mut wire = proxy.connect();
    let load = "x".repeat(8 * 1024);
    while turn < CALLS {
        let method = match dice.below(64) {
            0 => "late",
            1..=4 => "never",
            _ => "echo",
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{turn},"method":"{method}","params":["{seed}-{turn}","{load}"]}}"#
        );
        if method == "never" {
            turn += 1;
            let mut gone = proxy.connect();
            gone.send(post(&body));
            continue;
        }
        wire.send(post(&body));
        let said: Value = wire.read_answer().json();
        assert_eq!(said["id"], turn);
        if said.get("result").is_some() {
            let own = said["result"]["got"][0].as_str();
            assert_eq!(own, Some(&*format!("{seed}-{turn}")), "another's answer");
            answered += 1;
        } else {
            let (code, reason) = rpc_failure(&said);
            assert!((-31099..=-31000).contains(&code), "{said}");
            if reason == "upstream_unreachable" {
                // Refused at once: a fast client would spend all its turns while a lost link is away.
                refused += 1;
                assert!(refused < MOST_REFUSED, "the link stays away");
                continue;
            }
        }
        turn += 1;
    }
    answered
}

fn storm(proxy: &Proxy, number: u64) {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|place| scope.spawn(move || client(proxy, number * CLIENTS + place)))
            .collect();
        // The link is lost in the midst of it.
        let mut wire = proxy.connect();
        wire.send(post(
            r#"{"jsonrpc":"2.0","id":1,"method":"crash","params":[]}"#,
        ));
        wire.read_answer();
        let answered: u64 = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum();
        assert!(answered > CLIENTS * CALLS / 2, "{answered} were answered");
    });
}

/// Storms before a server, and what is left of them.
fn nothing_is_left(proxy: &Proxy, upstream: &str) {
    storm(proxy, 0);
    becomes(|| is_calm(proxy, upstream), &true);
    let before = Held::by(proxy);
    for number in 1..=STORMS {
        storm(proxy, number);
    }
    becomes(|| is_calm(proxy, upstream), &true);
    let mut last = None;
    let back = || {
        let held = Held::by(proxy);
        let is_back = held.is_back_at(&before);
        last = Some(held);
        is_back
    };
    becomes(back, &true);
    eprintln!("{upstream}: {before:?}, then {last:?}");
}

#[test]
fn calls_of_a_child_leave_nothing_behind() {
    let keys = format!("mode = \"pipelined\"\nin_flight = 64\n{KEYS}");
    nothing_is_left(&stdio::before_child(&keys), "child");
}

#[test]
fn calls_of_a_child_one_after_another_leave_nothing_behind() {
    nothing_is_left(&stdio::before_child(KEYS), "child");
}

/// Serves every socket that comes, each on a thread of its own.
fn serve_all(upstream: &Arc<Upstream>) {
    let upstream = upstream.clone();
    std::thread::spawn(move || {
        loop {
            let stream = upstream.accept().into_stream();
            std::thread::spawn(move || {
                if let Some(mut end) = opened(stream) {
                    serve(&mut end);
                }
            });
        }
    });
}

#[test]
fn calls_over_a_websocket_leave_nothing_behind() {
    let upstream = Arc::new(Upstream::start());
    serve_all(&upstream);
    let proxy = crate::websocket::before(&upstream, KEYS);
    nothing_is_left(&proxy, "socket");
}

#[test]
fn calls_over_sockets_of_their_clients_leave_nothing_behind() {
    let upstream = Arc::new(Upstream::start());
    serve_all(&upstream);
    let keys = format!("sharing = \"client\"\n{KEYS}");
    let proxy = crate::websocket::before(&upstream, &keys);
    nothing_is_left(&proxy, "socket");
    let up = r#"dualgauge_link_up{upstream="socket"}"#;
    // No link is left, so that nothing is said of any.
    becomes(|| proxy.metrics().series().contains(&up), &false);
    // Each client had one, and those that went away had one each.
    let opened = proxy
        .metrics()
        .value(r#"dualgauge_link_starts_total{upstream="socket"}"#);
    assert!(opened > 100.0, "{opened}");
}

/// What one client does in a storm of streams: some are read to their end, some are left in the midst of an event, and
/// some are cut by the server.
fn listener(proxy: &Proxy, seed: u64) {
    let mut dice = Dice::of(seed);
    for _ in 0..CALLS {
        let client = ["mover", "other"][dice.below(2)];
        let manner = ["whole", "open", "cut"][dice.below(3)];
        let mut wire = proxy.connect();
        wire.send(format!(
            "GET /mcp/v1/sse?{manner} HTTP/1.1\r\nHost: a\r\nX-Client: {client}\r\n\r\n"
        ));
        assert_eq!(wire.read_head().status(), 200, "{manner}");
        wire.read_chunk().unwrap();
        match manner {
            "whole" => while wire.read_chunk().is_some() {},
            "cut" => drop(wire.read_rest()),
            _ => drop(wire),
        }
    }
}

#[test]
fn streams_of_events_leave_nothing_behind() {
    let text = "x".repeat(8 * 1024);
    let event = format!(
        "id: 1\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/connected\",\"params\":{{\"message\":\"{text}\"}}}}\n\n"
    );
    let upstream = Upstream::serving(move |request| {
        let target = &request.head.start;
        if target.contains("?whole") {
            return stream(&event.repeat(3));
        }
        if target.contains("?cut") {
            return cut(&event);
        }
        begun(&format!("{event}data: half"))
    });
    let proxy = crate::sse::before(&upstream);
    let storm = |number: u64| {
        std::thread::scope(|scope| {
            for place in 0..CLIENTS {
                let proxy = &proxy;
                scope.spawn(move || listener(proxy, number * CLIENTS + place));
            }
        });
    };
    let calm = || {
        let metrics = proxy.metrics();
        let own = ["dualgauge_calls_in_flight", "dualgauge_client_connections"];
        own.iter().all(|series| metrics.value(series) == 0.0)
    };
    storm(0);
    becomes(calm, &true);
    let before = Held::by(&proxy);
    (1..=STORMS).for_each(storm);
    becomes(calm, &true);
    before.is_again(&proxy);
}

/// A stream that breaks off behind these bytes: what follows is no chunk.
fn cut(body: &str) -> Vec<u8> {
    let mut whole = begun(body);
    whole.extend_from_slice(b"no chunk\r\n");
    whole
}

/// One socket, up to its end. What is late comes when all have given it up.
fn serve(end: &mut End) {
    let mut held: Vec<Value> = Vec::new();
    while let Some(text) = end.heard() {
        let message: Value = serde_json::from_str(&text).unwrap();
        match message["method"].as_str().unwrap_or_default() {
            "echo" => end.echo(&message),
            "late" => held.push(message),
            "crash" => return,
            _ => {}
        }
        if held.len() > 3 {
            for message in held.drain(..) {
                end.echo(&message);
            }
        }
    }
}

#[test]
fn calls_of_an_mcp_server_leave_nothing_behind() {
    let turns = AtomicUsize::new(0);
    let server = sessions_with_streams(
        |_| begun(": here\n\n"),
        move |_, called| match called.method() {
            "echo" => {
                let got = format!(r#"{{"got":{}}}"#, called.params());
                match turns.fetch_add(1, Ordering::Relaxed) % 16 {
                    // One that breaks off, and one that is answered in a stream.
                    0 => Vec::new(),
                    1 => begun(&format!(
                        "data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{got}}}\n\n",
                        called.id()
                    )),
                    _ => result(called, &got),
                }
            }
            "crash" => answer("404 Not Found", &[], ""),
            _ => begun(": wait\n\n"),
        },
    );
    let proxy = crate::mcp::before(&server, "timeout = \"300ms\"\n");
    nothing_is_left(&proxy, "m");
}

#[test]
fn what_is_held_is_seen() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "");
    let _server = accept(&upstream);
    let first = proxy.connect();
    becomes(
        || proxy.metrics().value("dualgauge_client_connections"),
        &1.0,
    );
    let before = Held::by(&proxy);
    let more = [proxy.connect(), proxy.connect()];
    becomes(|| Held::by(&proxy).is_back_at(&before), &false);
    assert!(!is_calm(&proxy, "socket"));
    drop((first, more));
    before.is_again(&proxy);
    becomes(|| is_calm(&proxy, "socket"), &true);
    let held = Held {
        resident_kib: before.resident_kib + SLACK_KIB + 1,
        ..before.clone()
    };
    assert!(!held.is_back_at(&before));
}
