//! Bodies posted to an RPC path that are not valid JSON-RPC 2.0: what passes through, and what is refused.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::scene::{answer, call, json, rpc_failure};
use crate::support::{Message, Proxy, Upstream, becomes, both, rest_only, rpc_only};

const ROUTES: &str = r#"
[[client]]
name = "mover"
match = { header = { user-agent = "mover/*" } }
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
"#;

fn flag(stage: &str) -> String {
    format!("[[flag]]\nname = \"f\"\nclient = \"mover\"\nside = \"rpc\"\nstage = \"{stage}\"\n")
}

fn server() -> Upstream {
    Upstream::answering(json(r#"{"result":7,"error":null,"id":1}"#))
}

/// Messages that are not valid, of which one method can be read.
const READABLE: [&str; 7] = [
    r#"{"jsonrpc":"1.0","id":1,"method":"items/get","params":[]}"#,
    r#"{"id":1,"method":"items/get"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"items/get","params":null}"#,
    r#"{"jsonrpc":"2.0","id":{},"method":"items/get","params":7}"#,
    r#"{"jsonrpc":"2.0","method":"items/get","params":"x"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"items/get","error":null}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"items/get"}"#,
];

/// A byte order mark is ignored: the message behind it is valid.
const MARKED: &str =
    "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"items/get\",\"params\":{\"id\":\"7\"}}";

/// Bodies of which no method can be read.
const UNREADABLE: [&str; 8] = [
    "",
    "x",
    "<methodCall><methodName>m</methodName></methodCall>",
    r#"{"jsonrpc":"2.0","id":1}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"items/get""#,
    "[]",
    "[1]",
];

const AMBIGUOUS: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"items/get"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"items/get"}"#,
    r#"{"jsonrpc":"2.0","id":1,"METHOD":"items/get"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"items/get","params":{},"params":[]}"#,
];

fn as_it_came(sent: &Message, body: &[u8], headers: &[(&str, &str)]) {
    assert_eq!(sent.body, body);
    for (name, value) in headers {
        assert_eq!(sent.head.one(name), Some(*value), "{sent:?}");
    }
}

fn counted(proxy: &Proxy, reason: &str, action: &str) -> f64 {
    let series =
        format!("dualgauge_invalid_messages_total{{reason=\"{reason}\",action=\"{action}\"}}");
    proxy.metrics().value(&series)
}

#[test]
fn in_passthrough_every_body_on_an_rpc_path_is_the_servers_to_judge() {
    let rpc = server();
    let proxy = Proxy::start(&rpc_only(&rpc));
    let kinds = [
        "application/json",
        "text/plain",
        "application/x-www-form-urlencoded",
    ];
    let invalid = READABLE.iter().chain(&UNREADABLE).chain(&AMBIGUOUS);
    for body in invalid.chain([&MARKED]) {
        for kind in kinds {
            let headers = [("Content-Type", kind), ("X-Own", "1")];
            let answer = proxy.rest("POST", "/rpc?a=1", &headers, body);
            assert_eq!(
                answer.text(),
                r#"{"result":7,"error":null,"id":1}"#,
                "{body}"
            );
            let sent = rpc.requests().pop().unwrap();
            assert_eq!(sent.head.start, "POST /rpc?a=1 HTTP/1.1");
            as_it_came(&sent, body.as_bytes(), &headers);
        }
    }
    proxy.log_line(&[
        "side=rpc",
        "rpc_method=items/get",
        "message=invalid_request",
    ]);
    proxy.log_line(&["side=rpc", "message=unreadable", "outcome=success"]);
    proxy.log_line(&["side=rpc", "message=ambiguous"]);
    let times = kinds.len() as f64;
    let all = |bodies: usize| bodies as f64 * times;
    // A batch without a valid message is one of no method for each item.
    // The marked message is valid, but two of its content types are not.
    becomes(
        || counted(&proxy, "invalid_request", "forwarded"),
        &(all(READABLE.len()) + 2.0),
    );
    becomes(
        || counted(&proxy, "ambiguous", "forwarded"),
        &all(AMBIGUOUS.len()),
    );
    becomes(
        || counted(&proxy, "unreadable", "forwarded"),
        &all(UNREADABLE.len()),
    );
}

