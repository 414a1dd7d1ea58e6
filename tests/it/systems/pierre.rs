//! `config/pierre.toml` between its clients and Pierre: REST calls that are tools, tools that are REST calls, and the
//! token that travels in a header on one side and in the envelope on the other.

use serde_json::{Value, json as value};

use super::calls::{ask, expect_proven, json_of, play, sent_rest, sent_rpc};
use super::fake_pierre::{COACH, COACH_OF_TOOLS, NEW_SESSION, TOKEN, mcp, rest};
use crate::scene::{body_of, problem};
use crate::support::{Message, Proxy, Upstream, rest_only};

const TABLE: &str = include_str!("../../../config/pierre.toml");
const ENVELOPE: &str = r#"
[rpc]
envelope = { auth = { header = "authorization", value = "{token}" } }
notification_status = 202
"#;

fn proxy(config: &str) -> Proxy {
    let config = format!("include = [\"pierre.toml\"]\n{config}{ENVELOPE}");
    Proxy::start_with(&config, &[("pierre.toml", TABLE)])
}

fn mcp_only(rpc: &Upstream) -> String {
    let address = rpc.address();
    format!(
        "[listen]\nworkers = 1\n[upstream.new]\nside = \"rpc\"\nurl = \"http://{address}/mcp\"\n"
    )
}

/// A REST call with this token.
fn ask_as(proxy: &Proxy, token: &str, call: &str) -> Message {
    ask(proxy, &[("Authorization", token)], call)
}

/// What a client gets, without the time at which it was said.
fn timeless(mut answer: Value) -> Value {
    for holder in ["/metadata", ""] {
        let object = answer.pointer_mut(holder).and_then(Value::as_object_mut);
        if let Some(time) = object.and_then(|object| object.remove("timestamp")) {
            let time = time.as_str().unwrap();
            assert!(time.len() >= 20 && &time[10..11] == "T", "{time}");
        }
    }
    answer
}

#[test]
fn rest_calls_are_calls_of_tools() {
    let upstream = Upstream::serving(mcp);
    let proxy = proxy(&mcp_only(&upstream));
    play(include_str!("calls/pierre_from_rest.txt"), |call| {
        let answer = ask_as(&proxy, TOKEN, call.said);
        let body = match answer.text() {
            "" => String::new(),
            _ => timeless(answer.json()).to_string(),
        };
        (sent_rpc(&upstream), format!("{} {body}", answer.status()))
    });
}

#[test]
fn what_is_unwrapped_keeps_its_bytes() {
    let upstream = Upstream::serving(mcp);
    let answer = ask_as(&proxy(&mcp_only(&upstream)), TOKEN, "GET /api/coaches/7");
    assert_eq!(answer.text(), COACH_OF_TOOLS);
}

/// A call of a tool with the token in its envelope.
fn call_as(proxy: &Proxy, token: &str, tool: &str, arguments: &str) -> Value {
    let answer = proxy.rpc(format!(
        r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}},"auth":"{token}"}}"#
    ));
    let status = if token == "Bearer none" { 401 } else { 200 };
    assert_eq!(answer.status(), status, "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["id"], "a", "{answer}");
    answer
}

/// The structured content of a tool's result, whose other members are checked.
fn structured(answer: &mut Value) -> Option<Value> {
    let result = answer["result"].as_object_mut()?;
    assert_eq!(result.get("isError"), Some(&value!(false)), "{result:?}");
    let content = result["content"].as_array()?;
    assert_eq!(content.len(), 1, "{content:?}");
    assert_eq!(content[0]["type"], "text", "{content:?}");
    assert!(content[0]["text"].is_string(), "{content:?}");
    let mut found = result["structuredContent"].take();
    found.as_object_mut()?.remove("retrieved_at");
    Some(found)
}

#[test]
fn calls_of_tools_are_rest_calls() {
    let upstream = Upstream::serving(rest);
    let proxy = proxy(&rest_only(&upstream));
    let transcript = include_str!("calls/pierre_from_rpc.txt").replace("COACH", COACH);
    play(&transcript, |call| {
        let (tool, arguments) = call.said.split_once(' ').unwrap();
        let mut answer = call_as(&proxy, TOKEN, tool, arguments);
        let found = structured(&mut answer).unwrap_or(answer);
        (sent_rest(&upstream), found.to_string())
    });
}

