//! MCP servers that refuse a call by its HTTP status.

use super::scripted::{result, stateless, with_sessions};
use super::{ROUTE, STARTS, before};
use crate::scene::{answer, body_of, call};
use crate::support::Upstream;

const WORDS: &str = r#"{"error":"invalid_token"}"#;

/// A server that refuses `add` with this status.
fn refusing(status: &'static str, era: Era) -> Upstream {
    let calls = move |_: &crate::support::Message, called: &crate::scene::Called<'_>| {
        if called.method() != "tools/call" {
            return result(called, "1");
        }
        answer(status, &[("Content-Type", "application/json")], WORDS)
    };
    match era {
        Era::Sessions => with_sessions(calls),
        Era::Stateless => stateless(calls),
    }
}

/// Which revisions of MCP a server speaks.
#[derive(Debug, Clone, Copy)]
enum Era {
    Sessions,
    Stateless,
}

#[test]
fn a_rest_client_gets_the_status_and_the_words_of_the_server() {
    let statuses = [
        ("401 Unauthorized", 401, "client"),
        ("403 Forbidden", 403, "client"),
        ("429 Too Many Requests", 429, "client"),
        ("503 Service Unavailable", 503, "upstream"),
    ];
    for (status, number, blame) in statuses {
        for era in [Era::Sessions, Era::Stateless] {
            let server = refusing(status, era);
            let proxy = before(&server, ROUTE);
            let came = proxy.rest("GET", "/sum/7", &[], "");
            assert_eq!(body_of(&came, number), WORDS);
            assert_eq!(came.head.one("content-type"), Some("application/json"));
            let blame = format!("blame={blame}");
            proxy.log_line(&["outcome=error", &blame, &format!("status={number}")]);
            // An RPC client reads the status in the data, and the link goes on.
            let refused = proxy.rpc(call("tools/call", r#"{"name":"x","arguments":{}}"#));
            let refused = refused.json();
            assert_eq!(refused["error"]["data"]["status"], number, "{refused}");
            assert_eq!(proxy.rpc(call("other", "{}")).json()["result"], 1);
            assert_eq!(proxy.metrics().value(STARTS), 1.0);
        }
    }
}
