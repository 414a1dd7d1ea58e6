//! `dualgauge import --from`: a running server is asked what it can do.

use std::fs;

use serde_json::{Value, json};

use crate::scene::{Called, answer, json as json_answer};
use crate::support::{Ended, Message, Upstream, program, run_to_end};

/// Drafts from a server, with further arguments.
fn import(server: &Upstream, more: &[&str]) -> Ended {
    let url = format!("http://{}/rpc?tenant=a", server.address());
    let mut command = program(&["import", "--from", &url]);
    command.args(more);
    run_to_end(command)
}

fn drafted(server: &Upstream, more: &[&str]) -> String {
    let ended = import(server, more);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    ended
        .output
        .replace(&server.address().to_string(), "127.0.0.1")
}

/// The calls that the one server answers; all others get an error.
fn knowing(known: fn(&str, &Value) -> Option<Value>) -> Upstream {
    Upstream::serving(move |request| reply(request, known))
}

fn reply(request: &Message, known: fn(&str, &Value) -> Option<Value>) -> Vec<u8> {
    let called = Called::of(request);
    let Some(id) = called.id else {
        return answer("202 Accepted", &[], "");
    };
    let params: Value = serde_json::from_str(called.params()).unwrap();
    let reply = match known(called.method(), &params) {
        Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        None => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": { "code": -32601, "message": "Method not found" },
        }),
    };
    json_answer(reply.to_string())
}

fn document(method: &str, _: &Value) -> Option<Value> {
    let params = json!([{ "name": "id", "required": true, "schema": { "type": "integer" } }]);
    let methods = json!([{ "name": "pets.get", "params": params, "paramStructure": "by-name" }]);
    (method == "rpc.discover").then(|| json!({ "openrpc": "1.3.2", "methods": methods }))
}

fn tools(method: &str, params: &Value) -> Option<Value> {
    let tool = |name: &str| {
        let properties = json!({ "coach_id": { "type": "string" } });
        let schema =
            json!({ "type": "object", "required": ["coach_id"], "properties": properties });
        json!({ "name": name, "inputSchema": schema, "annotations": { "readOnlyHint": true } })
    };
    match (method, params["cursor"].as_str()) {
        ("tools/list", None) => Some(json!({ "tools": [tool("get_coach")], "nextCursor": "2" })),
        ("tools/list", Some("2")) => Some(json!({ "tools": [tool("find_coach")] })),
        _ => None,
    }
}

#[test]
fn a_server_that_discovers_itself_is_asked_once() {
    let server = knowing(document);
    insta::assert_snapshot!(
        "import_discover",
        drafted(&server, &["--header", "X-Key: secret"])
    );
    let request = server.request();
    assert_eq!(request.head.start, "POST /rpc?tenant=a HTTP/1.1");
    assert_eq!(request.head.one("x-key"), Some("secret"));
    assert_eq!(Called::of(&request).method(), "rpc.discover");
}

