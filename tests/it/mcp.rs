//! An MCP server over Streamable HTTP as an upstream: sessions, streams, and what comes instead of answers.

mod authorization;
mod bridge;
mod coded;
mod eras;
mod explained;
mod input_missing;
mod mirrored;
mod one_stream;
mod own_stream;
mod pair;
pub(crate) mod peers;
mod refused;
mod revisions;
pub(crate) mod scripted;
mod server_requests;
mod socket;
mod sse;
mod subscriptions;
pub(crate) mod usage;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use self::scripted::{asked, begun, last, response, result, stateless, stream, with_sessions};
use crate::scene::{
    Called, answer, body_of, call, json as json_answer, json_with, problem, rpc_failure,
};
use crate::support::{Proxy, Upstream, becomes};

const ROUTE: &str = "\n[[route]]\nname = \"add\"\nrest = \"GET /sum/{a}\"\nrpc = \"tools/call\"\n\
    effect = \"safe\"\nparams = { name = \"add\", arguments = { a = \"{a}\" } }\n\
    [[route.outcome]]\nrest = { status = 200, body = { said = \"{said}\" } }\n\
    rpc = { result = { content = [{ type = \"text\", text = \"{said}\" }] } }\n";

/// A proxy before a server, with more keys of its upstream.
pub(crate) fn before(server: &Upstream, keys: &str) -> Proxy {
    let address = server.address();
    Proxy::start(&format!(
        "[listen]\nworkers = 2\n[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}/mcp\"\nprotocol = \"mcp\"\n{keys}"
    ))
}

fn ask(proxy: &Proxy, method: &str) -> Value {
    proxy.rpc(call(method, "{}")).json()
}

fn strays(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_link_strays_total{{upstream="m",kind="{kind}"}}"#);
    proxy.metrics().value(&series)
}

const STARTS: &str = r#"dualgauge_link_starts_total{upstream="m"}"#;
const IN_FLIGHT: &str = r#"dualgauge_link_calls_in_flight{upstream="m",state="written"}"#;

