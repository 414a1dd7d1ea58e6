//! Errors, discovery and log messages between clients and servers of different eras.

use serde_json::{Value, json};

use super::before;
use super::scripted::{asked, last, response, result, stateless, stream, with_sessions};
use crate::links::telling::{BOTH, begins, json_of, post as post_old};
use crate::scene::{Called, call, json as json_answer, rpc_failure};
use crate::support::{Message, Proxy, Upstream, Wire};

const VERSION: &str = "2026-07-28";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A call of a client without sessions, with more members of `_meta`.
pub(super) fn modern(method: &str, mut params: Value, meta: Value) -> String {
    params["_meta"] = meta;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = VERSION.into();
    let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if capabilities.is_null() {
        *capabilities = json!({});
    }
    call(method, &params.to_string())
}

/// Posts such a call.
pub(super) fn post(proxy: &Proxy, method: &str, name: &str, body: &str) -> Message {
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", BOTH),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", method),
        ("Mcp-Name", name),
    ];
    proxy.rest("POST", "/rpc", &headers, body)
}

/// The response of a server to a call whose params name the code of its error.
fn failing(called: &Called<'_>) -> Vec<u8> {
    let params: Value = serde_json::from_str(called.params()).unwrap();
    let id = called.id();
    let wanted = &params["fails"];
    let error = json!({ "code": wanted["code"], "message": "no", "data": wanted["data"] });
    json_answer(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

fn read_failing(code: i64) -> Value {
    json!({ "uri": "a:b", "fails": { "code": code, "data": { "uri": "a:b" } } })
}

pub(super) fn conversions(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_mcp_era_conversions_total{{kind="{kind}"}}"#);
    proxy.metrics().value(&series)
}

#[test]
fn errors_have_the_codes_of_the_clients_revision() {
    let old = with_sessions(|_, called| failing(called));
    let new = stateless(|_, called| failing(called));
    let (before_old, before_new) = (before(&old, ""), before(&new, ""));
    let read = "resources/read";
    for (code, wanted) in [(-32002, -32602), (-32042, -32602), (-32603, -32603)] {
        let body = modern(read, read_failing(code), json!({}));
        let said = post(&before_old, read, "a:b", &body);
        assert_eq!(said.status(), 200);
        assert_eq!(said.json()["error"]["code"], wanted);
        assert_eq!(said.json()["error"]["data"], json!({ "uri": "a:b" }));
        // A client of the server's own era gets its code.
        let said = before_old.rpc(call(read, &read_failing(code).to_string()));
        assert_eq!(said.json()["error"]["code"], code);
    }
    for (code, wanted) in [
        (-32602, -32002),
        (-32020, -32603),
        (-32021, -32600),
        (-32022, -32603),
    ] {
        let said = before_new.rpc(call(read, &read_failing(code).to_string()));
        assert_eq!(
            (said.status(), &said.json()["error"]["code"]),
            (200, &json!(wanted))
        );
        let body = modern(read, read_failing(code), json!({}));
        let said = post(&before_new, read, "a:b", &body);
        assert_eq!(said.json()["error"]["code"], code);
    }
    assert_eq!(conversions(&before_old, "missing_resource"), 1.0);
    assert_eq!(conversions(&before_old, "foreign_code"), 1.0);
    before_old.log_line(&["rpc_method=resources/read", "conversions=missing_resource"]);
    assert_eq!(conversions(&before_new, "missing_resource"), 1.0);
    assert_eq!(conversions(&before_new, "foreign_code"), 3.0);
}

#[test]
fn an_error_that_asks_for_a_url_becomes_a_result_that_does() {
    let server = with_sessions(|_, called| failing(called));
    let proxy = before(&server, "");
    let asked = json!({ "elicitations": [{ "mode": "url", "elicitationId": "e", "url": "https://a/", "message": "m" }] });
    let params = json!({ "name": "t", "fails": { "code": -32042, "data": asked } });
    let able =
        json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "url": {} } } });
    let said = post(
        &proxy,
        "tools/call",
        "t",
        &modern("tools/call", params.clone(), able),
    );
    let wanted = json!({ "resultType": "input_required", "inputRequests": { "url-0": {
        "method": "elicitation/create",
        "params": { "mode": "url", "url": "https://a/", "message": "m" } } } });
    assert_eq!(said.json()["result"], wanted);
    let said = post(
        &proxy,
        "tools/call",
        "t",
        &modern("tools/call", params, json!({})),
    );
    assert_eq!(said.json()["error"]["code"], -32602);
    assert_eq!(conversions(&proxy, "url_elicitation"), 1.0);
}

