//! Malformed requests over HTTP/2 (RFC 9113 §8.1.1): what ends their stream, and what their connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::begin;
use crate::scene::json;
use crate::support::certificates::{Authority, secured_with};
use crate::support::{Proxy, Upstream, rest_only};

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END: u8 = 4 | 1;
const PROTOCOL_ERROR: u32 = 1;

/// `GET /` of `https://proxy.example`, by the static table of HPACK.
const GET: &[u8] = b"\x82\x87\x84\x41\x0dproxy.example";

/// How a request ends.
#[derive(Debug, PartialEq)]
enum Ends {
    /// With this field as the first of its answer, as HPACK has it.
    Answered(u8),
    Stream(u32),
    Connection(u32),
}

const BAD_REQUEST: Ends = Ends::Answered(0x8c);
const OK: Ends = Ends::Answered(0x88);

/// A client that says what it likes.
struct Rude(StreamOwned<ClientConnection, TcpStream>);

impl Rude {
    fn connect(proxy: &Proxy, ours: &Authority) -> Rude {
        let mut stream = secured_with(proxy, ours, None, &["h2"]);
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .unwrap();
        let mut rude = Rude(stream);
        rude.says(SETTINGS, 0, 0, b"");
        rude
    }

    fn says(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let stream = stream.to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream, payload].concat();
        self.0.write_all(&frame).unwrap();
        self.0.flush().unwrap();
    }

    /// Sends a request, and waits for its end.
    fn ends(&mut self, stream: u32, block: &[u8]) -> Ends {
        self.says(HEADERS, END, stream, block);
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).unwrap();
            let [high, middle, low, kind, _, on @ ..] = head;
            let length = u32::from_be_bytes([0, high, middle, low]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).unwrap();
            let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
            match kind {
                HEADERS if u32::from_be_bytes(on) == stream => {
                    // Behind changes of the size of the table.
                    let first = payload.iter().find(|byte| *byte & 0xe0 != 0x20);
                    return Ends::Answered(*first.unwrap());
                }
                RST_STREAM if u32::from_be_bytes(on) == stream => return Ends::Stream(code(0)),
                GOAWAY => return Ends::Connection(code(4)),
                _ => {}
            }
        }
    }
}

/// A field as it is, without the table.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        field.push(u8::try_from(text.len()).unwrap());
        field.extend(text.bytes());
    }
    field
}

#[test]
fn a_malformed_field_ends_its_stream_where_h2_allows_it() {
    let rest = Upstream::answering(json("1"));
    let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
    let stream = || Ends::Stream(PROTOCOL_ERROR);
    let connection = || Ends::Connection(PROTOCOL_ERROR);
    for (name, value, ends) in [
        ("connection", "close", stream()),
        ("transfer-encoding", "chunked", stream()),
        ("upgrade", "x", stream()),
        ("keep-alive", "x", stream()),
        ("proxy-connection", "x", stream()),
        ("te", "gzip", stream()),
        (":path", "/other", stream()),
        ("a", " b", BAD_REQUEST),
        ("a", "b ", BAD_REQUEST),
        ("a", "\tb", BAD_REQUEST),
        ("content-length", "x", stream()),
        ("a", "b\u{e9}", OK),
        // RFC 9113 asks for a stream error: h2 takes them for faults of the compression (docs/reference/tls.md).
        ("A", "b", connection()),
        ("a b", "c", connection()),
        ("", "b", connection()),
        ("a", "b\0c", connection()),
        ("a", "b\r\nc: d", connection()),
        (":other", "b", connection()),
    ] {
        let mut client = Rude::connect(&proxy, &ours);
        let found = client.ends(1, &[GET, &field(name, value)].concat());
        assert_eq!(found, ends, "{name:?}: {value:?}");
        if !matches!(ends, Ends::Connection(_)) {
            assert_eq!(client.ends(3, GET), OK, "{name:?}: {value:?}");
        }
    }
    // Nothing of what was refused has reached the server.
    let reached = rest.requests();
    let plain = reached
        .iter()
        .filter(|request| request.head.one("a").is_none());
    assert_eq!((reached.len(), plain.count()), (13, 12));
}