#[test]
fn a_compressed_message_is_read_and_forwarded_as_it_came() {
    let rpc = server();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(call("items/get", "{}").as_bytes()).unwrap();
    let body = gzip.finish().unwrap();
    let headers = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
    ];
    let config = format!("{}{ROUTES}", rpc_only(&rpc));
    let proxy = Proxy::start_with_flags(&config, &flag("retired"));
    let answer = proxy.rest("POST", "/rpc", &headers, &body);
    assert_eq!(answer.status(), 200, "{answer:?}");
    as_it_came(&rpc.requests().pop().unwrap(), &body, &headers);
    proxy.log_line(&[
        "rpc_method=items/get",
        "route=items.get",
        "message=invalid_request",
    ]);
    // Its method was read: a client that is moved is refused.
    let moved = [headers[0], headers[1], ("User-Agent", "mover/1")];
    let answer = proxy.rest("POST", "/rpc", &moved, &body);
    assert_eq!(answer.status(), 415, "{answer:?}");
    // What cannot be read passes for those alone whom no flag could move.
    let coded = [headers[0], ("Content-Encoding", "zstd")];
    assert_eq!(proxy.rest("POST", "/rpc", &coded, &body).status(), 200);
    as_it_came(&rpc.requests().pop().unwrap(), &body, &coded);
    let moved = [coded[0], coded[1], ("User-Agent", "mover/1")];
    assert_eq!(proxy.rest("POST", "/rpc", &moved, &body).status(), 415);
    assert_eq!(rpc.requests().len(), 2);
}

#[test]
fn verify_translate_and_retired_stay_strict() {
    let (rest, rpc) = (Upstream::start(), server());
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let mover = [
        ("Content-Type", "application/json"),
        ("User-Agent", "mover/1"),
    ];
    for stage in ["verify", "translate", "retired"] {
        let proxy = Proxy::start_with_flags(&config, &flag(stage));
        for body in READABLE {
            let answer = proxy.rest("POST", "/rpc", &mover, body);
            assert_eq!(
                rpc_failure(&answer.json()),
                (-32600, "invalid_request"),
                "{body}"
            );
        }
        let refused = [&UNREADABLE[..], &AMBIGUOUS[..]].concat();
        for body in &refused {
            let answer = proxy.rest("POST", "/rpc", &mover, body).json();
            let error = answer.get(0).unwrap_or(&answer);
            assert!(
                matches!(rpc_failure(error).0, -32600 | -32700),
                "{stage} {body}: {answer}"
            );
        }
        assert_eq!(rpc.requests().len(), 0, "{stage}");
        proxy.log_line(&["message=invalid_request", "reason=invalid_request"]);
        becomes(
            || counted(&proxy, "ambiguous", "refused"),
            &(AMBIGUOUS.len() as f64),
        );
    }
    // Others are not moved, so that what cannot be read passes; what can be read in two ways does not.
    let proxy = Proxy::start_with_flags(&config, &flag("translate"));
    for body in READABLE.iter().chain(&UNREADABLE) {
        let answer = proxy.rpc(body);
        assert_eq!(
            answer.text(),
            r#"{"result":7,"error":null,"id":1}"#,
            "{body}"
        );
    }
    let passed = rpc.requests().len();
    for body in AMBIGUOUS {
        assert_eq!(
            rpc_failure(&proxy.rpc(body).json()),
            (-32600, "invalid_request")
        );
    }
    assert_eq!(rpc.requests().len(), passed);
}

#[test]
fn in_shadow_an_invalid_message_passes_and_its_candidate_fails() {
    let (rest, rpc) = (Upstream::answering(json("1")), server());
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let flags = flag("shadow");
    let proxy = Proxy::start_with_flags(&config, &flags);
    let mover = [("Content-Type", "text/plain"), ("User-Agent", "mover/1")];
    for (count, body) in READABLE.iter().enumerate() {
        let answer = proxy.rest("POST", "/rpc", &mover, body);
        assert_eq!(
            answer.text(),
            r#"{"result":7,"error":null,"id":1}"#,
            "{body}"
        );
        as_it_came(&rpc.requests().pop().unwrap(), body.as_bytes(), &mover);
        let failed = || {
            let metrics = proxy.metrics();
            let mut lines = metrics.text().lines();
            let is_it = |line: &&str| {
                line.starts_with("dualgauge_verdicts_total")
                    && line.contains("candidate-failed")
                    && line.contains("client=\"mover\"")
            };
            let line = lines.find(is_it).and_then(|line| line.rsplit_once(' '));
            line.map_or(0.0, |(_, count)| count.parse().unwrap())
        };
        becomes(failed, &(count as f64 + 1.0));
    }
    assert_eq!(rest.requests().len(), 0);
}

