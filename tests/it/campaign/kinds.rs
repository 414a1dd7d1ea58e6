//! The part of the soak with clients of every kind, all behind TLS: HTTP/2, kept connections of HTTP/1.1, streams of events
//! and WebSockets; passed on, and translated both ways.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use http::Method;
use tokio_tungstenite::tungstenite::{self, Message};

use super::now;
use crate::http2::{Client, begin, request, run, text};
use crate::mcp::scripted::stream;
use crate::scene::json;
use crate::soak::Held;
use crate::support::certificates::{Authority, secured_at};
use crate::support::{Proxy, Upstream, both};

const PLAN: &str = r#"
[rpc]
websocket = true
[[route]]
name = "things.read"
rest = "GET /things/{id}"
rpc = "things/read"
[rollout.default]
rest = "translate"
rpc = "translate"
[limits]
"#;

/// How calls of each kind went: how long those took that were answered well, and how often which other end came.
#[derive(Debug, Default)]
pub(super) struct Figures(Mutex<BTreeMap<&'static str, Kind>>);

#[derive(Debug, Default)]
struct Kind {
    times: Vec<Duration>,
    errors: BTreeMap<String, usize>,
}

impl Figures {
    fn notes(&self, kind: &'static str, took: Duration, ended: Result<(), String>) {
        let mut kinds = self.0.lock().unwrap();
        let kind = kinds.entry(kind).or_default();
        match ended {
            Ok(()) => kind.times.push(took),
            Err(error) => *kind.errors.entry(error).or_default() += 1,
        }
    }

    /// One line for each kind, and how many calls failed.
    pub(super) fn told(&self) -> (String, usize) {
        let (mut told, mut failed) = (String::new(), 0);
        for (name, kind) in &mut *self.0.lock().unwrap() {
            kind.times.sort_unstable();
            let at = |part: usize| kind.times.get(kind.times.len() * part / 100);
            let (calls, errors) = (kind.times.len(), &kind.errors);
            writeln!(
                told,
                "{name}: {calls} calls, p50 {:?}, p99 {:?}, errors {errors:?}",
                at(50).copied().unwrap_or_default(),
                at(99).copied().unwrap_or_default(),
            )
            .unwrap();
            failed += errors.values().sum::<usize>();
        }
        (told, failed)
    }
}

/// The proxy and both servers.
pub(super) struct Town {
    pub(super) proxy: Proxy,
    ours: Authority,
    _ends: [Upstream; 2],
}

impl Town {
    pub(super) fn start() -> Town {
        let rest = Upstream::serving(|asked| match asked.head.start.contains("/events") {
            true => stream(&"data: {\"n\":1}\n\n".repeat(20)),
            false => json(r#"{"by":"rest"}"#),
        });
        let rpc = Upstream::serving(|asked| {
            let id = &asked.json()["id"];
            json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"by":"rpc"}}}}"#
            ))
        });
        let config = both(&rest, &rpc).replace("workers = 1", "workers = 2");
        let (ours, proxy) = begin(&format!("{config}{PLAN}"));
        Town {
            proxy,
            ours,
            _ends: [rest, rpc],
        }
    }

    /// Calls of every kind until then; what the proxy holds is looked at now and then.
    pub(super) fn lives(&self, until: Instant, figures: &Figures) -> Vec<Held> {
        std::thread::scope(|scope| {
            scope.spawn(|| run(self.over_http_2(until, figures)));
            scope.spawn(|| self.over_http_1(until, figures));
            scope.spawn(|| self.over_a_websocket(until, figures));
            scope.spawn(|| self.of_events(until, figures));
            let mut held = Vec::new();
            while now() < until {
                held.push(Held::by(&self.proxy));
                // The pace of another process.
                for _ in 0..20 {
                    self.proxy.metrics();
                }
            }
            held
        })
    }

    async fn over_http_2(&self, until: Instant, figures: &Figures) {
        while now() < until {
            let mut client = Client::at(self.proxy.address(), &self.ours).await;
            for turn in 0..200 {
                let (kind, path, wanted) = match turn % 2 {
                    0 => ("http/2 passed", "/plain", "rest"),
                    _ => ("http/2 rest to rpc", "/things/7", "rpc"),
                };
                let began = now();
                let answer = client.ask(request(Method::GET, path, &[]), "").await;
                let status = answer.status().as_u16();
                let said = text(answer).await;
                figures.notes(kind, now() - began, judged(status, &said, wanted));
            }
        }
    }

    fn over_http_1(&self, until: Instant, figures: &Figures) {
        while now() < until {
            let mut end = secured_at(self.proxy.address(), &self.ours);
            for turn in 0..100 {
                let (kind, start, body, wanted) = match turn % 4 {
                    0 => ("rest passed", "GET /plain", String::new(), "rest"),
                    1 => ("rest to rpc", "GET /things/7", String::new(), "rpc"),
                    2 => ("rpc passed", "POST /rpc", rpc("other"), "rpc"),
                    _ => ("rpc to rest", "POST /rpc", rpc("things/read"), "rest"),
                };
                let length = match body.len() {
                    0 => String::new(),
                    length => format!("Content-Length: {length}\r\n"),
                };
                let began = now();
                // In one piece: the second of two would wait for the word that the first has come.
                let said = format!("{start} HTTP/1.1\r\nHost: a\r\n{length}\r\n{body}");
                end.write_all(said.as_bytes()).unwrap();
                let read = until_text(&mut end, wanted);
                let status = read.get(9..12).and_then(|status| status.parse().ok());
                let ended = judged(status.unwrap_or(0), &read, wanted);
                let is_over = ended.is_err();
                figures.notes(kind, now() - began, ended);
                if is_over {
                    break;
                }
            }
        }
    }

    fn over_a_websocket(&self, until: Instant, figures: &Figures) {
        while now() < until {
            let stream = secured_at(self.proxy.address(), &self.ours);
            let (mut socket, _) = tungstenite::client("wss://proxy.example/rpc", stream).unwrap();
            for turn in 0..200 {
                let (kind, method, wanted) = match turn % 2 {
                    0 => ("websocket passed", "other", "rpc"),
                    _ => ("websocket rpc to rest", "things/read", "rest"),
                };
                let began = now();
                let sent = socket.send(Message::text(rpc(method)));
                let ended = match sent.and_then(|()| socket.read()) {
                    Ok(Message::Text(text)) => judged(200, &text, wanted),
                    Ok(other) => Err(format!("{other:?}")),
                    Err(error) => Err(error.to_string()),
                };
                let is_over = ended.is_err();
                figures.notes(kind, now() - began, ended);
                if is_over {
                    break;
                }
            }
        }
    }

    fn of_events(&self, until: Instant, figures: &Figures) {
        while now() < until {
            let began = now();
            let mut end = secured_at(self.proxy.address(), &self.ours);
            write!(
                end,
                "GET /events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            let mut read = Vec::new();
            let ended = end
                .read_to_end(&mut read)
                .map_err(|error| error.to_string());
            let read = String::from_utf8_lossy(&read);
            let ended = ended.and_then(|_| match read.matches("data: ").count() {
                20 => Ok(()),
                events => Err(format!("{events} events")),
            });
            figures.notes("events", now() - began, ended);
        }
    }
}

/// A call of JSON-RPC.
fn rpc(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"id":"7"}}}}"#)
}

fn judged(status: u16, said: &str, wanted: &str) -> Result<(), String> {
    match status == 200 && said.contains(&format!("\"by\":\"{wanted}\"")) {
        true => Ok(()),
        false => Err(format!("{status} {said}")),
    }
}

/// Reads to the end of the content, as far as there is any.
fn until_text(end: &mut impl Read, wanted: &str) -> String {
    let mut read = String::new();
    let mut space = [0; 4096];
    while !read.contains(&format!("\"{wanted}\"}}")) {
        match end.read(&mut space) {
            Ok(count) if count > 0 => read.push_str(&String::from_utf8_lossy(&space[..count])),
            Ok(_) | Err(_) => break,
        }
    }
    read
}
