//! Clients of HTTP/2 that flood: each is cut, told by a count, and costs neither memory nor others' calls.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::http2::begin;
use crate::scene::json;
use crate::soak::Held;
use crate::support::certificates::{Authority, secured_with};
use crate::support::{Proxy, Upstream, becomes, eventually, rest_only};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const PADDED: u8 = 8;
const END_HEADERS: u8 = 4;

/// `GET /` and `POST /` of `https://proxy.example`, by the static table of HPACK.
const GET: &[u8] = b"\x82\x87\x84\x41\x0dproxy.example";
const POST: &[u8] = b"\x83\x87\x84\x41\x0dproxy.example";

/// Far more than any limit: whoever can send so much is not cut.
const MANY: usize = 200_000;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

/// A client that says what it likes.
struct Rude(StreamOwned<ClientConnection, TcpStream>);

impl Rude {
    fn connect(proxy: &Proxy, ours: &Authority) -> Rude {
        let mut stream = secured_with(proxy, ours, None, &["h2"]);
        stream.write_all(PREFACE).unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, b"")).unwrap();
        Rude(stream)
    }

    fn says(&mut self, bytes: &[u8]) -> bool {
        self.0
            .write_all(bytes)
            .and_then(|()| self.0.flush())
            .is_ok()
    }

    /// Sends frames again and again until the connection ends. What comes back is read and forgotten beside it, so that it
    /// is no full socket that stops the flood.
    fn floods(&mut self, mut next: impl FnMut(usize) -> Vec<u8>) {
        let mut back = self.0.sock.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut sink = [0; 64 * 1024];
                while back.read(&mut sink).is_ok_and(|count| count > 0) {}
            });
            for turn in (0..MANY).step_by(50) {
                let bytes: Vec<u8> = (turn..turn + 50).flat_map(&mut next).collect();
                if !self.says(&bytes) {
                    let _ = self.0.sock.shutdown(Shutdown::Both);
                    return;
                }
            }
            panic!("{MANY} frames were taken");
        });
    }
}

struct Scene {
    ours: Authority,
    proxy: Proxy,
    rest: Upstream,
    before: Held,
}

impl Scene {
    fn start(rest: Upstream) -> Scene {
        let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
        // What a connection of TLS needs for the first time is no flood's.
        let mut first = Rude::connect(&proxy, &ours);
        assert!(first.says(&frame(HEADERS, END_HEADERS | END_STREAM, 1, GET)));
        let level = |name: &str| proxy.metrics().value(name);
        let labels = ["route", "client", "side", "stage", "outcome", "blame"];
        let calls = || {
            proxy
                .metrics()
                .table("dualgauge_calls_total", &labels)
                .len()
        };
        // It is answered, or the server has none for it.
        let is_there = || level("dualgauge_calls_in_flight") == 1.0 || calls() == 1;
        becomes(is_there, &true);
        drop(first);
        becomes(|| level("dualgauge_client_connections"), &0.0);
        drop(rest.requests());
        let before = Held::by(&proxy);
        Scene {
            ours,
            proxy,
            rest,
            before,
        }
    }

    fn cut(&self, why: &str) -> f64 {
        let series = format!("dualgauge_cut_connections_total{{reason=\"{why}\"}}");
        self.proxy.metrics().value(&series)
    }

    /// The client was cut for this, others are served, and nothing is held of it.
    fn ends(&self, why: &[&str]) {
        let cut = || why.iter().map(|why| self.cut(why)).sum();
        becomes(cut, &1.0);
        let metrics = || self.proxy.metrics();
        becomes(|| metrics().value("dualgauge_calls_in_flight"), &0.0);
        becomes(|| metrics().value("dualgauge_client_connections"), &0.0);
        becomes(|| Held::by(&self.proxy).beyond(&self.before), &(0, 0));
    }

    fn serves_others(&self) {
        let mut other = Rude::connect(&self.proxy, &self.ours);
        assert!(other.says(&frame(HEADERS, END_HEADERS | END_STREAM, 1, GET)));
        eventually("the call of another", || self.rest.requests().pop());
    }
}

fn answering() -> Scene {
    Scene::start(Upstream::answering(json("1")))
}

