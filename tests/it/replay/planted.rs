//! Planted differences are found, no other is invented, and live shadow calls find the same.

use std::collections::{BTreeMap, BTreeSet};

use dualgauge_recording::recording::RecordedCall;
use serde_json::{Value, json};

use super::{Replay, call, file};
use crate::scene::{Called, answer};
use crate::support::{Proxy, Upstream, becomes, both};

/// A pair of responses: the status and the body of the old server, what the new server says, and the field in which
/// they differ; `-` for a failed candidate.
type Pair = (u16, &'static str, &'static str, &'static str);

/// Twenty pairs that differ, and five that do not.
const PAIRS: [Pair; 25] = [
    (200, r#"{"a":1}"#, r#""result":{"a":2}"#, "/body/a"),
    (200, r#"{"a":"x"}"#, r#""result":{"a":"y"}"#, "/body/a"),
    (200, r#"{"a":1}"#, r#""result":{"a":"1"}"#, "/body/a"),
    (200, r#"{"a":null}"#, r#""result":{"a":""}"#, "/body/a"),
    (200, r#"{"a":true}"#, r#""result":{"a":false}"#, "/body/a"),
    (200, r#"{"a":1,"b":2}"#, r#""result":{"a":1}"#, "/body/b"),
    (200, r#"{"a":1}"#, r#""result":{"a":1,"b":2}"#, "/body/b"),
    (200, r#"{"a":[1,2]}"#, r#""result":{"a":[2,1]}"#, "/body/a"),
    (
        200,
        r#"{"a":[1,2]}"#,
        r#""result":{"a":[1,2,3]}"#,
        "/body/a",
    ),
    (
        200,
        r#"{"a":[{"b":1},{"b":2}]}"#,
        r#""result":{"a":[{"b":1},{"b":3}]}"#,
        "/body/a/*/b",
    ),
    (
        200,
        r#"{"a":{"b":{"c":1}}}"#,
        r#""result":{"a":{"b":{"c":2}}}"#,
        "/body/a/b/c",
    ),
    (
        200,
        r#"{"a":0.1}"#,
        r#""result":{"a":0.10000000000000001}"#,
        "/body/a",
    ),
    (
        200,
        r#"{"a":12345678901234567890}"#,
        r#""result":{"a":12345678901234567891}"#,
        "/body/a",
    ),
    (200, r#"{"a":{}}"#, r#""result":{"a":[]}"#, "/body/a"),
    (200, r#"[1]"#, r#""result":{"a":1}"#, "/body"),
    (200, r#"{"a":"é"}"#, r#""result":{"a":"e"}"#, "/body/a"),
    (201, r#"{"a":1}"#, r#""result":{"a":1}"#, "/status"),
    (
        404,
        r#"{"code":"x"}"#,
        r#""result":{"code":"x"}"#,
        "/status",
    ),
    (
        200,
        r#"{"header":1}"#,
        r#""result":{"header":1}"#,
        "/headers/x-total",
    ),
    (
        200,
        r#"{"a":1}"#,
        r#""error":{"code":-32603,"message":"broken"}"#,
        "-",
    ),
    (
        200,
        r#"{"a":1.0,"b":[2]}"#,
        r#""result":{"b":[2],"a":1}"#,
        "",
    ),
    (200, r#"{"a":"\u00e9"}"#, r#""result":{"a":"é"}"#, ""),
    (200, r#"{"a":1e2}"#, r#""result":{"a":100}"#, ""),
    (200, r#"[]"#, r#""result":[]"#, ""),
    (200, r#"{"a":null}"#, r#""result":{"a":null}"#, ""),
];

/// One route for each pair. The new server can send no `x-total`.
fn routes() -> String {
    let routes = (0..PAIRS.len()).map(|index| {
        format!(
            "[[route]]\nname = \"p{index}\"\nrest = \"GET /p{index}/{{id}}\"\nrpc = \"p{index}\"\ncompare = {{ headers = [\"x-total\"] }}\n"
        )
    });
    routes.collect()
}

fn is_with_header(body: &str) -> bool {
    body.contains("header")
}

fn servers() -> (Upstream, Upstream) {
    let old = Upstream::serving(|request| {
        let target = request.head.start.split(' ').nth(1).unwrap();
        let index: usize = target.split('/').nth(1).unwrap()[1..].parse().unwrap();
        let (status, body, ..) = PAIRS[index];
        let mut headers = vec![("Content-Type", "application/json")];
        if is_with_header(body) {
            headers.push(("X-Total", "7"));
        }
        answer(&format!("{status} X"), &headers, body)
    });
    let new = Upstream::serving(|request| {
        let called = Called::of(request);
        let index: usize = called.method()[1..].parse().unwrap();
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},{}}}"#,
            called.id(),
            PAIRS[index].2
        );
        answer("200 OK", &[("Content-Type", "application/json")], text)
    });
    (old, new)
}

fn recorded(calls: usize) -> Vec<RecordedCall> {
    let calls = (0..calls).map(|number| {
        let index = number % PAIRS.len();
        let (status, body, ..) = PAIRS[index];
        let mut call = call("GET", &format!("/p{index}/{number}"), status, body);
        if let Some(response) = call.response.as_mut().filter(|_| is_with_header(body)) {
            response.headers.push(("x-total".into(), "7".into()));
        }
        call
    });
    calls.collect()
}

/// The route and the field of each planted difference.
fn planted() -> BTreeSet<(String, String)> {
    let pairs = PAIRS.iter().enumerate();
    pairs
        .filter(|(_, pair)| !pair.3.is_empty())
        .map(|(index, pair)| (format!("p{index}"), pair.3.to_owned()))
        .collect()
}

/// The routes and fields that a replay has found; `-` for failed candidates.
fn found(summary: &Value) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (name, route) in summary["routes"].as_object().unwrap() {
        for field in route["fields"].as_object().unwrap().keys() {
            found.insert((name.clone(), field.clone()));
        }
        if !route["failed"].as_array().unwrap().is_empty() {
            found.insert((name.clone(), "-".to_owned()));
        }
    }
    found
}

/// Replays this number of calls, and checks what is found.
fn replays(calls: usize, way: &str) {
    let (old, new) = servers();
    let config = format!("{}{}", both(&old, &new), routes());
    let replay = Replay::new(&config, file(&recorded(calls)));
    let of_one = calls / PAIRS.len();
    let (summary, code) = replay.json(&["--to", way]);
    assert_eq!((code, &summary["conclusion"]), (1, &json!("different")));
    assert_eq!(found(&summary), planted());
    assert_eq!(summary["compared"], calls, "{}", summary["skipped"]);
    assert_eq!(summary["different"], of_one * 20);
    for (name, route) in summary["routes"].as_object().unwrap() {
        assert_eq!(route["calls"], of_one, "{name}");
        let p50 = route["candidate_us"]["p50"].as_u64();
        assert!(p50 > Some(0), "{name}: {route}");
    }
    let control = &summary["routes"]["p0"]["control_us"]["p99"];
    assert!(
        way == "both" || *control == 1984,
        "2 ms in its bucket: {control}"
    );
}

#[test]
fn twenty_planted_differences_are_found_in_ten_thousand_calls_and_none_is_invented() {
    replays(10_000, "new");
}

#[test]
fn a_live_control_finds_the_same_differences() {
    replays(500, "both");
}

#[test]
fn the_old_server_still_gives_the_recorded_responses() {
    let (old, new) = servers();
    let config = format!("{}{}", both(&old, &new), routes());
    let replay = Replay::new(&config, file(&recorded(500)));
    let (summary, code) = replay.json(&["--to", "old"]);
    assert_eq!(
        (code, &summary["conclusion"]),
        (0, &json!("equal")),
        "{summary}"
    );
    assert_eq!(
        (&summary["compared"], new.requests().len()),
        (&json!(500), 0)
    );
}

#[test]
fn live_shadow_calls_have_the_same_verdicts() {
    let (old, new) = servers();
    let config = format!("{}{}", both(&old, &new), routes());
    let flags = "[[flag]]\nname = \"compare\"\nstage = \"shadow\"\n";
    let live = format!("{config}[rollout.candidates]\nnoise = 0\n");
    let proxy = Proxy::start_with_flags(&live, flags);
    for call in recorded(PAIRS.len()) {
        proxy.rest("GET", &call.request.target, &[], "");
    }
    let labels = ["route", "client", "side", "stage", "verdict"];
    let verdicts = || {
        let table = proxy.metrics().table("dualgauge_verdicts_total", &labels);
        let short = |row: String| row.replace(" other rest shadow ", " ");
        let rows = table.into_iter().map(|(row, count)| (short(row), count));
        rows.collect::<BTreeMap<_, _>>()
    };
    becomes(|| verdicts().len(), &PAIRS.len());
    let (summary, _) = Replay::new(&config, file(&recorded(PAIRS.len()))).json(&[]);
    let mut replayed = BTreeMap::new();
    for (name, route) in summary["routes"].as_object().unwrap() {
        for (verdict, count) in route["verdicts"].as_object().unwrap() {
            replayed.insert(format!("{name} {verdict}"), count.as_f64().unwrap());
        }
    }
    assert_eq!(replayed, verdicts());
    let told = proxy.ask("GET", "/api/v1/mismatches", "").json();
    let mut fields = BTreeSet::new();
    for route in told["routes"].as_array().unwrap() {
        let name = || route["route"].as_str().unwrap().to_owned();
        for field in route["fields"].as_array().unwrap() {
            fields.insert((name(), field["field"].as_str().unwrap().to_owned()));
        }
        if route["failed"]["count"].as_u64() > Some(0) {
            fields.insert((name(), "-".to_owned()));
        }
    }
    assert_eq!(found(&summary), fields);
}
