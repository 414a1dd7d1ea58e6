//! Content codings of MCP servers, and answers of theirs that are too large.

use super::before;
use super::scripted::{asked, listened, response, sessions_with_streams, with_sessions};
use crate::coded::gzip;
use crate::scene::{answer, call, json_with, rpc_failure};
use crate::support::{Proxy, Upstream};

fn coded(kind: &str, body: &str) -> Vec<u8> {
    let headers = [("Content-Type", kind), ("Content-Encoding", "gzip")];
    answer("200 OK", &headers, gzip(body.as_bytes()))
}

fn refused(proxy: &Proxy) -> (String, String) {
    let said = proxy.rpc(call("do", "{}")).json();
    let reason = rpc_failure(&said).1.to_owned();
    let message = said["error"]["message"].as_str().unwrap_or_default();
    (reason, message.to_owned())
}

/// A server that puts a long notification before each answer, and codes both.
fn talkative() -> Upstream {
    with_sessions(|_, called| {
        let (long, own) = ("x".repeat(200_000), response(called, "7"));
        let told = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{long}"}}}}"#
        );
        coded("application/json", &format!("[{told},{own}]"))
    })
}

#[test]
fn what_is_decoded_counts_in_the_memory() {
    let server = talkative();
    let proxy = before(&server, "");
    assert_eq!(proxy.rpc(call("do", "{}")).json()["result"], 7);
    let server = talkative();
    let proxy = before(&server, "[limits]\nmemory = 100_000\n");
    assert_eq!(refused(&proxy).0, "memory_full");
    let line = proxy.log_line(&["reason=memory_full"]);
    assert!(line.contains("blame=proxy"), "{line}");
}

#[test]
fn an_event_stream_with_a_content_coding_is_refused_with_a_reason() {
    let server = with_sessions(|_, called| {
        let event = format!("data: {}\n\n", response(called, "7"));
        coded("text/event-stream", &event)
    });
    let proxy = before(&server, "");
    let (reason, message) = refused(&proxy);
    assert_eq!(reason, "upstream_not_protocol");
    assert!(
        message.contains("event stream has a content coding"),
        "{message}"
    );
    proxy.log_line(&["reason=upstream_not_protocol", "blame=upstream"]);
    // The session goes on.
    refused(&proxy);
    let begun = asked(&server);
    let begun = begun.iter().filter(|asked| *asked == "POST initialize");
    assert_eq!(begun.count(), 1);
}

#[test]
fn an_own_stream_with_a_content_coding_is_not_read() {
    let server = sessions_with_streams(
        |_| coded("text/event-stream", "data: {}\n\n"),
        |_, called| crate::scene::json(response(called, "7")),
    );
    let proxy = before(&server, "");
    assert_eq!(proxy.rpc(call("do", "{}")).json()["result"], 7);
    proxy.log_line(&["the server's GET stream has a content coding"]);
    assert_eq!(listened(&server).len(), 1);
}

#[test]
fn a_failure_whose_body_is_too_large_says_the_status_of_the_server() {
    let server = with_sessions(|_, _| {
        let long = "x".repeat(5000);
        json_with("500 Internal Server Error", format!(r#"{{"a":"{long}"}}"#))
    });
    let proxy = before(&server, "message_limit = \"1KiB\"\n");
    assert_eq!(refused(&proxy).0, "upstream_too_large");
    proxy.log_line(&["reason=upstream_too_large", "upstream_status=500"]);
}
