//! `dualgauge rest` and `dualgauge mcp`: a server is served in the other protocol without a configuration.

mod child;
mod faults;
mod pending;
mod starts;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp::usage::eras;
use crate::scene::{Called, answer, json as json_answer};
use crate::support::{Message, Proxy, Upstream, becomes, program, run_to_end};

/// The tools of the MCP server, and what they return.
fn tool(name: &str, arguments: &Value) -> Value {
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    match name {
        "add" => {
            let sum = arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap();
            json!({ "content": [{ "type": "text", "text": "a sum" }], "structuredContent": { "sum": sum } })
        }
        "say" => text(arguments["text"].as_str().unwrap_or("nothing")),
        "fail" => json!({ "content": [{ "type": "text", "text": "it broke" }], "isError": true }),
        "draw" => {
            json!({ "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }] })
        }
        other => panic!("{other}"),
    }
}

fn tools() -> Value {
    let number = json!({ "type": "integer" });
    json!([
        {
            "name": "add",
            "title": "Add numbers",
            "description": "Adds two numbers.",
            "inputSchema": { "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"] },
            "outputSchema": { "type": "object", "properties": { "sum": number } },
            "annotations": { "readOnlyHint": true },
        },
        { "name": "say", "inputSchema": { "type": "object", "properties": { "text": { "$ref": "#" } } } },
        { "name": "fail", "inputSchema": { "type": "object" } },
        { "name": "draw", "inputSchema": { "type": "object" } },
    ])
}

/// An MCP server with [`tools`].
fn mcp_server() -> Upstream {
    mcp_server_of(tools())
}

/// The same with other tools, of those that [`tool`] knows.
pub(crate) fn mcp_server_of(tools: Value) -> Upstream {
    mcp_server_with(tools, called_tool)
}

/// Returns the result of [`tool`].
fn called_tool(name: &str, arguments: &Value) -> Result<Value, Value> {
    Ok(tool(name, arguments))
}

/// An MCP server with sessions of 2025-06-18, no stream of its own, and these tools. `call` returns the result or the error
/// of one, given its name and arguments.
pub(crate) fn mcp_server_with(
    tools: Value,
    call: impl Fn(&str, &Value) -> Result<Value, Value> + Send + Sync + 'static,
) -> Upstream {
    Upstream::serving(move |request| reply(request, &tools, &call))
}

/// The reply of an MCP server with these tools.
fn reply(
    request: &Message,
    tools: &Value,
    call: &impl Fn(&str, &Value) -> Result<Value, Value>,
) -> Vec<u8> {
    if !request.head.start.starts_with("POST") {
        return answer("405 Method Not Allowed", &[], "");
    }
    let called = Called::of(request);
    let Some(id) = called.id else {
        return answer("202 Accepted", &[], "");
    };
    let params: Value = serde_json::from_str(called.params()).unwrap();
    let outcome = match called.method() {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "peer", "version": "1" },
        })),
        "tools/list" => Ok(json!({ "tools": tools })),
        "tools/call" => call(params["name"].as_str().unwrap(), &params["arguments"]),
        _ => Err(json!({ "code": -32601, "message": "Method not found" })),
    };
    json_answer(match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
    })
}

fn launched(arguments: &[&str]) -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    let mut command = program(arguments);
    command.env("TMPDIR", folder.path());
    Proxy::launch(command, folder)
}

/// The MCP server as a REST API.
fn rest(server: &Upstream, more: &[&str]) -> Proxy {
    let url = format!("http://{}/mcp", server.address());
    let arguments = ["rest", "--mcp", &url];
    let proxy = launched(&[&arguments[..], more].concat());
    proxy.printed("Stop with Ctrl-C.");
    proxy
}

const LOOPBACK: [&str; 2] = ["--listen", "127.0.0.1:0"];
const JSON: (&str, &str) = ("content-type", "application/json");

fn post(proxy: &Proxy, path: &str, body: &Value) -> Message {
    proxy.rest("POST", path, &[JSON], body.to_string())
}

