//! Calls that a client recalls by `notifications/cancelled` while it stays: over WebSockets, and in POSTs of their own.

use serde_json::{Value, json};

use crate::mcp::scripted::{asked, begun, last, result, with_sessions};
use crate::scene::call;
use crate::stdio;
use crate::support::{Message, Proxy, Upstream, Wire, becomes};
use crate::websocket::ends::{End, accept, connect};

const OPEN: &str = "dualgauge_calls_in_flight";

/// Posts something in a session, and does not wait for the answer.
pub(super) fn post(proxy: &Proxy, session: Option<&str>, body: &str) -> Wire {
    let session = session.map_or(String::new(), |name| format!("Mcp-Session-Id: {name}\r\n"));
    let length = body.len();
    let mut wire = proxy.connect();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\n{session}Content-Length: {length}\r\n\r\n{body}"
    ));
    wire
}

pub(super) fn tell(proxy: &Proxy, session: Option<&str>, body: &str) -> Message {
    post(proxy, session, body).read_answer()
}

/// The session that the proxy gives a client.
fn session(proxy: &Proxy) -> String {
    let answer = proxy.rpc(call("initialize", r#"{"protocolVersion":"2025-06-18"}"#));
    let name = answer.head.one("mcp-session-id");
    name.unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

pub(super) fn ask(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"do","params":[]}}"#)
}

pub(super) fn cancelled(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"enough"}}}}"#
    )
}

fn expect_cancelled(server: &mut End, call: &Value) {
    let told = server.hear();
    assert_eq!(told["method"], "notifications/cancelled", "{told}");
    assert_eq!(told["params"]["requestId"], call["id"], "{told}");
}

#[test]
fn a_posted_cancellation_ends_the_call_of_its_own_session_and_no_other() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "handshake = \"mcp\"\n");
    let mut server = accept(&upstream);
    server.greet();
    let sessions = [session(&proxy), session(&proxy)];
    assert_ne!(sessions[0], sessions[1]);
    let mut clients = Vec::new();
    let mut calls = Vec::new();
    for session in &sessions {
        clients.push(post(&proxy, Some(session), &ask("7")));
        calls.push(server.hear());
    }
    clients.push(post(&proxy, None, &ask("7")));
    calls.push(server.hear());
    for (session, id) in [
        (Some(&*sessions[0]), "8"),
        (Some(&*sessions[0]), "\"7\""),
        (Some("unknown"), "7"),
        (None, "7"),
    ] {
        assert_eq!(tell(&proxy, session, &cancelled(id)).status(), 202);
    }
    let malformed = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
    assert_eq!(tell(&proxy, Some(&sessions[0]), malformed).status(), 202);
    assert_eq!(
        tell(&proxy, Some(&sessions[0]), &cancelled("7")).status(),
        202
    );
    // It is the first thing that the server hears of all that.
    expect_cancelled(&mut server, &calls[0]);
    let unanswered = clients[0].read_answer();
    assert_eq!((unanswered.status(), unanswered.text()), (202, ""));
    for place in [1, 2] {
        server.echo(&calls[place]);
        assert_eq!(clients[place].read_answer().json()["id"], 7);
    }
    proxy.log_line(&["rpc_method=do", "outcome=cancelled", "blame=client"]);
    becomes(|| proxy.metrics().value(OPEN), &0.0);
    // Its id can be used again, and what comes too late is nobody's.
    server.echo(&calls[0]);
    let mut again = post(&proxy, Some(&sessions[0]), &ask("7"));
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(again.read_answer().status(), 200);
}

#[test]
fn a_call_in_a_batch_is_cancelled_by_a_notification_in_another() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "handshake = \"mcp\"\n");
    let mut server = accept(&upstream);
    server.greet();
    let own = session(&proxy);
    let mut first = post(
        &proxy,
        Some(&own),
        &format!("[{},{}]", ask("1"), ask("\"x\"")),
    );
    let calls = [server.hear(), server.hear()];
    let both = format!("[{},{}]", cancelled("1"), ask("3"));
    let mut second = post(&proxy, Some(&own), &both);
    let mut heard = [server.hear(), server.hear()];
    heard.sort_by_key(|heard| heard["method"] == "do");
    assert_eq!(heard[0]["params"]["requestId"], calls[0]["id"]);
    server.echo(&heard[1]);
    assert_eq!(second.read_answer().json()[0]["id"], 3);
    server.echo(&calls[1]);
    let answers = first.read_answer().json();
    assert_eq!(answers.as_array().unwrap().len(), 1);
    assert_eq!(answers[0]["id"], "x");
}