#[test]
fn a_client_that_floods_with_pings_is_cut() {
    let scene = answering();
    Rude::connect(&scene.proxy, &scene.ours).floods(|_| frame(PING, 0, 0, b"12345678"));
    scene.serves_others();
    scene.ends(&["chatter"]);
}

#[test]
fn a_client_that_floods_while_the_program_drains_is_cut() {
    let Scene {
        ours,
        proxy,
        rest: _rest,
        ..
    } = Scene::start(Upstream::start());
    let mut rude = Rude::connect(&proxy, &ours);
    assert!(rude.says(&frame(HEADERS, END_HEADERS | END_STREAM, 1, GET)));
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &1.0);
    proxy.signal("TERM");
    proxy.log_line(&["draining"]);
    rude.floods(|_| frame(PING, 0, 0, b"12345678"));
    // Its call was the last one.
    let stopped = proxy.wait();
    assert!(stopped.log.contains("drained"), "{stopped:?}");
}

/// What nobody has asked for is no answer.
#[test]
fn a_client_that_floods_with_answers_to_pings_is_cut_and_the_log_does_not_grow() {
    let scene = answering();
    Rude::connect(&scene.proxy, &scene.ours).floods(|_| frame(PING, ACK, 0, b"12345678"));
    scene.serves_others();
    scene.ends(&["chatter"]);
    assert_eq!(scene.proxy.log().matches("PING").count(), 0);
}

#[test]
fn a_client_that_floods_with_answers_to_settings_is_cut() {
    let scene = answering();
    Rude::connect(&scene.proxy, &scene.ours).floods(|_| frame(SETTINGS, ACK, 0, b""));
    scene.serves_others();
    scene.ends(&["chatter", "faults"]);
}

#[test]
fn a_client_that_floods_with_padding_is_cut() {
    let scene = Scene::start(Upstream::start());
    let mut rude = Rude::connect(&scene.proxy, &scene.ours);
    assert!(rude.says(&frame(HEADERS, END_HEADERS, 1, POST)));
    rude.floods(|_| frame(DATA, PADDED, 1, b"\x02\0\0"));
    drop(rude);
    scene.ends(&["chatter", "faults"]);
}

#[test]
fn a_client_that_floods_with_settings_is_cut() {
    let scene = answering();
    let one = frame(SETTINGS, 0, 0, b"\0\x04\0\0\x10\0");
    Rude::connect(&scene.proxy, &scene.ours).floods(|_| one.clone());
    scene.serves_others();
    scene.ends(&["chatter"]);
}

#[test]
fn a_client_that_floods_with_data_of_no_length_is_cut() {
    let scene = Scene::start(Upstream::start());
    let mut rude = Rude::connect(&scene.proxy, &scene.ours);
    assert!(rude.says(&frame(HEADERS, END_HEADERS, 1, POST)));
    rude.floods(|_| frame(DATA, 0, 1, b""));
    drop(rude);
    scene.ends(&["chatter", "faults"]);
}

#[test]
fn a_head_that_never_ends_is_cut() {
    let scene = answering();
    let mut rude = Rude::connect(&scene.proxy, &scene.ours);
    assert!(rude.says(&frame(HEADERS, 0, 1, GET)));
    // A field that is not indexed: `a: a`.
    rude.floods(|_| frame(CONTINUATION, 0, 1, b"\0\x01a\x01a"));
    scene.serves_others();
    scene.ends(&["faults"]);
}

/// CVE-2025-8671: it is the server that resets, so limits of a client's resets see nothing.
#[test]
fn a_client_that_makes_the_proxy_reset_is_cut() {
    let scene = Scene::start(Upstream::start());
    let mut rude = Rude::connect(&scene.proxy, &scene.ours);
    rude.floods(|turn| {
        let stream = u32::try_from(turn).unwrap() * 2 + 1;
        let asks = frame(HEADERS, END_HEADERS | END_STREAM, stream, GET);
        // A window beyond its bound is a fault of its stream (RFC 9113 §6.9.1).
        let most = (i32::MAX as u32).to_be_bytes();
        [asks, frame(WINDOW_UPDATE, 0, stream, &most)].concat()
    });
    drop(rude);
    scene.ends(&["faults", "resets"]);
}
