//! Mismatches of a replay and of live shadow calls become outcome rows, with which the same calls are equal.

use std::fs;

use dualgauge_recording::recording::RecordedCall;
use serde_json::{Value, json};

use super::{Replay, call, file, rpc_call};
use crate::scene::{Called, json_with};
use crate::support::{Ended, Proxy, Upstream, becomes, both, program, run_to_end};

/// The kind of a call by its number: the response of the old server and what the new server says.
fn pair(route: &str, id: u64) -> (u16, String, String) {
    match (route, id % 4) {
        ("items", 0) => (
            404,
            format!(r#"{{"error":"no item {id}"}}"#),
            format!(r#""error":{{"code":-32001,"message":"no item {id}"}}"#),
        ),
        ("items", 1) => (
            409,
            format!(r#"{{"code":"locked","message":"item {id}","by":{{"user":{id}}}}}"#),
            format!(
                r#""error":{{"code":-32002,"message":"item {id}","data":{{"by":{{"user":{id}}},"at":{id}}}}}"#
            ),
        ),
        ("items", 2) => (
            200,
            format!(r#"{{"data":{{"id":{id},"name":"item {id}"}}}}"#),
            format!(r#""result":{{"id":{id},"name":"item {id}"}}"#),
        ),
        ("items", _) => (
            402,
            format!(r#"{{"error":"pay","request":"r{id}"}}"#),
            r#""error":{"code":-32003,"message":"pay"}"#.to_owned(),
        ),
        ("orders", _) => (
            202,
            format!(r#"{{"state":"open {id}"}}"#),
            format!(r#""result":{{"state":"open {id}"}}"#),
        ),
        (_, 0) => (
            200,
            r#"{"price":1.25,"tags":["a","b"],"note":"x"}"#.to_owned(),
            r#""result":{"price":1.250001,"tags":["b","a"],"extra":1}"#.to_owned(),
        ),
        (..) => (200, "{}".to_owned(), r#""result":{}"#.to_owned()),
    }
}

const ROUTES: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id:integer}"
rpc = "items.get"

[[route]]
name = "orders.get"
rest = "GET /orders/{id:integer}"
rpc = "orders.get"

[[route]]
name = "prices.get"
rest = "GET /prices/{id:integer}"
rpc = "prices.get"
"#;

fn servers() -> (Upstream, Upstream) {
    let old = Upstream::serving(|request| {
        let target = request.head.start.split(' ').nth(1).unwrap();
        let (route, id) = target[1..].split_once('/').unwrap();
        let (status, body, _) = pair(route, id.parse().unwrap());
        json_with(&format!("{status} X"), body)
    });
    let new = Upstream::serving(|request| {
        let called = Called::of(request);
        let params: Value = serde_json::from_str(called.params.unwrap().get()).unwrap();
        let route = called.method().split('.').next().unwrap();
        let (_, _, reply) = pair(route, params["id"].as_u64().unwrap());
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},{reply}}}"#, called.id());
        json_with("200 OK", text)
    });
    (old, new)
}

/// Calls of both sides, with the responses of the servers of their sides.
fn recorded() -> Vec<RecordedCall> {
    let mut calls = Vec::new();
    for id in 100..140 {
        for route in ["items", "orders", "prices"] {
            let (status, body, reply) = pair(route, id);
            calls.push(call("GET", &format!("/{route}/{id}"), status, &body));
            if route == "items" && id % 4 == 0 {
                let call = json!({ "jsonrpc": "2.0", "id": id, "method": "items.get", "params": { "id": id } });
                let reply = format!(r#"{{"jsonrpc":"2.0","id":{id},{reply}}}"#);
                calls.push(rpc_call(&call.to_string(), &reply));
            }
        }
    }
    calls
}

fn learn(replay: &Replay, arguments: &[&str]) -> Ended {
    let mut command = program(&["learn"]);
    command.args(arguments).arg("--config");
    command.arg(replay.0.path().join("dualgauge.toml"));
    run_to_end(command)
}

/// Adds the file of rows to the configuration, as its comments say.
fn add_rows(replay: &Replay, config: &str, rows: &str) {
    let mut config = config.to_owned();
    let mut route = None;
    for line in rows.lines() {
        if let Some(name) = line.strip_prefix("# route `") {
            route = name.strip_suffix('`');
        }
        if let (Some(key), Some(name)) = (line.strip_prefix("# add to the route: "), route) {
            let table = format!("name = \"{name}\"\n");
            config = config.replace(&table, &format!("{table}{key}\n"));
        }
    }
    fs::write(replay.0.path().join("rows.toml"), rows).unwrap();
    let config = format!("include = [\"rows.toml\"]\n{config}");
    fs::write(replay.0.path().join("dualgauge.toml"), config).unwrap();
}

fn check(replay: &Replay) -> Ended {
    let mut command = program(&["check", "--config"]);
    command.arg(replay.0.path().join("dualgauge.toml"));
    run_to_end(command)
}

/// The fields of a route that differ, and the number of failed candidates.
fn differing(summary: &Value, route: &str) -> (Vec<String>, u64) {
    let route = &summary["routes"][route];
    let fields = route["fields"].as_object().unwrap();
    let failed = route["verdicts"]["candidate-failed"].as_u64();
    (fields.keys().cloned().collect(), failed.unwrap_or(0))
}

#[test]
fn rows_that_mismatches_show_as_missing_make_the_same_calls_equal() {
    let (old, new) = servers();
    // A constant text is shown, so a row can contain it.
    let config = format!("{}{ROUTES}[compare]\nshow = true\n", both(&old, &new));
    let replay = Replay::new(&config, file(&recorded()));
    let (before, code) = replay.json(&[]);
    assert_eq!(code, 1);
    assert_eq!(differing(&before, "items.get").1, 30, "{before}");
    let report = replay.0.path().join("replay.json");
    fs::write(&report, before.to_string()).unwrap();
    let ended = learn(&replay, &[report.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in [
        r#"rest = { status = 404, body = { error = "{error}" } }"#,
        r#"rpc = { error = { code = -32001, message = "{error}" } }"#,
        r#"rest = { status = 409, body = { by = "{by}", code = "locked", message = "{message}" } }"#,
        r#"rest = { status = 200, body = { data = "{data}" } }"#,
        r#"rpc = { result = "{data}" }"#,
        "# guess: 10 calls with status 404 from the control and status 500 (error -32001) from the candidate",
        "# guess: `code` is always \"locked\"",
        r#"# no row: /body/request: the other response has no such value; `compare.ignore = ["/body/request"]`"#,
        r#"`compare.tolerance = { "/body/price" ="#,
        r#"`compare.unordered = ["/body/tags"]`"#,
        r#"# no row: /body/note in 10 calls: only the control has it"#,
    ] {
        assert!(ended.output.contains(said), "{said}\n{}", ended.output);
    }
    assert!(
        ended
            .errors
            .contains("proposed: 5 outcome rows for 2 routes"),
        "{ended:?}"
    );
    add_rows(&replay, &config, &ended.output);
    let checked = check(&replay);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let (after, _) = replay.json(&[]);
    assert_eq!(
        differing(&after, "items.get"),
        (vec!["/body/request".to_owned()], 0),
        "{after}"
    );
    assert_eq!(differing(&after, "orders.get"), (Vec::new(), 0));
    let prices = |summary| differing(summary, "prices.get");
    assert_eq!(prices(&before), prices(&after));
}

#[test]
fn live_mismatches_become_rows_too_and_without_show_no_text_is_in_them() {
    let (old, new) = servers();
    let config = format!("{}{ROUTES}", both(&old, &new));
    let live = format!("{config}[rollout.candidates]\nnoise = 0\n");
    let flags = "[[flag]]\nname = \"compare\"\nstage = \"shadow\"\n";
    let proxy = Proxy::start_with_flags(&live, flags);
    for call in recorded() {
        if call.request.method == "GET" {
            proxy.rest("GET", &call.request.target, &[], "");
        }
    }
    let compared = || {
        let labels = ["route", "client", "side", "stage", "verdict"];
        let table = proxy.metrics().table("dualgauge_verdicts_total", &labels);
        table.values().sum::<f64>() as u64
    };
    becomes(compared, &120);
    let replay = Replay::new(&config, file(&recorded()));
    let ended = learn(&replay, &["--admin", &format!("http://{}", proxy.admin())]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in [
        r#"rpc = { error = { code = -32001, message = "{error}" } }"#,
        r#"rest = { status = 202, body = "{value}" }"#,
        "# no row: /body/code: the other response has no such value",
    ] {
        assert!(ended.output.contains(said), "{said}\n{}", ended.output);
    }
    for text in ["locked", "no item"] {
        assert!(!ended.output.contains(text), "{}", ended.output);
    }
    add_rows(&replay, &config, &ended.output);
    let checked = check(&replay);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let (after, _) = replay.json(&["--only", "orders.get"]);
    assert_eq!(after["conclusion"], "equal", "{after}");
}

#[test]
fn a_report_without_a_configuration_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("replay.json");
    fs::write(
        &report,
        r#"{"conclusion":"different","routes":{"a":{"fields":{}}}}"#,
    )
    .unwrap();
    let ended = run_to_end(program(&["learn", report.to_str().unwrap()]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.errors.contains("`--config` names the configuration"),
        "{ended:?}"
    );
}
