//! Two MCP servers of different eras as the control and the candidate of flags.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::peers::script;
use super::scripted::{asked, last, result, stateless, with_sessions};
use super::subscriptions::{in_session, open_stream, serve, updated_uri, updating, with_changes};
use super::{ROUTE, ask};
use crate::links::telling::json_of;
use crate::scene::call;
use crate::support::{Proxy, Upstream, becomes, eventually, program, run_to_end};

const QUIET: &str = "[rollout.candidates]\nnoise = 0\n";

/// A server with sessions that answers each call, and one without them that answers the same in its own era.
fn servers() -> [Upstream; 2] {
    let old = with_sessions(|_, called| match called.method() {
        "prompts/list" => result(called, r#"{"prompts":[],"by":"old"}"#),
        _ => result(
            called,
            r#"{"tools":[{"name":"add"}],"content":[{"type":"text","text":"old"}]}"#,
        ),
    });
    let new = stateless(|_, called| match called.method() {
        "prompts/list" => result(
            called,
            r#"{"resultType":"complete","prompts":[],"by":"new"}"#,
        ),
        "tools/call" => result(
            called,
            r#"{"resultType":"complete","content":[{"type":"text","text":"new"}]}"#,
        ),
        _ => result(
            called,
            r#"{"resultType":"complete","ttlMs":7,"cacheScope":"public","_meta":{"a":1},"tools":[{"name":"add"}],
                "content":[{"type":"text","text":"old"}]}"#,
        ),
    });
    [old, new]
}

fn config([old, new]: &[Upstream; 2]) -> String {
    let (old, new) = (old.address(), new.address());
    format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rpc\"\nurl = \"http://{old}/mcp\"\nprotocol = \"mcp\"\n\
         candidate = \"new\"\n[upstream.new]\nside = \"rpc\"\nurl = \"http://{new}/mcp\"\nprotocol = \"mcp\"\n{QUIET}"
    )
}

fn flag(stage: &str, keys: &str) -> String {
    format!("[[flag]]\nname = \"move\"\nstage = \"{stage}\"\n{keys}\n")
}

fn before(servers: &[Upstream; 2], flags: &str) -> Proxy {
    Proxy::start_with_flags(&config(servers), flags)
}

/// How often a method reached a server.
fn count(server: &Upstream, method: &str) -> usize {
    let wanted = format!("POST {method}");
    asked(server)
        .iter()
        .filter(|asked| **asked == wanted)
        .count()
}

pub(super) fn verdicts(proxy: &Proxy, route: &str, verdict: &str) -> f64 {
    let labels = ["route", "client", "side", "stage", "verdict"];
    let table = proxy.metrics().table("dualgauge_verdicts_total", &labels);
    let own = table.iter().filter(|(row, _)| {
        let words: Vec<_> = row.split(' ').collect();
        words.first() == Some(&route) && words.last() == Some(&verdict)
    });
    own.map(|(_, count)| count).sum()
}

#[test]
fn a_stage_chooses_the_server() {
    let servers = servers();
    let proxy = before(&servers, &flag("translate", "route = \"tools/*\""));
    let tools = ask(&proxy, "tools/list");
    assert_eq!(tools["result"]["ttlMs"], 7, "{tools}");
    let called = proxy.rpc(call("tools/call", r#"{"name":"add"}"#)).json();
    assert_eq!(called["result"]["content"][0]["text"], "new");
    assert_eq!(ask(&proxy, "prompts/list")["result"]["by"], "old");
    let greeting = proxy.rpc(call("initialize", "{}")).json();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "scripted");
    assert_eq!(count(&servers[0], "tools/list"), 0);
    proxy.log_line(&["route=tools/list", "stage=translate"]);
    // A method that MCP does not have goes to the first server.
    assert!(ask(&proxy, "own/method")["result"]["ttlMs"].is_null());
    // The kill switch takes everything back at once.
    assert_eq!(proxy.ask("PUT", "/api/v1/kill", "{}").status(), 200);
    becomes(
        || ask(&proxy, "tools/list")["result"]["ttlMs"].is_null(),
        &true,
    );
}

#[test]
fn all_calls_of_a_moved_client_go_to_the_candidate() {
    let servers = servers();
    let proxy = before(&servers, &flag("translate", "header = { x-beta = \"1\" }"));
    let beta = [("Content-Type", "application/json"), ("X-Beta", "1")];
    let greeting = proxy
        .rest("POST", "/rpc", &beta, call("initialize", "{}"))
        .json();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "modern");
    let greeting = proxy.rpc(call("initialize", "{}")).json();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "scripted");
}

