//! Servers that speak HTTP/2: calls share connections, and are what they are over HTTP/1.1.

mod contentless;
mod floods;
mod frames;
mod secured;
mod stalled;
mod torn;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use h2::Reason;
use h2::server::Builder;
use http::{HeaderMap, HeaderValue, Response, request};
use tokio::sync::Barrier;

use crate::scene::{body_of, call, problem};
use crate::support::{Act, Multiplex, Proxy, Upstream, becomes, chunked, program, run_to_end};

/// A REST server and, at `/rpc`, an RPC server at the same place.
fn before(server: &Multiplex, keys: &str) -> Proxy {
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{0}\"\nhttp2 = true\n{keys}\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://{0}/rpc\"\nhttp2 = true\n{keys}\
         [[route]]\nname = \"a\"\nrest = \"PUT /a/{{id}}\"\nrpc = \"a.put\"\nbody = {{ n = \"{{n}}\" }}\n\
         params = {{ id = \"{{id}}\", n = \"{{n}}\" }}\n[rollout.default]\nrest = \"translate\"\n",
        server.address()
    ))
}

fn text(body: impl Into<Vec<u8>>) -> Act {
    Act::Answer(Response::new(body.into()))
}

/// What an RPC server says, with the params as its result, and a REST server, with the body.
fn echo(head: &request::Parts, body: &[u8]) -> Act {
    if head.uri.path() != "/rpc" {
        return text(body);
    }
    let called: serde_json::Value = serde_json::from_slice(body).unwrap();
    let said = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
        called["id"], called["params"]
    );
    let answer = Response::builder().header("content-type", "application/json");
    Act::Answer(answer.body(said.into_bytes()).unwrap())
}

/// So many calls at the same time, and what each got.
fn at_once(proxy: &Proxy, count: usize) -> Vec<u16> {
    thread::scope(|scope| {
        let asked: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| proxy.rest("GET", "/together", &[], "").status()))
            .collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn together(count: usize) -> impl Fn(&request::Parts, &[u8]) -> Act + Send + Sync + 'static {
    let all = Arc::new(Barrier::new(count));
    move |_, _| Act::Together(all.clone())
}

#[test]
fn calls_of_both_sides_go_there_and_back() {
    let server = Multiplex::serving(echo);
    let proxy = before(&server, "");
    let fields = [
        ("Cookie", "a=1; b=2"),
        ("Connection", "x-own"),
        ("X-Own", "1"),
        ("X-Kept", "2"),
        ("TE", "trailers"),
    ];
    let answer = proxy.rest("POST", "/b?c=%20d", &fields, "abc");
    assert_eq!(body_of(&answer, 200), "abc");
    assert_eq!(answer.head.start, "HTTP/1.1 200 OK");
    let passed = proxy.rpc(call("other", "[1.10]"));
    assert!(passed.text().contains(r#""result":[1.1"#), "{passed:?}");
    let json = [("Content-Type", "application/json")];
    proxy.rest("PUT", "/a/7", &json, r#"{"n":5}"#).json();
    let calls = server.calls();
    let (head, _) = &calls[0];
    assert_eq!(head.uri.to_string(), "http://proxy.example/b?c=%20d");
    for name in ["host", "connection", "x-own", "transfer-encoding"] {
        assert!(!head.headers.contains_key(name), "{head:?}");
    }
    for (name, value) in [
        ("cookie", "a=1; b=2"),
        ("x-kept", "2"),
        ("content-length", "3"),
    ] {
        assert_eq!(head.headers[name], value);
    }
    // Each of the two upstreams has a connection of its own.
    assert_eq!((calls.len(), server.connections()), (3, 2));
    assert_eq!(calls[2].0.method, "POST");
}

#[test]
fn a_hundred_calls_at_a_time_share_one_connection() {
    let server = Multiplex::serving(together(100));
    let proxy = before(&server, "");
    assert_eq!(at_once(&proxy, 100), [200; 100]);
    assert_eq!(server.connections(), 1);
    let idle = "dualgauge_upstream_idle_connections{side=\"rest\"}";
    becomes(|| proxy.metrics().value(idle), &1.0);
    let open = "dualgauge_upstream_connections{side=\"rest\"}";
    assert_eq!(proxy.metrics().value(open), 1.0);
}

#[test]
fn a_server_that_takes_few_calls_gets_more_connections() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(2);
    let server = Multiplex::with(builder, together(6));
    let proxy = before(&server, "");
    assert_eq!(at_once(&proxy, 6), [200; 6]);
    assert_eq!(server.connections(), 3);
}

#[test]
fn bodies_of_any_length_stream_both_ways_with_their_trailers() {
    let server = Multiplex::serving(|_, body| {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from(body.len()));
        let answer = Response::builder().header("trailer", "x-sum");
        Act::Trailed(answer.body(body.to_vec()).unwrap(), trailers)
    });
    let proxy = before(&server, "");
    let long = "0123456789abcdef".repeat(300_000);
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], &long), 200), long);
    let mut wire = proxy.connect();
    wire.send("POST /c HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: te\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.send(chunked(&[b"one", b"two"]));
    let answer = wire.read_answer();
    assert_eq!(answer.text(), "onetwo");
    assert_eq!(answer.trailers, [("x-sum".to_owned(), "6".to_owned())]);
    assert!(!server.calls()[1].0.headers.contains_key("content-length"));
}

