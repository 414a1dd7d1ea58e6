//! Results of tools that say `isError: true`: what a REST client gets, and how they are counted.

use serde_json::json as value;

use crate::scene::{Called, answer, before_rest, before_rpc, call, json, problem, saying};
use crate::support::{Message, Proxy, Upstream, both, eventually};

const ROUTE: &str = r#"
[[route]]
name = "tool"
rest = "POST /tool"
body = { arguments = "{arguments={}}" }
rpc = "tools/call"
params = { name = "t", arguments = "{arguments}" }
"#;

const FAILED: &str =
    r#""result":{"content":[{"type":"text","text":"no such table"}],"isError":true}"#;
const PARAMS: &str = r#"{"name":"t","arguments":{}}"#;

/// A REST server whose answers are results of tools already.
fn rest(body: &'static str) -> Upstream {
    Upstream::answering(json(body))
}

fn call_tool(proxy: &Proxy) -> Message {
    let kind = [("Content-Type", "application/json")];
    proxy.rest("POST", "/tool", &kind, "{}")
}

#[test]
fn a_rest_client_gets_422_and_the_words_of_the_tool_and_nobody_is_blamed() {
    for (more, status) in [("", 422), ("[rpc]\ntool_error_status = 500\n", 500)] {
        let proxy = before_rpc(&saying(FAILED), &format!("{ROUTE}{more}"));
        let came = call_tool(&proxy);
        let (reason, detail) = problem(&came);
        assert_eq!(
            (came.status(), &*reason, &*detail),
            (status, "", "no such table")
        );
        assert_eq!(came.json()["rpc"]["data"]["isError"], true);
        let line = proxy.log_line(&["outcome=tool_error", &format!("status={status}")]);
        assert!(!line.contains("blame="), "{line}");
        let series = r#"dualgauge_calls_total{route="tool",client="other",side="rest",stage="translate",outcome="tool_error",blame="none"}"#;
        assert_eq!(proxy.metrics().value(series), 1.0);
        let usage = proxy.ask("GET", "/api/v1/usage", "").json();
        let caller = &usage["routes"][0]["callers"][0];
        assert_eq!(caller["tool_errors"]["calls"], 1, "{usage}");
        assert_eq!(caller["new"]["calls"], 1, "{usage}");
    }
}