#[test]
fn a_moved_client_gets_updates_from_the_server_where_it_subscribed() {
    for new in [updating(), with_changes(1)] {
        let servers = [updating(), new];
        let proxy = before(&servers, &flag("translate", ""));
        let mut client = open_stream(&proxy);
        becomes(|| count(&servers[0], "subscriptions/listen"), &1);
        let subscribed = in_session(&proxy, "resources/subscribe", "a:b");
        assert_eq!(subscribed["result"], serde_json::json!({}));
        assert_eq!(updated_uri(&mut client), "a:b");
        let first = last(&servers[0], "subscriptions/listen").json();
        let resources = &first["params"]["notifications"]["resourceSubscriptions"];
        assert!(resources.is_null(), "{first}");
    }
}

#[test]
fn a_moved_client_hears_of_changed_lists_of_the_candidate() {
    let servers = [updating(), stateless(serve())];
    let proxy = before(&servers, &flag("translate", ""));
    let mut client = open_stream(&proxy);
    becomes(|| count(&servers[0], "subscriptions/listen"), &1);
    assert_eq!(count(&servers[1], "subscriptions/listen"), 0);
    in_session(&proxy, "tools/list", "a:b");
    let told = json_of(&mut client);
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[test]
fn a_shadow_compares_what_both_eras_have() {
    let servers = servers();
    let proxy = before(&servers, &flag("shadow", ""));
    assert!(ask(&proxy, "tools/list")["result"]["ttlMs"].is_null());
    becomes(|| verdicts(&proxy, "tools/list", "match"), &1.0);
    assert_eq!(ask(&proxy, "prompts/list")["result"]["by"], "old");
    becomes(|| verdicts(&proxy, "prompts/list", "mismatch"), &1.0);
    assert_eq!(count(&servers[1], "tools/list"), 1);
    // A tool may have any effect, so it is not called twice.
    let called = proxy.rpc(call("tools/call", r#"{"name":"add"}"#)).json();
    assert_eq!(called["result"]["content"][0]["text"], "old");
    becomes(|| verdicts(&proxy, "tools/call", "skipped"), &1.0);
    assert_eq!(count(&servers[1], "tools/call"), 0);
}

#[test]
fn verify_answers_with_the_candidate_and_compares_the_first_server() {
    let servers = servers();
    let proxy = before(&servers, &flag("verify", ""));
    assert_eq!(ask(&proxy, "tools/list")["result"]["ttlMs"], 7);
    becomes(|| verdicts(&proxy, "tools/list", "match"), &1.0);
    assert_eq!(count(&servers[0], "tools/list"), 1);
}

#[test]
fn a_candidate_that_cannot_be_reached_costs_only_the_comparison() {
    let [old, new] = servers();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let pair = [old, new];
    let text = config(&pair).replace(&pair[1].address().to_string(), &address.to_string());
    let text = text.replace(QUIET, &format!("connect_timeout = \"200ms\"\n{QUIET}"));
    let proxy = Proxy::start_with_flags(&text, &flag("shadow", ""));
    assert_eq!(ask(&proxy, "prompts/list")["result"]["by"], "old");
    becomes(
        || verdicts(&proxy, "prompts/list", "candidate-failed"),
        &1.0,
    );
}

#[test]
fn a_route_of_a_tool_makes_it_safe_and_its_rest_clients_stay() {
    let servers = servers();
    let text = format!("{}{ROUTE}", config(&servers));
    let proxy = Proxy::start_with_flags(&text, &flag("translate", "route = \"add\""));
    let arguments = r#"{"name":"add","arguments":{"a":"7"}}"#;
    let called = proxy.rpc(call("tools/call", arguments)).json();
    assert_eq!(called["result"]["content"][0]["text"], "new");
    let other = proxy
        .rpc(call("tools/call", r#"{"name":"other","arguments":{}}"#))
        .json();
    assert_eq!(other["result"]["content"][0]["text"], "old");
    assert_eq!(
        proxy.rest("GET", "/sum/7", &[], "").text(),
        r#"{"said":"old"}"#
    );
}

#[test]
fn a_guard_takes_the_flag_back() {
    let wrong = Arc::new(AtomicBool::new(false));
    let is_wrong = wrong.clone();
    let old = with_sessions(|_, called| result(called, r#"{"tools":[],"ok":true}"#));
    let new = stateless(move |_, called| {
        let ok = !is_wrong.load(Ordering::Relaxed);
        result(
            called,
            &format!(r#"{{"resultType":"complete","tools":[],"ok":{ok}}}"#),
        )
    });
    let servers = [old, new];
    let guard = "guard = { window = \"10s\", min_calls = 10, mismatch = 0.001 }";
    let proxy = before(&servers, &flag("shadow", guard));
    let tripped = || {
        let flag = proxy.ask("GET", "/api/v1/flags/move", "").json();
        flag["tripped"]["reason"].as_str().map(str::to_owned)
    };
    for place in 1..=20 {
        ask(&proxy, "tools/list");
        becomes(
            || verdicts(&proxy, "tools/list", "match"),
            &f64::from(place),
        );
    }
    assert_eq!(tripped(), None);
    wrong.store(true, Ordering::Relaxed);
    let reason = eventually("the guard takes the flag back", || {
        ask(&proxy, "tools/list");
        tripped()
    });
    assert!(reason.contains("mismatches"), "{reason}");
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn servers_of_both_official_libraries_are_compared() {
    let old = script("peers", "tests/it/mcp/server.py", &["stateful", "0"]);
    let new = script("peers-2", "tests/it/mcp/server.py", &["stateful", "0"]);
    let (old, new) = (old.address, new.address);
    let config = format!(
        "[upstream.old]\nside = \"rpc\"\nurl = \"http://{old}/mcp\"\nprotocol = \"mcp\"\ncandidate = \"new\"\n\
         revision = \"2025-11-25\"\n[upstream.new]\nside = \"rpc\"\nurl = \"http://{new}/mcp\"\nprotocol = \"mcp\"\n\
         revision = \"2026-07-28\"\n{QUIET}"
    );
    let proxy = Proxy::start_with_flags(&config, &flag("verify", ""));
    let called = proxy
        .rpc(call(
            "tools/call",
            r#"{"name":"add","arguments":{"a":1,"b":2}}"#,
        ))
        .json();
    assert_eq!(
        called["result"]["content"][0]["text"], "the sum is 3",
        "{called}"
    );
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        ask(&proxy, method);
        becomes(|| verdicts(&proxy, method, "match"), &1.0);
    }
}

#[test]
fn the_server_of_a_stage_is_explained() {
    let servers = servers();
    let proxy = before(&servers, &flag("verify", "route = \"tools/*\""));
    let explained = |method: &str| {
        let mut command = program(&["explain", "--format", "json", "-X", "POST"]);
        command
            .args(["-d", &call(method, "{}"), "/rpc"])
            .args(["--admin", &format!("http://{}", proxy.admin())])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ended = run_to_end(command);
        serde_json::from_str::<Value>(&ended.output).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    let moved = explained("tools/list").to_string();
    assert!(moved.contains(r#""upstream":"new""#), "{moved}");
    assert!(moved.contains("to the first MCP server"), "{moved}");
    let stays = explained("prompts/list").to_string();
    assert!(stays.contains(r#""upstream":"old""#), "{stays}");
}

#[test]
fn faults_of_a_pair_are_told() {
    let check = |config: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dualgauge.toml");
        std::fs::write(&path, config).unwrap();
        let mut command = program(&["check", "--config"]);
        command
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ended = run_to_end(command);
        format!("{}{}", ended.output, ended.errors)
    };
    let good = config(&servers());
    let said = check(&good);
    assert!(!said.contains("tools/list"), "{said}");
    for (from, to, wanted) in [
        (
            "candidate = \"new\"",
            "candidate = \"nwe\"",
            "did you mean `new`?",
        ),
        (
            "candidate = \"new\"",
            "candidate = \"old\"",
            "cannot be its own candidate",
        ),
        (
            QUIET,
            "candidate = \"old\"\n",
            "another upstream has a candidate already",
        ),
        (
            QUIET,
            "[upstream.r]\nside = \"rest\"\nurl = \"http://127.0.0.1:1\"\n",
            "excludes upstreams on the `rest` side",
        ),
    ] {
        let said = check(&good.replace(from, to));
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let plain = good.replace("protocol = \"mcp\"\n[rollout", "[rollout");
    let said = check(&plain);
    assert!(
        said.contains("`new` is no MCP server that all clients share"),
        "{said}"
    );
}
