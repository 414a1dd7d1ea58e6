//! Calls whose server requires input that nobody supplies: REST clients, and MCP clients without the capability.

use serde_json::{Value, json};

use super::bridge::{begin_session, modern, post, post_in};
use super::one_stream::before_child;
use super::sse::SseServer;
use crate::scene::{call, problem, rpc_failure};
use crate::support::Proxy;

const ROUTE: &str = "[[route]]\nname = \"ask\"\nrest = \"GET /ask\"\nrpc = \"tools/call\"\nresult = \"tool\"\n\
    params = { name = \"elicitation/create\" }\n";
/// Children of both eras that ask for input.
const CHILDREN: [&str; 2] = ["asking", "requiring"];

fn ask() -> Value {
    json!({ "name": "elicitation/create" })
}

#[test]
fn a_rest_client_gets_a_failure_that_says_so() {
    for kind in CHILDREN {
        let proxy = before_child(kind, ROUTE);
        let answer = proxy.rest("GET", "/ask", &[], "");
        let (reason, detail) = problem(&answer);
        assert_eq!(
            (answer.status(), &*reason),
            (502, "upstream_input_required"),
            "{kind}"
        );
        assert!(detail.contains("`elicitation`"), "{detail}");
    }
}

fn refused(proxy: &Proxy, session: Option<&str>) -> String {
    let body = call("tools/call", &ask().to_string());
    let answer = match session {
        Some(session) => post_in(proxy, session, &body).read_answer(),
        None => proxy.rpc(body),
    };
    // Log messages may precede the response.
    let text = answer.text();
    let last = text.rsplit("data: ").next().unwrap();
    let answer: Value = serde_json::from_str(last).unwrap();
    let failure = (-31034, "upstream_input_required");
    assert_eq!(rpc_failure(&answer), failure, "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_with_a_session_learns_which_capability_it_lacks() {
    for kind in CHILDREN {
        let proxy = before_child(kind, "");
        let session = begin_session(&proxy, r#"{"roots":{}}"#);
        let said = refused(&proxy, Some(&session));
        assert!(
            said.contains("`elicitation`") && said.contains("did not declare"),
            "{said}"
        );
        let said = refused(&proxy, None);
        assert!(said.contains("`Mcp-Session-Id`"), "{said}");
    }
}

#[test]
fn a_stateless_client_gets_the_error_of_its_revision() {
    let proxy = before_child("asking", "");
    let body = modern("tools/call", ask(), json!({}));
    let answer = post(&proxy, "tools/call", "elicitation/create", &body);
    assert_eq!(answer.status(), 400);
    let error = &answer.json()["error"];
    assert_eq!(error["code"], -32021, "{error}");
    let required = json!({ "elicitation": { "form": {} } });
    assert_eq!(error["data"]["requiredCapabilities"], required);
    assert_eq!(error["data"]["reason"], "missing_capability");
}

#[test]
fn a_configuration_that_declines_is_named() {
    let proxy = SseServer::asking().before("server_requests = \"decline\"\n");
    let session = begin_session(&proxy, r#"{"elicitation":{}}"#);
    let said = refused(&proxy, Some(&session));
    assert!(said.contains("`server_requests`"), "{said}");
}