#[test]
fn a_row_decides_instead() {
    let row = r#"
[[route.outcome]]
rest = { status = 404, body = { said = "{m}" } }
rpc = { result = { content = [{ type = "text", text = "{m}" }], isError = true } }
"#;
    let proxy = before_rpc(&saying(FAILED), &format!("{ROUTE}{row}"));
    let came = call_tool(&proxy);
    assert_eq!(
        (came.status(), came.text()),
        (404, r#"{"said":"no such table"}"#)
    );
    proxy.log_line(&["outcome=error", "blame=client", "status=404"]);
}

#[test]
fn the_result_of_a_tool_comes_back_as_it_was_through_both_directions() {
    let inner = before_rpc(&saying(FAILED), ROUTE);
    let outer = Proxy::start(&format!(
        "[upstream.inner]\nside = \"rest\"\nurl = \"http://{}\"\n{ROUTE}",
        inner.address()
    ));
    let came = outer.rpc(call("tools/call", PARAMS));
    assert_eq!(
        came.text(),
        format!(r#"{{"jsonrpc":"2.0","id":1,{FAILED}}}"#)
    );
    outer.log_line(&["outcome=tool_error"]);
}

#[test]
fn calls_of_rpc_clients_are_counted_alike_however_they_are_served() {
    let result = FAILED.strip_prefix(r#""result":"#).unwrap();
    let counted = |proxy: &Proxy, message: &str| {
        let came = proxy.rpc(message);
        assert!(came.text().contains(result), "{came:?}");
        proxy.log_line(&["outcome=tool_error", "status=200"]);
    };
    // Passed on as it came, with another id, in a batch, and translated.
    let odd = call("tools/call", PARAMS).replace(r#""id":1"#, r#""id":1e3"#);
    let batch = format!("[{}]", call("tools/call", PARAMS));
    for message in [&call("tools/call", PARAMS), &odd, &batch] {
        counted(&before_rpc(&saying(FAILED), ""), message);
    }
    counted(
        &before_rest(&rest(result), ROUTE),
        &call("tools/call", PARAMS),
    );
    // The same member of another method means nothing.
    let proxy = before_rpc(&saying(FAILED), "");
    proxy.rpc(call("other", PARAMS));
    proxy.log_line(&["outcome=success"]);
    let fine = r#""result":{"content":[{"type":"text","text":"true"}],"isError":false}"#;
    let proxy = before_rpc(&saying(fine), ROUTE);
    proxy.rpc(call("tools/call", PARAMS));
    proxy.log_line(&["outcome=success"]);
}

const CLIENT: &str = r#"
[[client]]
name = "app"
match = { header = { x-client-id = "app" } }
key = { header = "x-device-id" }
"#;

const FLAGS: &str = r#"
[[flag]]
name = "mover"
side = "rest"
stage = "translate"
percent = 50
guard = { window = "10s", min_calls = 10, latency_ratio = "off" }
"#;

/// Four calls of each of sixteen devices, half of which are on the new way. One of the four asks for what is missing.
fn round(proxy: &Proxy) {
    for call in 0..64 {
        let wanted = if call % 4 == 0 { "missing" } else { "there" };
        let device = (call / 4).to_string();
        let headers = [
            ("x-client-id", "app"),
            ("x-device-id", &*device),
            ("Content-Type", "application/json"),
        ];
        let body = format!(r#"{{"arguments":{{"wanted":"{wanted}"}}}}"#);
        proxy.rest("POST", "/tool", &headers, body);
    }
}

fn misses(request: &Message) -> bool {
    request.text().contains("missing")
}

/// The same calls of RPC clients.
fn rpc_round(proxy: &Proxy) {
    for number in 0..64 {
        let wanted = if number % 4 == 0 { "missing" } else { "there" };
        let device = (number / 4).to_string();
        let headers = [
            ("x-client-id", "app"),
            ("x-device-id", &*device),
            ("Content-Type", "application/json"),
        ];
        let params = format!(r#"{{"name":"t","arguments":{{"wanted":"{wanted}"}}}}"#);
        proxy.rest("POST", "/rpc", &headers, call("tools/call", &params));
    }
}

/// A proxy before an old server, and a new one whose tool fails at what is missing.
fn guarded(old: &Upstream) -> (Proxy, Upstream) {
    guarded_by(FLAGS, old)
}

fn guarded_by(flags: &str, old: &Upstream) -> (Proxy, Upstream) {
    let new = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        let said = if misses(request) {
            FAILED
        } else {
            r#""result":{}"#
        };
        json(format!(r#"{{"jsonrpc":"2.0","id":{id},{said}}}"#))
    });
    let config = format!("{}{CLIENT}{ROUTE}", both(old, &new));
    (Proxy::start_with_flags(&config, flags), new)
}

#[test]
fn a_guard_takes_a_flag_back_when_tools_fail_on_the_new_way_only() {
    let (proxy, _new) = guarded(&rest("{}"));
    let reason = eventually("the guard takes the flag back", || {
        round(&proxy);
        let flag = proxy.ask("GET", "/api/v1/flags/mover", "").json();
        flag["tripped"]["reason"].as_str().map(str::to_owned)
    });
    assert!(reason.contains("tool error rate "), "{reason}");
}

#[test]
fn a_guard_takes_nothing_back_when_the_old_server_refuses_what_the_tools_fail_at() {
    let old = Upstream::serving(|request| match misses(request) {
        true => answer("404 Not Found", &[], ""),
        false => json("{}"),
    });
    let (proxy, _new) = guarded(&old);
    expect_content(&proxy, round);
}

#[test]
fn a_guard_takes_nothing_back_when_a_rest_server_refuses_what_the_tools_fail_at() {
    // An RPC client is moved from the server whose tools fail to the one that refuses.
    let rest = Upstream::serving(|request| match misses(request) {
        true => answer("404 Not Found", &[], ""),
        false => json("{}"),
    });
    let (proxy, _rpc) = guarded_by(&FLAGS.replace("\"rest\"", "\"rpc\""), &rest);
    expect_content(&proxy, rpc_round);
    proxy.log_line(&["stage=translate", "outcome=tool_error"]);
    proxy.log_line(&["stage=passthrough", "outcome=tool_error"]);
}

/// The servers of both ways answer what is missing with this status: the REST server itself, and another proxy that makes a
/// tool's result of it.
fn expect_alike(side: &str, round: fn(&Proxy), (status, blame): (&'static str, &str)) {
    let fails = move |request: &Message| match misses(request) {
        true => answer(status, &[], ""),
        false => json("{}"),
    };
    let (rest, behind) = (Upstream::serving(fails), Upstream::serving(fails));
    let inner = before_rest(&behind, ROUTE);
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.rest]\nside = \"rest\"\nurl = \"http://{}\"\n[upstream.rpc]\nside = \"rpc\"\nurl = \"http://{}/rpc\"\n{CLIENT}{ROUTE}",
        rest.address(),
        inner.address()
    );
    let proxy =
        Proxy::start_with_flags(&config, &FLAGS.replace("\"rest\"", &format!("\"{side}\"")));
    expect_content(&proxy, round);
    expect_counted_alike(&proxy, side, blame);
}

/// Checks that the calls of both ways that failed are errors with this blame, and none is a tool error.
fn expect_counted_alike(proxy: &Proxy, side: &str, blame: &str) {
    for stage in ["stage=translate", "stage=passthrough"] {
        proxy.log_line(&[stage, "outcome=error", &format!("blame={blame}")]);
    }
    let log = proxy.log();
    assert!(!log.contains("outcome=tool_error"), "{log}");
    let metrics = proxy.metrics();
    for stage in ["translate", "passthrough"] {
        let series = format!(
            r#"dualgauge_calls_total{{route="tool",client="app",side="{side}",stage="{stage}",outcome="error",blame="{blame}"}}"#
        );
        assert!(metrics.value(&series) > 0.0, "{series}");
    }
}

#[test]
fn a_guard_counts_a_status_alike_where_it_passes_through_and_where_it_is_the_result_of_a_tool() {
    expect_alike("rest", round, ("503 Service Unavailable", "upstream"));
    expect_alike("rpc", rpc_round, ("503 Service Unavailable", "upstream"));
    expect_alike("rest", round, ("403 Forbidden", "client"));
    expect_alike("rpc", rpc_round, ("429 Too Many Requests", "client"));
}

#[test]
fn a_guard_counts_the_refusal_of_an_mcp_server_as_that_of_a_rest_server_behind_a_tool() {
    const STATUS: &str = "429 Too Many Requests";
    let rest = Upstream::serving(|request| match misses(request) {
        true => answer(STATUS, &[], ""),
        false => json("{}"),
    });
    let rpc = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        match misses(request) {
            true => answer(STATUS, &[("Content-Type", "text/plain")], "not now"),
            false => json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)),
        }
    });
    let config = format!("{}{CLIENT}{ROUTE}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, &FLAGS.replace("\"rest\"", "\"rpc\""));
    expect_content(&proxy, rpc_round);
    expect_counted_alike(&proxy, "rpc", "client");
}

