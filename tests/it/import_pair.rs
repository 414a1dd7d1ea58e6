//! `dualgauge import` of an OpenAPI document together with an MCP server: the draft serves the clients of the old REST
//! server with the tools, and nothing in it is written by hand.

use std::fs;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::drafted::mcp_server_with;
use crate::mcp::peers::script;
use crate::scene::{answer, call, json as json_answer};
use crate::support::{Ended, Message, Proxy, Upstream, program, run_to_end};

/// The REST document: five operations that have a tool, and one that has none.
fn document() -> Value {
    let body = |schema: Value| json!({ "application/json": { "schema": schema } });
    let order = json!({ "$ref": "#/components/schemas/Order" });
    let id = json!({ "name": "orderId", "in": "path", "required": true, "schema": { "type": "integer" } });
    let missing = json!({ "description": "none", "content": body(json!({ "$ref": "#/components/schemas/Error" })) });
    let invalid = json!({ "description": "invalid", "content": body(json!({ "$ref": "#/components/schemas/Error" })) });
    let ok = |schema: &Value| json!({ "description": "done", "content": body(schema.clone()) });
    let list = json!({ "type": "array", "items": order });
    let order_body = json!({
        "type": "object", "required": ["customerName"],
        "properties": { "customerName": { "type": "string" }, "note": { "type": "string" } },
    });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Orders", "version": "1" },
        "paths": {
            "/orders": {
                "get": {
                    "operationId": "listOrders",
                    "parameters": [{ "name": "status", "in": "query", "schema": { "type": "string" } }],
                    "responses": { "200": ok(&list) },
                },
                "post": {
                    "operationId": "createOrder",
                    "requestBody": { "required": true, "content": body(order_body.clone()) },
                    "responses": { "201": created(ok(&order)), "400": invalid },
                },
            },
            "/orders/recent": { "get": { "operationId": "recentOrders", "responses": { "200": ok(&list) } } },
            "/orders/{orderId}": {
                "get": {
                    "operationId": "getOrder", "parameters": [id],
                    "responses": { "200": ok(&order), "404": missing },
                },
                "put": {
                    "operationId": "updateOrder", "parameters": [id],
                    "requestBody": { "required": true, "content": body(order_body) },
                    "responses": { "200": ok(&order), "404": missing },
                },
                "delete": {
                    "operationId": "deleteOrder", "parameters": [id],
                    "responses": { "204": { "description": "gone" }, "404": missing },
                },
            },
        },
        "components": components(),
    })
}

/// A response with the address of what was created.
fn created(mut response: Value) -> Value {
    response["headers"] = json!({ "Location": { "schema": { "type": "string" } } });
    response
}

/// The schemas of the REST document.
fn components() -> Value {
    json!({ "schemas": {
            "Order": {
                "type": "object", "required": ["id", "customerName", "kind"],
                "properties": {
                    "id": { "type": "integer" },
                    "customerName": { "type": "string" },
                    "note": { "type": "string", "nullable": true },
                    "lines": { "type": "array", "items": {
                        "type": "object", "required": ["unitPrice"],
                        "properties": { "sku": { "type": "string" }, "unitPrice": { "type": "number" } },
                    } },
                    "kind": { "type": "string", "enum": ["order"] },
                },
            },
            "Error": {
                "type": "object", "required": ["error"],
                "properties": { "error": {
                    "type": "object", "required": ["status", "message"],
                    "properties": { "status": { "type": "integer" }, "message": { "type": "string" } },
                } },
            },
        } })
}

fn rest_order(id: i64, name: &str) -> Value {
    json!({ "id": id, "customerName": name, "lines": [{ "sku": "a", "unitPrice": 1.5 }], "kind": "order" })
}

fn rest_error(status: u16, message: &str) -> String {
    json!({ "error": { "status": status, "message": message } }).to_string()
}

/// The old server.
fn rest_server(rest_order: fn(i64, &str) -> Value) -> Upstream {
    Upstream::serving(move |request| {
        let mut words = request.head.start.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let kind = [("Content-Type", "application/json")];
        let with = |status: &str, body: String| answer(status, &kind, body);
        let name = || request.json()["customerName"].as_str().unwrap().to_owned();
        match (method, target) {
            ("GET", "/orders?status=open") => {
                json_answer(json!([rest_order(7, "Ann")]).to_string())
            }
            ("GET", "/orders") => json_answer("[]"),
            ("GET", "/orders/recent") => json_answer(json!([rest_order(9, "recent")]).to_string()),
            ("POST", "/orders") if name().is_empty() => {
                with("400 Bad Request", rest_error(400, "a name is needed"))
            }
            ("POST", "/orders") => {
                let headers = [kind[0], ("Location", "/orders/8")];
                answer("201 Created", &headers, rest_order(8, &name()).to_string())
            }
            ("GET", "/orders/7") => json_answer(rest_order(7, "Ann").to_string()),
            ("PUT", "/orders/7") => json_answer(rest_order(7, &name()).to_string()),
            ("DELETE", "/orders/7") => answer("204 No Content", &[], ""),
            _ => with("404 Not Found", rest_error(404, "there is no such order")),
        }
    })
}

