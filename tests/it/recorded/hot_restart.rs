//! Recordings across a hot restart: both processes record, and neither loses or cuts a call.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::json;

use super::{RECORD, TABLES, calls, files, state};
use crate::support::{Message, Proxy, Upstream, Wire, becomes, both, program, run_to_end};

/// The least number of calls between two restarts.
const CALLS: usize = 40;

fn answer(_: &Message) -> Vec<u8> {
    super::answer(r#"{"seen":"old"}"#)
}

/// An upstream that tells when `/held` is called, and answers it once it is told to.
struct Holding {
    upstream: Upstream,
    called: Receiver<()>,
    release: Sender<()>,
}

impl Holding {
    fn start() -> Holding {
        let (call, called) = channel();
        let (release, released) = channel();
        let released: Mutex<Receiver<()>> = Mutex::new(released);
        let upstream = Upstream::serving(move |request| {
            if request.head.start.contains("/held") {
                call.send(()).unwrap();
                // The test may have failed, and no longer sends.
                let _ = released.lock().unwrap().recv();
            }
            answer(request)
        });
        Holding {
            upstream,
            called,
            release,
        }
    }
}

/// The targets of all calls in the recordings of a proxy, each of which must end with a whole line.
fn recorded_targets(proxy: &Proxy) -> Vec<String> {
    let calls = files(proxy).into_iter().flat_map(|file| calls(&file));
    let targets = calls.map(|call| {
        assert!(call.complete, "{call:?}");
        call.request.target
    });
    targets.collect()
}

fn is_locked(file: &Path) -> bool {
    let file = File::open(file).unwrap();
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[test]
fn every_answered_call_is_in_one_recording_however_often_the_program_is_restarted() {
    let upstream = Upstream::serving(answer);
    let config = format!(
        "{}{TABLES}{RECORD}sample = 100\n",
        both(&upstream, &upstream)
    );
    let mut proxy = Proxy::start(&config);
    let (address, over) = (proxy.address(), AtomicBool::new(false));
    let (answered, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let mut wire = Wire::connect(address);
                    wire.send(format!(
                        "GET /notes?q={number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                    ));
                    assert_eq!(wire.read_answer().status(), 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..3 {
            let before = answered.load(Ordering::Relaxed);
            proxy.replace();
            becomes(|| answered.load(Ordering::Relaxed) >= before + CALLS, &true);
        }
        over.store(true, Ordering::Relaxed);
    });
    let mut processes = BTreeSet::new();
    for file in files(&proxy) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        processes.insert(name.split('-').nth(2).unwrap().to_owned());
    }
    assert_eq!(processes.len(), 4, "{processes:?}");
    let answered = answered.load(Ordering::Relaxed);
    // A process ends, and writes its last calls, a moment after its last answer.
    becomes(|| recorded_targets(&proxy).len(), &answered);
    let expected: BTreeSet<_> = (0..answered)
        .map(|number| format!("/notes?q={number}"))
        .collect();
    let found = recorded_targets(&proxy);
    assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), expected);
}

/// With `files = 1`, a process deletes the files of others, unless they are locked.
#[test]
fn both_processes_keep_the_locks_of_their_files() {
    let Holding {
        upstream,
        called,
        release,
    } = Holding::start();
    let more = "sample = 100\nfiles = 1\n";
    let config = format!("{}{TABLES}{RECORD}{more}", both(&upstream, &upstream));
    let mut proxy = Proxy::start(&config);
    let mut held = proxy.connect();
    held.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
    called.recv().unwrap();
    let first = files(&proxy).remove(0);
    proxy.replace();
    let two = files(&proxy);
    assert_eq!(two.len(), 2, "{two:?}");
    for file in &two {
        assert!(is_locked(file), "{file:?}");
    }
    let second = two.iter().find(|file| **file != first).unwrap();
    // Until it drains, the process before accepts calls too.
    let mut answered = 0;
    let is_recorded = || {
        proxy.rest("GET", "/notes", &[], "");
        answered += 1;
        !calls(second).is_empty()
    };
    becomes(is_recorded, &true);
    release.send(()).unwrap();
    assert_eq!(held.read_answer().status(), 200);
    becomes(|| is_locked(&first), &false);
    let of_first = calls(&first);
    assert_eq!(of_first.last().unwrap().request.target, "/held");
    becomes(|| of_first.len() + calls(second).len(), &(answered + 1));
    assert!(is_locked(second));
    assert_eq!(state(&proxy, "GET", "")["running"], true);
}

#[test]
fn the_recording_of_a_command_ends_with_its_process() {
    let upstream = Upstream::serving(answer);
    let config = format!("{}{TABLES}{RECORD}", both(&upstream, &upstream));
    let mut proxy = Proxy::start(&config);
    state(&proxy, "PUT", r#"{"seconds":600}"#);
    proxy.rest("GET", "/notes", &[], "");
    proxy.replace();
    becomes(
        || state(&proxy, "GET", ""),
        &json!({ "running": false, "stopping": false, "recording": null }),
    );
    becomes(|| calls(&files(&proxy)[0]).len(), &1);
    let admin = format!("http://{}", proxy.admin());
    let shown = run_to_end(program(&["record", "--status", "--admin", &admin]));
    assert!(shown.output.contains("no recording"), "{shown:?}");
}