#[test]
fn a_server_with_sessions_is_discovered_by_its_response_to_initialize() {
    let server = with_sessions(|_, called| result(called, "{}"));
    let proxy = before(&server, "");
    let method = "server/discover";
    for _ in 0..2 {
        let said = post(&proxy, method, "", &modern(method, json!({}), json!({})));
        let discovered = &said.json()["result"];
        assert_eq!(
            discovered["supportedVersions"],
            json!(["2025-06-18", VERSION])
        );
        assert_eq!(discovered["resultType"], "complete");
        let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(info["name"], "scripted");
    }
    assert_eq!(conversions(&proxy, "discovery"), 2.0);
    let began = [
        "POST server/discover",
        "POST initialize",
        "POST notifications/initialized",
    ];
    assert_eq!(asked(&server), began);
}

/// The log message of a server.
fn logged(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1}}}}"#
    )
}

/// A response stream with log messages of these levels, and the result.
fn logging(called: &Called<'_>, levels: &[&str]) -> Vec<u8> {
    let messages = levels.iter().map(|level| logged(level));
    let messages = messages.chain([response(called, "{}")]);
    let events: Vec<String> = messages
        .map(|message| format!("data: {message}\n\n"))
        .collect();
    stream(&events.concat())
}

pub(super) fn params_of(server: &Upstream, method: &str) -> Value {
    last(server, method).json()["params"].clone()
}

