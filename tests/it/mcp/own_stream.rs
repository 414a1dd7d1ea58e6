//! The stream that a server has for itself, beside those of calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::scripted::{
    asked, begun, listened, result, sessions_with_streams, stream, with_sessions,
};
use super::{STARTS, ask, before, strays};
use crate::scene::{Called, answer};
use crate::support::{Upstream, becomes};

/// The response to a request of the server that came to it.
fn told(server: &Upstream, id: &str) -> Option<Value> {
    let requests = server.requests().into_iter();
    let mut bodies = requests.filter_map(|request| serde_json::from_slice(&request.body).ok());
    bodies.find(|body: &Value| body["id"] == id && body.get("method").is_none())
}

#[test]
fn what_a_server_says_on_its_own_stream_is_heard() {
    let said = [
        r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    ];
    let said = said.map(|message| format!(": a comment\nevent: message\ndata: {message}\n\n"));
    let server = sessions_with_streams(
        move |_| begun(&said.concat()),
        |_, called| result(called, "1"),
    );
    let proxy = before(&server, "");
    assert_eq!(ask(&proxy, "any")["result"], 1);
    becomes(|| strays(&proxy, "declined"), &2.0);
    becomes(|| strays(&proxy, "notified"), &1.0);
    becomes(|| told(&server, "p").is_some(), &true);
    assert_eq!(told(&server, "p").unwrap()["result"], json!({}));
    for id in ["r", "s"] {
        becomes(|| told(&server, id).is_some(), &true);
        assert_eq!(told(&server, id).unwrap()["error"]["code"], -32601);
    }
    let asks = listened(&server);
    assert_eq!(asks.len(), 1);
    assert_eq!(asks[0].head.one("mcp-session-id"), Some("s1"));
    assert_eq!(asks[0].head.one("mcp-protocol-version"), Some("2025-06-18"));
    assert!(
        asks[0]
            .head
            .one("accept")
            .unwrap()
            .contains("text/event-stream")
    );
    assert_eq!(ask(&proxy, "any")["result"], 1);
    // An open stream keeps nobody from ending.
    assert!(proxy.stop().status.success());
    assert_eq!(asked(&server).last().unwrap(), "DELETE ");
}

#[test]
fn a_server_without_a_stream_of_its_own_is_asked_for_one_once() {
    let calls = AtomicUsize::new(0);
    let server = with_sessions(move |_, called| match called.method() {
        "lost" if calls.fetch_add(1, Ordering::SeqCst) == 0 => answer("404 Not Found", &[], ""),
        _ => result(called, "1"),
    });
    let proxy = before(&server, "");
    assert_eq!(ask(&proxy, "any")["result"], 1);
    becomes(|| listened(&server).len(), &1);
    assert_eq!(ask(&proxy, "lost")["result"], 1);
    assert_eq!(proxy.metrics().value(STARTS), 2.0);
    assert_eq!(ask(&proxy, "any")["result"], 1);
    assert_eq!(listened(&server).len(), 1);
}

#[test]
fn a_stream_of_the_servers_own_is_taken_up_where_it_stood() {
    let turns = AtomicUsize::new(0);
    let notice = r#"data: {"jsonrpc":"2.0","method":"notifications/message"}"#;
    let server = sessions_with_streams(
        move |_| match turns.fetch_add(1, Ordering::SeqCst) {
            0 => stream(&format!("id: e-5\nretry: 10\n{notice}\n\n")),
            1 => answer("503 Service Unavailable", &[], ""),
            _ => begun(&format!("id: e-6\n{notice}\n\n")),
        },
        |_, called| result(called, "1"),
    );
    let proxy = before(&server, "");
    assert_eq!(ask(&proxy, "any")["result"], 1);
    becomes(|| strays(&proxy, "notified"), &2.0);
    let asks = listened(&server);
    let stood: Vec<_> = asks
        .iter()
        .map(|ask| ask.head.one("last-event-id"))
        .collect();
    assert_eq!(stood, [None, Some("e-5"), Some("e-5")]);
    assert_eq!(proxy.metrics().value(STARTS), 1.0);
}

#[test]
fn a_server_that_refuses_the_get_alone_keeps_its_session() {
    let lost =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    for (status, kind, body) in [
        ("404 Not Found", "text/html", "<pre>Cannot GET /mcp</pre>"),
        ("404 Not Found", "application/json", lost),
        ("400 Bad Request", "text/plain", "no session"),
        ("501 Not Implemented", "text/plain", ""),
    ] {
        let server = sessions_with_streams(
            move |_| answer(status, &[("Content-Type", kind)], body),
            |_, called| result(called, "1"),
        );
        let proxy = before(&server, "");
        assert_eq!(ask(&proxy, "any")["result"], 1);
        let code = format!("status={}", status.split(' ').next().unwrap());
        proxy.log_line(&["the server offers no GET stream", "upstream=m", &code]);
        assert_eq!(ask(&proxy, "any")["result"], 1);
        assert_eq!(proxy.metrics().value(STARTS), 1.0, "{status}");
        assert_eq!(listened(&server).len(), 1, "{status}");
    }
}

