//! What is counted and logged of calls, and what never is.

use std::collections::{BTreeMap, BTreeSet};

use crate::every_kind::{FLAGS, Scene};
use crate::support::{Proxy, becomes, sha256};

const CALL_LABELS: [&str; 6] = ["route", "client", "side", "stage", "outcome", "blame"];
const DURATION_LABELS: [&str; 5] = ["route", "client", "side", "stage", "outcome"];

fn rows(rows: &[(&str, f64)]) -> BTreeMap<String, f64> {
    let rows = rows.iter().map(|(row, count)| ((*row).to_owned(), *count));
    rows.collect()
}

fn sum(table: &BTreeMap<String, f64>) -> f64 {
    table.values().sum()
}

#[test]
fn every_call_is_counted_once_under_what_became_of_it() {
    let scene = Scene::start("");
    let calls = scene.play();
    let expected = rows(&[
        ("things.read other rest passthrough success none", 4.0),
        ("things.read other rest passthrough error client", 1.0),
        ("things.read other rest passthrough error upstream", 1.0),
        ("things.read other rest passthrough failed upstream", 1.0),
        ("things.read other rest passthrough cut upstream", 1.0),
        ("things.read other rest passthrough cancelled client", 1.0),
        ("unrouted other rest passthrough success none", 1.0),
        ("unrouted other rest passthrough failed client", 1.0),
        ("unrouted mover rest passthrough failed proxy", 1.0),
        ("things.read mover rest translate success none", 1.0),
        ("things.read mover rest translate error upstream", 1.0),
        ("things.read mover rest translate failed upstream", 1.0),
        ("things.make mover rest translate failed client", 1.0),
        ("things.read late rest retired failed client", 1.0),
        ("things.read other rpc passthrough success none", 2.0),
        ("things.make other rpc passthrough success none", 2.0),
        ("unrouted other rpc passthrough error client", 1.0),
        ("things.read mover rpc translate success none", 1.0),
        ("things.read mover rpc translate error client", 1.0),
        ("things.read mover rpc translate failed client", 1.0),
    ]);
    let counted = || {
        scene
            .proxy
            .metrics()
            .table("dualgauge_calls_total", &CALL_LABELS)
    };
    becomes(counted, &expected);
    assert_eq!(sum(&expected), calls as f64);
}

#[test]
fn every_failure_is_counted_under_its_reason() {
    let scene = Scene::start("");
    scene.play();
    let labels = ["reason", "blame", "side"];
    let failures = || {
        let mut all = scene
            .proxy
            .metrics()
            .table("dualgauge_failures_total", &labels);
        all.retain(|_, count| *count > 0.0);
        all
    };
    let expected = rows(&[
        ("malformed_http client rest", 1.0),
        ("malformed_json client rest", 1.0),
        ("retired client rest", 1.0),
        ("upstream_cut upstream rest", 2.0),
        ("upstream_not_json upstream rest", 1.0),
        ("overloaded proxy rest", 1.0),
        ("invalid_request client rpc", 1.0),
    ]);
    becomes(failures, &expected);
}

#[test]
fn time_is_told_apart_into_the_upstreams_and_the_proxys() {
    let scene = Scene::start("");
    let calls = scene.play() as f64;
    let counts = |name: &str, labels: &[&str]| {
        let metrics = scene.proxy.metrics();
        metrics.table(&format!("{name}_count"), labels)
    };
    let durations = || counts("dualgauge_call_duration_seconds", &DURATION_LABELS);
    becomes(|| sum(&durations()), &calls);
    let upstream = counts("dualgauge_upstream_duration_seconds", &DURATION_LABELS);
    assert_eq!(upstream["things.read other rest passthrough success"], 4.0);
    assert_eq!(upstream["things.read mover rpc translate success"], 1.0);
    // Calls that reached no upstream have no share in its time.
    assert_eq!(upstream.get("things.read late rest retired failed"), None);
    let overhead = counts("dualgauge_overhead_seconds", &["side", "stage"]);
    assert_eq!(sum(&overhead), sum(&upstream));
    for row in [
        "rest passthrough",
        "rest translate",
        "rpc passthrough",
        "rpc translate",
    ] {
        assert!(overhead[row] > 0.0, "{row}: {overhead:?}");
    }
    let open = |metric: &str| scene.proxy.metrics().value(metric);
    becomes(|| open("dualgauge_calls_in_flight"), &0.0);
}

