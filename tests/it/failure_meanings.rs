//! Codes and statuses of failures: each reason has a code of its own, and what a REST server says of credentials,
//! pauses and tools reaches RPC clients as their protocols have it.

use serde_json::{Value, json};

use crate::scene::{answer, before_rest, before_rpc, call, json_with, rpc_failure, saying};
use crate::support::{Message, Proxy, Upstream};
use crate::websocket::ends::connect;

const ROUTES: &str = r#"
[[route]]
name = "read"
rest = "GET /things/{id}"
rpc = "things/read"

[[route]]
name = "tool"
rest = "GET /tools/{id}"
rpc = "tools/call"
params = { name = "read", arguments = { id = "{id}" } }
extra = "drop"
"#;

const READ: &str = r#"{"jsonrpc":"2.0","id":1,"method":"things/read","params":{"id":"7"}}"#;
const TOOL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"id":"7"}}}"#;

fn before(status: &str, headers: &[(&str, &str)], body: &str, keys: &str) -> Proxy {
    let upstream = Upstream::answering(answer(status, headers, body));
    before_rest(&upstream, &format!("[rpc]\n{keys}\n{ROUTES}"))
}

const JSON: (&str, &str) = ("Content-Type", "application/json");
const BEARER: (&str, &str) = ("WWW-Authenticate", "Bearer realm=\"x\"");
const SEVEN: (&str, &str) = ("Retry-After", "7");