#[test]
fn a_server_that_does_not_discover_itself_is_asked_for_its_tools() {
    let server = knowing(tools);
    insta::assert_snapshot!("import_tools", drafted(&server, &[]));
    let requests = server.requests();
    let methods: Vec<&str> = requests
        .iter()
        .map(|request| Called::of(request).method.get())
        .collect();
    assert_eq!(
        methods,
        [r#""rpc.discover""#, r#""tools/list""#, r#""tools/list""#]
    );
}

/// The tools of `tests/import/tools.json`.
fn coaching() -> Upstream {
    let tools = |method: &str, _: &Value| {
        let document = include_str!("../import/tools.json");
        (method == "tools/list").then(|| serde_json::from_str(document).unwrap())
    };
    knowing(tools)
}

const COACHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import/coaches.json");

/// `check` has nothing against a draft.
fn assert_passes_check(draft: &str) {
    let folder = tempfile::tempdir().unwrap();
    let main = "include = [\"routes.toml\"]\n\
                [upstream.old]\nside = \"rest\"\nurl = \"http://127.0.0.1:1\"\n\
                [upstream.new]\nside = \"rpc\"\nurl = \"http://127.0.0.1:2/mcp\"\n";
    let file = folder.path().join("dualgauge.toml");
    fs::write(&file, main).unwrap();
    fs::write(folder.path().join("routes.toml"), draft).unwrap();
    let mut command = program(&["check", "--config"]);
    command.arg(&file);
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{}\nof\n{draft}", ended.errors);
}

#[test]
fn tools_alone_are_a_draft() {
    insta::assert_snapshot!("import_tools_alone", drafted(&coaching(), &[]));
}

#[test]
fn tools_and_a_document_are_a_draft() {
    let draft = drafted(&coaching(), &["--openapi", COACHES]);
    let draft = draft.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/"), "");
    insta::assert_snapshot!("import_tools_pair", draft);
}

#[test]
fn check_passes_the_draft_of_tools() {
    assert_passes_check(&drafted(&coaching(), &[]));
    assert_passes_check(&drafted(&coaching(), &["--openapi", COACHES]));
}

#[test]
fn check_passes_the_draft_of_what_a_server_discovers() {
    assert_passes_check(&drafted(&knowing(document), &[]));
}

#[test]
fn a_server_that_wants_a_session_gets_one() {
    let server = Upstream::serving(|request| {
        let called = Called::of(request);
        match (called.method(), request.head.one("mcp-session-id")) {
            ("initialize", None) => {
                let id = called.id();
                let result = json!({ "protocolVersion": "2025-03-26", "capabilities": {} });
                answer(
                    "200 OK",
                    &[
                        ("Content-Type", "text/event-stream"),
                        ("Mcp-Session-Id", "s-1"),
                    ],
                    format!(
                        "event: message\r\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\r\ndata: \"result\":{result}}}\r\n\r\n"
                    ),
                )
            }
            (_, Some("s-1")) => reply(request, tools),
            _ => answer("400 Bad Request", &[], "no session"),
        }
    });
    let draft = drafted(&server, &["--method", "tools/list"]);
    assert!(draft.contains("name = \"find_coach\""), "{draft}");
    let requests = server.requests();
    let last = requests.last().unwrap();
    assert_eq!(last.head.one("mcp-protocol-version"), Some("2025-03-26"));
    let began = requests
        .iter()
        .any(|request| Called::of(request).method() == "notifications/initialized");
    assert!(began);
}

#[test]
fn the_methods_of_a_server_are_paired_with_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("api.yaml");
    let api = "openapi: 3.0.0\npaths:\n  /pets/{petId}:\n    get:\n      parameters: [{ name: petId, in: path, schema: { type: integer } }]\n";
    fs::write(&file, api).unwrap();
    let server = knowing(document);
    let draft = drafted(&server, &["--openapi", file.to_str().unwrap()]);
    let route = "rest = \"GET /pets/{id:integer}\"\nrpc = \"pets.get\"";
    assert!(draft.contains(route), "{draft}");
}

#[test]
fn a_server_that_tells_nothing_is_a_fault_that_names_both_questions() {
    let ended = import(&knowing(|_, _| None), &[]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    let both = ["`rpc.discover` was refused", "`tools/list` was refused"];
    assert!(
        both.iter().all(|one| ended.errors.contains(one)),
        "{}",
        ended.errors
    );
}

#[test]
fn a_page_in_place_of_an_answer_is_a_fault() {
    let server = Upstream::answering(answer("200 OK", &[], "<html>hello</html>"));
    let ended = import(&server, &["--method", "rpc.discover"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.errors,
        "error: the response to `rpc.discover` is not JSON-RPC"
    );
}

#[test]
fn a_server_that_is_not_there_is_a_fault() {
    let ended = import(&Upstream::nowhere(), &[]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.starts_with("error: no connection to http://"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_server_that_is_silent_is_given_up() {
    let server = Upstream::start();
    let ended = import(&server, &["--timeout", "1"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains("did not answer within 1s"),
        "{}",
        ended.errors
    );
}

/// Pages of one tool each: the cursor of a page is its number, up to the last one, which repeats itself.
fn pages(method: &str, params: &Value) -> Option<Value> {
    let page: usize = match params["cursor"].as_str() {
        Some(cursor) => cursor.parse().unwrap(),
        None => 0,
    };
    let tool = json!({ "name": format!("tool_{page}"), "inputSchema": {} });
    let next = (page + 1).min(150).to_string();
    (method == "tools/list").then(|| json!({ "tools": [tool], "nextCursor": next }))
}

#[test]
fn all_pages_are_read_until_the_cursor_does_not_advance() {
    let server = knowing(pages);
    let draft = drafted(&server, &["--method", "tools/list"]);
    for page in [0, 100, 150] {
        let name = format!("name = \"tool_{page}\"");
        assert_eq!(draft.matches(&name).count(), 2, "route and params: {draft}");
    }
    assert_eq!(server.requests().len(), 151);
}

#[test]
fn a_server_that_leaves_rpc_discover_unanswered_is_asked_for_its_tools() {
    let server = Upstream::serving(|request| {
        let called = Called::of(request);
        if called.method() == "rpc.discover" {
            assert_eq!(called.params(), "{}");
            // A head without the body that it promises.
            return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
                .to_vec();
        }
        reply(request, tools)
    });
    let draft = drafted(&server, &["--timeout", "2"]);
    assert!(draft.contains("name = \"find_coach\""), "{draft}");
}
