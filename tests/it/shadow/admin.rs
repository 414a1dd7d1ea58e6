//! The last mismatches, as operators read them.

use super::Scene;
use crate::scene::{json, json_with, saying};
use crate::support::{Upstream, program, run_to_end};

fn scene() -> Scene {
    let control = Upstream::answering(json(r#"{"token":"secret-1","n":1}"#));
    let scene = Scene::of(
        "shadow",
        "",
        (control, saying(r#""result":{"token":"secret-2","n":2}"#)),
    );
    scene.proxy.rest("GET", "/items/7", &[], "");
    scene.expect(&[("mismatch", 1.0)]);
    scene
}

#[test]
fn the_api_tells_the_last_mismatches_without_their_values() {
    let scene = scene();
    let answer = scene
        .proxy
        .ask("GET", "/api/v1/mismatches?route=items.*", "");
    let told = answer.json();
    let route = &told["routes"][0];
    assert_eq!(route["route"], "items.get");
    let fields: Vec<_> = route["fields"].as_array().unwrap().iter().collect();
    let names: Vec<_> = fields
        .iter()
        .map(|field| field["field"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["/body/n", "/body/token"]);
    let sample = &fields[0]["samples"][0];
    assert_eq!(
        (&sample["kind"], &sample["side"]),
        (&"value".into(), &"rest".into())
    );
    assert_eq!(sample["call"], "GET /items/{id}");
    assert!(!answer.text().contains("secret-"), "{}", answer.text());

    let none = scene
        .proxy
        .ask("GET", "/api/v1/mismatches?route=agent.*", "")
        .json();
    assert_eq!(none["routes"].as_array().unwrap().len(), 0);
    assert_eq!(
        scene
            .proxy
            .ask("GET", "/api/v1/mismatches?routes=a", "")
            .status(),
        400
    );
    assert_eq!(
        scene.proxy.ask("PUT", "/api/v1/mismatches", "{}").status(),
        405
    );
}

#[test]
fn the_command_line_asks_the_api() {
    let scene = scene();
    let admin = format!("http://{}", scene.proxy.admin());
    let ended = run_to_end(program(&["mismatches", "--admin", &admin]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.output.starts_with("items.get\n  /body/n  1 call\n"),
        "{ended:?}"
    );
    let ended = run_to_end(program(&[
        "mismatches",
        "--admin",
        &admin,
        "--route",
        "x",
        "--format",
        "json",
    ]));
    let told: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(told["routes"].as_array().unwrap().len(), 0);
    let nobody = Upstream::nowhere();
    let admin = format!("http://{}", nobody.address());
    let ended = run_to_end(program(&["mismatches", "--admin", &admin]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

/// A call that the old server answers with 404 and the new one with a failure of its own.
fn failing(candidate: Upstream) -> Scene {
    let control = Upstream::answering(json_with("404 Not Found", r#"{"code":"x"}"#));
    let scene = Scene::of("shadow", "", (control, candidate));
    let headers = [("authorization", "Bearer secret-1")];
    scene.proxy.rest("GET", "/items/7", &headers, "");
    scene.expect(&[("candidate-failed", 1.0)]);
    scene
}

#[test]
fn a_failed_candidate_is_reported_with_both_responses_and_its_cause() {
    let scene = failing(saying(r#""error":{"code":-32603,"message":"secret-2"}"#));
    let answer = scene.proxy.ask("GET", "/api/v1/mismatches", "");
    let told = answer.json();
    let route = &told["routes"][0];
    assert_eq!(route["route"], "items.get");
    assert_eq!(route["fields"].as_array().unwrap().len(), 0);
    assert_eq!(route["failed"]["count"], 1);
    let sample = &route["failed"]["samples"][0];
    let expected = [
        ("call", "GET /items/{id}"),
        ("client", "other"),
        ("side", "rest"),
        ("stage", "shadow"),
        ("control", "status 404"),
        ("candidate", "status 500"),
        ("cause", "the upstream answered with error -32603"),
    ];
    for (name, value) in expected {
        assert_eq!(sample[name], value, "{name}");
    }
    let admin = format!("http://{}", scene.proxy.admin());
    let ended = run_to_end(program(&["mismatches", "--admin", &admin]));
    let lines: Vec<_> = ended.output.lines().collect();
    assert_eq!(lines[..2], ["items.get", "  candidate failed  1 call"]);
    let what = "GET /items/{id}: candidate status 500, control status 404 (the upstream answered with error -32603)";
    assert!(lines[2].ends_with(what), "{ended:?}");
    let line = scene
        .proxy
        .log_line(&["dualgauge::mismatch", "the candidate failed", "items.get"]);
    for part in ["status 404", "status 500", "-32603"] {
        assert!(line.contains(part), "{line}");
    }
    let seen = format!("{}{}{line}", answer.text(), ended.output);
    assert!(!seen.contains("secret-"), "{seen}");
}

#[test]
fn a_failed_candidate_has_the_reason_of_the_proxy() {
    for (candidate, reason) in [
        (Upstream::nowhere(), "upstream_unreachable"),
        (Upstream::answering(json("nonsense")), "upstream_not_json"),
    ] {
        let scene = failing(candidate);
        let told = scene.proxy.ask("GET", "/api/v1/mismatches", "").json();
        let sample = &told["routes"][0]["failed"]["samples"][0];
        assert_eq!(sample["candidate"], "status 502", "{reason}: {told}");
        assert_eq!(sample["reason"], reason, "{told}");
    }
}