#[test]
fn a_session_is_begun_once_and_each_message_bears_it() {
    let server = with_sessions(|_, called| result(called, called.params()));
    let proxy = before(&server, "");
    for id in ["7", "\"a\\u0062\"", "1.50"] {
        let body = format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"echo","params":{{"n":1.0}}}}"#);
        let wanted = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":1.0}}}}"#);
        assert_eq!(body_of(&proxy.rpc(body), 200), wanted);
    }
    let began = [
        "POST server/discover",
        "POST initialize",
        "POST notifications/initialized",
        "POST echo",
    ];
    assert_eq!(asked(&server)[..4], began);
    let first = last(&server, "initialize").head;
    assert_eq!(
        (
            first.one("mcp-session-id"),
            first.one("mcp-protocol-version")
        ),
        (None, None)
    );
    for method in ["notifications/initialized", "echo"] {
        let head = last(&server, method).head;
        assert_eq!(head.start, "POST /mcp HTTP/1.1");
        assert_eq!(head.one("mcp-session-id"), Some("s1"));
        assert_eq!(head.one("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(
            head.one("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(head.one("content-type"), Some("application/json"));
    }
    let greeting = proxy
        .rpc(call("initialize", r#"{"protocolVersion":"2025-06-18"}"#))
        .json();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "scripted");
    let told = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    assert_eq!(proxy.rpc(told).status(), 202);
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    let asked = asked(&server);
    assert_eq!(
        asked
            .iter()
            .filter(|asked| *asked == "POST initialize")
            .count(),
        1
    );
    assert_eq!(
        asked[asked.len() - 2..],
        ["POST notifications/roots/list_changed", "DELETE "]
    );
    assert!(!stopped.log.contains("s1"), "{stopped:?}");
}

#[test]
fn a_notification_gets_the_status_of_mcp_unless_another_one_is_configured() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for (keys, status) in [("", 202), ("[rpc]\nnotification_status = 204\n", 204)] {
        let server = with_sessions(|_, called| result(called, "{}"));
        let proxy = before(&server, keys);
        assert_eq!(proxy.rpc(note).status(), status, "{keys}");
        let modern = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Content-Type", "application/json"),
        ];
        let said = proxy.rest("POST", "/rpc", &modern, note);
        assert_eq!(said.status(), 202, "{keys}");
    }
}

#[test]
fn rest_clients_call_tools() {
    let server = with_sessions(|_, called| {
        result(called, r#"{"content":[{"type":"text","text":"seven"}]}"#)
    });
    let proxy = before(&server, ROUTE);
    assert_eq!(
        body_of(&proxy.rest("GET", "/sum/7", &[], ""), 200),
        r#"{"said":"seven"}"#
    );
    let called = last(&server, "tools/call").json();
    assert_eq!(
        called["params"],
        json!({ "name": "add", "arguments": { "a": "7" } })
    );
}

#[test]
fn a_stream_brings_the_answer_among_other_things() {
    let server = with_sessions(|_, called| {
        let answer = response(called, "{\"done\":true}");
        let half = answer.find("result").unwrap() - 2;
        let (before, after) = answer.split_at(half);
        stream(&format!(
            ": hello\r\n\r\nid: 1\r\ndata:\r\n\r\n\
             event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{}}}}\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{}}}}\r\r\
             data: {{\"jsonrpc\":\"2.0\",\"id\":\"q1\",\"method\":\"sampling/createMessage\",\"params\":{{}}}}\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}}\n\n\
             event: other\ndata: {answer}\n\n\
             data: {before}\r\ndata: {after}\r\n\r\n"
        ))
    });
    let proxy = before(&server, "");
    assert_eq!(ask(&proxy, "work")["result"], json!({ "done": true }));
    for (kind, count) in [("notified", 2.0), ("declined", 1.0), ("foreign", 0.0)] {
        becomes(|| strays(&proxy, kind), &count);
    }
    let said = || {
        let all = server.requests().into_iter();
        let bodies = all.filter_map(|request| serde_json::from_slice::<Value>(&request.body).ok());
        bodies
            .filter(|body| body.get("method").is_none())
            .collect::<Vec<_>>()
    };
    becomes(|| said().len(), &2);
    let said = said();
    let to = |id: Value| said.iter().find(|said| said["id"] == id).unwrap().clone();
    assert_eq!(to(json!("q1"))["error"]["code"], -32601);
    assert_eq!(to(json!(5))["result"], json!({}));
}

#[test]
fn a_session_that_is_lost_is_begun_anew_and_the_call_sent_again() {
    for (status, body) in [
        (
            "404 Not Found",
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#,
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}"#,
        ),
    ] {
        let server =
            with_sessions(
                move |request, called| match request.head.one("mcp-session-id") {
                    Some("s1") if called.method() == "second" => json_with(status, body),
                    _ => result(called, "1"),
                },
            );
        let proxy = before(&server, "");
        assert_eq!(ask(&proxy, "first")["result"], 1);
        assert_eq!(ask(&proxy, "second")["result"], 1, "{status}");
        assert_eq!(
            last(&server, "second").head.one("mcp-session-id"),
            Some("s2")
        );
        assert_eq!(proxy.metrics().value(STARTS), 2.0);
        let asked = asked(&server);
        assert_eq!(
            asked
                .iter()
                .filter(|asked| *asked == "POST server/discover")
                .count(),
            1
        );
        assert!(!asked.contains(&"DELETE ".to_owned()), "{asked:?}");
    }
}

#[test]
fn a_call_is_sent_again_but_once() {
    let server = with_sessions(|_, _| answer("404 Not Found", &[], ""));
    let proxy = before(&server, "");
    assert_eq!(rpc_failure(&ask(&proxy, "lost")), (-31023, "upstream_cut"));
    assert_eq!(
        asked(&server)
            .iter()
            .filter(|asked| *asked == "POST lost")
            .count(),
        2
    );
}

#[test]
fn what_is_no_answer_is_told_as_that() {
    let server = with_sessions(|_, called| match called.method() {
        "html" => answer(
            "500 Internal Server Error",
            &[("Content-Type", "text/html")],
            "<h1>",
        ),
        "accepted" => answer("202 Accepted", &[], ""),
        "redirect" => answer("307 Temporary Redirect", &[("Location", "/other")], ""),
        "foreign" => json_answer(r#"{"jsonrpc":"2.0","id":999,"result":1}"#),
        "text" => answer(
            "200 OK",
            &[("Content-Type", "text/plain")],
            response(called, "1"),
        ),
        "huge" => result(called, &format!("\"{}\"", "x".repeat(3000))),
        "huge event" => stream(&format!(
            "data: {}\n\n",
            response(called, &format!("\"{}\"", "x".repeat(3000)))
        )),
        "huge and cut" => stream(&format!(
            "id: 1\nretry: 10\ndata:\n\nid: 2\ndata: {}",
            "x".repeat(3000)
        )),
        "ended" => stream("data: {}\n\n"),
        "closed" => Vec::new(),
        _ => result(called, "1"),
    });
    let proxy = before(&server, "message_limit = \"2KiB\"\n");
    for (method, failure) in [
        ("html", (-31026, "upstream_not_protocol")),
        ("accepted", (-31026, "upstream_not_protocol")),
        ("foreign", (-31026, "upstream_not_protocol")),
        ("text", (-31026, "upstream_not_protocol")),
        ("redirect", (-31031, "upstream_redirect")),
        ("huge", (-31030, "upstream_too_large")),
        ("huge event", (-31030, "upstream_too_large")),
        ("huge and cut", (-31030, "upstream_too_large")),
        ("ended", (-31023, "upstream_cut")),
        ("closed", (-31023, "upstream_cut")),
    ] {
        assert_eq!(rpc_failure(&ask(&proxy, method)), failure, "{method}");
        assert_eq!(ask(&proxy, "good")["result"], 1, "after {method}");
    }
    assert_eq!(proxy.metrics().value(STARTS), 1.0);
    assert_eq!(proxy.metrics().value(IN_FLIGHT), 0.0);
}

#[test]
fn an_error_without_the_id_is_the_answer_to_what_was_asked() {
    let server = with_sessions(|_, _| {
        json_with(
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}"#,
        )
    });
    let proxy = before(&server, "");
    let answer = ask(&proxy, "wrong");
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32602))
    );
}

