//! The part of a server over HTTP/2 that misbehaves, frame by frame: it resets, goes away, lies about lengths, breaks the
//! protocol, never ends, or says nothing.
//!
//! What it does is chosen by a seed for each call, and hits the calls beside it on the same connection as well.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::ends::{Got, Loose, PATIENCE};
use super::{SEEDS, wanted};
use crate::random::dice::Dice;
use crate::soak::Held;
use crate::support::{Proxy, becomes};

const CLIENTS: u64 = 6;
const TURNS: usize = 25;
/// A body that goes in one piece.
const SMALL: usize = 2;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// `END_STREAM`, which is `ACK` as well, and `END_HEADERS`.
const END: u8 = 1;
const WHOLE: u8 = 4;

/// `:status 200`, and a field `content-length` of one digit (RFC 7541 Appendix A).
const OK: &[u8] = &[0x88];
const LENGTH: [u8; 3] = [0x0f, 0x0d, 1];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Answers,
    AnswersSlowly,
    Refuses,
    Resets,
    ResetsInBody,
    GoesAwayInBody,
    GoesAwayAndCloses,
    DataOfNoStream,
    HeadOfNoFields,
    WrongSettings,
    TooShort,
    TooLong,
    EndlessTrailers,
    HugeHead,
    FloodsWithPings,
    SaysNothing,
    SaysNoBody,
    Closes,
    Garbage,
}

const ACTS: [Act; 25] = [
    Act::Answers,
    Act::Answers,
    Act::Answers,
    Act::Answers,
    Act::Answers,
    Act::Answers,
    Act::Answers,
    Act::AnswersSlowly,
    Act::Refuses,
    Act::Resets,
    Act::ResetsInBody,
    Act::GoesAwayInBody,
    Act::GoesAwayAndCloses,
    Act::DataOfNoStream,
    Act::HeadOfNoFields,
    Act::WrongSettings,
    Act::TooShort,
    Act::TooLong,
    Act::EndlessTrailers,
    Act::HugeHead,
    Act::FloodsWithPings,
    Act::SaysNothing,
    Act::SaysNoBody,
    Act::Closes,
    Act::Garbage,
];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

fn head(length: Option<u8>) -> Vec<u8> {
    let length = length.map(|digit| [&LENGTH[..], &[digit]].concat());
    [OK, &length.unwrap_or_default()].concat()
}

/// Starts a server, by a seed.
fn start(seed: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in (0_u64..).zip(listener.incoming()) {
            let dice = Dice::of(seed.wrapping_mul(1 << 20) + number);
            thread::spawn(move || Line(stream.unwrap()).serve(dice));
        }
    });
    address
}

/// A connection of the server.
struct Line(TcpStream);

impl Line {
    fn serve(mut self, mut dice: Dice) {
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        self.0.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut preface = [0; 24];
        if self.0.read_exact(&mut preface).is_err() || !self.says(&frame(SETTINGS, 0, 0, &[])) {
            return;
        }
        while let Some((kind, flags, stream, payload)) = self.hears() {
            if let (DATA, Ok(length)) = (kind, u32::try_from(payload.len()))
                && length > 0
            {
                let more = frame(WINDOW_UPDATE, 0, 0, &length.to_be_bytes());
                if !self.says(&more) {
                    return;
                }
            }
            let is_asked = matches!(kind, HEADERS | DATA) && flags & END != 0;
            let goes_on = match (kind, flags & END) {
                (SETTINGS, 0) => self.says(&frame(SETTINGS, END, 0, &[])),
                (PING, 0) => self.says(&frame(PING, END, 0, &payload)),
                _ if is_asked => self.acts(dice.pick(&ACTS), stream, &mut dice),
                _ => true,
            };
            if !goes_on {
                return;
            }
        }
    }

    fn says(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    fn hears(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some((head[3], head[4], stream, payload))
    }

    /// Whether the connection goes on behind it.
    fn acts(&mut self, act: Act, stream: u32, dice: &mut Dice) -> bool {
        let opens = frame(HEADERS, WHOLE, stream, &head(None));
        let half = frame(DATA, 0, stream, b"o");
        let rest = frame(DATA, END, stream, b"k");
        let resets = |code: u8| frame(RESET, 0, stream, &[0, 0, 0, code]);
        let whole = [opens.clone(), half.clone(), rest.clone()].concat();
        let begun = [opens.clone(), half.clone()].concat();
        let says = match act {
            Act::Answers => whole,
            Act::AnswersSlowly => return whole.iter().all(|byte| self.says(&[*byte])),
            Act::Refuses => resets(7),
            Act::Resets => resets(dice.pick(&[0, 1, 2, 8, 11])),
            Act::ResetsInBody => [begun, resets(dice.pick(&[0, 2, 8]))].concat(),
            Act::GoesAwayInBody => {
                let last = stream.to_be_bytes();
                let leaves = frame(GOAWAY, 0, 0, &[&last[..], &[0; 4]].concat());
                [begun, leaves, rest].concat()
            }
            Act::GoesAwayAndCloses => {
                let code = dice.pick(&[0, 2]);
                self.says(&[begun, frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, code])].concat());
                return false;
            }
            Act::DataOfNoStream => frame(DATA, 0, 0, b"x"),
            Act::HeadOfNoFields => frame(HEADERS, WHOLE | END, stream, &[0x80]),
            Act::WrongSettings => frame(SETTINGS, 0, 0, &[0; 5]),
            Act::TooShort => {
                let head = frame(HEADERS, WHOLE, stream, &head(Some(b'9')));
                [head, half, rest].concat()
            }
            Act::TooLong => {
                let head = frame(HEADERS, WHOLE, stream, &head(Some(b'1')));
                [head, half, rest].concat()
            }
            Act::EndlessTrailers => {
                self.says(&[begun, frame(HEADERS, END, stream, b"\0\x01a\x01a")].concat());
                let more = frame(CONTINUATION, 0, stream, b"\0\x01a\x01a").repeat(100);
                while self.says(&more) {}
                return false;
            }
            Act::HugeHead => {
                let mut all = frame(HEADERS, 0, stream, OK);
                // A field of 200 bytes, whose length takes two.
                let field = [b"\0\x01a\x7f\x49", &[b'x'; 200][..]].concat();
                for _ in 0..2000 {
                    all.extend(frame(CONTINUATION, 0, stream, &field));
                }
                all.extend(frame(CONTINUATION, WHOLE, stream, b""));
                all
            }
            Act::FloodsWithPings => [frame(PING, 0, 0, b"12345678").repeat(5000), whole].concat(),
            Act::SaysNothing => return true,
            Act::SaysNoBody => opens,
            Act::Closes => return false,
            Act::Garbage => (0..300)
                .map(|_| u8::try_from(dice.below(256)).unwrap())
                .collect(),
        };
        self.says(&says)
    }
}

