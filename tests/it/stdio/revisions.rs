//! Which revision of MCP a child speaks: found out once for each, newest first.

use serde_json::json;

use super::child::command_of;
use super::{STARTS, ask, metric, pid, seen, strays};
use crate::links::telling::BOTH;
use crate::scene::{body_of, call, rpc_failure};
use crate::support::{Proxy, becomes, eventually};

fn before(era: &str, keys: &str) -> Proxy {
    let command = command_of(era);
    Proxy::start(&format!(
        "[upstream.child]\nside = \"rpc\"\n{command}{keys}"
    ))
}

#[test]
fn a_child_without_a_handshake_is_told_with_each_call_who_asks() {
    let proxy = before("2026-07-28", "");
    let params = r#"{"n":1.0,"_meta":{"mine":1}}"#;
    let got = &proxy.rpc(call("echo", params)).json()["result"]["got"];
    let meta = &got["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientInfo"]["name"],
        "dualgauge"
    );
    assert_eq!(meta["mine"], 1);
    let greeting = ask(&proxy, "initialize");
    assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(greeting["result"]["serverInfo"]["name"], "modern");
    // A client of an older revision may ask for what this child does not know.
    for method in ["ping", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(ask(&proxy, method)["result"], json!({}), "{method}");
    }
    // Each child is asked anew, and none is greeted otherwise.
    assert_eq!(seen(&proxy), ["server/discover", "echo", "seen"]);
    assert_eq!(rpc_failure(&ask(&proxy, "crash")), (-31023, "upstream_cut"));
    assert_eq!(seen(&proxy), ["server/discover", "seen"]);
}