#[test]
fn callers_with_one_id_get_their_own_answers() {
    let server = with_sessions(|_, called| result(called, called.params()));
    let proxy = before(&server, "in_flight = 3\n");
    std::thread::scope(|scope| {
        for caller in 0..8 {
            let proxy = &proxy;
            scope.spawn(move || {
                for turn in 0..10 {
                    let params = format!("[{caller},{turn}]");
                    let got = proxy.rpc(call("echo", &params)).json();
                    assert_eq!(got["result"], json!([caller, turn]));
                }
            });
        }
    });
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_where_it_stood() {
    let waiting = AtomicUsize::new(0);
    let server = with_sessions(move |request, called| {
        if request.head.start.starts_with("GET") {
            assert_eq!(request.head.one("last-event-id"), Some("e-7"));
            assert_eq!(request.head.one("mcp-session-id"), Some("s1"));
            let id = waiting.load(Ordering::SeqCst);
            return stream(&format!(
                "id: e-8\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"late\"}}\n\n"
            ));
        }
        waiting.store(called.id().parse().unwrap(), Ordering::SeqCst);
        stream("id: e-7\nretry: 10\ndata:\n\n")
    });
    let proxy = before(&server, "");
    assert_eq!(ask(&proxy, "long")["result"], "late");
    assert_eq!(
        asked(&server)
            .iter()
            .filter(|asked| *asked == "POST long")
            .count(),
        1
    );
}

#[test]
fn only_what_is_safe_is_sent_again_when_a_stream_breaks() {
    let turns = AtomicUsize::new(0);
    let server = with_sessions(
        move |_, called| match turns.fetch_add(1, Ordering::SeqCst) {
            0 => stream(": nothing\n\n"),
            _ => result(called, r#"{"content":[{"type":"text","text":"x"}]}"#),
        },
    );
    let proxy = before(&server, ROUTE);
    assert_eq!(
        body_of(&proxy.rest("GET", "/sum/7", &[], ""), 200),
        r#"{"said":"x"}"#
    );
}

#[test]
fn a_client_that_goes_away_and_a_call_that_is_late_are_cancelled() {
    let server = with_sessions(|_, called| match called.method() {
        "never" => begun(": wait\n\n"),
        _ => result(called, "1"),
    });
    // The first call must not be late before it is seen.
    let proxy = before(&server, "timeout = \"3s\"\n");
    assert_eq!(ask(&proxy, "good")["result"], 1);
    let mut client = proxy.connect();
    let body = call("never", "{}");
    let length = body.len();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let heard = |of: &str| asked(&server).iter().filter(|asked| *asked == of).count();
    // The server is told nothing of a call that it has not heard of.
    becomes(|| heard("POST never"), &1);
    drop(client);
    becomes(|| proxy.metrics().value(IN_FLIGHT), &0.0);
    let cancelled = || heard("POST notifications/cancelled");
    becomes(cancelled, &1);
    let own = last(&server, "never").json()["id"].clone();
    assert_eq!(
        last(&server, "notifications/cancelled").json()["params"],
        json!({ "requestId": own })
    );
    assert_eq!(
        rpc_failure(&ask(&proxy, "never")),
        (-31022, "upstream_timeout")
    );
    becomes(cancelled, &2);
}

#[test]
fn a_server_without_sessions_is_told_with_each_call_who_asks() {
    let server = stateless(|_, called| match called.method() {
        "unknown" => {
            let id = called.id();
            json_with(
                "404 Not Found",
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#
                ),
            )
        }
        _ => result(
            called,
            r#"{"resultType":"complete","content":[{"type":"text","text":"x"}]}"#,
        ),
    });
    let proxy = before(&server, ROUTE);
    assert_eq!(
        body_of(&proxy.rest("GET", "/sum/7", &[], ""), 200),
        r#"{"said":"x"}"#
    );
    let sent = last(&server, "tools/call");
    let head = &sent.head;
    assert_eq!(head.one("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(
        (head.one("mcp-method"), head.one("mcp-name")),
        (Some("tools/call"), Some("add"))
    );
    assert_eq!(head.one("mcp-session-id"), None);
    let meta = &sent.json()["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({})
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientInfo"]["name"],
        "dualgauge"
    );
    proxy.rpc(call("prompts/get", r#"{"name":"größe"}"#));
    let name = last(&server, "prompts/get")
        .head
        .one("mcp-name")
        .map(str::to_owned);
    assert_eq!(name.as_deref(), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(ask(&proxy, "unknown")["error"]["code"], -32601);
    let greeting = proxy.rpc(call("initialize", "{}")).json();
    assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(greeting["result"]["serverInfo"]["name"], "modern");
    let asked = asked(&server);
    assert_eq!(asked[0], "POST server/discover");
    assert!(
        !asked.iter().any(|asked| asked.contains("initialize")),
        "{asked:?}"
    );
}

#[test]
fn without_a_session_a_call_is_cancelled_by_closing_its_stream() {
    let server = Upstream::start();
    let proxy = before(&server, "timeout = \"300ms\"\n");
    let mut wire = server.accept();
    let discover = wire.read_request();
    let id = Called::of(&discover).id().to_owned();
    wire.send(json_answer(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}"#
    )));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&proxy, "never"));
        assert_eq!(wire.read_request().json()["method"], "never");
        wire.send(begun(": wait\n\n"));
        wire.expect_gone();
        assert_eq!(
            rpc_failure(&asking.join().unwrap()),
            (-31022, "upstream_timeout")
        );
    });
}

