//! `config/kuzu.toml` before a child, as the memory server's own clients start it: each of its three servers, from
//! REST clients through the table and from RPC clients.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use super::fake_kuzu::MEMORY;
use super::fake_kuzu_child::{UNREADABLE, Variant};
use super::kuzu::ROWS;
use super::servers::{message, with_table};
use crate::scene::{body_of, problem, rpc_failure};
use crate::stdio::kill_child;
use crate::support::{Message, Proxy, becomes};
use crate::websocket::ends::connect;
use crate::websocket::told::BROADCAST;

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

fn before(variant: Variant, keys: &str) -> Proxy {
    with_table("kuzu", &format!("{}{keys}", variant.upstream()))
}

/// A REST call, such as `POST /api/x {"a":1}`.
fn ask(proxy: &Proxy, call: &str) -> Message {
    let mut words = call.splitn(3, ' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let body = words.next().unwrap_or_default();
    let headers = if body.is_empty() { &JSON[..0] } else { &JSON };
    proxy.rest(method, target, headers, body)
}

fn tool(name: &str, arguments: &Value) -> String {
    message("tools/call", &json!({"name": name, "arguments": arguments}))
}

/// Every line that the child has read, in all of its lives.
fn heard(proxy: &Proxy) -> Vec<Value> {
    let lines = fs::read_to_string(proxy.folder().join("heard")).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn methods(proxy: &Proxy) -> Vec<String> {
    let methods = heard(proxy);
    methods
        .iter()
        .map(|line| line["method"].as_str().unwrap().to_owned())
        .collect()
}

fn starts(proxy: &Proxy) -> f64 {
    let starts = r#"dualgauge_link_starts_total{upstream="kuzu"}"#;
    proxy.metrics().value(starts)
}

#[test]
fn a_rest_client_has_paths_for_the_tools_of_a_child() {
    for variant in [Variant::Handwritten, Variant::Library] {
        let proxy = before(variant, "");
        for [rest, reply, rpc, _] in ROWS {
            // The library's ping is empty.
            let (rest, reply) = match (variant, rpc.starts_with("ping")) {
                (Variant::Library, true) => (rest, r#"200 {"status":"ok"}"#),
                _ => (rest.trim_end(), reply),
            };
            let answer = ask(&proxy, rest.trim_end());
            let answer = format!("{} {}", answer.status(), answer.text());
            assert_eq!(answer, reply, "{variant:?} {rest}");
            let heard = heard(&proxy);
            let said = heard.last().unwrap();
            let said = format!("{} {}", said["method"].as_str().unwrap(), said["params"]);
            let as_json = |text: &str| {
                let (method, params) = text.split_once(' ').unwrap();
                let params: Value = serde_json::from_str(params).unwrap();
                (method.to_owned(), params)
            };
            assert_eq!(as_json(&said), as_json(rpc), "{variant:?} {rest}");
            fs::remove_file(proxy.folder().join("memories")).unwrap_or_default();
        }
        assert_eq!(starts(&proxy), 1.0);
    }
}

#[test]
fn an_rpc_client_has_the_tools_of_a_child_as_they_are() {
    for variant in [Variant::Handwritten, Variant::Library] {
        let proxy = before(variant, "");
        for (place, [_, _, rpc, result]) in ROWS.into_iter().enumerate() {
            let (method, params) = rpc.split_once(' ').unwrap();
            let id = ["\"a\"", "0", "1.50", "123456789012345678901234567890"][place % 4];
            let call =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            let result = match (variant, method) {
                (Variant::Library, "ping") => "{}".to_owned(),
                (Variant::Library, _) => result.replacen("]}", r#"],"isError":false}"#, 1),
                _ => result.to_owned(),
            };
            let wanted = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            let answer = proxy.rpc(&call);
            assert_eq!(body_of(&answer, 200), wanted, "{variant:?} {call}");
            fs::remove_file(proxy.folder().join("memories")).unwrap_or_default();
        }
    }
}

#[test]
fn the_child_is_greeted_once_and_its_greeting_is_everybodys() {
    for (variant, name, version) in [
        (Variant::Handwritten, "1.12.11", "2025-11-25"),
        (Variant::Early, "1.0.0", "2024-11-05"),
        (Variant::Library, "1.12.11", "2025-11-25"),
    ] {
        let proxy = before(variant, "");
        for _ in 0..2 {
            let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
            let greeting = proxy.rpc(message("initialize", &params)).json();
            assert_eq!(greeting["id"], 1);
            let result = &greeting["result"];
            assert_eq!(result["serverInfo"]["version"], name, "{greeting}");
            assert_eq!(result["protocolVersion"], version, "{greeting}");
            let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            assert_eq!(proxy.rpc(note).status(), 202);
        }
        let tools = proxy.rpc(message("tools/list", &json!({}))).json();
        let tools = tools["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 9);
        // The era is asked for once, which no version of it knows.
        let heard = [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/list",
        ];
        assert_eq!(methods(&proxy), heard);
    }
}

#[test]
fn what_ends_a_child_or_silences_it_does_not_reach_it() {
    for variant in [Variant::Handwritten, Variant::Early, Variant::Library] {
        let proxy = before(variant, "");
        let rows = [
            ("5", -32600),
            ("\"x\"", -32600),
            ("null", -32600),
            ("[]", -32600),
            ("{", -32700),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
                -32600,
            ),
        ];
        for (body, code) in rows {
            let answer = proxy.rpc(body).json();
            assert_eq!(answer["error"]["code"], code, "{body}");
        }
        for method in ["shutdown", "exit"] {
            let answer = proxy.rpc(message(method, &json!({}))).json();
            assert_eq!(rpc_failure(&answer), (-32601, "route_not_found"));
            let batch = format!("[{}]", message(method, &json!({})));
            let answers = proxy.rpc(batch).json();
            assert_eq!(rpc_failure(&answers[0]), (-32601, "route_not_found"));
        }
        // A batch is said one by one, and an answer has a message each.
        let batch = format!(
            "[{},{},7,{}]",
            message("ping", &json!({})),
            r#"{"jsonrpc":"2.0","method":"notifications/told"}"#,
            message("tools/list", &json!({})).replace("\"id\":1", "\"id\":\"b\""),
        );
        let answers = proxy.rpc(batch).json();
        let ids: Vec<&Value> = answers
            .as_array()
            .unwrap()
            .iter()
            .map(|answer| &answer["id"])
            .collect();
        assert_eq!(ids, [&json!(1), &Value::Null, &json!("b")], "{answers}");
        assert_eq!(answers[1]["error"]["code"], -32600);
        let heard = heard(&proxy);
        assert!(
            heard.iter().all(|line| line["jsonrpc"] == "2.0"),
            "{heard:?}"
        );
        assert_eq!(starts(&proxy), 1.0, "{variant:?}");
    }
}

#[test]
fn many_clients_share_a_child_that_hears_one_line_at_a_time() {
    for variant in [Variant::Handwritten, Variant::Library] {
        let proxy = before(variant, "");
        thread::scope(|scope| {
            for client in 0..8 {
                let proxy = &proxy;
                scope.spawn(move || {
                    for turn in 0..5 {
                        let prompt = format!("{client}.{turn}");
                        let body = json!({ "prompt": prompt });
                        let answer = ask(proxy, &format!("POST /api/enhance {body}"));
                        let text = format!("## Relevant Context:\n- We use PostgreSQL\n\n{prompt}");
                        assert_eq!(answer.json(), json!({ "enhanced": text }));
                        let body = json!({"prompt": format!("{prompt} rpc")});
                        let answer = proxy.rpc(tool("kuzu_enhance", &body)).json();
                        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
                        assert!(text.ends_with(&format!("\n{prompt} rpc")), "{text}");
                    }
                });
            }
        });
        // Three of the proxy's own: which era the child is of, and the handshake.
        assert_eq!(methods(&proxy).len(), 83, "{variant:?}");
    }
}

#[test]
fn a_slow_tool_costs_its_own_caller_and_no_other() {
    let proxy = before(Variant::Handwritten, "timeout = \"300ms\"\n");
    assert_eq!(ask(&proxy, "GET /health").status(), 200);
    let slow = ask(&proxy, "GET /api/recall?query=slow");
    assert_eq!(slow.status(), 504);
    assert_eq!(problem(&slow).0, "upstream_timeout");
    // Its answer comes now, before the one that is asked for.
    let health = ask(&proxy, "GET /health");
    assert_eq!(body_of(&health, 200), r#"{"status":"ok"}"#);
    let late = r#"dualgauge_link_strays_total{upstream="kuzu",kind="late"}"#;
    assert_eq!(proxy.metrics().value(late), 1.0);
    assert_eq!(starts(&proxy), 1.0);
}

/// A number that Python does not read.
fn unreadable() -> String {
    let digits = "7".repeat(5000);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"n":{digits}}}}}"#)
}

#[test]
fn an_error_that_does_not_say_whose_it_is_belongs_to_the_only_call() {
    let proxy = before(Variant::Handwritten, "");
    // Until something is answered, it may be about the greeting.
    assert_eq!(ask(&proxy, "GET /health").status(), 200);
    let answer = proxy.rpc(unreadable()).json();
    assert_eq!(answer["id"], 1);
    assert_eq!(
        answer["error"],
        json!({"code": -32700, "message": "Parse error: ..."})
    );
    // Params of another kind are an error that does.
    let answer = proxy.rpc(message("tools/call", &json!([1]))).json();
    assert_eq!(answer["error"]["code"], -32603);
    let health = ask(&proxy, "GET /health");
    assert_eq!(body_of(&health, 200), r#"{"status":"ok"}"#);
}

#[test]
fn a_notification_in_place_of_an_answer_is_none() {
    let keys = format!("timeout = \"300ms\"\n{BROADCAST}");
    let proxy = before(Variant::Library, &keys);
    let mut client = connect(&proxy);
    client.say(message("ping", &json!({})));
    assert_eq!(client.hear()["result"], json!({}));
    for body in [unreadable(), message("tools/call", &json!([1]))] {
        client.say(&body);
        assert_eq!(client.hear_text(), UNREADABLE);
        assert_eq!(rpc_failure(&client.hear()), (-31022, "upstream_timeout"));
    }
    let health = ask(&proxy, "GET /health");
    assert_eq!(body_of(&health, 200), r#"{"status":"ok"}"#);
    let recalled = ask(&proxy, "GET /api/recall?query=a");
    assert_eq!(
        body_of(&recalled, 200),
        r#"{"memories":"- We use PostgreSQL"}"#
    );
    assert_eq!(starts(&proxy), 1.0);
}

#[test]
fn what_fails_is_told_as_each_server_tells_it() {
    let own = before(Variant::Handwritten, "");
    let answer = own.rpc(tool("kuzu_recall", &json!({}))).json();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = own.rpc(tool("recent", &json!({}))).json();
    let error = json!({"code": -32601, "message": "Tool not found: recent"});
    assert_eq!(answer["error"], error);
    let answer = own.rpc(tool("stats", &json!({}))).json();
    assert!(answer["result"]["content"].is_array(), "{answer}");
    let answer = own.rpc(message("nope", &json!({}))).json();
    let error = json!({"code": -32601, "message": "Method not found: nope"});
    assert_eq!(answer["error"], error);

    let library = before(Variant::Library, "");
    let answer = library.rpc(tool("kuzu_recall", &json!({}))).json();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = library.rpc(tool("nope", &json!({}))).json();
    let text = &answer["result"]["content"][0]["text"];
    assert_eq!(text, "Unknown tool: nope");
    let answer = library.rpc(message("nope", &json!({}))).json();
    let error = json!({"code": -32602, "message": "Invalid request parameters", "data": ""});
    assert_eq!(answer["error"], error);

    let early = before(Variant::Early, "");
    let answer = early.rpc(tool("stats", &json!({}))).json();
    let error = json!({"code": -32001, "message": "Error executing tool 'stats': no database"});
    assert_eq!(answer["error"], error);
    // Its tools have other names than those of the table.
    let answer = ask(&early, "GET /api/stats");
    assert_eq!(
        body_of(&answer, 404),
        r#"{"error":"Tool not found: kuzu_stats"}"#
    );
}

#[test]
fn what_was_remembered_is_there_after_a_restart_of_the_child() {
    for variant in [Variant::Handwritten, Variant::Library] {
        let proxy = before(variant, "");
        let body = r#"{"content":"The ledger is PostgreSQL"}"#;
        let answer = ask(&proxy, &format!("POST /api/memories {body}"));
        assert_eq!(
            body_of(&answer, 201),
            format!(r#"{{"id":"{MEMORY}"}}"#),
            "{variant:?}"
        );
        kill_child(&proxy);
        becomes(|| starts(&proxy), &2.0);
        let answer = ask(&proxy, "GET /api/recall?query=ledger");
        let told = r#"{"memories":"- The ledger is PostgreSQL"}"#;
        assert_eq!(body_of(&answer, 200), told);
        // The second life was greeted as the first one was.
        let greeted = methods(&proxy);
        let greetings = greeted.iter().filter(|method| *method == "initialize");
        assert_eq!(greetings.count(), 2, "{greeted:?}");
        let stopped = proxy.stop();
        assert!(stopped.status.success(), "{stopped:?}");
    }
}
