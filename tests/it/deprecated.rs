//! The end of a route's old side: announced on every answer, refused in windows, counted until nobody calls it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dualgauge_model::time::Timestamp;
use serde_json::Value;

use crate::scene::{answer, body_of, call, json, problem, rpc_failure, saying};
use crate::support::{Message, Proxy, Upstream, both, program, rest_only, run_to_end};

const DATES: &str =
    r#"since = "2023-06-30T23:59:59Z", sunset = 2038-01-01, link = "https://docs.example/end""#;

/// A moment so many seconds from now, as a configuration has it.
fn from_now(seconds: i64) -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "windows of the real time, which the program reads"
    )]
    let now = SystemTime::now();
    let now = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_unix(i64::try_from(now.as_secs()).unwrap() + seconds)
}

/// A window around now, or one that begins in an hour.
fn window(from: i64, until: i64) -> String {
    format!(
        "{{ from = \"{}\", until = \"{}\" }}",
        from_now(from),
        from_now(until)
    )
}

fn route(deprecated: &str) -> String {
    format!(
        "[[route]]\nname = \"items.read\"\nrest = \"GET /items/{{id}}\"\nrpc = \"items/read\"\ndeprecated = {{ {deprecated} }}\n"
    )
}

/// What an answer says of the end.
fn notice(answer: &Message) -> (Option<&str>, Option<&str>, Vec<&str>) {
    let head = &answer.head;
    (
        head.one("deprecation"),
        head.one("sunset"),
        head.all("link"),
    )
}

fn expect_notice(answer: &Message) {
    let (deprecation, sunset, links) = notice(answer);
    assert_eq!(deprecation, Some("@1688169599"), "{answer:?}");
    assert_eq!(sunset, Some("Fri, 01 Jan 2038 00:00:00 GMT"), "{answer:?}");
    assert_eq!(
        links[..2],
        [
            "<https://docs.example/end>; rel=\"deprecation\"",
            "<https://docs.example/end>; rel=\"sunset\"",
        ],
        "{answer:?}"
    );
    // The first of `rpc.paths`, of which a proxy without an RPC upstream has one.
    let successors = [
        "</>; rel=\"successor-version\"",
        "</rpc>; rel=\"successor-version\"",
    ];
    assert!(
        successors.contains(&links[2]) && links.len() == 3,
        "{answer:?}"
    );
}

fn expect_none(answer: &Message) {
    assert_eq!(notice(answer), (None, None, Vec::new()), "{answer:?}");
}

/// As [`expect_notice`], with the links in any order.
fn expect_notice_in_any_order(answer: &Message) {
    let (deprecation, sunset, links) = notice(answer);
    assert_eq!(deprecation, Some("@1688169599"), "{answer:?}");
    assert!(sunset.is_some() && links.len() == 3, "{answer:?}");
    for relation in ["deprecation", "sunset", "successor-version"] {
        let said = format!("rel=\"{relation}\"");
        assert!(links.iter().any(|link| link.contains(&said)), "{answer:?}");
    }
}