#[test]
fn a_call_that_was_refused_goes_again_and_one_that_was_reset_does_not() {
    let (refused, reset) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let resets = reset.clone();
    let server = Multiplex::serving(move |head, body| {
        if head.uri.path() == "/reset" {
            resets.fetch_add(1, Ordering::SeqCst);
            return Act::Reset(Reason::INTERNAL_ERROR);
        }
        match refused.fetch_add(1, Ordering::SeqCst) {
            0 => Act::Reset(Reason::REFUSED_STREAM),
            _ => echo(head, body),
        }
    });
    let proxy = before(&server, "");
    let answer = proxy.rpc(call("other", "[1]"));
    assert_eq!(answer.json()["result"][0], 1);
    let cut = proxy.rest("GET", "/reset", &[], "");
    assert_eq!(
        (cut.status(), problem(&cut).0),
        (502, "upstream_cut".to_owned())
    );
    assert_eq!(reset.load(Ordering::SeqCst), 1);
    // The connection has lost nothing.
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_refused_body_goes_again_where_it_is_here_and_not_where_it_is_on_its_way() {
    let asked = AtomicUsize::new(0);
    let server = Multiplex::serving(
        move |head, body| match asked.fetch_add(1, Ordering::SeqCst) {
            0 | 2 => Act::Reset(Reason::REFUSED_STREAM),
            _ => echo(head, body),
        },
    );
    let proxy = before(&server, "");
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
    let mut wire = proxy.connect();
    wire.send("POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.send(chunked(&[b"one", b"two"]));
    let cut = wire.read_answer();
    assert_eq!(
        (cut.status(), problem(&cut).0),
        (502, "upstream_cut".to_owned())
    );
    assert_eq!(server.calls().len(), 3);
}

#[test]
fn a_client_that_goes_away_resets_its_call_and_no_other() {
    let server = Multiplex::serving(|head, body| match head.uri.path() {
        "/hold" => Act::Hold,
        _ => echo(head, body),
    });
    let proxy = before(&server, "");
    let mut held = proxy.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    becomes(|| server.calls().len(), &1);
    let mut sending = proxy.connect();
    sending.send("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
    drop(held);
    becomes(|| server.resets(), &1);
    drop(sending);
    becomes(|| server.resets(), &2);
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "y"), 200), "y");
    assert_eq!((server.connections(), server.ended()), (1, 0));
}

#[test]
fn an_answer_with_too_many_headers_is_none_and_the_next_call_is_served() {
    let server = Multiplex::serving(|head, body| {
        if head.uri.path() != "/many" {
            return echo(head, body);
        }
        let answer = Response::builder().header("x-long", "x".repeat(100_000));
        Act::Answer(answer.body(Vec::new()).unwrap())
    });
    let proxy = before(&server, "");
    let answer = proxy.rest("GET", "/many", &[], "");
    let found = (answer.status(), problem(&answer).0);
    assert_eq!(found, (502, "upstream_malformed_http".to_owned()));
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
}

#[test]
fn a_connection_that_nobody_uses_is_closed() {
    let server = Multiplex::serving(echo);
    let proxy = before(&server, "keep_alive = \"100ms\"\n");
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
    becomes(|| server.ended(), &1);
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "y"), 200), "y");
    assert_eq!(server.connections(), 2);
}

#[test]
fn an_upgrade_takes_a_connection_of_http_1() {
    let server = Upstream::start();
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\nhttp2 = true\n",
        server.address()
    );
    let proxy = Proxy::start(&config);
    let mut client = proxy.connect();
    client.send("GET /u HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    let mut wire = server.accept();
    assert_eq!(wire.read_request().head.start, "GET /u HTTP/1.1");
    wire.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello",
    );
    client.read_head();
    client.expect("hello");
}

