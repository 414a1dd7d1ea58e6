//! Servers that flood a shared connection with frames that bring no call further, or break the protocol: cut, by the rules
//! for clients, and counted.

use super::frames::{DATA, Frames, HEADERS, NO_CONTENT, PING, SETTINGS};
use crate::scene::problem;
use crate::support::{Proxy, Upstream};

const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
/// `:status 200` (RFC 7541 Appendix A).
const OK: &[u8] = &[0x88];
/// One more than is borne, the SETTINGS of the beginning apart.
const FLOOD: usize = 1001;

fn before(server: &Upstream) -> Proxy {
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\nhttp2 = true\n",
        server.address()
    ))
}

fn cut(proxy: &Proxy) -> f64 {
    let series = "dualgauge_upstream_cut_connections_total{upstream=\"old\"}";
    proxy.metrics().value(series)
}

#[test]
fn a_server_that_floods_before_its_answer_is_cut_and_the_next_call_has_a_fresh_connection() {
    let server = Upstream::start();
    let proxy = before(&server);
    for (turn, (kind, flags, payload)) in [
        (PING, 0, &b"12345678"[..]),
        (PING, ACK, b"12345678"),
        (SETTINGS, 0, b""),
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = proxy.connect();
        client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
        let mut flooding = Frames::begin(server.accept());
        assert_eq!(flooding.next(HEADERS).1, 1);
        flooding.repeated((kind, flags), 0, payload, FLOOD);
        let answer = client.read_answer();
        let found = (answer.status(), problem(&answer).0);
        assert_eq!(found, (502, "upstream_cut".to_owned()));
        let count = f64::from(u32::try_from(turn).unwrap() + 1);
        assert_eq!(cut(&proxy), count);
    }
    proxy.log_line(&[
        "upstream=old",
        "closed an abusive HTTP/2 upstream connection",
        "too many useless frames",
    ]);
    proxy.log_line(&["path=/a ", "too many useless frames"]);
    let mut next = proxy.connect();
    next.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut fresh = Frames::begin(server.accept());
    assert_eq!(fresh.next(HEADERS).1, 1);
    fresh.send(HEADERS, 1, NO_CONTENT);
    assert_eq!(next.read_answer().status(), 204);
}

#[test]
fn a_server_that_floods_within_its_answer_cuts_that() {
    let server = Upstream::start();
    let proxy = before(&server);
    for (flags, payload) in [(0, &b""[..]), (PADDED, b"\x02\0\0")] {
        let mut client = proxy.connect();
        client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut flooding = Frames::begin(server.accept());
        assert_eq!(flooding.next(HEADERS).1, 1);
        flooding.flagged((HEADERS, END_HEADERS), 1, OK);
        client.read_head();
        flooding.repeated((DATA, flags), 1, payload, FLOOD);
        let (rest, _) = client.read_rest();
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
        proxy.log_line(&["path=/a ", "outcome=cut", "blame=upstream"]);
    }
    assert_eq!(cut(&proxy), 2.0);
}

/// What is borne: so many frames, and any number of those that bring something.
#[test]
fn a_server_that_says_much_is_no_flood() {
    let server = Upstream::start();
    let proxy = before(&server);
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut frames = Frames::begin(server.accept());
    assert_eq!(frames.next(HEADERS).1, 1);
    frames.flagged((HEADERS, END_HEADERS), 1, OK);
    frames.repeated((PING, ACK), 0, b"12345678", FLOOD - 10);
    frames.repeated((DATA, 0), 1, b"x", 3 * FLOOD);
    frames.flagged((DATA, 1), 1, b"");
    assert_eq!(client.read_answer().text(), "x".repeat(3 * FLOOD));
    assert_eq!(cut(&proxy), 0.0);
}

/// Each piece of an answer is worth a frame beside it: servers that measure the round trip ping whenever something comes.
#[test]
fn a_server_that_says_something_beside_each_piece_is_no_flood() {
    let server = Upstream::start();
    let proxy = before(&server);
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut frames = Frames::begin(server.accept());
    assert_eq!(frames.next(HEADERS).1, 1);
    frames.flagged((HEADERS, END_HEADERS), 1, OK);
    for _ in 0..2 * FLOOD {
        frames.flagged((DATA, 0), 1, b"x");
        frames.flagged((PING, ACK), 0, b"12345678");
    }
    frames.flagged((DATA, 1), 1, b"");
    assert_eq!(client.read_answer().text(), "x".repeat(2 * FLOOD));
    assert_eq!(cut(&proxy), 0.0);
}
