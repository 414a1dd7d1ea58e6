//! Arguments that a tool wants in headers, before a server without sessions.

use serde_json::{Value, json};

use super::scripted::{asked, last, result, stateless};
use super::{ask, before};
use crate::scene::{Called, call, json_with};
use crate::support::{Message, Upstream, becomes};

const TOOL: &str = r#"{"name":"sql","inputSchema":{"type":"object","properties":
    {"region":{"type":"string","x-mcp-header":"Region"},"query":{"type":"string"}}}}"#;

/// A server whose tool wants its region in a header, which it may forget to tell.
fn strict(tool: &'static str) -> Upstream {
    stateless(move |request: &Message, called: &Called<'_>| {
        let id = called.id();
        match called.method() {
            "tools/list" if called.params().contains("cursor") => result(
                called,
                &format!(r#"{{"resultType":"complete","tools":[{tool}]}}"#),
            ),
            "tools/list" => result(
                called,
                r#"{"resultType":"complete","tools":[],"nextCursor":"2"}"#,
            ),
            "tools/call" if request.head.one("mcp-param-region").is_none() => json_with(
                "400 Bad Request",
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32020,"message":"no region"}}}}"#
                ),
            ),
            _ => result(called, r#"{"resultType":"complete","content":[]}"#),
        }
    })
}

fn sql(region: &str) -> String {
    call(
        "tools/call",
        &format!(r#"{{"name":"sql","arguments":{{"region":"{region}","query":"x"}}}}"#),
    )
}

#[test]
fn a_tool_that_wants_arguments_in_headers_gets_them_once_it_has_said_so() {
    let server = strict(TOOL);
    let proxy = before(&server, "");
    for region in ["eu", "größe"] {
        let said: Value = proxy.rpc(sql(region)).json();
        assert_eq!(said["result"]["content"], json!([]), "{said}");
    }
    let wanted = [
        "POST server/discover",
        "POST tools/call",
        "POST tools/list",
        "POST tools/list",
        "POST tools/call",
        "POST tools/call",
    ];
    becomes(|| asked(&server), &wanted.map(str::to_owned).to_vec());
    let head = last(&server, "tools/call").head;
    assert_eq!(
        head.one("mcp-param-region"),
        Some("=?base64?Z3LDtsOfZQ==?=")
    );
    assert_eq!(head.one("mcp-name"), Some("sql"));
    assert_eq!(head.one("mcp-param-query"), None);
    let listed = last(&server, "tools/list");
    assert_eq!(listed.head.one("mcp-method"), Some("tools/list"));
    assert_eq!(listed.json()["params"]["cursor"], "2");
}

#[test]
fn what_a_caller_is_told_of_tools_is_known_from_then_on() {
    let server = strict(TOOL);
    let proxy = before(&server, "");
    proxy.rpc(call("tools/list", r#"{"cursor":"2"}"#));
    let said: Value = proxy.rpc(sql("eu")).json();
    assert_eq!(said["result"]["content"], json!([]), "{said}");
    assert_eq!(asked(&server).last().unwrap(), "POST tools/call");
    assert_eq!(asked(&server).len(), 3);
}

#[test]
fn a_refusal_that_no_header_can_help_is_the_callers_answer() {
    let server = strict(r#"{"name":"sql","inputSchema":{"type":"object"}}"#);
    let proxy = before(&server, "");
    let said: Value = proxy.rpc(sql("eu")).json();
    assert_eq!(said["error"]["code"], -32603, "{said}");
    let calls = asked(&server);
    let calls = calls.iter().filter(|asked| *asked == "POST tools/call");
    assert_eq!(calls.count(), 1);
    assert_eq!(ask(&proxy, "any")["result"]["content"], json!([]));
}
