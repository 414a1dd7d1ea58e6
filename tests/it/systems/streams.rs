//! The streams of the shipped tables: one that ends after its only event, those of sessions and of users, passed on as
//! they come and told to clients of the other side.

use super::fake_pierre::{NOTICE, NOTIFICATION, OPENING, STREAM_ERROR, TOKEN, mcp, rest};
use super::fake_sqlite::{self, EVENT, MOVED_EVENT, SESSION, TOLD, new, old};
use super::servers::{message, upstream, with_table};
use crate::scene::body_of;
use crate::support::{Message, Proxy, Upstream};

/// A table before two servers, with a flag that moves everybody's stream.
fn moved(table: &str, stream: &str, upstreams: &str) -> Proxy {
    let routes = super::servers::config().join(format!("{table}.toml"));
    let routes = std::fs::read_to_string(routes).unwrap();
    let flag = format!("[[flag]]\nname = \"f\"\nroute = \"{stream}\"\nstage = \"translate\"\n");
    let main = format!(
        "include = [\"table.toml\"]\n[listen]\nworkers = 1\n{upstreams}[rollout]\nflags = \"flags.toml\"\n"
    );
    Proxy::start_with(&main, &[("table.toml", &routes), ("flags.toml", &flag)])
}

fn get(proxy: &Proxy, target: &str, headers: &[(&str, &str)]) -> Message {
    proxy.rest("GET", target, headers, "")
}

/// What was asked for last.
fn asked(server: &Upstream) -> String {
    server.requests().last().unwrap().head.start.clone()
}

#[test]
fn the_only_event_of_a_stream_is_that_of_the_server_behind_it() {
    let (old, new) = (old(), new());
    let (rest, rpc) = (
        upstream("old", "rest", &old, ""),
        upstream("new", "rpc", &new, "/rpc"),
    );
    let rows = [
        // With one server alone everybody gets its events.
        (with_table("sqlite", &rest), EVENT, EVENT),
        (with_table("sqlite", &rpc), MOVED_EVENT, MOVED_EVENT),
        (
            with_table("sqlite", &format!("{rest}{rpc}")),
            EVENT,
            MOVED_EVENT,
        ),
        (
            moved("sqlite", "events", &format!("{rest}{rpc}")),
            MOVED_EVENT,
            EVENT,
        ),
    ];
    for (proxy, to_old, to_new) in rows {
        for (path, wanted) in [("/mcp/v1/sse", to_old), ("/sse", to_new)] {
            let answer = get(&proxy, path, &[]);
            assert_eq!(body_of(&answer, 200), wanted, "{path}");
            let head = &answer.head;
            let kind = "text/event-stream; charset=utf-8";
            assert_eq!(head.one("content-type"), Some(kind));
            assert_eq!(head.one("cache-control"), Some("no-store"));
            assert_eq!(head.one("x-accel-buffering"), Some("no"));
        }
    }
    assert_eq!(asked(&old), "GET /mcp/v1/sse HTTP/1.1");
    assert_eq!(asked(&new), "GET /sse HTTP/1.1");
}

