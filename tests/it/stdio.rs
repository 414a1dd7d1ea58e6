//! A child as an upstream: calls of REST and RPC clients on its standard input, its answers on its standard output.

pub(crate) mod child;
mod ends;
mod lengths;
mod peers;
mod revisions;
mod subscriptions;

use std::path::Path;

use serde_json::Value;

use crate::links::explained;
use crate::scene::{body_of, call, problem, rpc_failure};
use crate::support::{Proxy, becomes};

const ROUTE: &str = "\n[[route]]\nname = \"ask\"\nrest = \"POST /ask/{what}\"\nrpc = \"ask\"\n\
    params = { what = \"{what}\" }\n\
    [[route.outcome]]\nrest = { status = 200, body = { said = \"{said}\" } }\n\
    rpc = { result = { got = { what = \"{said}\" } } }\n";

/// Two workers before one child, with more keys of its upstream.
fn config(keys: &str) -> String {
    let command = child::command();
    format!("[listen]\nworkers = 2\n[upstream.child]\nside = \"rpc\"\n{command}{keys}")
}

pub(crate) fn before_child(keys: &str) -> Proxy {
    Proxy::start(&config(keys))
}

fn ask(proxy: &Proxy, method: &str) -> Value {
    proxy.rpc(call(method, "{}")).json()
}

#[test]
fn a_byte_order_mark_before_a_line_is_ignored() {
    let proxy = before_child("");
    let said = ask(&proxy, "marked");
    assert_eq!(said["result"]["got"], serde_json::json!({}), "{said}");
}

/// What an answer to `echo` says of the child.
fn pid(proxy: &Proxy) -> u64 {
    ask(proxy, "echo")["result"]["pid"].as_u64().unwrap()
}

fn seen(proxy: &Proxy) -> Vec<String> {
    let seen = ask(proxy, "seen");
    serde_json::from_value(seen["result"].clone()).unwrap()
}

fn metric(proxy: &Proxy, series: &str) -> f64 {
    proxy.metrics().value(series)
}

fn strays(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_link_strays_total{{upstream="child",kind="{kind}"}}"#);
    metric(proxy, &series)
}

/// Kills the one child of the proxy.
pub(crate) fn kill_child(proxy: &Proxy) {
    let own = proxy.process();
    let listed =
        std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).unwrap();
    let of_tasks =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<String> = of_tasks
        .chain([listed])
        .flat_map(|children| {
            children
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let child = children.first().unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-s", "KILL", child])
        .status();
    assert!(killed.unwrap().success());
}

const STARTS: &str = r#"dualgauge_link_starts_total{upstream="child"}"#;
const IN_FLIGHT: &str = r#"dualgauge_link_calls_in_flight{upstream="child",state="written"}"#;

#[test]
fn rpc_clients_share_a_child_and_keep_their_ids() {
    let proxy = before_child("");
    let own = pid(&proxy);
    for id in [
        "7",
        "\"a\\u0062\"",
        "1.50",
        "123456789012345678901234567890",
    ] {
        let body = format!(
            "{{\"id\" : {id},\n\"jsonrpc\":\"2.0\", \"method\":\"echo\",\"params\":{{\"n\":1.0}}}}"
        );
        let answer = proxy.rpc(body);
        let wanted =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"got":{{"n":1.0}},"pid":{own}}}}}"#);
        assert_eq!(body_of(&answer, 200), wanted);
    }
    let handshake = ["initialize", "notifications/initialized", "echo"];
    assert_eq!(seen(&proxy)[..3], handshake);
    proxy.log_line(&["output of the child process", "the child is here\\u{7}"]);
    assert!(!proxy.log().contains("hunter2"));
}