#[test]
fn the_text_of_a_tool_is_the_json_of_what_it_found() {
    let upstream = Upstream::serving(rest);
    let answer = call_as(
        &proxy(&rest_only(&upstream)),
        TOKEN,
        "get_coach",
        r#"{"coach_id":"7"}"#,
    );
    assert_eq!(answer["result"]["content"][0]["text"], COACH);
}

#[test]
fn a_list_of_tools_is_one_on_both_sides() {
    let upstream = Upstream::serving(mcp);
    let answer = ask_as(&proxy(&mcp_only(&upstream)), "none", "GET /mcp/tools");
    assert_eq!(answer.text(), r#"{"tools":[{"name":"get_coach"}]}"#);
    let upstream = Upstream::serving(rest);
    let answer =
        proxy(&rest_only(&upstream)).rpc(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"get_coach"},{"name":"list_coaches"}]}}"#;
    assert_eq!(answer.text(), expected);
}

#[test]
fn a_token_moves_between_the_header_and_the_envelope() {
    let upstream = Upstream::serving(mcp);
    let before_mcp = proxy(&mcp_only(&upstream));
    assert_eq!(
        ask_as(&before_mcp, TOKEN, "GET /api/coaches/7").status(),
        200
    );
    assert_eq!(upstream.request().json()["auth"], TOKEN);
    let rest_server = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&rest_server));
    call_as(&before_rest, TOKEN, "get_coach", r#"{"coach_id":"7"}"#);
    assert_eq!(rest_server.request().head.all("authorization"), [TOKEN]);
    for proxy in [before_mcp, before_rest] {
        proxy.log_line(&["route=coaches.get"]);
        let log = proxy.stop().log;
        assert!(!log.contains("eyJ"), "{log}");
    }
}

#[test]
fn who_may_not_ask_is_told_so_in_his_own_way() {
    let upstream = Upstream::serving(mcp);
    let before_mcp = proxy(&mcp_only(&upstream));
    let rows = [
        (
            "Bearer none",
            401,
            r#"{"code":"AuthRequired","message":"Authentication required"}"#,
        ),
        (
            "Bearer forged",
            401,
            r#"{"code":"AuthInvalid","message":"JWT token signature is invalid"}"#,
        ),
        (
            "Bearer expired",
            403,
            r#"{"code":"AuthExpired","message":"JWT token has expired"}"#,
        ),
        (
            "Bearer bent",
            403,
            r#"{"code":"AuthMalformed","message":"JWT token is malformed"}"#,
        ),
        (
            "Bearer guest",
            403,
            r#"{"code":"PermissionDenied","message":"No tenant","error_type":"tenant_required"}"#,
        ),
    ];
    for (token, status, expected) in rows {
        let answer = ask_as(&before_mcp, token, "GET /api/coaches/7");
        assert_eq!(
            (answer.status(), timeless(answer.json())),
            (status, json_of(expected)),
            "{token}"
        );
        assert!(!answer.text().contains("key ring"), "{answer:?}");
    }
}

#[test]
fn who_may_not_ask_is_marked_so_for_rpc_clients() {
    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream));
    let rows = [
        (
            "Bearer none",
            value!({ "code": -32603, "message": "Authentication required", "data": { "authentication_failed": true } }),
        ),
        (
            "Bearer expired",
            value!({ "code": -32603, "message": "JWT token has expired", "data": { "authentication_failed": true } }),
        ),
    ];
    for (token, expected) in rows {
        let answer = call_as(&before_rest, token, "get_coach", r#"{"coach_id":"7"}"#);
        assert_eq!(answer["error"], expected, "{token}");
    }
    let answer = call_as(
        &before_rest,
        "Bearer guest",
        "get_coach",
        r#"{"coach_id":"7"}"#,
    );
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let kept = &answer["result"]["_meta"]["dualgauge/answer"];
    assert_eq!(kept["status"], 403, "{answer}");
}