#[test]
fn a_guard_takes_a_flag_back_when_the_server_behind_the_new_way_fails() {
    let rest = Upstream::serving(|request| match misses(request) {
        true => answer("500 Internal Server Error", &[], ""),
        false => json("{}"),
    });
    let rpc = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))
    });
    let flags = FLAGS.replace("\"rest\"", "\"rpc\"");
    let proxy = Proxy::start_with_flags(&format!("{}{CLIENT}{ROUTE}", both(&rest, &rpc)), &flags);
    let reason = eventually("the guard takes the flag back", || {
        rpc_round(&proxy);
        let flag = proxy.ask("GET", "/api/v1/flags/mover", "").json();
        flag["tripped"]["reason"].as_str().map(str::to_owned)
    });
    assert!(!reason.contains("tool error rate "), "{reason}");
}

#[test]
fn a_guard_takes_nothing_back_when_a_row_writes_the_answer_of_the_old_server_for_an_error() {
    const ROW: &str = r#"
[[route.outcome]]
rest = { status = 200, body = { said = "{text}" } }
rpc = { error = { code = -32603, message = "{text}" } }
"#;
    let rest = Upstream::serving(|request| match misses(request) {
        true => json(r#"{"said":"no"}"#),
        false => json("{}"),
    });
    let rpc = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        let said = match misses(request) {
            true => r#""error":{"code":-32603,"message":"no"}"#,
            false => r#""result":{}"#,
        };
        json(format!(r#"{{"jsonrpc":"2.0","id":{id},{said}}}"#))
    });
    let config = format!("{}{CLIENT}{ROUTE}{ROW}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, FLAGS);
    expect_content(&proxy, round);
    let line = proxy.log_line(&["stage=translate", "outcome=success", "code=-32603"]);
    assert!(line.contains("status=200"), "{line}");
    assert!(!line.contains("blame="), "{line}");
}

/// The result of the tool, which both servers give alike.
fn said(request: &Message) -> &'static str {
    match misses(request) {
        true => FAILED.strip_prefix(r#""result":"#).unwrap(),
        false => "{}",
    }
}

/// Checks that a guard holds a flag while tools fail on both ways, and the answers of the RPC server pass through unread.
fn expect_too_few_known(unread: fn(&Message) -> Vec<u8>) {
    let rest = Upstream::serving(|request| json(said(request)));
    let rpc = Upstream::serving(unread);
    let config = format!("{}{CLIENT}{ROUTE}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, &FLAGS.replace("\"rest\"", "\"rpc\""));
    let ruling = eventually("the guard has too little to tell", || {
        rpc_round(&proxy);
        let flag = proxy.ask("GET", "/api/v1/flags/mover", "").json();
        assert_eq!(flag["tripped"], value!(null));
        let ruling = flag["guard"].as_str().unwrap_or_default().to_owned();
        ruling
            .contains("tools fail on the new way")
            .then_some(ruling)
    });
    assert!(ruling.starts_with("inconclusive: "), "{ruling}");
    proxy.log_line(&["stage=translate", "outcome=tool_error"]);
    proxy.log_line(&["stage=passthrough", "outcome=success"]);
}

#[test]
fn a_guard_does_not_take_an_event_stream_for_an_answer_without_a_tool_error() {
    expect_too_few_known(|request| {
        let (id, said) = (Called::of(request).id().to_owned(), said(request));
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{said}}}"#);
        let body = format!("event: message\ndata: {message}\n\n");
        answer("200 OK", &[("Content-Type", "text/event-stream")], body)
    });
}

#[test]
fn a_guard_does_not_take_a_large_answer_for_one_without_a_tool_error() {
    expect_too_few_known(|request| {
        let (id, said) = (Called::of(request).id().to_owned(), said(request));
        let space = " ".repeat(65 * 1024);
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},{space}"result":{said}}}"#
        ))
    });
}

/// Checks that the guard sees enough calls and has nothing against the new way.
fn expect_content(proxy: &Proxy, round: fn(&Proxy)) {
    eventually("the guard has ruled", || {
        round(proxy);
        let flag = proxy.ask("GET", "/api/v1/flags/mover", "").json();
        assert_eq!(flag["tripped"], value!(null));
        let rulings = proxy
            .metrics()
            .table("dualgauge_guard_ruling", &["flag", "ruling"]);
        (rulings.get("mover content") == Some(&1.0)).then_some(())
    });
}
