//! Bodies that end although they are not over: who says that there is no fault has still not sent the rest.

use super::frames::{DATA, Frames, GOAWAY, HEADERS, RESET};
use crate::scene::problem;
use crate::support::{Proxy, Upstream, Wire, becomes};

/// `:status 200` (RFC 7541 Appendix A), with `END_HEADERS` alone.
const OK: &[u8] = &[0x88];
const OPENS: (u8, u8) = (HEADERS, 4);
/// The same with `content-length: 2`.
const OK_OF_TWO: &[u8] = &[0x88, 0x0f, 0x0d, 1, b'2'];
const NO_ERROR: &[u8] = &[0; 4];
const CANCEL: &[u8] = &[0, 0, 0, 8];

/// A proxy before a server that speaks in frames, and which translates calls of one route.
fn before(server: &Upstream) -> Proxy {
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{0}\"\nhttp2 = true\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://{0}/rpc\"\nhttp2 = true\n\
         [[route]]\nname = \"t\"\nrest = \"GET /t\"\nrpc = \"t\"\n[rollout.default]\nrest = \"translate\"\n",
        server.address()
    ))
}

/// A call whose answer has begun.
fn begun(proxy: &Proxy, server: &Upstream, head: &[u8]) -> (Wire, Frames) {
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut frames = Frames::begin(server.accept());
    assert_eq!(frames.next(HEADERS).1, 1);
    frames.flagged(OPENS, 1, head);
    frames.send(DATA, 1, b"hi");
    client.read_until("hi");
    (client, frames)
}

fn is_cut(proxy: &Proxy, mut client: Wire) {
    let (rest, _) = client.read_rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    proxy.log_line(&[
        "path=/a ",
        "outcome=cut",
        "blame=upstream",
        "reason=upstream_cut",
    ]);
}

#[test]
fn an_answer_that_is_reset_without_error_before_its_end_is_cut() {
    for code in [NO_ERROR, CANCEL] {
        let server = Upstream::start();
        let proxy = before(&server);
        let (client, mut frames) = begun(&proxy, &server, OK);
        frames.send(RESET, 1, code);
        is_cut(&proxy, client);
    }
}

#[test]
fn an_answer_whose_connection_goes_away_without_error_before_its_end_is_cut() {
    let server = Upstream::start();
    let proxy = before(&server);
    let (client, mut frames) = begun(&proxy, &server, OK);
    frames.send(GOAWAY, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    drop(frames);
    is_cut(&proxy, client);
}

#[test]
fn an_answer_of_as_many_bytes_as_were_announced_is_whole_behind_a_reset_without_error() {
    let server = Upstream::start();
    let proxy = before(&server);
    let mut client = proxy.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    let mut frames = Frames::begin(server.accept());
    frames.next(HEADERS);
    frames.flagged(OPENS, 1, OK_OF_TWO);
    frames.send(DATA, 1, b"hi");
    frames.send(RESET, 1, NO_ERROR);
    assert_eq!(client.read_answer().text(), "hi");
    proxy.log_line(&["path=/a ", "outcome=success"]);
}

#[test]
fn an_answer_that_ended_is_whole_behind_a_reset_without_error() {
    let server = Upstream::start();
    let proxy = before(&server);
    let mut client = proxy.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    let mut frames = Frames::begin(server.accept());
    frames.next(HEADERS);
    frames.flagged(OPENS, 1, OK);
    frames.flagged((DATA, 1), 1, b"hi");
    frames.send(RESET, 1, NO_ERROR);
    assert_eq!(client.read_answer().text(), "hi");
    proxy.log_line(&["path=/a ", "outcome=success"]);
}

#[test]
fn a_translated_answer_that_is_reset_without_error_before_its_end_is_none() {
    let server = Upstream::start();
    let proxy = before(&server);
    let mut client = proxy.connect();
    client.send("GET /t HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut frames = Frames::begin(server.accept());
    frames.next(HEADERS);
    frames.flagged(OPENS, 1, OK);
    frames.send(DATA, 1, br#"{"jsonrpc":"2.0","id":1,"result":5}"#);
    frames.send(RESET, 1, NO_ERROR);
    let answer = client.read_answer();
    let found = (answer.status(), problem(&answer).0);
    assert_eq!(found, (502, "upstream_cut".to_owned()));
    let calls = "dualgauge_calls_in_flight";
    becomes(|| proxy.metrics().value(calls), &0.0);
}

#[test]
fn a_client_that_has_as_many_bytes_as_were_announced_has_left_nothing() {
    let server = Upstream::start();
    let proxy = before(&server);
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut frames = Frames::begin(server.accept());
    frames.next(HEADERS);
    frames.flagged(OPENS, 1, OK_OF_TWO);
    frames.send(DATA, 1, b"hi");
    // The end of the stream is on its way.
    assert_eq!(client.read_answer().text(), "hi");
    proxy.log_line(&["path=/a ", "outcome=success"]);
    client.send("HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n");
    frames.next(HEADERS);
    frames.flagged(OPENS, 3, OK_OF_TWO);
    let answer = client.read_answer_to("HEAD");
    assert_eq!(answer.head.one("content-length"), Some("2"));
    proxy.log_line(&["path=/b ", "outcome=success"]);
}