#[test]
fn without_a_handshake_a_cancellation_bears_the_id_that_the_call_has_there() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "");
    let mut server = accept(&upstream);
    let mut client = connect(&proxy);
    client.say(ask("70"));
    let over_socket = server.hear();
    assert_ne!(over_socket["id"], 70);
    let mut posted = post(&proxy, Some("mine"), &ask("70"));
    let call = server.hear();
    // Neither that of nobody, nor those of others, are told as they came.
    client.say(cancelled("71"));
    assert_eq!(tell(&proxy, None, &cancelled("70")).status(), 204);
    client.say(cancelled("70"));
    expect_cancelled(&mut server, &over_socket);
    assert_eq!(tell(&proxy, Some("mine"), &cancelled("70")).status(), 204);
    expect_cancelled(&mut server, &call);
    assert_eq!(posted.read_answer().status(), 204);
    becomes(|| proxy.metrics().value(OPEN), &0.0);
    // The end of a client alone is not told to a server that has not said that it knows what that means.
    client.say(ask("72"));
    server.hear();
    drop(client);
    becomes(|| proxy.metrics().value(OPEN), &0.0);
    let mut last = post(&proxy, None, &ask("73"));
    let heard = server.hear();
    assert_eq!(heard["method"], "do");
    server.echo(&heard);
    assert_eq!(last.read_answer().status(), 200);
}

#[test]
fn a_call_of_an_mcp_server_is_cancelled_by_a_post() {
    let server = with_sessions(|_, called| match called.method() {
        "never" => begun(": wait\n\n"),
        _ => result(called, "1"),
    });
    let proxy = crate::mcp::before(&server, "");
    let own = session(&proxy);
    let mut client = post(&proxy, Some(&own), &call("never", "{}"));
    let written = r#"dualgauge_link_calls_in_flight{upstream="m",state="written"}"#;
    becomes(|| proxy.metrics().value(written), &1.0);
    // What is cancelled before it is sent the server never sees.
    becomes(|| asked(&server).contains(&"POST never".to_owned()), &true);
    assert_eq!(tell(&proxy, Some(&own), &cancelled("1")).status(), 202);
    assert_eq!(client.read_answer().status(), 202);
    let told = || asked(&server).contains(&"POST notifications/cancelled".to_owned());
    becomes(told, &true);
    let id = last(&server, "never").json()["id"].clone();
    let told = last(&server, "notifications/cancelled").json();
    assert_eq!(told["params"], json!({ "requestId": id }));
    assert_eq!(proxy.metrics().value(written), 0.0);
}

#[test]
fn a_call_of_a_child_is_cancelled_by_a_post() {
    let proxy = stdio::before_child("");
    let own = session(&proxy);
    let mut client = post(&proxy, Some(&own), &call("silence", "{}"));
    let written = r#"dualgauge_link_calls_in_flight{upstream="child",state="written"}"#;
    becomes(|| proxy.metrics().value(written), &1.0);
    assert_eq!(tell(&proxy, Some(&own), &cancelled("1")).status(), 202);
    assert_eq!(client.read_answer().status(), 202);
    let seen = proxy.rpc(call("seen", "{}")).json()["result"].to_string();
    assert!(seen.contains("notifications/cancelled 3"), "{seen}");
}

#[test]
fn a_cancellation_is_explained_as_what_it_does() {
    let proxy = crate::websocket::before(&Upstream::nowhere(), "");
    let told = super::explained(&proxy, &["-d", &cancelled("1"), "/rpc"]);
    assert_eq!(told["sends"], json!(null), "{told}");
    assert_eq!(told["answer"]["status"], 204, "{told}");
    let note = told["answer"]["note"].as_str().unwrap();
    assert!(note.contains("the named call is cancelled"), "{note}");
}
