//! OFREP on the admin listener: evaluations have the decisions of live calls, also after changes at run time.

use serde_json::{Value, json};

use crate::stages::{CLIENTS, Scene, flag};
use crate::support::{Proxy, Upstream, both, rest_only, sha256};

const FLAGS: &str = "/ofrep/v1/evaluate/flags";

fn scene() -> Scene {
    let flags = flag(
        "half",
        "client = \"ios-app\"\nstage = \"translate\"\npercent = 50",
    );
    Scene::of(CLIENTS, &flags)
}

fn context(device: &str) -> String {
    json!({"context": {"client": "ios-app", "targetingKey": device}}).to_string()
}

#[test]
fn an_evaluation_has_the_side_of_the_live_call() {
    let scene = scene();
    for change in [
        None,
        Some((
            "PUT",
            "/api/v1/flags/half",
            r#"{"stage":"translate","percent":80}"#,
        )),
        Some(("PUT", "/api/v1/kill", "")),
        Some(("DELETE", "/api/v1/kill", "")),
    ] {
        if let Some((method, path, body)) = change {
            assert_eq!(scene.proxy.ask(method, path, body).status(), 200);
        }
        for number in 0..20 {
            let device = format!("device-{number}");
            let headers = [("X-Client-Id", "ios-1"), ("X-Device-Id", &*device)];
            let is_new = scene.served("GET", "/agents/7", &headers) == "rpc";
            let path = format!("{FLAGS}/new%3Aagent.get");
            let found = scene.proxy.ask("POST", &path, &context(&device));
            assert_eq!(found.json()["value"], is_new, "{change:?} {device}");
        }
    }
    let counts = scene.proxy.metrics();
    let counts = counts.table("dualgauge_ofrep_evaluations_total", &["request", "result"]);
    assert_eq!(counts.values().sum::<f64>(), 80.0);
    assert_eq!(counts["one disabled"], 20.0);
}

#[test]
fn all_flags_have_a_tag_until_one_changes() {
    let scene = scene();
    let body = context("device-1");
    let ask = |tag: &str| {
        let admin = scene.proxy.admin();
        scene.proxy.ask_raw(&format!(
            "POST {FLAGS} HTTP/1.1\r\nHost: {admin}\r\nContent-Type: application/json\r\nIf-None-Match: {tag}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    let first = ask("\"other\"");
    assert_eq!(first.status(), 200);
    let flags = first.json()["flags"].clone();
    let keys: Vec<&Value> = flags
        .as_array()
        .unwrap()
        .iter()
        .map(|flag| &flag["key"])
        .collect();
    assert_eq!(keys.len(), 7);
    assert_eq!(keys[6], "flag:half");
    let tag = first.head.one("etag").unwrap();
    let same = ask(tag);
    assert_eq!((same.status(), same.text()), (304, ""));
    let flip = r#"{"stage":"translate","percent":51}"#;
    assert_eq!(
        scene.proxy.ask("PUT", "/api/v1/flags/half", flip).status(),
        200
    );
    let changed = ask(tag);
    assert_eq!(changed.status(), 200);
    let half = json!({"stage": "translate", "percent": 51});
    assert_eq!(changed.json()["flags"][6]["value"], half);
}

#[test]
fn what_cannot_be_evaluated_has_a_code_and_a_status() {
    let scene = scene();
    for (key, body, status, code) in [
        ("/stage:agent.get", "{", 400, "PARSE_ERROR"),
        (
            "/stage:agent.get",
            r#"{"context":1}"#,
            400,
            "INVALID_CONTEXT",
        ),
        (
            "/stage:agent.get",
            r#"{"context":{"client":"ios-app"}}"#,
            400,
            "TARGETING_KEY_MISSING",
        ),
        ("/stage:nothing", "{}", 404, "FLAG_NOT_FOUND"),
        ("", "[]", 400, "PARSE_ERROR"),
    ] {
        let answer = scene.proxy.ask("POST", &format!("{FLAGS}{key}"), body);
        assert_eq!(answer.status(), status, "{key} {body}");
        assert_eq!(answer.json()["errorCode"], code, "{key} {body}");
    }
    let long = format!("{{\"context\":{{\"a\":\"{}\"}}}}", "x".repeat(64 * 1024));
    assert_eq!(scene.proxy.ask("POST", FLAGS, &long).status(), 413);
    assert_eq!(scene.proxy.ask("GET", FLAGS, "").status(), 405);
    // Each error has one line within a minute, however often it occurs.
    let line = "flags cannot be evaluated for an application";
    let not_found = ["reason=flag_not_found", "key=stage:nothing", line];
    scene.proxy.log_line(&not_found);
    let log = scene.proxy.stop().log;
    assert_eq!(log.matches(line).count(), 4, "{log}");
    for reason in ["parse_error", "invalid_context", "targeting_key_missing"] {
        assert!(log.contains(&format!("reason={reason}")), "{log}");
    }
    assert!(!log.contains("evaluated a flag"), "{log}");
}

#[test]
fn each_evaluation_has_a_log_line_at_debug() {
    let (rest, rpc) = (Upstream::nowhere(), Upstream::nowhere());
    let config = format!(
        "{}[log]\nlevel = \"debug\"\n[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\n",
        both(&rest, &rpc)
    );
    let proxy = Proxy::start(&config);
    let path = format!("{FLAGS}/new%3Aa");
    assert_eq!(proxy.ask("POST", &path, "").status(), 200);
    assert_eq!(proxy.ask("POST", FLAGS, "").status(), 200);
    let one = "evaluated a flag for an application";
    proxy.log_line(&[one, "reason=default", "key=new:a", "variant=old", "rule="]);
    proxy.log_line(&["evaluated all flags for an application", "flags=2"]);
}

#[test]
fn evaluations_need_the_token() {
    let upstream = Upstream::nowhere();
    let digest = sha256("opensesame");
    let config = format!(
        "{}\n[admin.tokens]\nshop = \"sha256:{digest}\"\n",
        rest_only(&upstream)
    );
    let proxy = Proxy::start(&config);
    let ask = |header: &str| {
        let admin = proxy.admin();
        let head = format!("POST {FLAGS} HTTP/1.1\r\nHost: {admin}\r\n{header}");
        proxy
            .ask_raw(&format!("{head}Content-Length: 0\r\n\r\n"))
            .status()
    };
    assert_eq!(ask(""), 401);
    assert_eq!(ask("Authorization: Bearer other\r\n"), 401);
    assert_eq!(ask("Authorization: Bearer opensesame\r\n"), 200);
}
