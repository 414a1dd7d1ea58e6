//! Restarts by which the next process gets the very sockets of the one before, while clients call without a pause.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::drains::refuses_connections;
use crate::support::{Message, Proxy, Upstream, Wire, becomes, rest_only};
use crate::two_servers::{MOVER, Servers, answers};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
/// Clients that keep their connection, and as many that make another one for each call.
const CLIENTS: usize = 3;
/// The calls that are answered between two restarts, at least.
const CALLS: usize = 60;

fn configure(proxy: &Proxy, text: &str) {
    fs::write(proxy.folder().join("dualgauge.toml"), text).unwrap();
}

fn call(wire: &mut Wire, headers: &str) -> Message {
    wire.send(format!("GET /a HTTP/1.1\r\nHost: a\r\n{headers}\r\n"));
    let answer = wire.read_answer();
    assert_eq!((answer.status(), answer.text()), (200, "hi"));
    answer
}

/// Calls on one connection until an answer says that it is the last.
fn keep(address: SocketAddr, over: &AtomicBool, answered: &AtomicUsize) {
    while !over.load(Ordering::Relaxed) {
        let mut wire = Wire::connect(address);
        while !over.load(Ordering::Relaxed) {
            let answer = call(&mut wire, "");
            answered.fetch_add(1, Ordering::Relaxed);
            if answer.head.one("connection") == Some("close") {
                break;
            }
        }
    }
}

/// Calls on a connection each.
fn connect(address: SocketAddr, over: &AtomicBool, answered: &AtomicUsize) {
    while !over.load(Ordering::Relaxed) {
        call(&mut Wire::connect(address), "Connection: close\r\n");
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

fn workers(config: &str, count: usize) -> String {
    config.replace("workers = 1", &format!("workers = {count}"))
}

#[test]
fn no_call_is_lost_however_often_the_program_is_restarted_and_whatever_its_workers() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    let upstream = Upstream::serving(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        ANSWER.into()
    });
    let config = rest_only(&upstream);
    let mut proxy = Proxy::start(&workers(&config, 3));
    let (address, over, answered) = (proxy.address(), AtomicBool::new(false), AtomicUsize::new(0));
    let first = proxy.process();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| keep(address, &over, &answered));
            scope.spawn(|| connect(address, &over, &answered));
        }
        for count in [1, 4, 2, 2] {
            let before = answered.load(Ordering::Relaxed);
            configure(&proxy, &workers(&config, count));
            proxy.replace();
            becomes(|| answered.load(Ordering::Relaxed) >= before + CALLS, &true);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        seen.load(Ordering::Relaxed),
        answered.load(Ordering::Relaxed)
    );
    assert_ne!(proxy.process(), first);
    assert_eq!(proxy.ask("GET", "/readyz", "").status(), 200);
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(!stopped.log.contains(" ERROR "), "{stopped:?}");
}

#[test]
fn a_successor_that_cannot_start_leaves_the_process_that_serves() {
    let upstream = Upstream::answering(ANSWER);
    let config = rest_only(&upstream);
    let mut proxy = Proxy::start(&config);
    let first = proxy.process();
    let mut kept = proxy.connect();
    call(&mut kept, "");
    configure(&proxy, &format!("{config}nonsense = 1\n"));
    proxy.signal("USR2");
    let line = proxy.log_line(&["hot restart failed; this process keeps serving"]);
    assert!(
        line.contains("it ended before it served: exit status: 1"),
        "{line}"
    );
    call(&mut kept, "");
    call(&mut proxy.connect(), "");
    // What failed once is tried again.
    configure(&proxy, &config);
    proxy.replace();
    assert_ne!(proxy.process(), first);
    call(&mut proxy.connect(), "");
    // The process before has its word a moment after the next one serves.
    let mut is_last = || call(&mut kept, "").head.one("connection") == Some("close");
    becomes(&mut is_last, &true);
    kept.expect_closed();
}

#[test]
fn what_was_flipped_holds_in_the_next_process_which_can_change_it() {
    let servers = Servers::start();
    let mut proxy = Proxy::start_with_flags(&servers.config(), MOVER);
    let flip = r#"{"stage":"passthrough","percent":100}"#;
    assert_eq!(proxy.ask("PUT", "/api/v1/flags/mover", flip).status(), 200);
    for stage in ["translate", "passthrough"] {
        let before = answers(&proxy, "mover");
        proxy.replace();
        assert_eq!(answers(&proxy, "mover"), before);
        let flip = format!(r#"{{"stage":"{stage}","percent":100}}"#);
        // The process before lets go of the state a moment after the next one serves.
        becomes(
            || proxy.ask("PUT", "/api/v1/flags/mover", &flip).status(),
            &200,
        );
        assert_ne!(answers(&proxy, "mover"), before);
    }
    assert_eq!(
        proxy
            .ask("GET", "/api/v1/history", "")
            .json()
            .as_array()
            .map(Vec::len),
        Some(3)
    );
}

#[test]
fn a_process_that_is_replaced_does_not_listen_while_it_drains() {
    let upstream = Upstream::start();
    // The call in progress holds the drain open for longer than the test looks at the listeners.
    let more = "timeout = \"10m\"\n[limits]\ndrain = \"10m\"\n";
    let mut proxy = Proxy::start(&format!("{}{more}", rest_only(&upstream)));
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = upstream.accept();
    server.read_request();
    proxy.replace();
    // The new process ends while the former one still serves a call.
    proxy.signal("TERM");
    refuses_connections(proxy.address());
    server.send(ANSWER);
    assert_eq!(client.read_answer().text(), "hi");
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
}