#[test]
fn a_server_of_http_1_in_the_clear_is_no_server_of_http_2() {
    let old = Upstream::answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\nhttp2 = true\n",
        old.address()
    );
    let proxy = Proxy::start(&config);
    let answer = proxy.rest("GET", "/b", &[], "");
    assert_eq!(problem(&answer).0, "upstream_unreachable");
    proxy.log_line(&["path=/b ", "blame=upstream", "does not speak HTTP/2"]);
}

#[test]
fn an_address_that_is_away_is_passed_over() {
    let (away, server) = (Upstream::nowhere(), Multiplex::serving(echo));
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurls = [\"http://{}\", \"http://{}\"]\n\
         http2 = true\nhealth = {{ path = \"/health\" }}\n",
        away.address(),
        server.address()
    );
    let proxy = Proxy::start(&config);
    for _ in 0..4 {
        assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
    }
    let asked = || {
        server
            .calls()
            .iter()
            .any(|(head, _)| head.uri.path() == "/health")
    };
    becomes(asked, &true);
}

#[test]
fn a_session_of_mcp_goes_there_as_well() {
    let server = Multiplex::serving(|head, body| {
        let answer = Response::builder().header("content-type", "application/json");
        let Ok(called) = serde_json::from_slice::<serde_json::Value>(body) else {
            return Act::Answer(answer.status(405).body(Vec::new()).unwrap());
        };
        assert_eq!(head.uri.path(), "/mcp");
        let result = match called["method"].as_str() {
            Some("server/discover") => r#""error":{"code":-32601,"message":"no"}"#,
            Some("initialize") => {
                r#""result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#
            }
            _ if called["id"].is_null() => {
                return Act::Answer(answer.status(202).body(Vec::new()).unwrap());
            }
            _ => r#""result":7"#,
        };
        let said = format!(r#"{{"jsonrpc":"2.0","id":{},{result}}}"#, called["id"]);
        Act::Answer(answer.body(said.into_bytes()).unwrap())
    });
    let proxy = Proxy::start(&format!(
        "[upstream.new]\nside = \"rpc\"\nurl = \"http://{}/mcp\"\nprotocol = \"mcp\"\nhttp2 = true\n",
        server.address()
    ));
    for _ in 0..3 {
        assert_eq!(proxy.rpc(call("tools/list", "{}")).json()["result"], 7);
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_connection_takes_no_call_at_its_age_and_ends_with_its_last() {
    let server = Multiplex::serving(|head, body| match head.uri.path() {
        "/hold" => Act::Hold,
        _ => echo(head, body),
    });
    let proxy = before(&server, "max_age = \"300ms\"\ntimeout = \"1s\"\n");
    let mut held = proxy.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    becomes(|| server.calls().len(), &1);
    assert_eq!(server.connections(), 1);
    // A call is made again and again until the connection is too old for it.
    let called = || {
        assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
        server.connections()
    };
    becomes(called, &2);
    assert_eq!(server.ended(), 0);
    assert_eq!(held.read_answer().status(), 504);
    becomes(|| server.ended() > 0, &true);
}

#[test]
fn what_cannot_be_is_told() {
    let cases = [
        (
            "http://a",
            "\"auto\"",
            "`auto` negotiates the version over TLS",
        ),
        (
            "https://a",
            "\"h2\"",
            "the string `h2` is not allowed here; write `true`, `false` or `auto`",
        ),
        (
            "ws://a",
            "true",
            "`http2` belongs to an upstream with an `http://` url",
        ),
    ];
    for (url, http2, said) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dualgauge.toml");
        let text = format!("[upstream.new]\nside = \"rpc\"\nurl = \"{url}\"\nhttp2 = {http2}\n");
        std::fs::write(&file, text).unwrap();
        let mut command = program(&["check", "--config"]);
        command.arg(&file);
        let ended = run_to_end(command);
        assert!(ended.errors.contains(said), "{}", ended.errors);
    }
}

#[test]
fn an_answer_with_white_space_around_a_value_is_malformed() {
    let server = Multiplex::serving(|head, _| {
        let answer = Response::builder();
        let value = match head.uri.path() {
            "/padded" => HeaderValue::from_bytes(b" 1").unwrap(),
            _ => HeaderValue::from_static("1"),
        };
        Act::Answer(answer.header("x-a", value).body(b"b".to_vec()).unwrap())
    });
    let proxy = before(&server, "");
    let padded = proxy.rest("GET", "/padded", &[], "");
    assert_eq!(padded.status(), 502);
    assert_eq!(problem(&padded).0, "upstream_malformed_http");
    assert_eq!(proxy.rest("GET", "/plain", &[], "").status(), 200);
    assert_eq!(server.connections(), 1);
}