fn tools() -> Value {
    let integer = json!({ "type": "integer" });
    let string = json!({ "type": "string" });
    let order = json!({
        "type": "object", "required": ["order_id", "customer_name", "lines"],
        "properties": {
            "order_id": integer, "customer_name": string, "note": { "type": ["string", "null"] },
            "lines": { "type": "array", "items": {
                "type": "object", "required": ["unit_price"],
                "properties": { "sku": string, "unit_price": { "type": "number" } },
            } },
        },
    });
    let input = |properties: Value| json!({ "type": "object", "properties": properties });
    let wrapped = json!({ "type": "object", "required": ["order"], "properties": { "success": { "type": "boolean" }, "order": order } });
    json!([
        {
            "name": "list_orders", "inputSchema": input(json!({ "status": string })),
            "outputSchema": { "type": "object", "properties": { "orders": { "type": "array", "items": order }, "count": integer } },
        },
        { "name": "create_order", "inputSchema": input(json!({ "customer_name": string, "note": string })), "outputSchema": wrapped },
        { "name": "get_order", "inputSchema": input(json!({ "order_id": integer })), "outputSchema": order },
        {
            "name": "update_order",
            "inputSchema": input(json!({ "order_id": integer, "customer_name": string, "note": string })),
            "outputSchema": order,
        },
        { "name": "delete_order", "inputSchema": input(json!({ "order_id": integer })) },
    ])
}

fn tool_order(id: &Value, name: &Value) -> Value {
    json!({ "order_id": id, "customer_name": name, "lines": [{ "sku": "a", "unit_price": 1.5 }] })
}

/// The result of a tool, or an error of JSON-RPC.
fn call_tool(name: &str, arguments: &Value) -> Result<Value, Value> {
    let valued = |value: Value| {
        let text = value.to_string();
        Ok(
            json!({ "content": [{ "type": "text", "text": text }], "structuredContent": value, "isError": false }),
        )
    };
    let (id, customer) = (&arguments["order_id"], &arguments["customer_name"]);
    let is_known = *id == json!(7);
    match name {
        "list_orders" if arguments["status"] == "open" => {
            valued(json!({ "orders": [tool_order(&json!(7), &json!("Ann"))], "count": 1 }))
        }
        "list_orders" => valued(json!({ "orders": [], "count": 0 })),
        "create_order" if *customer == json!("") => {
            Err(json!({ "code": -32602, "message": "a name is needed" }))
        }
        "create_order" => {
            valued(json!({ "success": true, "order": tool_order(&json!(8), customer) }))
        }
        "get_order" if is_known => valued(tool_order(id, &json!("Ann"))),
        "update_order" if is_known => valued(tool_order(id, customer)),
        "delete_order" if is_known => {
            Ok(json!({ "content": [{ "type": "text", "text": "deleted" }] }))
        }
        _ => {
            let text = json!({ "type": "text", "text": "there is no such order" });
            Ok(json!({ "content": [text], "isError": true }))
        }
    }
}

/// The new server.
fn mcp_server() -> Upstream {
    mcp_server_with(tools(), call_tool)
}

/// Drafts the pair of the document and the server.
fn drafted(address: SocketAddr) -> String {
    import(address).output
}

fn import(address: SocketAddr) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("api.json");
    fs::write(&file, document().to_string()).unwrap();
    let url = format!("http://{address}/mcp");
    let mut command = program(&["import", "--method", "tools/list", "--from", &url]);
    command.arg("--openapi").arg(&file);
    let mut ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let folder = folder.path().display().to_string();
    ended.output = ended
        .output
        .replace(&address.to_string(), "127.0.0.1")
        .replace(&format!("{folder}/"), "");
    ended
}

