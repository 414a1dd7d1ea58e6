//! The last mismatches, as operators read them.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;

use super::Scene;
use crate::scene::{json, json_with, saying};
use crate::support::{Ended, Upstream, program, run_to_end};

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
        "items.*",
        "--format",
        "json",
    ]));
    let told: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(told["routes"].as_array().unwrap().len(), 1);
    let ended = run_to_end(program(&["mismatches", "--admin", &admin, "--route", "x"]));
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
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
        .log_line(&["dualgauge::mismatch", "candidate failed", "items.get"]);
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

/// The routes that have mismatches.
fn routes(scene: &Scene) -> Vec<String> {
    let told = scene.proxy.ask("GET", "/api/v1/mismatches", "").json();
    let routes = told["routes"].as_array().unwrap().iter();
    let names = routes.map(|route| route["route"].as_str().unwrap().to_owned());
    names.collect()
}

fn mismatches(scene: &Scene, arguments: &[&str]) -> Ended {
    let admin = format!("http://{}", scene.proxy.admin());
    let all = [&["mismatches", "--admin", &admin], arguments].concat();
    run_to_end(program(&all))
}

#[test]
fn a_reset_forgets_mismatches_and_no_counter() {
    let scene = scene();
    let fields = || scene.sums("dualgauge_mismatching_fields", &["route"]);
    let reset = |target| scene.proxy.ask("DELETE", target, "");
    assert_eq!(fields(), BTreeMap::from([("items.get".to_owned(), 2.0)]));
    let none = reset("/api/v1/mismatches?route=agent.*");
    assert_eq!(none.json(), json!({"routes": []}));
    assert_eq!(routes(&scene), ["items.get"]);
    let one = reset("/api/v1/mismatches?route=items.*");
    assert_eq!(one.json(), json!({"routes": ["items.get"]}));
    assert!(routes(&scene).is_empty());
    assert!(fields().is_empty(), "{:?}", fields());
    assert_eq!(reset("/api/v1/mismatches?since=1h").status(), 400);
    scene
        .proxy
        .log_line(&["the mismatches were reset", "forgotten=1"]);

    scene.proxy.rest("GET", "/items/7", &[], "");
    scene.expect(&[("mismatch", 2.0)]);
    let told = mismatches(&scene, &[]);
    assert!(
        told.output.starts_with("items.get\n  /body/n  1 call\n"),
        "{told:?}"
    );
    let told = mismatches(&scene, &["--reset"]);
    assert_eq!(told.output, "reset: 1 route\n  items.get", "{told:?}");
    let told = mismatches(&scene, &["--reset"]);
    assert_eq!(told.output, "no mismatches", "{told:?}");
}

#[test]
fn since_leaves_out_what_was_met_before() {
    let scene = scene();
    let told = mismatches(&scene, &["--since", "1h"]);
    let expected = "items.get\n  /body/n  1 call in all, the last at 2";
    assert!(told.output.starts_with(expected), "{told:?}");
    let told = mismatches(&scene, &["--since", "2999-01-01T01:00:00+01:00"]);
    let expected = "no mismatches since 2999-01-01T00:00:00.000Z";
    assert_eq!(told.output, expected, "{told:?}");
    let told = mismatches(&scene, &["--since", "yesterday"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.errors.contains("`since` is not a time"), "{told:?}");
}

#[test]
fn a_reload_forgets_the_mismatches_of_the_routes_that_it_changed() {
    let scene = scene();
    let file = scene.proxy.folder().join("dualgauge.toml");
    let text = fs::read_to_string(&file).unwrap();
    let reload = |text: &str| {
        fs::write(&file, text).unwrap();
        let reloaded = scene.proxy.ask("POST", "/api/v1/reload", "");
        assert_eq!(reloaded.status(), 200, "{reloaded:?}");
    };
    let first = "[[route]]\nname = \"items.get\"";
    let more = "[[route]]\nname = \"first\"\nrest = \"GET /first\"\nrpc = \"first\"\n";
    let moved = text
        .replace(first, &format!("{more}{first}"))
        .replace("POST /find", "POST /search");
    assert_ne!(moved, text);
    reload(&moved);
    assert_eq!(
        routes(&scene),
        ["items.get"],
        "its rules are what they were"
    );
    let rule = "rpc = \"items/get\"\ncompare = { ignore = [\"/body/n\"] }";
    reload(&moved.replace("rpc = \"items/get\"", rule));
    assert!(routes(&scene).is_empty());
    scene.proxy.rest("GET", "/items/7", &[], "");
    scene.expect(&[("mismatch", 2.0)]);
    let told = mismatches(&scene, &[]);
    assert!(
        told.output
            .starts_with("items.get\n  /body/token  1 call\n"),
        "{told:?}"
    );
}