#[test]
fn the_stream_of_a_session_passes_as_the_bytes_that_it_is() {
    let new = new();
    let proxy = with_table("sqlite", &upstream("new", "rpc", &new, "/mcp"));
    let greeted = proxy.rest(
        "POST",
        "/mcp",
        &[("Content-Type", "application/json")],
        message("ping", &serde_json::json!({})),
    );
    let session = greeted.head.one("mcp-session-id").unwrap();
    assert_eq!(session, SESSION);
    let own = ("Mcp-Session-Id", session);
    let answer = get(&proxy, "/mcp", &[own]);
    let opening = fake_sqlite::OPENING;
    assert_eq!(body_of(&answer, 200), format!("id: 1\r\n{opening}{TOLD}"));
    assert_eq!(answer.head.one("mcp-session-id"), Some(SESSION));
    // Who was cut off goes on behind what he has heard.
    let answer = get(&proxy, "/mcp", &[own, ("Last-Event-Id", "1")]);
    assert_eq!(body_of(&answer, 200), format!("id: 3\r\n{opening}{TOLD}"));
    let answer = get(&proxy, "/mcp", &[]);
    let error = r#"{"error": "No session ID provided. Initialize first."}"#;
    assert_eq!(body_of(&answer, 400), error);
    let answer = get(&proxy, "/mcp", &[("Mcp-Session-Id", "other")]);
    assert_eq!(body_of(&answer, 404), r#"{"error": "Invalid session ID"}"#);
    let answer = proxy.rest("DELETE", "/mcp", &[own], "");
    assert_eq!(
        (answer.status(), answer.head.one("allow")),
        (405, Some("POST"))
    );
}

fn pierre(rest: &Upstream, rpc: &Upstream) -> String {
    upstream("rest", "rest", rest, "") + &upstream("mcp", "rpc", rpc, "/mcp")
}

const OWN: [(&str, &str); 1] = [("Authorization", TOKEN)];

#[test]
fn streams_of_users_and_of_sessions_pass_as_they_are() {
    let (rest, rpc) = (Upstream::serving(rest), Upstream::serving(mcp));
    let proxy = with_table("pierre", &pierre(&rest, &rpc));
    let answer = get(&proxy, "/notifications/sse/u", &OWN);
    assert_eq!(body_of(&answer, 200), format!("{OPENING}{NOTICE}"));
    let answer = get(&proxy, "/mcp/sse/session_1", &OWN);
    let told = format!("{OPENING}{NOTIFICATION}{STREAM_ERROR}");
    assert_eq!(body_of(&answer, 200), told);
    for path in ["/notifications/sse/u", "/mcp/sse/u"] {
        assert_eq!(get(&proxy, path, &[]).status(), 401, "{path}");
    }
}

#[test]
fn what_a_user_is_told_is_told_to_clients_of_the_other_side_in_their_form() {
    let (rest, rpc) = (Upstream::serving(rest), Upstream::serving(mcp));
    let proxy = moved("pierre", "notifications", &pierre(&rest, &rpc));
    let answer = get(&proxy, "/notifications/sse/u", &OWN);
    assert_eq!(asked(&rpc), "GET /mcp/sse/u HTTP/1.1");
    let notice = "id: 2\nevent: notification\ndata: data: {\"message\":\"Connected\",\"provider\":\"strava\",\"success\":true,\"user_id\":\"u\"}\ndata: \ndata: \n\n";
    let told = format!("{OPENING}{notice}{STREAM_ERROR}");
    assert_eq!(body_of(&answer, 200), told);
    assert_eq!(rpc.request().head.one("authorization"), Some(TOKEN));

    let answer = get(&proxy, "/mcp/sse/u", &[OWN[0], ("Last-Event-ID", "1")]);
    let sent = rest.request();
    assert_eq!(sent.head.start, "GET /notifications/sse/u HTTP/1.1");
    assert_eq!(sent.head.one("last-event-id"), Some("1"));
    let note = "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/oauth_completed\",\"params\":{\"type\":\"oauth_notification\",\"id\":\"n1\",\"provider\":\"strava\",\"message\":\"Connected\",\"success\":true,\"created_at\":\"2026-02-15T10:00:00+00:00\"}}\n\n";
    assert_eq!(body_of(&answer, 200), format!("{OPENING}{note}"));
    // A session is no user.
    let answer = get(&proxy, "/mcp/sse/session_1", &OWN);
    assert_eq!(answer.status(), 400, "{answer:?}");
    for path in ["/notifications/sse/u", "/mcp/sse/u"] {
        let answer = get(&proxy, path, &[]);
        assert_eq!(answer.status(), 401, "{path}");
        assert_eq!(answer.json()["code"], "AuthRequired");
    }
}
