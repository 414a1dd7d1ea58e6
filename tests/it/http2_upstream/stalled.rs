//! Connections on which an answer does not come in time: they take no further calls, and those that are on them go on.

use super::frames::{DATA, Frames, HEADERS, NO_CONTENT};
use crate::scene::problem;
use crate::support::{Proxy, Upstream, Wire, becomes};

fn before(server: &Upstream, silence: &str) -> Proxy {
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\nhttp2 = true\n\
         timeout = \"1s\"\nidle_timeout = \"{silence}\"\n",
        server.address()
    ))
}

fn ask(proxy: &Proxy, path: &str) -> Wire {
    let mut client = proxy.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client
}

fn is_late(client: &mut Wire) {
    let answer = client.read_answer();
    let found = (answer.status(), problem(&answer).0);
    assert_eq!(found, (504, "upstream_timeout".to_owned()));
}

#[test]
fn a_server_that_takes_no_uploads_any_more_is_given_a_fresh_connection() {
    let server = Upstream::start();
    let proxy = before(&server, "20s");
    // More than a server takes that never asks for more (RFC 9113 §6.9.2).
    let body = "x".repeat(100_000);
    let upload = |path: &str| {
        let mut client = proxy.connect();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        client
    };
    let mut first = upload("/first");
    let mut stalled = Frames::begin(server.accept());
    stalled.next(DATA);
    is_late(&mut first);
    let mut second = ask(&proxy, "/second");
    let mut fresh = Frames::begin(server.accept());
    assert_eq!(fresh.next(HEADERS).1, 1);
    fresh.send(HEADERS, 1, NO_CONTENT);
    assert_eq!(second.read_answer().status(), 204);
    let open = "dualgauge_upstream_connections{side=\"rest\"}";
    becomes(|| proxy.metrics().value(open), &1.0);
}

#[test]
fn calls_on_a_connection_where_another_one_was_late_go_on() {
    let server = Upstream::start();
    let proxy = before(&server, "20s");
    let mut held = ask(&proxy, "/held");
    let mut old = Frames::begin(server.accept());
    assert_eq!(old.next(HEADERS).1, 1);
    // Its answer streams on.
    old.flagged((HEADERS, 4), 1, &[0x88]);
    old.send(DATA, 1, b"one");
    held.read_until("one");
    let mut late = ask(&proxy, "/late");
    assert_eq!(old.next(HEADERS).1, 3);
    old.send(DATA, 1, b"two");
    held.read_until("two");
    let mut halfway = ask(&proxy, "/half");
    assert_eq!(old.next(HEADERS).1, 5);
    old.flagged((HEADERS, 4), 5, &[0x88]);
    old.send(DATA, 5, b"half");
    halfway.read_until("half");
    is_late(&mut late);
    let mut next = ask(&proxy, "/next");
    let mut fresh = Frames::begin(server.accept());
    assert_eq!(fresh.next(HEADERS).1, 1);
    fresh.send(HEADERS, 1, NO_CONTENT);
    assert_eq!(next.read_answer().status(), 204);
    old.flagged((DATA, 1), 5, b"whole");
    halfway.read_until("whole\r\n0\r\n\r\n");
}

#[test]
fn an_answer_that_stalls_leaves_its_connection_to_nobody() {
    let server = Upstream::start();
    let proxy = before(&server, "1s");
    let mut first = ask(&proxy, "/first");
    let mut old = Frames::begin(server.accept());
    assert_eq!(old.next(HEADERS).1, 1);
    old.flagged((HEADERS, 4), 1, &[0x88]);
    old.send(DATA, 1, b"one");
    first.read_until("one");
    let (rest, _) = first.read_rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    let mut next = ask(&proxy, "/next");
    let mut fresh = Frames::begin(server.accept());
    assert_eq!(fresh.next(HEADERS).1, 1);
    fresh.send(HEADERS, 1, NO_CONTENT);
    assert_eq!(next.read_answer().status(), 204);
}