#[test]
fn a_server_that_is_away_or_speaks_another_revision_is_no_server() {
    let proxy = before(
        &Upstream::nowhere(),
        &format!("connect_timeout = \"200ms\"\n{ROUTE}"),
    );
    let answer = proxy.rest("GET", "/sum/7", &[], "");
    assert_eq!(problem(&answer).0, "upstream_unreachable");
    let server = Upstream::serving(|request| {
        result(&Called::of(request), r#"{"protocolVersion":"1999-01-01"}"#)
    });
    let proxy = before(&server, "connect_timeout = \"200ms\"\n");
    assert_eq!(
        rpc_failure(&ask(&proxy, "any")),
        (-31021, "upstream_unreachable")
    );
    proxy.log_line(&["the link is lost", "1999-01-01"]);
}

#[test]
fn a_revision_that_is_named_is_not_asked_for() {
    let server = with_sessions(|_, called| result(called, "1"));
    let proxy = before(&server, "revision = \"2025-03-26\"\n");
    assert_eq!(ask(&proxy, "any")["result"], 1);
    assert_eq!(asked(&server)[0], "POST initialize");
    assert_eq!(
        last(&server, "initialize").json()["params"]["protocolVersion"],
        "2025-03-26"
    );
    let proxy = before(
        &server,
        "revision = \"2026-07-28\"\nconnect_timeout = \"200ms\"\n",
    );
    assert_eq!(
        rpc_failure(&ask(&proxy, "any")),
        (-31021, "upstream_unreachable")
    );
    proxy.log_line(&["the link is lost", "does not list the revision 2026-07-28"]);
}