#[test]
fn every_answer_of_the_old_side_announces_its_end() {
    let rest = Upstream::answering(json(r#""rest""#));
    let rpc = saying(r#""result":"rpc""#);
    let config = format!("{}{}", both(&rest, &rpc), route(DATES));
    for (stage, status) in [("passthrough", 200), ("translate", 200), ("retired", 410)] {
        let flag = format!("[[flag]]\nname = \"f\"\nside = \"rest\"\nstage = \"{stage}\"\n");
        let proxy = Proxy::start_with_flags(&config, &flag);
        let answer = proxy.rest("GET", "/items/7", &[], "");
        assert_eq!(answer.status(), status, "{stage}");
        expect_notice_in_any_order(&answer);
        // Who has moved is told nothing, nor is who calls something else.
        expect_none(&proxy.rpc(call("items/read", r#"{"id":"7"}"#)));
        expect_none(&proxy.rest("GET", "/elsewhere", &[], ""));
    }
}

#[test]
fn a_passing_answer_is_byte_for_byte_what_it_was_but_for_the_notice() {
    let own = [
        ("Link", "</items/8>; rel=\"next\""),
        ("Deprecation", "@5"),
        ("X-Own", "1"),
    ];
    let rest = Upstream::answering(answer("203 Odd", &own, "not json"));
    let config = format!("{}{}", rest_only(&rest), route(DATES));
    let answer = Proxy::start(&config).rest("GET", "/items/7", &[], "");
    assert_eq!(body_of(&answer, 203), "not json");
    let (deprecation, sunset, links) = notice(&answer);
    // What the server says of its own end holds.
    assert_eq!(deprecation, Some("@5"));
    assert_eq!(sunset, Some("Fri, 01 Jan 2038 00:00:00 GMT"));
    assert_eq!(links[0], "</items/8>; rel=\"next\"");
    assert_eq!(links.len(), 4);
    assert_eq!(answer.head.one("x-own"), Some("1"));
}

#[test]
fn a_failure_of_the_proxy_announces_the_end_as_well() {
    let config = format!("{}{}", rest_only(&Upstream::nowhere()), route(DATES));
    let proxy = Proxy::start(&config);
    let answer = proxy.rest("GET", "/items/7", &[], "");
    assert_eq!(answer.status(), 502);
    expect_notice(&answer);
}

#[test]
fn a_client_of_a_deprecated_rpc_side_is_told_by_the_headers_of_a_lone_answer() {
    let rest = Upstream::answering(json(r#""rest""#));
    let rpc = saying(r#""result":"rpc""#);
    let dates = format!("side = \"rpc\", {DATES}");
    for stage in ["passthrough", "translate", "retired"] {
        let flag = format!("[[flag]]\nname = \"f\"\nside = \"rpc\"\nstage = \"{stage}\"\n");
        let config = format!("{}{}", both(&rest, &rpc), route(&dates));
        let proxy = Proxy::start_with_flags(&config, &flag);
        let message = call("items/read", r#"{"id":"7"}"#);
        let alone = proxy.rpc(&message);
        assert_eq!(notice(&alone).0, Some("@1688169599"), "{stage} {alone:?}");
        assert_eq!(notice(&alone).2.len(), 2, "{stage} {alone:?}");
        expect_none(&proxy.rpc(format!("[{message}]")));
        expect_none(&proxy.rest("GET", "/items/7", &[], ""));
    }
}

#[test]
fn the_default_of_all_routes_holds_where_a_route_says_nothing() {
    let rest = Upstream::answering(json("1"));
    let routes = "\
        [deprecated]\nsince = 2023-06-30T23:59:59Z\n\
        [[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\n\
        [[route]]\nname = \"b\"\nrest = \"GET /b\"\nrpc = \"b\"\ndeprecated = false\n\
        [[route]]\nname = \"c\"\nrest = \"GET /c\"\nrpc = \"c\"\ndeprecated = { since = 2099-01-01 }\n\
        [[route]]\nname = \"d\"\nrest = \"GET /d\"\nrpc = \"d\"\nfrom = \"rpc\"\n";
    let proxy = Proxy::start(&format!("{}{routes}", rest_only(&rest)));
    let told = ["/a", "/b", "/c", "/d"].map(|path| {
        let answer = proxy.rest("GET", path, &[], "");
        answer.head.one("deprecation").map(str::to_owned)
    });
    let [a, b, c, d] = told;
    assert_eq!(a.as_deref(), Some("@1688169599"));
    // A date in the future is announced as it is (RFC 9745 §2.1).
    assert_eq!(c.as_deref(), Some("@4070908800"));
    assert_eq!((b, d), (None, None));
}

#[test]
fn in_a_brownout_the_old_side_is_refused_with_the_same_notice() {
    let rest = Upstream::answering(json(r#""rest""#));
    let rpc = saying(r#""result":"rpc""#);
    let windows = [window(-7_200, -3_600), window(-60, 3_600)].join(", ");
    let dates = format!("{DATES}, brownouts = [ {windows} ]");
    let proxy = Proxy::start(&format!("{}{}", both(&rest, &rpc), route(&dates)));
    let answer = proxy.rest("GET", "/items/7", &[], "");
    assert_eq!(answer.status(), 410);
    expect_notice_in_any_order(&answer);
    let (reason, detail) = problem(&answer);
    assert_eq!(reason, "brownout");
    assert!(detail.contains("`items/read`"), "{detail}");
    let data = answer.json()["rpc"]["data"].clone();
    assert_eq!(data["successor"], "items/read", "{answer:?}");
    assert_eq!(data["sunset"], "2038-01-01T00:00:00Z");
    assert!(data["until"].is_string());
    let seconds: u64 = answer.head.one("retry-after").unwrap().parse().unwrap();
    assert!((3_500..=3_600).contains(&seconds), "{seconds}");
    assert_eq!(answer.head.one("cache-control"), Some("no-store"));
    proxy.log_line(&["stage=retired", "decision=brownout", "reason=brownout"]);
    // Nobody else is refused.
    assert_eq!(
        proxy.rpc(call("items/read", r#"{"id":"7"}"#)).json()["result"],
        "rpc"
    );
    assert!(rest.requests().is_empty());
    let failures = proxy.metrics();
    let series = "dualgauge_failures_total{reason=\"brownout\",blame=\"client\",side=\"rest\"}";
    assert_eq!(failures.value(series), 1.0);
}

#[test]
fn before_and_after_its_window_a_call_is_served() {
    let rest = Upstream::answering(json(r#""rest""#));
    let windows = [window(-7_200, -3_600), window(3_600, 7_200)].join(", ");
    let dates = format!("{DATES}, brownouts = [ {windows} ]");
    let proxy = Proxy::start(&format!("{}{}", rest_only(&rest), route(&dates)));
    body_of(&proxy.rest("GET", "/items/7", &[], ""), 200);
}

#[test]
fn a_brownout_of_the_rpc_side_is_an_rpc_error() {
    let rpc = saying(r#""result":"rpc""#);
    let rest = Upstream::answering(json("1"));
    let dates = format!(
        "side = \"rpc\", {DATES}, brownouts = [ {} ]",
        window(-60, 3_600)
    );
    let proxy = Proxy::start(&format!("{}{}", both(&rest, &rpc), route(&dates)));
    let answer = proxy.rpc(call("items/read", r#"{"id":"7"}"#));
    assert_eq!(answer.status(), 200);
    let said = answer.json();
    assert_eq!(rpc_failure(&said), (-31012, "brownout"));
    assert_eq!(said["error"]["data"]["successor"], "GET /items/{id}");
    assert!(answer.head.one("retry-after").is_some());
    assert_eq!(notice(&answer).0, Some("@1688169599"));
}

/// The report of a route, from the admin API.
fn usage(proxy: &Proxy, query: &str) -> Value {
    let answer = proxy.ask("GET", &format!("/api/v1/usage{query}"), "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    answer.json()["routes"][0].clone()
}

#[test]
fn who_still_calls_is_told_with_what_that_stands_on() {
    let rest = Upstream::answering(json(r#""rest""#));
    let client =
        "[[client]]\nname = \"ios-app\"\nmatch = { header = { x-client-id = \"ios-*\" } }\n";
    let config = format!("{}{}{client}", rest_only(&rest), route(DATES));
    let proxy = Proxy::start(&config);
    let ios = [("X-Client-Id", "ios-1")];
    assert_eq!(usage(&proxy, "")["verdict"], "unknown");
    for _ in 0..2 {
        body_of(&proxy.rest("GET", "/items/7", &ios, ""), 200);
    }
    proxy.rpc(call("items/read", r#"{"id":"7"}"#));
    proxy.rest("GET", "/items/7/more", &[], "");
    let told = usage(&proxy, "?idle=30d&route=items.%2A");
    assert_eq!(told["verdict"], "not yet", "{told}");
    assert_eq!(told["reasons"].as_array().unwrap().len(), 3, "{told}");
    assert_eq!(told["callers"][0]["client"], "ios-app");
    assert_eq!(told["callers"][0]["old"]["calls"], 2);
    assert_eq!(told["callers"][1]["client"], "other");
    assert_eq!(told["callers"][1]["new"]["calls"], 1);
    assert_eq!(told["evidence"]["replicas"], 1);
    assert_eq!(told["evidence"]["unrouted"]["prefix"], "/items");
    assert_eq!(told["evidence"]["unrouted"]["calls"], 1);
    let metrics = proxy.metrics();
    let seen = metrics.table(
        "dualgauge_last_seen_timestamp_seconds",
        &["route", "client", "side"],
    );
    let seen: Vec<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(seen, ["items.read ios-app rest", "items.read other rpc"]);
    let unrouted = metrics.table("dualgauge_unrouted_calls_total", &["prefix"]);
    assert_eq!(
        unrouted.into_iter().collect::<Vec<_>>(),
        [("/items".to_owned(), 1.0)]
    );
    for wrong in ["?idle=30", "?since=1d"] {
        assert_eq!(
            proxy
                .ask("GET", &format!("/api/v1/usage{wrong}"), "")
                .status(),
            400
        );
    }
}

#[test]
fn the_command_tells_it_for_people_and_for_programs() {
    let rest = Upstream::answering(json(r#""rest""#));
    let proxy = Proxy::start(&format!("{}{}", rest_only(&rest), route(DATES)));
    proxy.rest("GET", "/items/7", &[], "");
    let admin = format!("http://{}", proxy.admin());
    let ended = run_to_end(program(&["usage", "--admin", &admin]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in [
        "items.read: not yet",
        "other on rest: 1 old",
        "no gaps",
        "0 calls under /items",
    ] {
        assert!(ended.output.contains(said), "{ended:?}");
    }
    let ended = run_to_end(program(&[
        "usage", "--format", "json", "--route", "it*", "--admin", &admin,
    ]));
    let document: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(document["routes"][0]["route"], "items.read");
    let ended = run_to_end(program(&["usage", "--route", "no*", "--admin", &admin]));
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    let ended = run_to_end(program(&["usage", "--idle", "30"]));
    assert_eq!(ended.code, Some(2));
}

/// A call of an MCP client, with what its request names.
fn mcp_call(proxy: &Proxy, headers: &[(&str, &str)], method: &str, params: &str) {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    proxy.rest("POST", "/mcp", headers, &body);
}

#[test]
fn the_eras_of_mcp_clients_are_told_until_the_old_one_can_be_switched_off() {
    let server = Upstream::answering(json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    let client =
        "[[client]]\nname = \"ios-app\"\nmatch = { header = { x-client-id = \"ios-*\" } }\n";
    let proxy = Proxy::start(&format!("{}{client}", both(&server, &server)));
    let admin = format!("http://{}", proxy.admin());
    let era = |arguments: &[&str]| {
        let mut command = program(&["usage", "--era", "--admin", &admin]);
        command.args(arguments);
        run_to_end(command)
    };
    let json_type = ("Content-Type", "application/json");
    let new = [
        json_type,
        ("X-Client-Id", "ios-1"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    let info = r#"{"name":"New\u001b[31m App","version":"4.0"}"#;
    let meta = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{info}}}}}"#
    );
    mcp_call(&proxy, &new, "tools/list", &meta);
    let ended = era(&[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.output.contains("unknown, keep the era"), "{ended:?}");
    assert!(
        ended.output.contains("New\u{fffd}[31m App 4.0"),
        "{ended:?}"
    );

    let old = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"Old App","version":"1"}}"#;
    mcp_call(&proxy, &[json_type], "initialize", old);
    // No evidence of MCP.
    mcp_call(&proxy, &[json_type], "item.get", "{}");
    let ended = era(&[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for said in [
        "ios-app: stateless, revision 2026-07-28",
        "other: handshake, revision 2025-06-18",
        "no, the era with a handshake is in use",
        "`other` (Old App 1) called with a handshake",
    ] {
        assert!(ended.output.contains(said), "{said}: {ended:?}");
    }
    let ended = era(&["--format", "json"]);
    let document: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(document["verdict"], "in use");
    assert_eq!(document["clients"].as_array().unwrap().len(), 2);
    let calls = proxy
        .metrics()
        .table("dualgauge_mcp_calls_total", &["client", "era", "revision"]);
    let calls: Vec<(String, f64)> = calls.into_iter().collect();
    assert_eq!(
        calls,
        [
            ("ios-app stateless 2026-07-28".to_owned(), 1.0),
            ("other handshake 2025-06-18".to_owned(), 1.0),
        ]
    );
}