#[test]
fn the_printed_call_names_the_values_that_must_be_filled_in() {
    let printed = |schema: Value| {
        let server = mcp_server_of(json!([{ "name": "say", "inputSchema": schema }]));
        let url = format!("http://{}/mcp", server.address());
        let proxy = launched(&[&["rest", "--mcp", &url], &LOOPBACK[..]].concat());
        proxy.printed("Stop with Ctrl-C.")
    };
    let schema = |text: Value| json!({ "type": "object", "properties": { "text": text }, "required": ["text"] });
    let guessed = printed(schema(json!({ "type": "string" })));
    let line = "  Fill in `text` first: the tool names no valid value.\n";
    assert!(guessed.contains(line), "{guessed}");
    let given = printed(schema(
        json!({ "type": "string", "default": "a", "examples": ["b"] }),
    ));
    assert!(given.contains(r#"-d '{"text":"b"}'"#), "{given}");
    assert!(!given.contains("Fill in"), "{given}");
}

#[test]
fn tools_return_their_values_over_rest() {
    let server = mcp_server();
    let proxy = rest(&server, &LOOPBACK);
    let sum = post(&proxy, "/add", &json!({ "a": 1, "b": 2 }));
    assert_eq!((sum.status(), sum.json()), (200, json!({ "sum": 3 })));
    let sum = proxy.rest("GET", "/add?a=1&b=4", &[], "");
    assert_eq!((sum.status(), sum.json()), (200, json!({ "sum": 5 })));
    let said = post(&proxy, "/say", &json!({ "text": "plain" }));
    assert_eq!((said.status(), said.text()), (200, "plain"));
    assert_eq!(
        said.head.one("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let said = post(&proxy, "/say", &json!({ "text": "[1]" }));
    assert_eq!(said.json(), json!([1]));
    let failed = post(&proxy, "/fail", &json!({}));
    assert_eq!(failed.status(), 422);
    assert_eq!(failed.json()["detail"], "it broke");
    let drawn = post(&proxy, "/draw", &json!({}));
    assert_eq!((drawn.status(), &*drawn.body), (200, &[0][..]));
    assert_eq!(drawn.head.one("content-type"), Some("image/png"));
    assert_eq!(drawn.head.one("content-security-policy"), Some("sandbox"));
    let wrong = proxy.rest("GET", "/add?a=x&b=4", &[], "");
    assert_eq!(wrong.status(), 400);
    assert_eq!(post(&proxy, "/nothing", &json!({})).status(), 404);
}

#[test]
fn the_list_of_tools_counts_as_no_client_with_a_handshake() {
    let server = mcp_server();
    let proxy = rest(&server, &LOOPBACK);
    becomes(|| eras(&proxy), &vec!["stateless".to_owned()]);
}

#[test]
fn the_document_and_the_page_describe_the_tools() {
    let server = mcp_server();
    let proxy = rest(&server, &LOOPBACK);
    let document = proxy.rest("GET", "/openapi.json", &[], "").json();
    assert_eq!(document["paths"]["/add"]["post"]["summary"], "Add numbers");
    assert_eq!(
        document["paths"]["/add"]["get"]["parameters"][0]["name"],
        "a"
    );
    let result = &document["paths"]["/add"]["post"]["responses"]["200"]["content"];
    assert_eq!(
        result["application/json"]["schema"]["properties"]["sum"]["type"],
        "integer"
    );
    assert_eq!(document["paths"]["/add"]["get"]["x-mcp-tool"], "add");
    let body = &document["paths"]["/say"]["post"]["requestBody"]["content"];
    let inner = &body["application/json"]["schema"]["properties"]["text"]["$ref"];
    assert_eq!(*inner, "#/components/schemas/arguments");
    let looping = &document["components"]["schemas"]["arguments"];
    assert_eq!(looping["properties"]["text"]["$ref"], *inner);
    assert_eq!(document["info"]["title"], "peer");
    assert_eq!(document.get("security"), None);
    let page = proxy.rest("GET", "/docs", &[], "");
    let policy = page.head.one("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    for inline in [
        "<style",
        " style=",
        " onclick=",
        "<script>",
        "http://",
        "https://",
    ] {
        assert!(!page.text().contains(inline), "{inline}");
    }
    for (path, kind) in [
        ("/docs/page.js", "text/javascript"),
        ("/docs/page.css", "text/css"),
    ] {
        let file = proxy.rest("GET", path, &[], "");
        assert_eq!(file.status(), 200);
        assert!(file.head.one("content-type").unwrap().starts_with(kind));
        assert!(!file.text().contains("https://"));
    }
}

#[test]
fn a_key_is_required_everywhere() {
    let server = mcp_server();
    let proxy = rest(
        &server,
        &["--listen", "127.0.0.1:0", "--api-key", "top-secret"],
    );
    for (method, path) in [
        ("POST", "/add"),
        ("GET", "/docs"),
        ("GET", "/docs/page.js"),
        ("GET", "/openapi.json"),
        ("GET", "/nothing"),
        ("POST", "/mcp"),
    ] {
        let refused = proxy.rest(method, path, &[JSON], "{}");
        assert_eq!(refused.status(), 401, "{method} {path}");
        let challenges = refused.head.all("www-authenticate");
        let basic = "Basic realm=\"dualgauge\", charset=\"UTF-8\"";
        assert_eq!(challenges, ["Bearer realm=\"dualgauge\"", basic], "{path}");
        let wrong = proxy.rest(method, path, &[JSON, ("x-api-key", "other")], "{}");
        assert_eq!(wrong.status(), 401, "{method} {path}");
    }
    let body = json!({ "a": 1, "b": 1 }).to_string();
    for own in [
        ("x-api-key", "top-secret"),
        ("authorization", "Bearer top-secret"),
        ("authorization", "Basic YW55Ym9keTp0b3Atc2VjcmV0"),
    ] {
        let served = proxy.rest("POST", "/add", &[JSON, own], body.clone());
        assert_eq!((served.status(), served.json()), (200, json!({ "sum": 2 })));
    }
    let document = proxy.rest("GET", "/openapi.json", &[("x-api-key", "top-secret")], "");
    let scheme = &document.json()["components"]["securitySchemes"]["apiKey"];
    assert_eq!(
        *scheme,
        json!({ "type": "apiKey", "in": "header", "name": "x-api-key" })
    );
    assert_eq!(
        document.json()["security"],
        json!([{ "apiKey": [] }, { "bearer": [] }, { "basic": [] }])
    );
    let metrics = proxy.metrics();
    let counts = metrics.table("dualgauge_unauthenticated_requests_total", &["credentials"]);
    let counts: Vec<(&str, f64)> = counts
        .iter()
        .map(|(row, count)| (row.as_str(), *count))
        .collect();
    assert_eq!(counts, [("missing", 6.0), ("unknown", 6.0)]);
    // The key is for the proxy alone.
    for request in server.requests() {
        assert!(!format!("{request:?}").contains("secret"), "{request:?}");
        assert_eq!(request.head.one("authorization"), None);
    }
}

#[test]
fn a_listener_beyond_loopback_says_who_may_call() {
    for command in [
        &["rest", "--mcp", "http://127.0.0.1:9/mcp"][..],
        &["mcp", "--openapi", "api.json"],
    ] {
        let ended = run_to_end(program(&[command, &["--listen", "0.0.0.0:0"]].concat()));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let errors = &ended.errors;
        assert!(
            errors.contains("`--api-key KEY`") && errors.contains("`--no-auth`"),
            "{errors}"
        );
    }
}

#[test]
fn a_server_that_is_not_there_is_reported_at_once() {
    let ended = run_to_end(program(&["rest", "--mcp", "http://127.0.0.1:1/mcp"]));
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .errors
            .starts_with("error: no connection to `127.0.0.1:1`"),
        "{}",
        ended.errors
    );
    let ended = run_to_end(program(&["rest", "--", "no-such-program"]));
    assert!(
        ended.errors.contains("`no-such-program`"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_saved_configuration_passes_the_check_and_is_not_overwritten() {
    let server = mcp_server();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("api");
    let place = place.to_str().unwrap();
    let proxy = rest(&server, &["--listen", "127.0.0.1:0", "--save", place]);
    assert_eq!(
        post(&proxy, "/add", &json!({ "a": 1, "b": 1 })).status(),
        200
    );
    drop(proxy);
    let main = format!("{place}/dualgauge.toml");
    let ended = run_to_end(program(&["check", "--config", &main]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let url = format!("http://{}/mcp", server.address());
    let ended = run_to_end(program(&["rest", "--mcp", &url, "--save", place]));
    assert!(ended.errors.contains("already exists"), "{}", ended.errors);
}

const API: &str = r#"{
  "openapi": "3.1.0",
  "info": { "title": "Pets", "version": "1" },
  "servers": [{ "url": "http://127.0.0.1:1/v1" }],
  "paths": {
    "/pets/{id}": { "get": {
      "operationId": "getPet", "summary": "Get a pet",
      "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
      "responses": { "200": { "description": "ok", "content": { "application/json": { "schema": { "type": "object" } } } } }
    } }
  }
}"#;

/// The arguments of `mcp` for the document before a server.
fn mcp(folder: &Path, server: &Upstream, more: &[&str]) -> Vec<String> {
    let file = folder.join("api.json");
    fs::write(&file, API).unwrap();
    let upstream = format!("http://{}", server.address());
    let arguments = [
        "mcp",
        "--openapi",
        file.to_str().unwrap(),
        "--upstream",
        &upstream,
    ];
    let all = arguments.iter().chain(more);
    all.map(|word| (*word).to_owned()).collect()
}

fn call() -> Value {
    let params = json!({ "name": "getPet", "arguments": { "id": 7 } });
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })
}

/// Returns the request that the REST server gets for a tool call with the caller's token.
fn got(more: &[&str]) -> Message {
    let server = Upstream::answering(json_answer(r#"{"id":7}"#));
    let folder = tempfile::tempdir().unwrap();
    let arguments = mcp(folder.path(), &server, &[&LOOPBACK[..], more].concat());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = launched(&arguments);
    proxy.printed("Stop with Ctrl-C.");
    let token = ("authorization", "Bearer caller");
    let reply = proxy.rest("POST", "/mcp", &[JSON, token], call().to_string());
    assert_eq!(
        reply.json()["result"]["structuredContent"],
        json!({ "id": 7 })
    );
    server.request()
}

#[test]
fn operations_are_tools_and_the_token_of_the_caller_stays() {
    let request = got(&[]);
    assert_eq!(request.head.start, "GET /v1/pets/7 HTTP/1.1");
    assert_eq!(request.head.one("authorization"), None);
    let request = got(&["--header", "authorization: Bearer own"]);
    assert_eq!(request.head.one("authorization"), Some("Bearer own"));
    let request = got(&["--header", r#"x-flags: {"a": {}} }{"#]);
    assert_eq!(request.head.one("x-flags"), Some(r#"{"a": {}} }{"#));
    let request = got(&["--forward-authorization"]);
    assert_eq!(request.head.one("authorization"), Some("Bearer caller"));
}

#[test]
fn a_client_on_standard_input_gets_responses_only() {
    let server = Upstream::answering(json_answer("{\n  \"id\": 7\n}"));
    let folder = tempfile::tempdir().unwrap();
    let arguments = mcp(folder.path(), &server, &["--stdio"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = program(&arguments);
    command.env("TMPDIR", folder.path()).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    } });
    let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let mut input = child.stdin.take().unwrap();
    for message in [initialize, done, call()] {
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }
    // The end of input lets the calls in progress end, then the process.
    drop(input);
    let mut output = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    assert!(child.wait().unwrap().success());
    let lines = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut replies: Vec<Value> = lines.collect();
    replies.sort_by_key(|reply| reply["id"].as_i64());
    assert_eq!(replies.len(), 2, "{output}");
    assert_eq!(replies[0]["result"]["serverInfo"]["name"], "Pets");
    assert_eq!(
        replies[1]["result"]["structuredContent"],
        json!({ "id": 7 })
    );
    assert_eq!(server.request().text(), "");
}