#[test]
fn what_is_no_json_rpc_goes_where_its_path_leads() {
    let (rest, rpc) = (
        Upstream::answering(answer("200 OK", &[], "rest")),
        Upstream::answering(answer("200 OK", &[], "rpc")),
    );
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let bodies = [
        "a=1&b=2",
        "",
        r#"{"a":1}"#,
        r#"{"method":"unknown"}"#,
        "[]",
        "[{}]",
        "7",
    ];
    // The RPC upstream is at `/rpc`.
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, &flag("translate"));
    for body in bodies {
        for (path, expected) in [("/", "rest"), ("/mcp", "rest"), ("/rpc", "rpc")] {
            let answer = proxy.rest("POST", path, &form, body);
            assert_eq!(answer.text(), expected, "{path} {body}: {answer:?}");
        }
        let sent = rest.requests().pop().unwrap();
        assert_eq!(sent.head.start, "POST /mcp HTTP/1.1");
        as_it_came(&sent, body.as_bytes(), &form);
    }
    proxy.log_line(&["side=rest", "path=/mcp", "decision=unrouted", "status=200"]);
    // One REST upstream, and no route.
    let proxy = Proxy::start(&rest_only(&rest));
    for (path, body) in [("/", "a=1"), ("/rpc", "a=1"), ("/rpc", "{"), ("/rpc", "[]")] {
        assert_eq!(
            proxy.rest("POST", path, &form, body).text(),
            "rest",
            "{path} {body}"
        );
    }
    let reject = format!("unrouted = \"reject\"\n{}", rest_only(&rest));
    let answer = Proxy::start(&reject).rest("POST", "/rpc", &form, "a=1");
    assert_eq!(answer.status(), 404, "{answer:?}");
}

#[test]
fn a_method_that_a_route_has_makes_a_body_a_message() {
    let rest = Upstream::answering(json(r#"{"id":"7"}"#));
    let proxy = Proxy::start(&format!("{}{ROUTES}", rest_only(&rest)));
    let body = r#"{"id":1,"method":"items/get","params":{"id":"7"}}"#;
    assert_eq!(
        rpc_failure(&proxy.rpc(body).json()),
        (-32600, "invalid_request")
    );
    assert_eq!(rest.requests().len(), 0);
}

#[test]
fn an_upload_beyond_the_limit_streams_to_the_server_of_its_path() {
    let rest = Upstream::answering(answer("200 OK", &[], "rest"));
    let rpc = Upstream::answering(answer("200 OK", &[], "rpc"));
    let config = format!("{}[limits]\nbody = 1000\n", both(&rest, &rpc));
    let proxy = Proxy::start(&config);
    let body = "x".repeat(100_000);
    let kind = [("Content-Type", "application/octet-stream")];
    for (path, expected) in [("/", "rest"), ("/rpc", "rpc")] {
        assert_eq!(proxy.rest("POST", path, &kind, &body).text(), expected);
    }
    assert!(rest.request().text() == body && rpc.request().text() == body);
    assert_eq!(proxy.rpc(body).status(), 413);
}

#[test]
fn explain_says_where_an_invalid_message_goes() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, &flag("translate"));
    let sends = |target: &str, agent: &str, body: &str| {
        let asked = serde_json::json!({
            "method": "POST", "target": target, "body": body,
            "headers": {"user-agent": agent, "content-type": "application/json"},
        });
        let told = proxy.ask("POST", "/api/v1/explain", &asked.to_string());
        let told = told.json();
        let told = &told[0]["explanations"][0];
        let upstream = told["sends"]["upstream"].as_str();
        let said = upstream.or(told["refused"]["reason"].as_str());
        said.unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    for (target, agent, body, expected) in [
        ("/rpc", "x", READABLE[0], "new"),
        ("/rpc", "mover/1", READABLE[0], "invalid_request"),
        ("/rpc", "x", UNREADABLE[5], "new"),
        ("/rpc", "mover/1", UNREADABLE[5], "malformed_json"),
        ("/rpc", "x", AMBIGUOUS[0], "invalid_request"),
        ("/", "mover/1", r#"{"a":1}"#, "old"),
    ] {
        assert_eq!(
            sends(target, agent, body),
            expected,
            "{target} {agent} {body}"
        );
    }
}