const CALLS: [(&str, &str, &str); 12] = [
    ("GET", "/orders?status=open", ""),
    ("GET", "/orders", ""),
    ("GET", "/orders/recent", ""),
    ("POST", "/orders", r#"{"customerName":"Bob"}"#),
    ("POST", "/orders", r#"{"customerName":""}"#),
    ("GET", "/orders/7", ""),
    ("GET", "/orders/9", ""),
    ("PUT", "/orders/7", r#"{"customerName":"Cem"}"#),
    ("PUT", "/orders/9", r#"{"customerName":"Cem"}"#),
    ("DELETE", "/orders/7", ""),
    ("DELETE", "/orders/9", ""),
    ("PATCH", "/orders/9", "{}"),
];

/// The parts of a response that a client sees: status, type and address, and body.
fn seen(response: &Message) -> (u16, [Option<String>; 2], String) {
    let body = match response.body.is_empty() {
        true => String::new(),
        false => response.json().to_string(),
    };
    let head = ["content-type", "location"];
    let head = head.map(|name| response.head.one(name).map(str::to_owned));
    (response.status(), head, body)
}

/// A proxy between the two servers. `default` is the stage of a side.
fn proxy(old: SocketAddr, new: SocketAddr, default: &str, draft: &str) -> Proxy {
    Proxy::start(&format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"http://{old}\"\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://{new}/mcp\"\nprotocol = \"mcp\"\nconnect_timeout = \"30s\"\n\
         [rollout.default]\n{default}\n{draft}",
    ))
}

/// Makes all calls on the old server, and on the tools.
fn both(before: &Proxy, after: &Proxy, mut compare: impl FnMut(&str, [Message; 2])) {
    for (method, target, body) in CALLS {
        let kind = [("Content-Type", "application/json")];
        let kind = if body.is_empty() { &[][..] } else { &kind[..] };
        let responses = [before, after].map(|proxy| proxy.rest(method, target, kind, body));
        compare(&format!("{method} {target} {body}"), responses);
    }
}

#[test]
fn the_calls_of_rest_clients_work_on_the_tools() {
    let (old, new) = (rest_server(rest_order), mcp_server());
    let draft = drafted(new.address());
    insta::assert_snapshot!("import_pair_of_orders", draft);
    let [before, after] = ["rest = 'passthrough'", "rest = 'translate'"]
        .map(|stage| proxy(old.address(), new.address(), stage, &draft));
    both(&before, &after, |call, responses| {
        let [was, is] = responses.map(|response| seen(&response));
        assert_eq!(was, is, "{call}");
    });
    let served = |route: &str, stage: &str| {
        format!(
            r#"dualgauge_calls_total{{route="{route}",client="other",side="rest",stage="{stage}",outcome="success",blame="none"}}"#
        )
    };
    let metrics = after.metrics();
    assert_eq!(metrics.value(&served("create_order", "translate")), 1.0);
    assert_eq!(metrics.value(&served("recentOrders", "passthrough")), 1.0);
    after.log_line(&["route=recentOrders", "decision=route"]);
}

#[test]
fn check_passes_the_draft_of_a_pair() {
    let server = mcp_server();
    let draft = drafted(server.address());
    let folder = tempfile::tempdir().unwrap();
    let main = "include = [\"routes.toml\"]\n\
                [upstream.old]\nside = \"rest\"\nurl = \"http://127.0.0.1:1\"\n\
                [upstream.new]\nside = \"rpc\"\nurl = \"http://127.0.0.1:2/mcp\"\nprotocol = \"mcp\"\n";
    let file = folder.path().join("dualgauge.toml");
    fs::write(&file, main).unwrap();
    fs::write(folder.path().join("routes.toml"), &draft).unwrap();
    let mut command = program(&["check", "--config"]);
    command.arg(&file);
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{}\nof\n{draft}", ended.errors);
}

#[test]
fn rpc_clients_of_the_rest_server_get_results_with_any_address() {
    let new = mcp_server();
    let draft = drafted(new.address());
    for address in ["/orders/8", "http://example.com/orders/8", ""] {
        let headers = [("Content-Type", "application/json"), ("Location", address)];
        let headers = if address.is_empty() {
            &headers[..1]
        } else {
            &headers[..]
        };
        let order = rest_order(8, "Bob").to_string();
        let old = Upstream::answering(answer("201 Created", headers, order));
        let proxy = proxy(old.address(), new.address(), "rpc = 'translate'", &draft);
        let params = r#"{"name":"create_order","arguments":{"customer_name":"Bob"}}"#;
        let response = proxy.rpc(call("tools/call", params)).json();
        let order = &response["result"]["structuredContent"]["order"];
        let seen = [&order["order_id"], &order["customer_name"]];
        assert_eq!(seen, [&json!(8), &json!("Bob")], "{address}: {response}");
    }
}

#[test]
fn notes_on_a_pair_are_listed() {
    let server = mcp_server();
    let errors = import(server.address()).errors;
    for line in [
        "  list_orders: the REST document has no status for a failure of the operation; a failed tool is a 422",
        "  create_order: only the tool's result has `success`; REST clients do not get it, and RPC clients get none from the REST server",
        "  create_order: `location` of the 201 is the path of `GET /orders/{orderId}`, with `id` of the result",
    ] {
        assert!(
            errors.lines().any(|own| own == line),
            "{line}\nin\n{errors}"
        );
    }
}

/// A member without a value is `null` in the results of the library.
fn order_with_note(id: i64, name: &str) -> Value {
    let mut order = rest_order(id, name);
    order["note"] = Value::Null;
    order
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn the_calls_of_rest_clients_work_on_servers_of_the_official_library() {
    for library in ["peers", "peers-2"] {
        let old = rest_server(order_with_note);
        let new = script(library, "tests/it/import_pair/orders.py", &[]);
        let draft = drafted(new.address);
        let [before, after] = ["rest = 'passthrough'", "rest = 'translate'"]
            .map(|stage| proxy(old.address(), new.address, stage, &draft));
        both(&before, &after, |call, responses| {
            let [was, mut is] = responses.map(|response| seen(&response));
            // The library puts words of its own before those of a failure.
            if was.0 >= 400 {
                let words = [
                    " get_order",
                    " create_order",
                    " update_order",
                    " delete_order",
                ];
                for tool in words {
                    is.2 = is.2.replace(&format!("Error executing tool{tool}: "), "");
                }
            }
            assert_eq!(was, is, "{library}: {call}\nof\n{draft}");
        });
    }
}