#[test]
fn each_reason_has_a_code_of_its_own_that_a_key_moves_or_sets() {
    let rows = [
        ("", -31021),
        ("failure_codes = -40000", -40021),
        ("failure_codes = { upstream_unreachable = -32001 }", -32001),
        ("failure_codes = { upstream_cut = -32003 }", -31021),
    ];
    for (keys, code) in rows {
        let nowhere = Upstream::nowhere();
        let proxy = before_rest(&nowhere, &format!("[rpc]\n{keys}\n{ROUTES}"));
        let said = proxy.rpc(READ).json();
        assert_eq!(rpc_failure(&said), (code, "upstream_unreachable"), "{keys}");
        proxy.log_line(&["reason=upstream_unreachable", &format!("code={code}")]);
        let document = proxy.rest("GET", "/things/7", &[], "").json();
        assert_eq!(document["rpc"]["code"], code, "{keys}");
        // What JSON-RPC itself names stays.
        assert_eq!(
            proxy.rpc(r#"{"jsonrpc":"2.0","#).json()["error"]["code"],
            -32700
        );
    }
}

#[test]
fn a_client_that_must_log_in_or_wait_hears_it_from_the_status_of_its_one_call() {
    let rows = [
        ("401 Unauthorized", &[JSON, BEARER][..], -31400),
        ("403 Forbidden", &[JSON], -31400),
        ("429 Too Many Requests", &[JSON, SEVEN], -31400),
        ("503 Service Unavailable", &[JSON, SEVEN], -32603),
    ];
    for (status, headers, code) in rows {
        let number: u16 = status[..3].parse().unwrap();
        let proxy = before(status, headers, r#"{"detail":"no"}"#, "websocket = true");
        let expect = |error: &Value| {
            assert_eq!(error["code"], code, "{error}");
            assert_eq!(error["data"]["status"], number, "{error}");
            let pause = headers.contains(&SEVEN).then_some(7);
            assert_eq!(
                error["data"].get("retry_after").and_then(Value::as_u64),
                pause
            );
        };
        let said = proxy.rpc(READ);
        assert_eq!(said.status(), number, "{said:?}");
        expect(&said.json()["error"]);
        let named = |name: &str| {
            headers
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
        };
        for name in ["www-authenticate", "retry-after"] {
            assert_eq!(said.head.one(name), named(name).map(|(_, value)| *value));
        }
        proxy.log_line(&["rpc_method=things/read", &format!("status={number}")]);

        let said = proxy.rpc(format!("[{READ}]"));
        assert_eq!(said.status(), 200, "{said:?}");
        expect(&said.json()[0]["error"]);

        let mut client = connect(&proxy);
        client.say(READ);
        expect(&client.hear()["error"]);

        let notified = READ.replace("\"id\":1,", "");
        assert_eq!(proxy.rpc(notified).status(), 204);

        let proxy = before(status, headers, "{}", "error_status = \"always-200\"");
        assert_eq!(proxy.rpc(READ).status(), 200);
    }
}

#[test]
fn any_other_status_of_a_rest_server_is_told_in_the_body_alone() {
    for (status, code) in [
        ("400 Bad Request", -32602),
        ("404 Not Found", -31404),
        ("405 Method Not Allowed", -32601),
        ("409 Conflict", -31400),
        ("410 Gone", -31410),
        ("500 Internal Server Error", -32603),
        ("501 Not Implemented", -32601),
    ] {
        let proxy = before(status, &[JSON], "{}", "");
        let said = proxy.rpc(READ);
        assert_eq!(said.status(), 200, "{status}");
        assert_eq!(said.json()["error"]["code"], code, "{status}");
        let number: u16 = status[..3].parse().unwrap();
        assert_eq!(said.json()["error"]["data"]["status"], number, "{status}");
    }
}

fn is_failed_tool(said: &Message, words: &[&str]) {
    assert_eq!(said.status(), 200, "{said:?}");
    let result = &said.json()["result"];
    assert_eq!(result["isError"], true, "{said:?}");
    let text = result["content"][0]["text"].as_str().unwrap();
    for word in words {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn the_failure_of_a_tool_is_a_result_with_the_words_of_the_server() {
    let page = ("Content-Type", "text/plain");
    let rows = [
        (
            "404 Not Found",
            &[JSON][..],
            r#"{"detail":"no thing 7"}"#,
            &["404", "no thing 7"][..],
        ),
        (
            "409 Conflict",
            &[JSON],
            r#"{"error":{"message":"taken"}}"#,
            &["taken"],
        ),
        (
            "500 Internal Server Error",
            &[page],
            "out of order",
            &["out of order"],
        ),
        ("403 Forbidden", &[page], "not for you", &["not for you"]),
        (
            "429 Too Many Requests",
            &[JSON, SEVEN],
            r#"{"message":"slow down"}"#,
            &["slow down", "7 seconds"],
        ),
        (
            "503 Service Unavailable",
            &[SEVEN],
            "",
            &["Service Unavailable", "7 seconds"],
        ),
    ];
    for (status, headers, body, words) in rows {
        let proxy = before(status, headers, body, "");
        is_failed_tool(&proxy.rpc(TOOL), words);
        let (outcome, blame) = match status.as_bytes() {
            [b'5', ..] => ("outcome=error", Some("blame=upstream")),
            [b'4', b'0', b'3', ..] | [b'4', b'2', b'9', ..] => {
                ("outcome=error", Some("blame=client"))
            }
            _ => ("outcome=tool_error", None),
        };
        let line = proxy.log_line(&[
            "rpc_method=tools/call",
            outcome,
            "status=200",
            &format!("upstream_status={}", &status[..3]),
        ]);
        assert_eq!(line.contains("blame="), blame.is_some(), "{line}");
        assert!(line.contains(blame.unwrap_or_default()), "{line}");
        let said = proxy.rpc(format!("[{TOOL}]")).json();
        assert_eq!(said[0]["result"]["isError"], true, "{said}");
    }
}

#[test]
fn a_tool_whose_server_asks_for_credentials_is_told_so_by_http() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let number: u16 = status[..3].parse().unwrap();
        let proxy = before(status, &[JSON, BEARER], "{}", "");
        let said = proxy.rpc(TOOL);
        assert_eq!(said.status(), number, "{said:?}");
        assert_eq!(said.head.one("www-authenticate"), Some(BEARER.1));
        assert_eq!(said.json()["error"]["data"]["status"], number);
        let said = proxy.rpc(format!("[{TOOL}]"));
        assert_eq!(said.status(), 200);
        assert_eq!(said.json()[0]["error"]["data"]["status"], number);
    }
}

#[test]
fn a_failed_answer_that_two_proxies_translate_is_what_it_was() {
    let body = r#"{"detail" : "no"}"#;
    for (target, number, status) in [
        ("/things/7", 404, "404 Not Found"),
        ("/things/7", 410, "410 Gone"),
        ("/things/7", 429, "429 Too Many Requests"),
        ("/things/7", 501, "501 Not Implemented"),
        ("/tools/7", 404, "404 Not Found"),
        ("/tools/7", 429, "429 Too Many Requests"),
    ] {
        let server = Upstream::answering(json_with_pause(status, body));
        let inner = before_rest(&server, ROUTES);
        let outer = Proxy::start(&format!(
            "[upstream.inner]\nside = \"rpc\"\nurl = \"http://{}/rpc\"\n{ROUTES}",
            inner.address()
        ));
        let said = outer.rest("GET", target, &[], "");
        assert_eq!((said.status(), said.text()), (number, body), "{target}");
        assert_eq!(said.head.one("retry-after"), Some("7"), "{target}");
    }
}

fn json_with_pause(status: &str, body: &str) -> Vec<u8> {
    answer(status, &[JSON, SEVEN], body)
}

#[test]
fn a_tool_that_no_route_has_is_a_wrong_param_and_a_method_that_none_has_is_not_found() {
    let upstream = Upstream::answering(json_with("200 OK", "{}"));
    let keys = r#"
[[local]]
rpc = "initialize"
answer = "initialize"
server = { name = "x", version = "1" }

[[local]]
rpc = "server/discover"
answer = "discover"
server = { name = "x", version = "1" }
"#;
    let proxy = before_rest(&upstream, &format!("{ROUTES}{keys}"));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let message = |method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
    };
    let old = message("tools/call", &json!({ "name": "nope", "arguments": {} }));
    let new = message(
        "tools/call",
        &json!({ "name": "nope", "arguments": {}, "_meta": meta }),
    );
    let headers = [
        JSON,
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "nope"),
    ];
    for said in [proxy.rpc(old), proxy.rest("POST", "/rpc", &headers, new)] {
        assert_eq!(said.status(), 200, "{said:?}");
        let error = &said.json()["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(error["message"], "unknown tool: nope");
    }
    let unknown = message("tools/nope", &json!({ "_meta": meta }));
    let headers = [
        JSON,
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/nope"),
    ];
    let said = proxy.rest("POST", "/rpc", &headers, unknown);
    assert_eq!(said.status(), 404, "{said:?}");
    assert_eq!(said.json()["error"]["code"], -32601);
    // A call without the name of a tool lacks a param.
    for (params, words) in [
        ("{}", "params/name: it is required"),
        ("[]", "params/name: it is required"),
        (
            r#"{"name":7}"#,
            "params/name: it must be the name of a tool",
        ),
    ] {
        let said = proxy.rpc(call("tools/call", params));
        assert_eq!(said.status(), 200, "{said:?}");
        let said = said.json();
        assert_eq!(rpc_failure(&said), (-32602, "invalid_params"), "{params}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(words), "{message}");
    }
    // Without any tool the method itself is unknown.
    let bare = before_rest(&upstream, "");
    let said = bare.rpc(message("tools/call", &json!({ "name": "nope" })));
    assert_eq!(said.json()["error"]["code"], -32601);
}

#[test]
fn the_codes_of_another_proxy_blame_the_side_that_its_table_blames() {
    for (code, blame) in [
        (-31005, "client"),
        (-31008, "client"),
        (-31080, "client"),
        (-32020, "client"),
        (-32601, "client"),
        (-31404, "client"),
        (-31022, "upstream"),
        (-31042, "upstream"),
        (-32603, "upstream"),
        (-32000, "upstream"),
    ] {
        let error = format!(r#""error":{{"code":{code},"message":"x"}}"#);
        let proxy = before_rpc(&saying(error.leak()), ROUTES);
        proxy.rest("GET", "/things/7", &[], "");
        proxy.log_line(&["outcome=error", &format!("blame={blame}")]);
    }
}

#[test]
fn a_rest_answer_that_asks_for_input_is_no_result_for_an_older_client_of_mcp() {
    let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
    let proxy = before("200 OK", &[JSON], asks, "");
    let failure = (-31034, "upstream_input_required");
    let alone = proxy.rpc(TOOL);
    assert_eq!(alone.status(), 200, "{alone:?}");
    assert_eq!(rpc_failure(&alone.json()), failure);
    let batch = proxy.rpc(format!("[{TOOL},{READ}]")).json();
    assert_eq!(rpc_failure(&batch[0]), failure);
    // Another API may use the same words.
    let wanted: Value = serde_json::from_str(asks).unwrap();
    assert_eq!(batch[1]["result"], wanted);
    let headers = [JSON, ("MCP-Protocol-Version", "2026-07-28")];
    let modern = proxy.rest("POST", "/rpc", &headers, TOOL).json();
    assert_eq!(modern["result"], wanted);
}
