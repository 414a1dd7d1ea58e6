//! `config/examples/rest-as-mcp.toml`: MCP clients list and call the operations of a plain REST server.

use std::fs;

use serde_json::{Value, json};

use super::servers::config;
use crate::scene::{answer, call, json as json_answer, json_with};
use crate::support::{Message, Proxy, Upstream};

/// The REST server, which knows nothing of MCP.
fn library() -> Upstream {
    Upstream::serving(|request| {
        let target = request.head.start.strip_suffix(" HTTP/1.1").unwrap();
        let dune = r#"{"id":1,"title":"Dune","pages":600}"#;
        match target {
            "GET /books?author=Herbert" | "GET /books" => json_answer(format!("[{dune}]")),
            "GET /books/1" => json_answer(dune),
            "POST /books" => json_with("201 Created", r#"{"id":2,"title":"Emma"}"#),
            "DELETE /books/1" => answer("204 No Content", &[], ""),
            "GET /books/1/cover" => answer("200 OK", &[("Content-Type", "image/png")], b"\x89PNG"),
            _ => json_with("404 Not Found", r#"{"detail":"no such book"}"#),
        }
    })
}

/// The example as it is shipped, before a server of the test.
fn before(server: &Upstream) -> Proxy {
    let example = fs::read_to_string(config().join("examples/rest-as-mcp.toml")).unwrap();
    let address = format!("http://{}", server.address());
    let example = example.replace("http://127.0.0.1:9001", &address);
    assert!(example.contains(&address), "{example}");
    Proxy::start(&example)
}

fn said(proxy: &Proxy, method: &str, params: &Value) -> Message {
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Authorization", "Bearer of-the-caller"),
    ];
    proxy.rest("POST", "/mcp", &headers, call(method, &params.to_string()))
}

fn called(proxy: &Proxy, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    said(proxy, "tools/call", &params).json()["result"].clone()
}

#[test]
fn a_client_lists_and_calls_the_operations() {
    let server = library();
    let proxy = before(&server);
    let greeting = said(
        &proxy,
        "initialize",
        &json!({ "protocolVersion": "2025-11-25" }),
    )
    .json();
    assert_eq!(greeting["result"]["capabilities"], json!({ "tools": {} }));
    let tools = said(&proxy, "tools/list", &json!({})).json();
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "list_books",
            "get_book",
            "add_book",
            "remove_book",
            "get_cover"
        ]
    );
    assert_eq!(
        tools[0]["outputSchema"]["properties"]["result"]["type"],
        "array"
    );
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["id"]));
    assert_eq!(
        tools[2]["inputSchema"]["properties"]["pages"]["type"],
        "integer"
    );
    let dune = json!({ "id": 1, "title": "Dune", "pages": 600 });
    let found = called(&proxy, "list_books", &json!({ "author": "Herbert" }));
    assert_eq!(found["structuredContent"], json!({ "result": [dune] }));
    let found = called(&proxy, "get_book", &json!({ "id": 1 }));
    assert_eq!(found["structuredContent"], dune);
    let added = called(&proxy, "add_book", &json!({ "title": "Emma" }));
    assert_eq!(added["structuredContent"]["id"], 2);
    let removed = called(&proxy, "remove_book", &json!({ "id": 1 }));
    assert_eq!(removed, json!({ "content": [] }));
    let cover = called(&proxy, "get_cover", &json!({ "id": 1 }));
    assert_eq!(cover["content"][0]["mimeType"], "image/png");
    let failed = called(&proxy, "get_book", &json!({ "id": 9 }));
    assert_eq!(failed["isError"], true);
    assert_eq!(
        failed["content"][0]["text"],
        "HTTP 404 Not Found: no such book"
    );
    for request in server.requests() {
        assert_eq!(request.head.one("authorization"), None);
    }
    // REST clients keep their routes, and reach nothing else.
    assert_eq!(proxy.rest("GET", "/books", &[], "").status(), 200);
    assert_eq!(proxy.rest("GET", "/admin", &[], "").status(), 404);
}
