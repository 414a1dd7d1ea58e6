//! Planted differences are found, no other is invented, and live shadow calls find the same.

use std::collections::BTreeMap;

use dualgauge_patterns::side::Side;
use dualgauge_recording::recording::RecordedCall;
use serde_json::{Value, json};

use super::{Replay, call, file, rpc_call};
use crate::scene::{Called, answer};
use crate::support::{Proxy, Upstream, becomes, both, eventually};

/// The bodies of control and candidate, the field in which they differ, and the kind of the difference; none if equal.
type Bodies = (&'static str, &'static str, &'static str, &'static str);

const BODIES: [Bodies; 21] = [
    (r#"{"a":1}"#, r#"{"a":2}"#, "/a", "value"),
    (r#"{"a":"x"}"#, r#"{"a":"y"}"#, "/a", "value"),
    (r#"{"a":1}"#, r#"{"a":"1"}"#, "/a", "type"),
    (r#"{"a":null}"#, r#"{"a":""}"#, "/a", "type"),
    (r#"{"a":true}"#, r#"{"a":false}"#, "/a", "value"),
    (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, "/b", "missing"),
    (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, "/b", "extra"),
    (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, "/a", "order"),
    (r#"{"a":[1,2]}"#, r#"{"a":[1,2,3]}"#, "/a", "length"),
    (
        r#"{"a":[{"b":1},{"b":2}]}"#,
        r#"{"a":[{"b":1},{"b":3}]}"#,
        "/a/*/b",
        "value",
    ),
    (
        r#"{"a":{"b":{"c":1}}}"#,
        r#"{"a":{"b":{"c":2}}}"#,
        "/a/b/c",
        "value",
    ),
    (
        r#"{"a":0.1}"#,
        r#"{"a":0.10000000000000001}"#,
        "/a",
        "value",
    ),
    (
        r#"{"a":12345678901234567890}"#,
        r#"{"a":12345678901234567891}"#,
        "/a",
        "value",
    ),
    (r#"{"a":{}}"#, r#"{"a":[]}"#, "/a", "type"),
    (r#"[1]"#, r#"{"a":1}"#, "", "type"),
    (r#"{"a":"é"}"#, r#"{"a":"e"}"#, "/a", "value"),
    (r#"{"a":1.0,"b":[2]}"#, r#"{"b":[2],"a":1}"#, "", ""),
    (r#"{"a":"\u00e9"}"#, r#"{"a":"é"}"#, "", ""),
    (r#"{"a":1e2}"#, r#"{"a":100}"#, "", ""),
    (r#"[]"#, r#"[]"#, "", ""),
    (r#"{"a":null}"#, r#"{"a":null}"#, "", ""),
];

/// The responses of both servers to one route, and the difference between them.
struct Pair {
    status: u16,
    body: String,
    /// The member of the RPC response.
    reply: String,
    /// The fields and the kinds; `-` for a failed candidate, and nothing for equal responses.
    differences: Vec<(String, &'static str)>,
}

/// The fields and the kinds of differences.
type Kinds = &'static [(&'static str, &'static str)];

/// The status and the body of the REST server, the member of the RPC server, and the differences.
type Outcome = (u16, &'static str, &'static str, Kinds);

const REST_OUTCOMES: [Outcome; 4] = [
    (
        201,
        r#"{"a":1}"#,
        r#""result":{"a":1}"#,
        &[("/status", "status")],
    ),
    (
        404,
        r#"{"code":"x"}"#,
        r#""result":{"code":"x"}"#,
        &[("/status", "status")],
    ),
    (
        200,
        r#"{"header":1}"#,
        r#""result":{"header":1}"#,
        &[("/headers/x-total", "missing")],
    ),
    (
        200,
        r#"{"a":1}"#,
        r#""error":{"code":-32603,"message":"broken"}"#,
        &[("-", "failed")],
    ),
];

/// The REST server's error has a message and data of its own.
const RPC_OUTCOMES: [Outcome; 4] = [
    (
        404,
        "{}",
        r#""result":{"a":1}"#,
        &[("/result", "missing"), ("/error", "extra")],
    ),
    (
        200,
        r#"{"a":1}"#,
        r#""error":{"code":-32602,"message":"m"}"#,
        &[("/error", "missing"), ("/result", "extra")],
    ),
    (
        404,
        r#"{"title":"m"}"#,
        r#""error":{"code":-32601,"message":"m"}"#,
        &[
            ("/error/code", "code"),
            ("/error/message", "value"),
            ("/error/data", "extra"),
        ],
    ),
    (503, "{}", r#""result":{"a":1}"#, &[("-", "failed")]),
];

/// Twenty pairs that differ for clients of a side, and five that do not.
fn pairs(side: Side) -> Vec<Pair> {
    let (root, outcomes) = match side {
        Side::Rest => ("/body", REST_OUTCOMES),
        Side::Rpc => ("/result", RPC_OUTCOMES),
    };
    let of_bodies = BODIES.iter().map(|(control, candidate, field, kind)| {
        let (rest, rpc) = match side {
            Side::Rest => (control, candidate),
            Side::Rpc => (candidate, control),
        };
        Pair {
            status: 200,
            body: (*rest).to_owned(),
            reply: format!("\"result\":{rpc}"),
            differences: match kind.is_empty() {
                true => Vec::new(),
                false => vec![(format!("{root}{field}"), *kind)],
            },
        }
    });
    let of_outcomes = outcomes
        .into_iter()
        .map(|(status, body, reply, kinds)| Pair {
            status,
            body: body.to_owned(),
            reply: reply.to_owned(),
            differences: kinds
                .iter()
                .map(|(field, kind)| ((*field).to_owned(), *kind))
                .collect(),
        });
    of_bodies.chain(of_outcomes).collect()
}

/// The number of pairs.
const PAIRS: usize = BODIES.len() + REST_OUTCOMES.len();

/// One route for each pair. The new server can send no `x-total`.
fn routes() -> String {
    let routes = (0..PAIRS).map(|index| {
        format!(
            "[[route]]\nname = \"p{index}\"\nrest = \"GET /p{index}/{{id}}\"\nrpc = \"p{index}\"\ncompare = {{ headers = [\"x-total\"] }}\n"
        )
    });
    routes.collect()
}

fn is_with_header(body: &str) -> bool {
    body.contains("header")
}

/// The servers of the pairs of a side.
fn servers(side: Side) -> (Upstream, Upstream) {
    let of_rest = pairs(side);
    let rest = Upstream::serving(move |request| {
        let target = request.head.start.split(' ').nth(1).unwrap();
        let index: usize = target.split('/').nth(1).unwrap()[1..].parse().unwrap();
        let pair = &of_rest[index];
        let mut headers = vec![("Content-Type", "application/json")];
        if is_with_header(&pair.body) {
            headers.push(("X-Total", "7"));
        }
        answer(&format!("{} X", pair.status), &headers, &pair.body)
    });
    let of_rpc = pairs(side);
    let rpc = Upstream::serving(move |request| {
        let called = Called::of(request);
        let index: usize = called.method()[1..].parse().unwrap();
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},{}}}"#,
            called.id(),
            of_rpc[index].reply
        );
        answer("200 OK", &[("Content-Type", "application/json")], text)
    });
    (rest, rpc)
}

fn recorded(calls: usize) -> Vec<RecordedCall> {
    let pairs = pairs(Side::Rest);
    let calls = (0..calls).map(|number| {
        let index = number % PAIRS;
        let Pair { status, body, .. } = &pairs[index];
        let mut call = call("GET", &format!("/p{index}/{number}"), *status, body);
        if let Some(response) = call.response.as_mut().filter(|_| is_with_header(body)) {
            response.headers.push(("x-total".into(), "7".into()));
        }
        call
    });
    calls.collect()
}

/// Numbers of calls by route, field and kind.
type Differences = BTreeMap<(String, String, String), u64>;

/// The planted differences, each in this number of calls.
fn planted(side: Side, calls: usize) -> Differences {
    let pairs = pairs(side);
    let pairs = pairs.into_iter().enumerate();
    let differences = pairs.flat_map(|(index, pair)| {
        let differences = pair.differences.into_iter();
        differences
            .map(move |(field, kind)| ((format!("p{index}"), field, kind.to_owned()), calls as u64))
    });
    differences.collect()
}

/// The differences that a replay has found.
fn found(summary: &Value) -> Differences {
    let mut found = BTreeMap::new();
    for (name, route) in summary["routes"].as_object().unwrap() {
        for (field, of_field) in route["fields"].as_object().unwrap() {
            for (kind, calls) in of_field["kinds"].as_object().unwrap() {
                let key = (name.clone(), field.clone(), kind.clone());
                found.insert(key, calls.as_u64().unwrap());
            }
        }
        if let Some(failed) = route["verdicts"]["candidate-failed"].as_u64() {
            let key = (name.clone(), "-".to_owned(), "failed".to_owned());
            found.insert(key, failed);
        }
    }
    found
}

/// Replays this number of calls, and checks what is found.
fn replays(calls: usize, way: &str) {
    let (old, new) = servers(Side::Rest);
    let config = format!("{}{}", both(&old, &new), routes());
    let replay = Replay::new(&config, file(&recorded(calls)));
    let of_one = calls / PAIRS;
    let (summary, code) = replay.json(&["--to", way]);
    assert_eq!((code, &summary["conclusion"]), (1, &json!("different")));
    assert_eq!(found(&summary), planted(Side::Rest, of_one));
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
    let (old, new) = servers(Side::Rest);
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

/// One call of a client of a side.
fn request(side: Side, number: usize) -> Vec<u8> {
    let index = number % PAIRS;
    match side {
        Side::Rest => format!("GET /p{index}/{number} HTTP/1.1\r\nHost: proxy.example\r\n\r\n"),
        Side::Rpc => {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{number},"method":"p{index}","params":{{"id":"{number}"}}}}"#
            );
            let length = body.len();
            format!(
                "POST /rpc HTTP/1.1\r\nHost: proxy.example\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        }
    }
    .into_bytes()
}

/// The verdicts of live calls, by route.
fn live_verdicts(proxy: &Proxy) -> BTreeMap<String, u64> {
    let labels = ["route", "client", "side", "stage", "verdict"];
    let table = proxy.metrics().table("dualgauge_verdicts_total", &labels);
    let rows = table.into_iter().map(|(row, count)| {
        let words: Vec<_> = row.split(' ').collect();
        (format!("{} {}", words[0], words[4]), count as u64)
    });
    rows.collect()
}

/// The verdicts of a replay, by route.
fn replayed_verdicts(summary: &Value) -> BTreeMap<String, u64> {
    let mut verdicts = BTreeMap::new();
    for (name, route) in summary["routes"].as_object().unwrap() {
        for (verdict, count) in route["verdicts"].as_object().unwrap() {
            verdicts.insert(format!("{name} {verdict}"), count.as_u64().unwrap());
        }
    }
    verdicts
}

/// The differences of live calls: the kinds are those of the last samples of a field, each of which has all its calls.
fn live_differences(proxy: &Proxy) -> Differences {
    let told: Value = proxy.ask("GET", "/api/v1/mismatches", "").json();
    let mut found = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for route in told["routes"].as_array().unwrap() {
        for field in route["fields"].as_array().unwrap() {
            for sample in field["samples"].as_array().unwrap() {
                let key = (
                    text(&route["route"]),
                    text(&field["field"]),
                    text(&sample["kind"]),
                );
                found.insert(key, field["count"].as_u64().unwrap());
            }
        }
        let failed = route["failed"]["count"].as_u64().unwrap();
        if failed > 0 {
            let key = (text(&route["route"]), "-".to_owned(), "failed".to_owned());
            found.insert(key, failed);
        }
    }
    found
}

/// Sends calls through a proxy that shadows and records all of them, and replays the recording: both find the planted
/// differences, and give the same verdicts.
fn live_and_replay_agree(side: Side, calls: usize) {
    let (rest, rpc) = servers(side);
    let config = format!("{}{}", both(&rest, &rpc), routes());
    // No candidate is skipped because others run.
    let live = format!(
        "{config}[rollout.candidates]\nconcurrency = 1000\nmemory = \"1GiB\"\n\
         [log]\nlevel = \"error\"\n[record]\ndirectory = \"recordings\"\nsample = 100\nbodies = true\nheaders = [\"content-type\", \"x-total\"]\n"
    );
    let flags = "[[flag]]\nname = \"compare\"\nstage = \"shadow\"\n";
    let proxy = Proxy::start_with_flags(&live, flags);
    let mut wire = proxy.connect();
    for number in 0..calls {
        wire.send(request(side, number));
        wire.read_answer();
    }
    eventually("all calls have verdicts", || {
        let verdicts = live_verdicts(&proxy);
        (verdicts.values().sum::<u64>() == calls as u64).then_some(())
    });
    let stopped = proxy.ask("DELETE", "/api/v1/recording", "{}").json();
    assert_eq!(stopped["recording"]["calls"], calls, "{stopped}");
    let folder = std::fs::read_dir(proxy.folder().join("recordings")).unwrap();
    let files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    let recording = std::fs::read(&files[0]).unwrap();
    let (summary, code) = Replay::new(&config, recording).json(&[]);
    assert_eq!((code, &summary["compared"]), (1, &json!(calls)));
    assert_eq!(summary["skipped"], json!([]));
    assert_eq!(replayed_verdicts(&summary), live_verdicts(&proxy));
    let planted = planted(side, calls / PAIRS);
    assert_eq!(found(&summary), planted);
    assert_eq!(live_differences(&proxy), planted);
}

#[test]
fn live_shadow_calls_of_rest_clients_have_the_verdicts_of_a_replay() {
    live_and_replay_agree(Side::Rest, 10_000);
}

#[test]
fn live_shadow_calls_of_rpc_clients_have_the_verdicts_of_a_replay() {
    live_and_replay_agree(Side::Rpc, 2_500);
}

#[test]
fn an_invalid_message_has_a_failed_candidate_live_and_is_refused_by_a_replay() {
    let (rest, rpc) = servers(Side::Rpc);
    let config = format!("{}{}", both(&rest, &rpc), routes());
    let flags = "[[flag]]\nname = \"compare\"\nstage = \"shadow\"\n";
    let proxy = Proxy::start_with_flags(&config, flags);
    let message = r#"{"jsonrpc":"1.0","id":1,"method":"p0","params":{"id":"1"}}"#;
    let answer = proxy.rpc(message);
    let call = rpc_call(message, answer.text());
    let failed = BTreeMap::from([("p0 candidate-failed".to_owned(), 1)]);
    becomes(|| live_verdicts(&proxy), &failed);
    let (summary, code) = Replay::new(&config, file(&[call])).json(&[]);
    let reason = &summary["skipped"][0]["reason"];
    assert_eq!((code, reason), (2, &json!("refused")), "{summary}");
}