/// Calls one behind the other, each on a connection of its own; tells how many were served, and what must not be.
fn client(proxy: &Proxy, seed: u64) -> (usize, Vec<String>) {
    let mut dice = Dice::of(seed);
    let (mut served, mut faults) = (0, Vec::new());
    for turn in 0..TURNS {
        let path = dice.pick(&["/p", "/p", "/t/do"]);
        let size = dice.pick(&[SMALL, SMALL, 60_000]);
        let body = format!("\"{}\"", "x".repeat(size - 2));
        let mut end = Loose::over(TcpStream::connect(proxy.address()).unwrap());
        let sent = end.send(
            format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: close\r\n\
                 Content-Length: {size}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        let got = end.answer();
        let is_well = match &got {
            // One that lies about its length ends there.
            Got::Whole(200, body, _) => path == "/p" && matches!(body.as_str(), "ok" | "o"),
            Got::Whole(502..=504, _, _) => true,
            // An answer that was streaming already.
            Got::Cut if path == "/p" => true,
            // TCP has lost it, since nobody read the request to its end (RFC 9112 §9.6).
            Got::Cut | Got::Nothing => size > SMALL,
            Got::Whole(..) | Got::Late => false,
        };
        served += usize::from(matches!(got, Got::Whole(200, ..)));
        if !is_well {
            faults.push(format!(
                "client {seed}, turn {turn}, {path}: {got:?} ({sent:?})"
            ));
        }
    }
    (served, faults)
}

#[test]
fn calls_to_a_server_of_http_2_end_and_leave_nothing_whatever_it_does() {
    let first = wanted("DUALGAUGE_SEED", 1);
    let address = start(first);
    let upstream = |name: &str, side: &str, path: &str| {
        format!(
            "[upstream.{name}]\nside = \"{side}\"\nurl = \"http://{address}{path}\"\nhttp2 = true\ntimeout = \"1s\"\n\
             idle_timeout = \"1s\"\nconnect_timeout = \"1s\"\nkeep_alive = \"300ms\"\n"
        )
    };
    let config = format!(
        "[listen]\nworkers = 2\n{}{}[[route]]\nname = \"t\"\nrest = \"POST /t/do\"\nrpc = \"t\"\nparams = [\"{{body}}\"]\n\
         body = \"{{body}}\"\n[rollout.default]\nrest = \"translate\"\n",
        upstream("old", "rest", ""),
        upstream("new", "rpc", "/rpc"),
    );
    let proxy = Proxy::start(&config);
    let (mut calls, mut before) = (0, None);
    for seed in first..=first + wanted("DUALGAUGE_CAMPAIGN", SEEDS) {
        eprintln!("DUALGAUGE_SEED={seed}");
        let proxy_of = &proxy;
        let ended: Vec<_> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|place| scope.spawn(move || client(proxy_of, seed * CLIENTS + place)))
                .collect();
            clients.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let served: usize = ended.iter().map(|(served, _)| served).sum();
        calls += ended.len() * TURNS;
        let faults: Vec<String> = ended.into_iter().flat_map(|(_, faults)| faults).collect();
        assert!(faults.is_empty(), "seed {seed}:\n{}", faults.join("\n"));
        assert!(served > 0, "nobody was served");
        calms_down(&proxy);
        let labels = ["route", "client", "side", "stage", "outcome", "blame"];
        let counted = proxy.metrics().table("dualgauge_calls_total", &labels);
        assert_eq!(counted.values().sum::<f64>(), calls as f64, "{counted:#?}");
        let left = counted.keys().find(|labels| labels.contains("cancelled"));
        assert!(left.is_none(), "no client has left: {counted:#?}");
        let before = before.get_or_insert_with(|| Held::by(&proxy));
        before.is_again(&proxy);
    }
}

fn calms_down(proxy: &Proxy) {
    let idle = || {
        let metrics = proxy.metrics();
        let open = metrics.table("dualgauge_upstream_connections", &["side"]);
        metrics.value("dualgauge_calls_in_flight") == 0.0
            && metrics.value("dualgauge_client_connections") == 0.0
            && open.values().all(|open| *open == 0.0)
    };
    becomes(idle, &true);
}
