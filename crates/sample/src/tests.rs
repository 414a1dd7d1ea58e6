//! Golden tables of the wire: what each request gets, byte for byte.

mod mcp;
mod rest;
mod rpc;

use super::*;

const CALL: &str = "/mcp/v1/tools/call";

fn sample() -> Sample {
    Sample::new(Database::seeded().unwrap())
}

fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Bytes::copy_from_slice(body)).unwrap()
}

fn post(target: &str, body: &str) -> Reply {
    let headers = [("content-type", "application/json")];
    sample().answer(&request("POST", target, &headers, body.as_bytes()))
}

fn bare(method: &str, target: &str) -> Reply {
    let headers = [("host", "demo.example:99")];
    sample().answer(&request(method, target, &headers, b""))
}

fn text(reply: &Reply) -> &str {
    std::str::from_utf8(reply.body().bytes()).unwrap()
}

fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    reply
        .headers()
        .get(name)
        .map_or("", |v| v.to_str().unwrap())
}

/// The text of a REST tool result, and whether it is an error.
fn rest_result(body: &str) -> (String, bool) {
    let reply = post(CALL, body);
    assert_eq!(reply.status(), 200);
    let json: serde_json::Value = serde_json::from_str(text(&reply)).unwrap();
    let text = json["content"][0]["text"].as_str().unwrap().to_owned();
    (text, json["isError"].as_bool().unwrap())
}

#[test]
fn the_tools_are_the_same_in_both_languages() {
    let rest = bare("POST", "/mcp/v1/tools/list");
    let rpc = post("/", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(
        text(&rpc),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, text(&rest))
    );
    assert!(text(&rest).contains(
        r#"{"name":"list_tables","description":"List all tables in the database","inputSchema":{"type":"object","properties":{},"required":[]}}"#
    ));
}

#[test]
fn a_query_answers_as_the_documentation_shows() {
    let rows =
        r#"[{'id': 1, 'name': \"O'Brien\", 'age': 30}, {'id': 2, 'name': None, 'age': None}]"#;
    let rest = post(
        CALL,
        r#"{"name":"query_records","arguments":{"table_name":"users"}}"#,
    );
    assert_eq!(
        text(&rest),
        format!(r#"{{"content":[{{"type":"text","text":"{rows}"}}],"isError":false}}"#)
    );
    let rpc = post(
        "/rpc",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query_records","arguments":{"table_name":"users"}}}"#,
    );
    assert_eq!(
        text(&rpc),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{rows}"}}]}}}}"#
        )
    );
}

/// A call, the text that REST puts in the content, and the `error` of JSON-RPC.
const FAILURES: [(&str, &str, &str); 6] = [
    (
        r#"{"name":"nope","arguments":{}}"#,
        "Tool not found: nope",
        r#"{"code":-32602,"message":"Tool not found: nope"}"#,
    ),
    (
        r#"{"name":"query_records","arguments":{}}"#,
        "CRUDOperations.query_records() missing 1 required positional argument: 'table_name'",
        r#"{"code":-32603,"message":"Internal error","data":{"details":"CRUDOperations.query_records() missing 1 required positional argument: 'table_name'"}}"#,
    ),
    (
        r#"{"name":"query_records","arguments":{"table_name":"nosuch"}}"#,
        "no such table: nosuch",
        r#"{"code":-32603,"message":"Internal error","data":{"details":"no such table: nosuch"}}"#,
    ),
    (
        r#"{"name":"query_records","arguments":{"table_name":"a b"}}"#,
        "Invalid table name: a b",
        r#"{"code":-32603,"message":"Internal error","data":{"details":"Invalid table name: a b"}}"#,
    ),
    (
        r#"{"name":"execute_raw_query","arguments":{"query":"DROP TABLE users"}}"#,
        "Only SELECT queries allowed in read-only mode. To execute write operations, set read_only=False in the arguments.",
        r#"{"code":-32603,"message":"Internal error","data":{"details":"Only SELECT queries allowed in read-only mode. To execute write operations, set read_only=False in the arguments."}}"#,
    ),
    (
        r#"{"name":"create_table","arguments":{"table_name":"t","schema":{"a":"NOPE"}}}"#,
        "Invalid SQL type: NOPE",
        r#"{"code":-32602,"message":"Invalid SQL type: NOPE"}"#,
    ),
];

#[test]
fn a_failed_tool_is_a_success_in_rest_and_an_error_in_rpc() {
    for (call, rest, rpc) in FAILURES {
        assert_eq!(rest_result(call), (rest.to_owned(), true), "{call}");
        let body = format!(r#"{{"id":7,"method":"tools/call","params":{call}}}"#);
        let reply = post("/", &body);
        assert_eq!(reply.status(), 200);
        let expected = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{rpc}}}"#);
        assert_eq!(text(&reply), expected);
    }
}

#[test]
fn what_one_language_writes_the_other_reads() {
    let mut sample = sample();
    let json = [("content-type", "application/json")];
    let insert = br#"{"name":"insert_record","arguments":{"table_name":"users","data":{"name":"Ann","age":7}}}"#;
    let reply = sample.answer(&request("POST", CALL, &json, insert));
    assert!(text(&reply).contains("{'id': 3, 'data': {'name': 'Ann', 'age': 7}}"));
    let query = br#"{"id":1,"method":"tools/call","params":{"name":"query_records","arguments":{"table_name":"users","filters":{"id":3}}}}"#;
    let reply = sample.answer(&request("POST", "/mcp", &json, query));
    assert_eq!(
        text(&reply),
        r#"{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "[{'id': 3, 'name': 'Ann', 'age': 7}]"}]}}"#
    );
}

#[test]
fn the_example_table_names_what_the_sample_serves() {
    let table: toml::Table = include_str!("../../../config/sqlite.toml").parse().unwrap();
    let routes = table["route"].as_array().unwrap();
    assert_eq!(routes.len(), 2);
    for route in routes {
        let (method, path) = route["rest"].as_str().unwrap().split_once(' ').unwrap();
        let known = routes_of(path).any(|(served, _)| served.as_str() == method);
        assert!(known, "{method} {path}");
        let envelope = format!(r#"{{"id":1,"method":{}}}"#, route["rpc"]);
        assert!(!text(&post("/rpc", &envelope)).contains("Method not found"));
    }
}