#[test]
fn a_missing_resource_is_told_from_a_missing_tool_and_a_missing_method() {
    let upstream = Upstream::serving(mcp);
    let before_mcp = proxy(&mcp_only(&upstream));
    let missing = ask_as(&before_mcp, TOKEN, "GET /api/coaches/123");
    assert_eq!(
        (missing.status(), missing.json()["code"].as_str()),
        (404, Some("ResourceNotFound"))
    );
    let unknown = before_mcp.rpc(r#"{"jsonrpc":"2.0","id":1,"method":"coaches/fly","auth":"x"}"#);
    assert_eq!(
        unknown.json()["error"]["message"],
        "Unknown method: coaches/fly"
    );

    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream));
    let answer = call_as(&before_rest, TOKEN, "get_coach", r#"{"coach_id":"123"}"#);
    let expected = value!({ "code": -32601, "message": "The requested resource was not found" });
    assert_eq!(answer["error"], expected);
    let answer = call_as(&before_rest, TOKEN, "get_activities", "{}");
    assert_eq!(
        answer["error"]["message"], "unknown tool: get_activities",
        "no REST call of this tool: {answer}"
    );
}

#[test]
fn rejections_in_plain_text_are_errors_with_their_text() {
    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream));
    let answer = call_as(
        &before_rest,
        TOKEN,
        "create_coach",
        r#"{"title":"Run","system_prompt":"","tags":null}"#,
    );
    let message = "Invalid tool call parameters: tags: invalid type: null, expected a sequence";
    assert_eq!(
        answer["error"],
        value!({ "code": -32602, "message": message })
    );
    let answer = call_as(
        &before_rest,
        TOKEN,
        "create_coach",
        r#"{"title":"twice","system_prompt":""}"#,
    );
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let kept = &answer["result"]["_meta"]["dualgauge/answer"];
    assert_eq!(kept["body"]["code"], "ResourceAlreadyExists", "{answer}");

    let upstream = Upstream::serving(mcp);
    let answer = ask_as(
        &proxy(&mcp_only(&upstream)),
        TOKEN,
        "GET /api/coaches/broken",
    );
    assert_eq!(answer.status(), 502, "{answer:?}");
    problem(&answer);
}

#[test]
fn a_notification_passes_and_is_accepted() {
    let upstream = Upstream::serving(mcp);
    let proxy = proxy(&mcp_only(&upstream));
    let answer = proxy.rpc(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!((answer.status(), answer.text()), (202, ""));
}

#[test]
fn a_notification_with_an_id_is_not_waited_for() {
    let upstream = Upstream::serving(mcp);
    let proxy = proxy(&mcp_only(&upstream));
    // The server says nothing to whatever has such a name.
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}"#;
    let answer = proxy.rpc(call);
    assert_eq!((answer.status(), answer.text()), (202, ""));
}

