//! Answers to calls whose body was not read. Law: an answer over HTTP/1.1 whose connection ends behind it says so, and one
//! that says nothing leaves the connection to the next call (RFC 9112 §9.6).

use std::cell::RefCell;

use crate::support::{Proxy, Track, Upstream, Wire, rest_only};

/// The lengths of bodies; none is one that comes in chunks.
const LENGTHS: [Option<usize>; 6] = [
    Some(1),
    Some(5000),
    Some(8192),
    Some(8193),
    Some(100_000),
    None,
];
const CHUNKED: usize = 5000;
const GET: &str = "GET /second HTTP/1.1\r\nHost: a\r\n\r\n";

/// When a client sends its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sends {
    WithTheHead,
    PartlyWithTheHead,
    /// When it has the answer.
    Later,
    Never,
}

const SENDS: [Sends; 4] = [
    Sends::WithTheHead,
    Sends::PartlyWithTheHead,
    Sends::Later,
    Sends::Never,
];

/// One call with a body.
#[derive(Debug, Clone, Copy)]
struct Posted {
    length: Option<usize>,
    sends: Sends,
    more: &'static str,
}

impl Posted {
    /// What is sent at first, and what follows the answer.
    fn parts(self) -> (Vec<u8>, Vec<u8>) {
        let (framing, body) = match self.length {
            Some(length) => (format!("Content-Length: {length}"), vec![b'x'; length]),
            None => {
                let half = format!("{:x}\r\n{}\r\n", CHUNKED / 2, "x".repeat(CHUNKED / 2));
                let body = format!("{half}{half}0\r\n\r\n");
                ("Transfer-Encoding: chunked".to_owned(), body.into_bytes())
            }
        };
        let more = self.more;
        let mut first =
            format!("POST /first HTTP/1.1\r\nHost: a\r\n{more}{framing}\r\n\r\n").into_bytes();
        let at_first = match self.sends {
            Sends::WithTheHead => body.len(),
            Sends::PartlyWithTheHead => body.len().min(10),
            Sends::Later | Sends::Never => 0,
        };
        first.extend_from_slice(&body[..at_first]);
        (first, body[at_first..].to_vec())
    }

    /// Sends the first call, answers it by `answers`, and holds the connection to the law; `again` answers a second call.
    fn holds(self, mut client: Wire, status: u16, answers: impl FnOnce(), again: impl FnOnce()) {
        let (first, rest) = self.parts();
        client.send(first);
        answers();
        let answer = client.read_answer();
        assert_eq!(answer.status(), status, "{self:?}");
        if answer.head.one("connection") == Some("close") {
            return client.expect_gone();
        }
        assert!(self.sends != Sends::Never, "{self:?}: {answer:?}");
        // Where it has gone without a word, this may or may not be sent.
        let _ = client.try_send(rest);
        let _ = client.try_send(GET);
        again();
        let second = client.next_answer();
        assert!(second.is_some(), "{self:?} left without a word: {answer:?}");
    }
}

fn all(more: &'static str) -> impl Iterator<Item = Posted> {
    LENGTHS.into_iter().flat_map(move |length| {
        SENDS.map(|sends| Posted {
            length,
            sends,
            more,
        })
    })
}

fn refusing(upstream: &Upstream) -> Proxy {
    Proxy::start(&format!("unrouted = \"reject\"\n{}", rest_only(upstream)))
}

#[test]
fn a_call_that_is_refused_before_its_body_is_read() {
    let upstream = Upstream::nowhere();
    let proxy = refusing(&upstream);
    for posted in all("") {
        posted.holds(proxy.connect(), 404, || (), || ());
    }
}

#[test]
fn a_call_that_expected_to_be_asked_for_its_body() {
    let upstream = Upstream::nowhere();
    let proxy = refusing(&upstream);
    for posted in all("Expect: 100-continue\r\n") {
        posted.holds(proxy.connect(), 404, || (), || ());
    }
}

fn answered_early(status: u16, line: &str) {
    let Track { proxy, upstream } = Track::rest();
    let early = format!("HTTP/1.1 {line}\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    // Who closes with a body unread may cut off what was said.
    let servers = RefCell::new(Vec::new());
    let answers = || {
        let mut server = upstream.accept();
        server.read_head();
        server.send(&early);
        servers.borrow_mut().push(server);
    };
    for posted in all("") {
        posted.holds(proxy.connect(), status, answers, answers);
    }
}

#[test]
fn a_call_whose_server_takes_it_before_its_body_is_read() {
    answered_early(200, "200 OK");
}

#[test]
fn a_call_whose_server_refuses_it_before_its_body_is_read() {
    answered_early(413, "413 Content Too Large");
}

#[test]
fn a_body_that_was_read_leaves_its_connection_whatever_the_answer() {
    for line in ["200 OK", "413 Content Too Large"] {
        let upstream = Upstream::answering(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n"));
        let proxy = Proxy::start(&rest_only(&upstream));
        for length in LENGTHS {
            let sends = Sends::WithTheHead;
            let posted = Posted {
                length,
                sends,
                more: "",
            };
            let mut client = proxy.connect();
            for _ in 0..2 {
                client.send(posted.parts().0);
                let answer = client.read_answer();
                assert_eq!(answer.head.one("connection"), None, "{posted:?} {line}");
            }
        }
    }
}
