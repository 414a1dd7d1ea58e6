//! The last mismatches, as operators read them.

use super::Scene;
use crate::scene::{json, saying};
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