/// What a server makes of a ping in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pinged {
    Answered,
    NotFound,
}

/// A server whose stream ends once and is not found then. It answers `ping` as a server that knows the session, or not.
fn without_its_stream(pinged: Pinged) -> Upstream {
    let turns = AtomicUsize::new(0);
    let notice = r#"data: {"jsonrpc":"2.0","method":"notifications/message"}"#;
    sessions_with_streams(
        move |_| match turns.fetch_add(1, Ordering::SeqCst) {
            0 => stream(&format!("retry: 10\n{notice}\n\n")),
            1 => answer("404 Not Found", &[], ""),
            _ => begun(": here\n\n"),
        },
        move |_, called| match called.method() {
            "ping" if pinged == Pinged::NotFound => answer("404 Not Found", &[], ""),
            _ => result(called, "1"),
        },
    )
}

#[test]
fn a_session_that_lost_its_stream_is_begun_anew_if_a_post_is_not_found_either() {
    let server = without_its_stream(Pinged::NotFound);
    let proxy = before(&server, "");
    becomes(|| proxy.metrics().value(STARTS), &2.0);
    becomes(|| listened(&server).len(), &3);
    assert_eq!(ask(&proxy, "any")["result"], 1);
}

#[test]
fn a_session_that_lost_its_stream_goes_on_if_a_post_is_accepted() {
    let server = without_its_stream(Pinged::Answered);
    let proxy = before(&server, "");
    becomes(|| asked(&server).contains(&"POST ping".to_owned()), &true);
    assert_eq!(ask(&proxy, "any")["result"], 1);
    assert_eq!(proxy.metrics().value(STARTS), 1.0);
    assert_eq!(listened(&server).len(), 2);
    assert_eq!(strays(&proxy, "foreign"), 0.0);
}

#[test]
fn a_stream_on_which_nothing_comes_is_asked_for_again() {
    let server = sessions_with_streams(|_| begun(": here\n\n"), |_, called| result(called, "1"));
    let proxy = before(&server, "idle_timeout = \"100ms\"\n");
    assert_eq!(ask(&proxy, "any")["result"], 1);
    becomes(|| listened(&server).len() >= 4, &true);
    assert_eq!(ask(&proxy, "any")["result"], 1);
    assert_eq!(proxy.metrics().value(STARTS), 1.0);
}

#[test]
fn an_event_that_is_too_large_is_passed_over() {
    let turns = AtomicUsize::new(0);
    let notice = r#"data: {"jsonrpc":"2.0","method":"notifications/message"}"#;
    let large = "x".repeat(4000);
    let server = sessions_with_streams(
        move |request| {
            let last = request.head.one("last-event-id");
            match (turns.fetch_add(1, Ordering::SeqCst), last) {
                // What comes behind it in the stream is heard.
                (0, None) => stream(&format!(
                    "id: 1\nretry: 10\n{notice}\n\nid: 2\ndata: {large}\n\nid: 3\n{notice}\n\n"
                )),
                // Where nothing does, what is too large is not asked for twice.
                (_, Some(_)) => stream(&format!("id: 4\ndata: {large}\n\n")),
                (_, None) => begun(&format!("id: 5\n{notice}\n\n")),
            }
        },
        |_, called| result(called, "1"),
    );
    let proxy = before(&server, "message_limit = \"2KiB\"\n");
    assert_eq!(ask(&proxy, "any")["result"], 1);
    becomes(|| strays(&proxy, "notified"), &3.0);
    let asks = listened(&server);
    let stood: Vec<_> = asks
        .iter()
        .map(|ask| ask.head.one("last-event-id"))
        .collect();
    assert_eq!(stood, [None, Some("3"), None]);
    proxy.log_line(&["WARN", "is too large", "upstream=m"]);
}

#[test]
fn a_server_that_asks_much_and_hears_nothing_keeps_no_call_from_its_connection() {
    // Its answers to itself: how many of them wait, and how many did at most.
    let waiting = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let (held, released) = sync_channel::<()>(1);
    let released = Mutex::new(released);
    let asks: String = (0..200)
        .map(|id| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"p{id}\",\"method\":\"ping\"}}\n\n"))
        .collect();
    let own = waiting.clone();
    let server = Upstream::serving(move |request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if request.head.start.starts_with("GET") {
            return begun(&asks);
        }
        if request.head.start.starts_with("DELETE")
            || body["method"].is_string() && body["id"].is_null()
        {
            return answer("202 Accepted", &[], "");
        }
        if body["method"].is_null() {
            let (now, most) = &*own;
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // It ends with the test.
            let _ = released.lock().unwrap().recv();
            return answer("202 Accepted", &[], "");
        }
        let called = Called::of(request);
        match called.method() {
            "server/discover" => answer("404 Not Found", &[], ""),
            "initialize" => result(
                &called,
                r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}"#,
            ),
            _ => result(&called, "1"),
        }
    });
    let proxy = before(&server, "");
    becomes(|| waiting.0.load(Ordering::SeqCst), &8);
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| assert_eq!(ask(&proxy, "any")["result"], 1));
        }
    });
    assert_eq!(waiting.1.load(Ordering::SeqCst), 8);
    drop(held);
}