#[test]
fn rest_clients_are_translated_for_the_child() {
    let proxy = before_child(ROUTE);
    let answer = proxy.rest("POST", "/ask/now%20then", &[], "");
    assert_eq!(body_of(&answer, 200), r#"{"said":"now then"}"#);
}

#[test]
fn a_batch_and_notifications_reach_the_child_one_by_one() {
    let proxy = before_child("");
    let batch = format!(
        "[{},{},{}]",
        call("echo", "[1]"),
        r#"{"jsonrpc":"2.0","method":"notifications/told"}"#,
        call("nothing/of/ours", "{}").replace("\"id\"", "\"x\""),
    );
    let answers = proxy.rpc(batch).json();
    assert_eq!(answers.as_array().unwrap().len(), 1);
    assert_eq!(answers[0]["result"]["got"], serde_json::json!([1]));
    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(proxy.rpc(told).status(), 202);
    let seen = seen(&proxy);
    assert!(seen.contains(&"notifications/told".to_owned()), "{seen:?}");
    assert!(
        !seen.iter().any(|seen| seen.contains("cancelled")),
        "{seen:?}"
    );
}

#[test]
fn what_concerns_the_link_itself_stays_here() {
    let proxy = before_child("");
    let greeting = proxy
        .rpc(call("initialize", r#"{"protocolVersion":"2024-11-05"}"#))
        .json();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "child");
    let refused = ask(&proxy, "shutdown");
    assert_eq!(rpc_failure(&refused), (-32601, "route_not_found"));
    assert_eq!(
        seen(&proxy),
        ["initialize", "notifications/initialized", "seen"]
    );
    let answer = proxy.rest("GET", "/rpc", &[], "");
    assert_eq!(
        (answer.status(), answer.head.one("allow")),
        (405, Some("POST"))
    );
    let response = proxy.rpc(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).json();
    assert_eq!(rpc_failure(&response), (-32600, "invalid_request"));
}

#[test]
fn a_child_has_no_variables_but_its_own() {
    let proxy = before_child("");
    let names = ask(&proxy, "variables")["result"].to_string();
    assert!(names.contains("SECRET"), "{names}");
    let foreign = names.contains("DUALGAUGE_L") || names.contains("CARGO");
    assert!(!foreign, "{names}");
}

#[test]
fn a_child_that_crashes_fails_its_call_at_once_and_is_started_again() {
    let proxy = before_child(ROUTE);
    let first = pid(&proxy);
    assert_eq!(rpc_failure(&ask(&proxy, "crash")), (-31023, "upstream_cut"));
    assert_ne!(pid(&proxy), first);
    assert_eq!(
        seen(&proxy)[..2],
        ["initialize", "notifications/initialized"]
    );
    assert_eq!(metric(&proxy, STARTS), 2.0);
    proxy.log_line(&["the link is lost", "upstream=child", "signal"]);
    // What a child says before it ends is heard.
    assert_eq!(ask(&proxy, "leave")["result"], "bye");
    assert_eq!(ask(&proxy, "echo")["id"], 1);
}

#[test]
fn a_call_that_times_out_does_not_poison_the_next() {
    let proxy = before_child(&format!("timeout = \"300ms\"\n{ROUTE}"));
    ask(&proxy, "echo");
    assert_eq!(
        rpc_failure(&ask(&proxy, "hold")),
        (-31022, "upstream_timeout")
    );
    let next = proxy.rpc(call("release", r#"{"mine":1}"#)).json();
    assert_eq!(next["result"]["got"]["mine"], 1);
    assert_eq!(
        rpc_failure(&ask(&proxy, "silence")),
        (-31022, "upstream_timeout")
    );
    // It may be about the call before.
    assert_eq!(
        rpc_failure(&ask(&proxy, "null")),
        (-31022, "upstream_timeout")
    );
    assert_eq!(
        (strays(&proxy, "late"), strays(&proxy, "foreign")),
        (1.0, 1.0)
    );
    assert_eq!(ask(&proxy, "echo")["id"], 1);
    assert_eq!(ask(&proxy, "null")["error"]["code"], -32700);
    assert_eq!(proxy.rest("POST", "/ask/x", &[], "").status(), 200);
    assert_eq!(metric(&proxy, IN_FLIGHT), 0.0);
}

#[test]
fn what_else_a_child_says_reaches_nobody() {
    let proxy = before_child("");
    let answer = ask(&proxy, "chatter");
    assert_eq!(answer["result"]["got"], serde_json::json!({}));
    let answers = || {
        seen(&proxy)
            .into_iter()
            .filter(|seen| seen == "(an answer)")
    };
    becomes(|| answers().count(), &2);
    for (kind, count) in [("foreign", 2.0), ("declined", 1.0), ("notified", 1.0)] {
        becomes(|| strays(&proxy, kind), &count);
    }
}

#[test]
fn an_answer_that_is_too_long_fails_its_call_alone() {
    let proxy = before_child("line_limit = 2000\n");
    ask(&proxy, "echo");
    assert_eq!(
        rpc_failure(&ask(&proxy, "large")),
        (-31030, "upstream_too_large")
    );
    assert_eq!(ask(&proxy, "echo")["id"], 1);
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    let proxy = before_child("mode = \"pipelined\"\ntimeout = \"60s\"\n");
    for (method, failure) in [
        ("stringly", (-31027, "upstream_wrong_id")),
        ("deep", (-31025, "upstream_not_json")),
    ] {
        assert_eq!(rpc_failure(&ask(&proxy, method)), failure);
        assert_eq!(ask(&proxy, "echo")["id"], 1);
    }
}

#[test]
fn a_pipelined_child_may_answer_in_any_order() {
    let proxy = before_child("mode = \"pipelined\"\n");
    let batch = [
        call("hold", "[0]"),
        call("hold", "[1]"),
        call("release", "[2]"),
    ]
    .join(",");
    let answers = proxy.rpc(format!("[{batch}]")).json();
    for place in 0..3 {
        assert_eq!(answers[place]["result"]["got"][0], place);
    }
}

#[test]
fn a_line_is_explained_without_a_target() {
    let proxy = before_child(ROUTE);
    let told = explained(&proxy, &["-X", "POST", "/ask/x"]);
    assert_eq!(told["sends"]["upstream"], "child", "{told}");
    assert_eq!(told["sends"]["target"], "", "{told}");
}

#[test]
fn a_client_that_goes_away_cancels_its_call() {
    let proxy = before_child("");
    ask(&proxy, "echo");
    // Else what is seen below could be the call before, whose caller has its answer a moment before the page tells so.
    becomes(|| metric(&proxy, IN_FLIGHT), &0.0);
    let mut client = proxy.connect();
    let body = call("silence", "{}");
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    becomes(|| metric(&proxy, IN_FLIGHT), &1.0);
    drop(client);
    becomes(|| metric(&proxy, IN_FLIGHT), &0.0);
    let seen = seen(&proxy);
    assert!(
        seen.contains(&"notifications/cancelled 4".to_owned()),
        "{seen:?}"
    );
}

#[test]
fn a_reload_keeps_a_child_whose_plan_is_the_same_and_the_end_ends_it() {
    let proxy = before_child("");
    let first = pid(&proxy);
    let file = proxy.folder().join("dualgauge.toml");
    std::fs::write(&file, config("[rpc]\nbatch_concurrency = 3\n")).unwrap();
    proxy.signal("HUP");
    let reloads = r#"dualgauge_plan_reloads_total{result="ok"}"#;
    becomes(|| metric(&proxy, reloads), &1.0);
    assert_eq!(pid(&proxy), first);
    std::fs::write(&file, config("queue = 3\n")).unwrap();
    proxy.signal("HUP");
    becomes(|| pid(&proxy) != first, &true);
    let gone = |pid: u64| !Path::new(&format!("/proc/{pid}")).exists();
    becomes(|| gone(first), &true);
    let second = pid(&proxy);
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(gone(second), "{stopped:?}");
}

#[test]
fn a_child_that_cannot_be_started_is_told_of() {
    let upstream = "[upstream.child]\nside = \"rpc\"\ncommand = [\"/nowhere/at-all\"]\nconnect_timeout = \"200ms\"\n";
    let proxy = Proxy::start(&format!("{upstream}{ROUTE}"));
    assert_eq!(
        rpc_failure(&ask(&proxy, "echo")),
        (-31021, "upstream_unreachable")
    );
    let answer = proxy.rest("POST", "/ask/x", &[], "");
    assert_eq!(problem(&answer).0, "upstream_unreachable");
    proxy.log_line(&["the link is lost", "cannot start"]);
    let ready = proxy.ask("GET", "/readyz", "");
    assert!(
        ready.text().contains("the upstream `child` has no link"),
        "{}",
        ready.text()
    );
    assert_eq!(
        metric(&proxy, r#"dualgauge_link_up{upstream="child"}"#),
        0.0
    );
}