/// The line of each call in the log, without what differs from run to run.
fn call_lines(log: &str) -> Vec<String> {
    let calls = log
        .lines()
        .filter_map(|line| line.split_once(" dualgauge::call "));
    let mut lines: Vec<String> = calls
        .map(|(_, fields)| {
            let fields = fields.split(' ').filter(|field| !field.contains("_ms="));
            fields.collect::<Vec<_>>().join(" ")
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn every_call_has_one_line_with_the_whole_of_it() {
    let scene = Scene::start("");
    let calls = scene.play();
    let stopped = scene.proxy.stop();
    let lines = call_lines(&stopped.log);
    assert_eq!(lines.len(), calls, "{}", stopped.log);
    insta::assert_snapshot!("the_lines_of_calls", lines.join("\n"));
}

#[test]
fn a_log_in_json_is_one_document_a_line() {
    let scene = Scene::start("[log]\nformat = \"json\"\n");
    let calls = scene.rest_calls() + scene.rpc_calls();
    let path = "/a%22b%0a\u{7f}".replace('\u{7f}', "\\");
    scene.proxy.rest("GET", &path, &[], "");
    let quoted = r#"{"jsonrpc":"2.0","id":1,"method":"a\"b\n\u0007\u202e"}"#;
    scene.proxy.rpc(quoted);
    let stopped = scene.proxy.stop();
    let lines = stopped.log.lines();
    let documents: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let of_calls: Vec<_> = documents
        .iter()
        .filter(|document| document["target"] == "dualgauge::call")
        .collect();
    assert_eq!(of_calls.len(), calls + 2);
    for call in &of_calls {
        for member in ["time", "level", "side", "method", "path", "client", "stage"] {
            assert!(call[member].is_string(), "{member} in {call}");
        }
        for member in ["decision", "outcome"] {
            assert!(call[member].is_string(), "{member} in {call}");
        }
        assert!(call["duration_ms"].is_number(), "{call}");
    }
    let methods: Vec<_> = of_calls.iter().map(|call| &call["rpc_method"]).collect();
    assert!(
        methods
            .iter()
            .any(|method| **method == "a\"b\n\u{7}\u{202e}"),
        "{methods:?}"
    );
    assert!(!stopped.log.contains(['\u{7}', '\u{202e}']));
}

#[test]
fn what_callers_choose_adds_no_series() {
    let scene = Scene::start("");
    let flood = |from: usize, to: usize| {
        let mut client = scene.proxy.connect();
        for i in from..to {
            let headers = format!("Host: h{i}\r\nX-Client-Id: client-{i}\r\nX-Api-Key: {i}");
            client.send(format!(
                "METHOD{i} /path/{i}?q={i} HTTP/1.1\r\n{headers}\r\n\r\n"
            ));
            assert_eq!(client.read_answer().status(), 200);
            client.send(format!("GET /things/{i} HTTP/1.1\r\n{headers}\r\n\r\n"));
            assert_eq!(client.read_answer().status(), 200);
            let ids = [
                format!("{i}"),
                format!("\"id-{i}\""),
                format!("{i}.5"),
                format!("-{i}"),
            ];
            for id in ids {
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m{i}"}}"#);
                let length = body.len();
                client.send(format!(
                    "POST /rpc HTTP/1.1\r\n{headers}\r\nContent-Length: {length}\r\n\r\n{body}"
                ));
                assert_eq!(client.read_answer().status(), 200);
            }
        }
    };
    let series = || -> BTreeSet<String> {
        let metrics = scene.proxy.metrics();
        metrics.series().into_iter().map(str::to_owned).collect()
    };
    let counted = || {
        let metrics = scene.proxy.metrics();
        sum(&metrics.table("dualgauge_calls_total", &CALL_LABELS))
    };
    flood(0, 1);
    becomes(counted, &6.0);
    let before = series();
    flood(1, 60);
    becomes(counted, &360.0);
    assert_eq!(series(), before);
}

/// A scene with every level of the log, a client that is told by its API key, and a route with types.
fn scene_with_secrets() -> Scene {
    let digest = sha256("secret-key");
    let tables = format!(
        r#"
[log]
level = "trace"

[[client]]
name = "keyed"
match = {{ api_key = "sha256:{digest}" }}
key = {{ header = "x-device-id" }}

[[route]]
name = "things.count"
rest = "GET /count/{{id:integer}}?limit={{limit:integer}}"
rpc = "things/count"
"#
    );
    let scene = Scene::start(&tables);
    let shared = r#"
[[flag]]
name = "shared"
client = "keyed"
stage = "translate"
percent = 99.999
"#;
    let flags = scene.proxy.folder().join("flags.toml");
    std::fs::write(flags, format!("{FLAGS}{shared}")).unwrap();
    scene.proxy.log_line(&["is reloaded and in force"]);
    scene
}

/// Calls with a secret in every place where callers have one, good calls and bad ones.
fn call_with_secrets(proxy: &Proxy, headers: &[(&str, &str)]) {
    let targets = [
        "/things/7?token=secret-query",
        "/things/page?token=secret-query",
        "/things/dropped?token=secret-query",
        "/elsewhere?secret-query",
        "/count/7?limit=secret-query",
        "/count/7?limit=%zzsecret-query",
    ];
    for target in targets {
        proxy.rest("GET", target, headers, "");
    }
    for body in [r#"{"a":"secret-body"}"#, "{secret-body", "\"secret-body\""] {
        proxy.rest("POST", "/things?secret-query", headers, body);
        proxy.rest("POST", "/rpc?secret-query", headers, body);
    }
    for (id, thing) in [
        ("1", r#""7""#),
        (r#""secret-id""#, r#""secret-param""#),
        ("2", "[]"),
    ] {
        for method in ["things/make", "things/count", "other"] {
            let params = format!(r#"{{"id":{thing},"x":"secret-param"}}"#);
            let call =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            proxy.rest("POST", "/rpc", headers, &call);
            proxy.rest("POST", "/rpc", headers, format!("[{call}]"));
        }
    }
}

#[test]
fn secrets_are_neither_in_the_log_nor_in_the_metrics() {
    let scene = scene_with_secrets();
    for client in ["somebody", "mover", "late"] {
        for key in ["secret-key", "secret-other-key"] {
            let headers = [
                ("x-client-id", client),
                ("authorization", "Bearer secret-token"),
                ("cookie", "session=secret-cookie"),
                ("x-api-key", key),
                ("x-device-id", "secret-device"),
                ("content-type", "application/json"),
            ];
            call_with_secrets(&scene.proxy, &headers);
        }
    }
    let mut smuggler = scene.proxy.connect();
    smuggler.send(
        "GET /a?secret-query HTTP/1.1\r\nHost: a\r\nAuthorization: secret-token\nX: y\r\n\r\n",
    );
    assert_eq!(smuggler.read_answer().status(), 400);

    let page = scene.proxy.metrics();
    assert!(page.text().contains(r#"client="keyed""#));
    assert!(!page.text().contains("secret"), "{}", page.text());
    let log = scene.proxy.stop().log;
    assert!(log.contains("flag shared bucket"), "{log}");
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains("secret")).collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