#[test]
fn the_level_of_a_session_reaches_a_server_without_sessions_with_each_call() {
    let server = stateless(|_, called| logging(called, &["info"]));
    let proxy = before(&server, "");
    let set = call("logging/setLevel", r#"{"level":"info"}"#);
    let mut client: Wire = post_old(&proxy, BOTH, &set);
    assert_eq!(client.read_answer().json()["result"], json!({}));
    let mut client = post_old(&proxy, BOTH, &call("tools/call", r#"{"name":"t"}"#));
    begins(&mut client);
    assert_eq!(json_of(&mut client)["params"]["level"], "info");
    assert_eq!(json_of(&mut client)["result"], json!({}));
    assert_eq!(params_of(&server, "tools/call")["_meta"][LEVEL], "info");
    assert_eq!(conversions(&proxy, "log_level"), 1.0);
    // A client without a session has no level.
    proxy.rpc(call("tools/call", r#"{"name":"t"}"#));
    assert_eq!(params_of(&server, "tools/call")["_meta"].get(LEVEL), None);
    assert!(
        !asked(&server)
            .iter()
            .any(|asked| asked.contains("setLevel"))
    );
}

#[test]
fn the_level_of_a_call_is_set_at_a_server_with_sessions_and_limits_what_its_caller_gets() {
    let server = with_sessions(|_, called| match called.method() {
        "tools/call" => logging(called, &["debug", "error"]),
        _ => result(called, "{}"),
    });
    let proxy = before(&server, "");
    let levels = |meta: Value| {
        let said = post(
            &proxy,
            "tools/call",
            "t",
            &modern("tools/call", json!({ "name": "t" }), meta),
        );
        let text = said.text().to_owned();
        ["debug", "error"].map(|level| text.contains(&logged(level)))
    };
    assert_eq!(levels(json!({ LEVEL: "warning" })), [false, true]);
    assert_eq!(
        params_of(&server, "logging/setLevel"),
        json!({ "level": "warning" })
    );
    assert_eq!(levels(json!({ LEVEL: "debug" })), [true, true]);
    assert_eq!(levels(json!({ LEVEL: "error" })), [false, true]);
    assert_eq!(levels(json!({})), [false, false]);
    let sets = asked(&server).into_iter();
    assert_eq!(sets.filter(|asked| asked.contains("setLevel")).count(), 2);
    // A client of the server's own era gets what the server says.
    let said = proxy.rest(
        "POST",
        "/rpc",
        &[("Accept", BOTH)],
        call("tools/call", r#"{"name":"t"}"#),
    );
    assert!(said.text().contains(&logged("debug")));
}

/// Begins a session of a client with these capabilities; returns its id.
pub(super) fn begin_session(proxy: &Proxy, capabilities: &str) -> String {
    let params = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}"#
    );
    let answer = proxy.rpc(call("initialize", &params));
    answer.head.one("mcp-session-id").unwrap().to_owned()
}

/// Posts a message in a session, and does not wait for the answer.
pub(super) fn post_in(proxy: &Proxy, session: &str, body: &str) -> Wire {
    let mut wire = proxy.connect();
    let length = body.len();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nAccept: {BOTH}\r\nMcp-Session-Id: {session}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ));
    wire
}

/// Asks for a name and the roots, then for nothing more; the result is the last params.
pub(super) fn interactive(called: &Called<'_>) -> Vec<u8> {
    let params: Value = serde_json::from_str(called.params()).unwrap();
    if params["requestState"] == "first" {
        return result(
            called,
            &json!({ "resultType": "complete", "got": params }).to_string(),
        );
    }
    let asks = json!({
        "resultType": "input_required",
        "requestState": "first",
        "inputRequests": {
            "name": { "method": "elicitation/create", "params": { "message": "who?" } },
            "roots": { "method": "roots/list" },
        },
    });
    result(called, &asks.to_string())
}

#[test]
fn input_that_a_server_without_sessions_requires_is_asked_of_a_client_with_a_session() {
    let server = stateless(|_, called| interactive(called));
    let proxy = before(&server, "");
    let session = begin_session(&proxy, r#"{"elicitation":{},"roots":{"listChanged":true}}"#);
    let body = call("tools/call", r#"{"name":"t"}"#);
    let mut client = post_in(&proxy, &session, &body);
    begins(&mut client);
    let (name, roots) = (json_of(&mut client), json_of(&mut client));
    assert_eq!(name["method"], "elicitation/create");
    assert_eq!(name["params"], json!({ "message": "who?" }));
    assert_eq!(roots["method"], "roots/list");
    let declared =
        &params_of(&server, "tools/call")["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(
        declared,
        &json!({ "elicitation": { "form": {} }, "roots": {} })
    );
    let respond = |session: &str, id: &Value, result: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        post_in(&proxy, session, &body).read_answer()
    };
    // Another session cannot answer, and no response is taken twice.
    let given = json!({ "roots": [] });
    let other = respond("other", &roots["id"], given.clone());
    assert_eq!(other.json()["error"]["code"], -32600);
    assert_eq!(respond(&session, &roots["id"], given.clone()).text(), "");
    let again = respond(&session, &roots["id"], given.clone());
    assert_eq!(again.json()["error"]["code"], -32600);
    let accepted = json!({ "action": "accept", "content": { "name": "n" } });
    assert_eq!(respond(&session, &name["id"], accepted.clone()).text(), "");
    let end = json_of(&mut client);
    assert_eq!(end["id"], 1);
    let got = &end["result"]["got"];
    assert_eq!(got["name"], "t");
    assert_eq!(
        got["inputResponses"],
        json!({ "name": accepted, "roots": given })
    );
    assert_eq!(client.read_chunk(), None);
    assert_eq!(conversions(&proxy, "input_request"), 2.0);
    assert_eq!(conversions(&proxy, "input_response"), 1.0);
    proxy.log_line(&["tools/call", "conversions=input_request,input_response"]);
}

#[test]
fn a_client_that_is_asked_for_input_does_not_delay_the_end_of_the_proxy() {
    let proxy = before(&stateless(|_, called| interactive(called)), "");
    let session = begin_session(&proxy, r#"{"elicitation":{},"roots":{}}"#);
    let mut client = post_in(&proxy, &session, &call("tools/call", r#"{"name":"t"}"#));
    begins(&mut client);
    assert_eq!(json_of(&mut client)["method"], "elicitation/create");
    assert_eq!(json_of(&mut client)["method"], "roots/list");
    proxy.signal("TERM");
    assert_eq!(rpc_failure(&json_of(&mut client)), (-31044, "draining"));
    assert!(proxy.wait().status.success());
}

#[test]
fn a_client_that_cannot_supply_the_input_gets_a_failure() {
    let server = stateless(|_, called| interactive(called));
    let proxy = before(&server, "");
    let body = call("tools/call", r#"{"name":"t"}"#);
    for capabilities in ["{}", r#"{"elicitation":{}}"#, r#"{"roots":{}}"#] {
        let session = begin_session(&proxy, capabilities);
        let answer = post_in(&proxy, &session, &body).read_answer();
        let failure = (-31034, "upstream_input_required");
        assert_eq!(rpc_failure(&answer.json()), failure, "{capabilities}");
    }
    let session = begin_session(&proxy, r#"{"elicitation":{},"roots":{}}"#);
    let mut client = post_in(&proxy, &session, &body);
    begins(&mut client);
    let (_, roots) = (json_of(&mut client), json_of(&mut client));
    let id = &roots["id"];
    let refusal = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#);
    post_in(&proxy, &session, &refusal).read_answer();
    drop(client);
    proxy.log_line(&["rpc_method=tools/call", "outcome=cancelled"]);
}
