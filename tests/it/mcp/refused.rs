//! MCP servers that refuse a call by its HTTP status.

use super::scripted::{begun, result, stateless, with_sessions};
use super::{ROUTE, STARTS, before};
use crate::scene::{answer, body_of, call, problem};
use crate::support::Upstream;

const WORDS: &str = r#"{"error":"invalid_token"}"#;

const CHALLENGES: [&str; 2] = [r#"Bearer realm="a", error="invalid_token""#, "Basic"];

/// A server that refuses `add` with this status, and JSON.
fn refusing(status: &'static str, era: Era) -> Upstream {
    let headers = [("Content-Type", "application/json"), ("Retry-After", "7")];
    refusing_with(status, era, headers, WORDS.as_bytes())
}

/// A server that refuses `add` with this status, these headers, challenges and this body.
fn refusing_with(
    status: &'static str,
    era: Era,
    [one, other]: [(&'static str, &'static str); 2],
    body: &'static [u8],
) -> Upstream {
    let calls = move |_: &crate::support::Message, called: &crate::scene::Called<'_>| {
        if called.method() != "tools/call" {
            return result(called, "1");
        }
        let [bearer, basic] = CHALLENGES.map(|said| ("WWW-Authenticate", said));
        answer(status, &[one, other, bearer, basic], body)
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
            assert_eq!(came.head.all("www-authenticate"), CHALLENGES);
            assert_eq!(came.head.one("retry-after"), Some("7"));
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

#[test]
fn a_json_rpc_error_with_such_a_status_keeps_the_status_and_its_own_words() {
    const ERROR: &str =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no token","data":[1.10]}}"#;
    for (status, number) in [("401 Unauthorized", 401), ("503 Service Unavailable", 503)] {
        for era in [Era::Sessions, Era::Stateless] {
            let headers = [("Content-Type", "application/json"), ("Retry-After", "7")];
            let server = refusing_with(status, era, headers, ERROR.as_bytes());
            let proxy = before(&server, ROUTE);
            let came = proxy.rest("GET", "/sum/7", &[], "");
            let (_, detail) = problem(&came);
            assert_eq!((came.status(), &*detail), (number, "no token"));
            assert_eq!(came.json()["rpc"]["code"], -32001);
            assert!(came.text().contains("[1.10]"), "{came:?}");
            assert_eq!(came.head.all("www-authenticate"), CHALLENGES);
            assert_eq!(came.head.one("retry-after"), Some("7"));
            proxy.log_line(&["outcome=error", &format!("status={number}")]);
            let refused = proxy.rpc(call("tools/call", r#"{"name":"x","arguments":{}}"#));
            let error = &refused.json()["error"];
            assert_eq!(error["message"], "no token");
            assert_eq!(error["data"]["body"]["rpc"]["code"], -32001);
            assert_eq!(error["data"]["www_authenticate"][1], "Basic");
        }
    }
}

#[test]
fn a_body_that_cannot_be_read_counts_as_none() {
    for coding in ["zstd", "gzip"] {
        let headers = [
            ("Content-Type", "application/json"),
            ("Content-Encoding", coding),
        ];
        let server = refusing_with("401 Unauthorized", Era::Sessions, headers, b"no coding");
        let came = before(&server, ROUTE).rest("GET", "/sum/7", &[], "");
        assert_eq!(body_of(&came, 401), "");
        assert_eq!(came.head.one("content-type"), None);
        assert_eq!(came.head.all("www-authenticate"), CHALLENGES);
    }
    let headers = [("Content-Type", "application/json"), ("Retry-After", "7")];
    let body = [b' '; 5000].as_slice();
    let body: &'static [u8] = body.to_vec().leak();
    let server = refusing_with("429 Too Many Requests", Era::Sessions, headers, body);
    let proxy = before(&server, &format!("message_limit = \"4KiB\"\n{ROUTE}"));
    let came = proxy.rest("GET", "/sum/7", &[], "");
    assert_eq!(body_of(&came, 429), "");
    assert_eq!(came.head.one("retry-after"), Some("7"));
}

#[test]
fn a_result_in_a_stream_with_an_id_of_another_type_fails_its_call_though_the_stream_goes_on() {
    let server = with_sessions(|_, called| {
        let id = called.id();
        begun(&format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{{}}}}\n\n"
        ))
    });
    let proxy = before(&server, &format!("timeout = \"60s\"\n{ROUTE}"));
    let came = proxy.rest("GET", "/sum/7", &[], "");
    assert_eq!(came.status(), 502);
    assert_eq!(problem(&came).0, "upstream_wrong_id");
}
