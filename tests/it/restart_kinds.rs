//! Restarts under clients of every kind, all behind TLS: over HTTP/2, over connections that are kept or not, and over
//! WebSockets; with what was decided in files, and in the store that replicas share.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::http2::{Client, begin, request, run};
use crate::redis_server::{Memory, Server};
use crate::scene::json;
use crate::support::certificates::{Authority, secured_at};
use crate::support::{Upstream, WITHIN, becomes, both};

/// Of each kind.
const CLIENTS: usize = 2;
/// The calls that are answered between two restarts, at least.
const CALLS: usize = 80;

/// What the clients know together.
struct Run {
    address: SocketAddr,
    ours: Authority,
    over: AtomicBool,
    answered: AtomicUsize,
}

impl Run {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    fn counts(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    fn calls(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Three calls at a time on a connection, until the proxy says that it goes away. What it has not looked at is called
    /// again (RFC 9113 §8.7).
    async fn over_http_2(&self) {
        while self.goes_on() {
            let mut client = Client::at(self.address, &self.ours).await;
            let mut is_last = false;
            while self.goes_on() && !is_last {
                let mut asked = Vec::new();
                for _ in 0..3 {
                    let ready = std::future::poll_fn(|cx| client.send.poll_ready(cx)).await;
                    let get = request(Method::GET, "/a", &[]);
                    let sent = ready.and_then(|()| client.send.send_request(get, true));
                    match sent {
                        Ok((answer, _)) => asked.push(answer),
                        Err(error) => {
                            assert!(error.is_go_away(), "{error:?}");
                            is_last = true;
                            break;
                        }
                    }
                }
                for answer in asked {
                    match timeout(WITHIN, answer).await.unwrap() {
                        Ok(answer) => {
                            assert_eq!(answer.status(), 200);
                            let mut body = answer.into_body();
                            assert_eq!(body.data().await.unwrap().unwrap(), Bytes::from("1"));
                            self.counts();
                        }
                        Err(error) => {
                            assert!(error.is_go_away() && error.is_remote(), "{error:?}");
                            is_last = true;
                        }
                    }
                }
            }
        }
    }

    /// Calls on a connection until an answer says that it is the last.
    fn over_a_kept_connection(&self) {
        while self.goes_on() {
            let mut stream = secured_at(self.address, &self.ours);
            let mut is_last = false;
            while self.goes_on() && !is_last {
                stream
                    .write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
                    .unwrap();
                let mut read = Vec::new();
                while !read.ends_with(b"\r\n\r\n1") {
                    let mut space = [0; 1024];
                    let count = stream.read(&mut space).unwrap();
                    assert_ne!(count, 0, "{:?}", String::from_utf8_lossy(&read));
                    read.extend_from_slice(&space[..count]);
                }
                let read = String::from_utf8_lossy(&read).to_lowercase();
                assert!(read.starts_with("http/1.1 200 "), "{read}");
                is_last = read.contains("connection: close");
                self.counts();
            }
        }
    }

    /// Calls on a connection each.
    fn over_one_after_the_other(&self) {
        while self.goes_on() {
            let mut stream = secured_at(self.address, &self.ours);
            stream
                .write_all(b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                .unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            assert!(
                read.ends_with(b"\r\n\r\n1"),
                "{:?}",
                String::from_utf8_lossy(&read)
            );
            self.counts();
        }
    }

    /// Calls on a socket until the proxy closes it; what came behind that was not looked at.
    fn over_a_socket(&self) {
        while self.goes_on() {
            let stream = secured_at(self.address, &self.ours);
            let (mut socket, _) = tungstenite::client("wss://proxy.example/rpc", stream).unwrap();
            let mut number = 0;
            while self.goes_on() {
                number += 1;
                let call = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"m"}}"#);
                if socket.send(Message::text(call)).is_err() {
                    break;
                }
                match socket.read() {
                    Ok(Message::Text(text)) => {
                        let answer: Value = serde_json::from_str(&text).unwrap();
                        assert_eq!(
                            (&answer["id"], &answer["result"]),
                            (&number.into(), &7.into())
                        );
                        self.counts();
                    }
                    Ok(Message::Close(_)) | Err(_) => break,
                    Ok(other) => panic!("{other:?}"),
                }
            }
        }
    }
}

/// Restarts a proxy under all of them.
fn restarts(store: &str) {
    let seen = Arc::new(AtomicUsize::new(0));
    let (of_rest, of_rpc) = (seen.clone(), seen.clone());
    let rest = Upstream::serving(move |_| {
        of_rest.fetch_add(1, Ordering::Relaxed);
        json("1")
    });
    let rpc = Upstream::serving(move |asked| {
        of_rpc.fetch_add(1, Ordering::Relaxed);
        let id = &asked.json()["id"];
        json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":7}}"#))
    });
    let config = both(&rest, &rpc).replace("workers = 1", "workers = 2");
    let (ours, mut proxy) = begin(&format!(
        "{config}[rpc]\nwebsocket = true\n{store}[limits]\n"
    ));
    let run_of = Run {
        address: proxy.address(),
        ours,
        over: AtomicBool::new(false),
        answered: AtomicUsize::new(0),
    };
    let first = proxy.process();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| run(run_of.over_http_2()));
            scope.spawn(|| run_of.over_a_kept_connection());
            scope.spawn(|| run_of.over_one_after_the_other());
            scope.spawn(|| run_of.over_a_socket());
        }
        for _ in 0..3 {
            let before = run_of.calls();
            proxy.replace();
            becomes(|| run_of.calls() >= before + CALLS, &true);
        }
        run_of.over.store(true, Ordering::Relaxed);
    });
    assert_eq!(seen.load(Ordering::Relaxed), run_of.calls());
    assert_ne!(proxy.process(), first);
    assert_eq!(proxy.ask("GET", "/readyz", "").status(), 200);
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(!stopped.log.contains(" ERROR "), "{stopped:?}");
}

#[test]
fn no_call_of_any_kind_is_lost() {
    restarts("");
}

#[test]
#[ignore = "needs redis-server"]
fn nor_with_the_store_that_replicas_share() {
    let store = Server::start(Memory::Kept);
    let url = store.url();
    restarts(&format!(
        "[rollout.store]\nurl = \"{url}\"\nreplica = \"one\"\ntimeout = \"2s\"\n"
    ));
}