#[test]
fn an_answer_to_a_call_without_an_id_is_dropped() {
    let upstream = Upstream::serving(mcp);
    let proxy = proxy(&mcp_only(&upstream));
    let answer = proxy.rpc(r#"{"jsonrpc":"2.0","method":"ping"}"#);
    assert_eq!((answer.status(), answer.text()), (202, ""));
    upstream.request();
}

#[test]
fn ids_that_the_server_damages_are_whole_and_batches_are_its_own_to_refuse() {
    let upstream = Upstream::serving(mcp);
    let proxy = proxy(&mcp_only(&upstream));
    for id in [
        "1.50",
        "123456789012345678901234567890",
        "\"a\"",
        "0",
        "null",
    ] {
        let answer = proxy.rpc(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        let wanted = format!(r#"{{"id":{id},"jsonrpc":"2.0","result":{{}}}}"#);
        assert_eq!(body_of(&answer, 200), wanted);
    }
    // It takes no batch, and says so itself.
    let batch = r#"[{"jsonrpc":"2.0","id":1.50,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"coaches/fly"}]"#;
    assert_eq!(body_of(&proxy.rpc(batch), 400), "Invalid JSON");
}

#[test]
fn what_else_the_envelope_has_and_the_session_are_the_clients_own() {
    let upstream = Upstream::serving(mcp);
    let proxy = proxy(&mcp_only(&upstream));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","headers":{"x":1.50},"metadata":{"a":"b"}}"#;
    let say = |headers: &[(&str, &str)]| {
        let kind = ("Content-Type", "application/json");
        let answer = proxy.rest("POST", "/mcp", &[&[kind], headers].concat(), body);
        answer.head.one("mcp-session-id").unwrap().to_owned()
    };
    assert_eq!(say(&[("Mcp-Session-Id", "session_one")]), "session_one");
    assert_eq!(say(&[("Mcp-Session-Id", "session_other")]), "session_other");
    assert_eq!(say(&[]), NEW_SESSION);
    // With a token the server gives another session, and the proxy no other.
    let own = [("Mcp-Session-Id", "session_one"), ("Authorization", TOKEN)];
    assert_eq!(say(&own), NEW_SESSION);
    for request in upstream.requests() {
        let sent = request.json();
        assert_eq!(sent["metadata"], value!({"a": "b"}), "{sent}");
        assert!(
            request.text().contains(r#""headers":{"x":1.50}"#),
            "{request:?}"
        );
    }
    // A REST call has no part in them.
    let answer = ask_as(&proxy, TOKEN, "GET /api/coaches/7");
    assert_eq!(answer.head.one("mcp-session-id"), None);
}

#[test]
fn a_cookie_and_what_guards_it_reach_the_rest_side_together() {
    let upstream = Upstream::serving(rest);
    let forward = "forward = [\"x-csrf-token\"]\n";
    let proxy = proxy(&format!("{}{forward}", rest_only(&upstream)));
    let own = [("Cookie", "auth_token=t"), ("X-CSRF-Token", "c")];
    let kind = [("Content-Type", "application/json")];
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_coach","arguments":{"coach_id":"7"}}}"#;
    proxy.rest("POST", "/rpc", &[&kind[..], &own].concat(), call);
    let sent = upstream.request();
    assert_eq!(sent.head.start, "DELETE /api/coaches/7 HTTP/1.1");
    assert_eq!(sent.head.one("cookie"), Some("auth_token=t"));
    assert_eq!(sent.head.one("x-csrf-token"), Some("c"));
}

#[test]
fn what_the_tools_do_not_know_is_refused() {
    let upstream = Upstream::serving(mcp);
    let before_mcp = proxy(&mcp_only(&upstream));
    for call in [
        "GET /api/coaches?include_hidden=true",
        "GET /api/coaches?favorites_only=1",
        "GET /api/coaches?limit=1&limit=2",
        "GET /api/coaches/search",
        "DELETE /fitness/config",
        "DELETE /fitness/config?configuration_name=",
        r#"PUT /api/coaches/7 {"coach_id":"8"}"#,
        r#"POST /api/coaches {"title":"Run"}"#,
        r#"POST /api/coaches {"title":"Run","system_prompt":"","later":1}"#,
    ] {
        assert_eq!(ask_as(&before_mcp, TOKEN, call).status(), 400, "{call}");
    }
    assert_eq!(upstream.requests(), []);
    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream));
    for (tool, arguments) in [
        ("get_coach", r#"{"coach_id":""}"#),
        ("get_coach", r#"{"coach_id":".."}"#),
        // The paths of other calls.
        ("get_coach", r#"{"coach_id":"search"}"#),
        ("get_coach", r#"{"coach_id":"hidden"}"#),
        ("get_coach", "{}"),
        ("delete_fitness_config", "{}"),
        ("delete_coach", r#"{"coach_id":"7","force":true}"#),
    ] {
        let answer = call_as(&before_rest, TOKEN, tool, arguments);
        assert_eq!(
            answer["error"]["code"], -32602,
            "{tool} {arguments}: {answer}"
        );
    }
    assert_eq!(upstream.requests(), []);
}

#[test]
fn the_table_is_proven_and_shows_what_it_loses() {
    expect_proven(&[TABLE], ENVELOPE);
}
