//! Servers of HTTP/2 that say nothing more, or go away, frame by frame.

use crate::scene::problem;
use crate::support::{Proxy, Upstream, Wire};

#[test]
fn a_silent_server_is_asked_for_a_sign_of_life_and_left_without_one() {
    let server = Upstream::start();
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\nhttp2 = true\n\
         connect_timeout = \"300ms\"\n",
        server.address()
    );
    let proxy = Proxy::start(&config);
    let mut client = proxy.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    let mut frames = Frames::begin(server.accept());
    assert_eq!(frames.next(HEADERS).1, 1);
    frames.next(PING);
    let answer = client.read_answer();
    assert_eq!(
        (answer.status(), problem(&answer).0),
        (502, "upstream_cut".to_owned())
    );
    proxy.log_line(&["path=/a ", "keep-alive timed out"]);
}

#[test]
fn a_server_that_goes_away_answers_what_it_has_taken_and_nothing_is_lost() {
    let server = Upstream::start();
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\nhttp2 = true\n",
        server.address()
    );
    let proxy = Proxy::start(&config);
    let ask = |path: &str| {
        let mut client = proxy.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        client
    };
    let mut first = ask("/first");
    let mut frames = Frames::begin(server.accept());
    assert_eq!(frames.next(HEADERS).1, 1);
    let mut second = ask("/second");
    assert_eq!(frames.next(HEADERS).1, 3);
    // It will look at the first one and at no other.
    frames.send(GOAWAY, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    let mut others = Frames::begin(server.accept());
    assert_eq!(others.next(HEADERS).1, 1);
    others.send(HEADERS, 1, NO_CONTENT);
    assert_eq!(second.read_answer().status(), 204);
    // A call that comes now does not go there either.
    let mut third = ask("/third");
    assert_eq!(others.next(HEADERS).1, 3);
    others.send(HEADERS, 3, NO_CONTENT);
    assert_eq!(third.read_answer().status(), 204);
    frames.send(HEADERS, 1, NO_CONTENT);
    assert_eq!(first.read_answer().status(), 204);
}

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RESET: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
/// `:status 204` (RFC 7541 Appendix A).
pub(super) const NO_CONTENT: &[u8] = &[0x89];

/// A connection of HTTP/2, frame by frame (RFC 9113 §4.1).
pub(super) struct Frames(Wire);

impl Frames {
    /// Both ends say hello.
    pub(super) fn begin(mut wire: Wire) -> Frames {
        wire.expect("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut frames = Frames(wire);
        frames.send(SETTINGS, 0, &[]);
        frames
    }

    /// Sends a frame, which ends headers and stream where it is of headers.
    pub(super) fn send(&mut self, kind: u8, stream: u32, payload: &[u8]) {
        self.flagged(
            (kind, if kind == HEADERS { 0x5 } else { 0 }),
            stream,
            payload,
        );
    }

    /// Sends a frame with flags.
    pub(super) fn flagged(&mut self, what: (u8, u8), stream: u32, payload: &[u8]) {
        self.repeated(what, stream, payload, 1);
    }

    /// Sends a frame so many times at once.
    pub(super) fn repeated(
        &mut self,
        (kind, flags): (u8, u8),
        stream: u32,
        payload: &[u8],
        times: usize,
    ) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.send(frame.repeat(times));
    }

    /// The next frame of a kind: its payload, and its stream.
    pub(super) fn next(&mut self, wanted: u8) -> (Vec<u8>, u32) {
        loop {
            let head = self.0.read_exactly(9);
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let payload = self.0.read_exactly(length as usize);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            if head[3] == wanted {
                return (payload, stream);
            }
        }
    }
}