#[test]
fn a_child_with_a_handshake_gets_the_log_level_that_a_call_asks_for() {
    let proxy = before("logging", "");
    let levels = |level: &str| {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/logLevel": level });
        let body = call(
            "tools/call",
            &json!({ "name": "t", "_meta": meta }).to_string(),
        );
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", BOTH),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "t"),
        ];
        let said = proxy.rest("POST", "/rpc", &headers, body);
        let text = said.text().to_owned();
        ["debug", "error"].map(|level| text.contains(&format!(r#""level":"{level}""#)))
    };
    assert_eq!(levels("warning"), [false, true]);
    assert_eq!(levels("debug"), [true, true]);
    assert_eq!(levels("error"), [false, true]);
    let calls = seen(&proxy).into_iter().skip(2);
    let wanted = [
        "logging/setLevel",
        "tools/call",
        "logging/setLevel",
        "tools/call",
        "tools/call",
        "seen",
    ];
    assert_eq!(calls.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_call_of_a_child_without_a_handshake_is_cancelled_as_any() {
    let proxy = before("2026-07-28", "timeout = \"300ms\"\n");
    ask(&proxy, "echo");
    assert_eq!(
        rpc_failure(&ask(&proxy, "silence")),
        (-31022, "upstream_timeout")
    );
    let cancelled = |seen: &String| seen.starts_with("notifications/cancelled ");
    assert_eq!(
        seen(&proxy).iter().filter(|seen| cancelled(seen)).count(),
        1
    );
}

#[test]
fn a_child_that_does_not_know_the_question_costs_its_upstream_that_once() {
    let silent = "the child process does not answer `server/discover`";
    let mortal = "the child process exited at `server/discover`";
    for (era, told) in [("silent", silent), ("mortal", mortal)] {
        let proxy = before(era, "start_timeout = \"1s\"\n");
        let first = pid(&proxy);
        assert_eq!(metric(&proxy, STARTS), 1.0, "{era}");
        proxy.log_line(&[told]);
        assert_eq!(rpc_failure(&ask(&proxy, "crash")), (-31023, "upstream_cut"));
        assert_ne!(pid(&proxy), first, "{era}");
        assert_eq!(metric(&proxy, STARTS), 2.0, "{era}");
        assert_eq!(proxy.log().matches(told).count(), 1, "{era}");
    }
}

#[test]
fn a_child_may_agree_on_an_older_revision() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let proxy = before(version, "");
        let body = call("initialize", r#"{"protocolVersion":"2025-11-25"}"#);
        let greeting = proxy.rpc(body).json();
        assert_eq!(greeting["result"]["protocolVersion"], version);
        // What a call says is the caller's, and nothing is added to what a tool says.
        let echoed = proxy.rpc(call("echo", r#"{"n":1}"#)).json();
        assert_eq!(echoed["result"]["got"], json!({ "n": 1 }));
        let called = proxy.rpc(call("tools/call", r#"{"name":"t"}"#));
        let wanted = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
        assert_eq!(body_of(&called, 200), wanted, "{version}");
        let told = if version == "2025-03-26" { 1.0 } else { 0.0 };
        becomes(|| strays(&proxy, "notified"), &told);
        // A client's array of calls is many lines, for later revisions know none.
        let batch = format!("[{},{}]", call("echo", "[1]"), call("echo", "[2]"));
        assert_eq!(proxy.rpc(batch).json().as_array().unwrap().len(), 2);
        let echoes = seen(&proxy).into_iter().filter(|seen| seen == "echo");
        assert_eq!(echoes.count(), 3, "{version}");
    }
}

#[test]
fn a_revision_that_is_named_is_not_asked_for() {
    let proxy = before("2025-06-18", "revision = \"2025-03-26\"\n");
    assert_eq!(ask(&proxy, "echo")["id"], 1);
    let proxy = before(
        "yes",
        "revision = \"2026-07-28\"\nconnect_timeout = \"200ms\"\n",
    );
    assert_eq!(
        rpc_failure(&ask(&proxy, "echo")),
        (-31021, "upstream_unreachable")
    );
    proxy.log_line(&["the link is lost", "does not list the revision 2026-07-28"]);
}

#[test]
fn an_early_death_does_not_decide_the_revision_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("asked");
    let proxy = before(&format!("once {} 2026-07-28", file.display()), "");
    // The child that has followed at once is of no use: it does not know `initialize`.
    let echoed = eventually("a child that is asked", || {
        Some(ask(&proxy, "echo")).filter(|answer| answer["result"].is_object())
    });
    let meta = &echoed["result"]["got"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(seen(&proxy)[0], "server/discover");
    proxy.log_line(&[
        "the child process exited at `server/discover`",
        "probed once more",
    ]);
    assert_eq!(proxy.log().matches("probing stops").count(), 0);
}

#[test]
fn children_that_end_at_the_question_twice_are_asked_no_more() {
    let proxy = before("mortal", "");
    let deaths = "the child process exited at `server/discover`";
    let last = "probing stops";
    let first = pid(&proxy);
    becomes(|| proxy.log().matches(deaths).count(), &1);
    assert_eq!(proxy.log().matches(last).count(), 0);
    for _ in 0..2 {
        assert_eq!(rpc_failure(&ask(&proxy, "crash")), (-31023, "upstream_cut"));
        assert_ne!(pid(&proxy), first);
        becomes(|| proxy.log().matches(last).count(), &1);
    }
    assert_eq!(metric(&proxy, STARTS), 3.0);
    assert_eq!(proxy.log().matches(deaths).count(), 1);
}

#[test]
fn a_child_that_agrees_on_a_revision_that_is_not_known_here_is_not_spoken_to() {
    for (era, said) in [("2099-01-01", "2099-01-01"), ("none", "no revision")] {
        let proxy = before(era, "connect_timeout = \"200ms\"\n");
        assert_eq!(
            rpc_failure(&ask(&proxy, "echo")),
            (-31021, "upstream_unreachable")
        );
        proxy.log_line(&["the link is lost", "upstream=child", said, "2024-11-05"]);
    }
}

#[test]
fn a_child_that_is_slow_to_start_may_answer_late() {
    let proxy = before("late 2026-07-28", "start_timeout = \"6s\"\n");
    let echoed = ask(&proxy, "echo");
    let meta = &echoed["result"]["got"]["_meta"];
    let version = &meta["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(version, "2026-07-28", "{echoed}");
    assert_eq!(
        ask(&proxy, "initialize")["result"]["serverInfo"]["name"],
        "modern"
    );
    assert_eq!(seen(&proxy), ["initialize", "echo", "seen"]);
    // The next child is asked again, although the first one was late.
    ask(&proxy, "crash");
    assert_eq!(
        ask(&proxy, "initialize")["result"]["serverInfo"]["name"],
        "modern"
    );
    assert_eq!(metric(&proxy, STARTS), 2.0);
    assert_eq!(strays(&proxy, "foreign"), 0.0);
}

#[test]
fn a_late_answer_does_not_end_a_handshake() {
    for era in ["late nameless", "late both"] {
        let proxy = before(era, "start_timeout = \"6s\"\n");
        let echoed = ask(&proxy, "echo");
        assert_eq!(echoed["result"]["got"], json!({}), "{era}: {echoed}");
        assert_eq!(metric(&proxy, STARTS), 1.0, "{era}");
        let wanted = ["initialize", "notifications/initialized", "echo", "seen"];
        assert_eq!(seen(&proxy), wanted, "{era}");
    }
}

#[test]
fn a_refused_handshake_asks_the_next_child_again() {
    let folder = tempfile::tempdir().unwrap();
    let era = format!("changing {}", folder.path().join("started").display());
    let keys = "start_timeout = \"1s\"\n[log]\nredact = { keys = [\"iban\"] }\n";
    let proxy = before(&era, keys);
    pid(&proxy);
    ask(&proxy, "crash");
    let echoed = eventually("a child that is asked", || {
        Some(ask(&proxy, "echo")).filter(|answer| answer["result"].is_object())
    });
    let meta = &echoed["result"]["got"]["_meta"];
    let version = &meta["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(version, "2026-07-28", "{echoed}");
    let lost = proxy.log_line(&[
        "the link is lost",
        "it answered `initialize` with the error -32022: this child serves 2026-07-28",
    ]);
    assert!(lost.contains("iban=") && !lost.contains("DE02"), "{lost}");
}

#[test]
fn the_cause_of_a_lost_link_without_a_handshake_is_what_the_child_did() {
    let keys = "revision = \"2026-07-28\"\nstart_timeout = \"1s\"\nconnect_timeout = \"5s\"\n";
    for (era, cause) in [
        ("silent", "it was not ready in time"),
        ("mortal", "it exited at `server/discover`"),
    ] {
        let proxy = before(era, keys);
        let failed = ask(&proxy, "echo");
        assert_eq!(rpc_failure(&failed), (-31021, "upstream_unreachable"));
        proxy.log_line(&["the link is lost", cause]);
        assert!(!proxy.log().contains("prob"), "{}", proxy.log());
    }
}
