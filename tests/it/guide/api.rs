//! `docs/reference/admin-api.md`: its table is the document of the API, and each of its examples is what a live proxy answers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Curl, blocks, page, shown, words};
use crate::scene::saying;
use crate::support::{Message, Proxy, Upstream, becomes, rest_only};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::schema::Schema;

/// The proxy of the guide to migrate, with another stage.
fn proxy(servers: &[Upstream; 2]) -> Proxy {
    let guide = page("how-to/migrate-clients.md");
    let file = |name: &str| {
        let head = format!("# {name}\n");
        let all = blocks(&guide);
        let found = all.iter().find(|block| block.text.starts_with(&head));
        found.unwrap().text.to_owned()
    };
    let [old, new] = [&servers[0], &servers[1]].map(|one| one.address().to_string());
    let main = file("dualgauge.toml")
        .replace("127.0.0.1:9001", &old)
        .replace("127.0.0.1:9002", &new);
    let flags = file("flags.toml").replace("passthrough", "shadow");
    let main = format!("{main}\n[record]\ndirectory = \"recordings\"\n");
    let files = [
        ("routes.toml", &*file("routes.toml")),
        ("flags.toml", &*flags),
    ];
    Proxy::start_with(&main, &files)
}

/// A value without what is another one each time.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(_) => 0.into(),
        Value::String(text) if text.contains(|c: char| c.is_ascii_digit()) => "#".into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, value)| (name.clone(), plain(value)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Whether an answer is as it is shown; of some only the beginning is.
fn expect(target: &str, answer: &Message, wanted: &Value) {
    let (got, wanted) = (plain(&answer.json()), plain(wanted));
    if target.ends_with(".json") {
        for (name, value) in wanted.as_object().unwrap() {
            assert_eq!(&got[name], value, "{target}");
        }
    } else if target.ends_with("/overview") || target.ends_with("/status") {
        // A slow test has intervals, and each has a folder of its own.
        for (name, value) in wanted.as_object().unwrap() {
            let varies = ["timeline", "files"].contains(&name.as_str());
            assert!(varies || got[name] == *value, "{target}: {got}");
        }
    } else if target.ends_with("/recording") && !wanted["recording"].is_null() {
        let folder = &got["recording"]["directory"];
        assert!(folder.as_str().is_some(), "{target}: {got}");
        // Each test has a folder of its own.
        let without_folder = |value: &Value| {
            let mut value = value.clone();
            value["recording"]["directory"] = Value::Null;
            value
        };
        assert_eq!(without_folder(&got), without_folder(&wanted), "{target}");
    } else if target.ends_with("/history") {
        assert_eq!(got[0], wanted[0], "{target}");
    } else {
        assert_eq!(got, wanted, "{target}: {}", answer.text());
    }
}

/// Checks an answer against the schema of the document.
fn fits_schema(api: &Value, method: &str, path: &str, answer: &Message) {
    let operation = &api["paths"][path][method.to_lowercase()];
    let response = &operation["responses"][answer.status().to_string()];
    let mut schema = response["content"]["application/json"]["schema"].clone();
    if schema.is_null() {
        assert!(response.is_object(), "{method} {path}: {answer:?}");
        return;
    }
    schema["components"] = api["components"].clone();
    let schema = Schema::compile(&schema).unwrap();
    let value = Json::parse(answer.text().to_owned().into(), 64).unwrap();
    schema
        .check(&value)
        .unwrap_or_else(|error| panic!("{method} {path}: {error}"));
}

/// How many candidates have failed.
fn failed(proxy: &Proxy) -> f64 {
    let labels = ["route", "client", "side", "stage", "verdict"];
    let verdicts = proxy.metrics().table("dualgauge_verdicts_total", &labels);
    let failed = verdicts
        .iter()
        .filter(|(row, _)| row.ends_with("candidate-failed"));
    failed.map(|(_, count)| count).sum()
}

/// The paths that the program knows, as far as they are texts of its own.
fn routed() -> BTreeSet<&'static str> {
    let source = include_str!("../../../src/server/admin/routes.rs");
    let source = source.split("#[cfg(test)]").next().unwrap();
    let texts = source.split('"').skip(1).step_by(2);
    let is_path = |text: &&str| text.starts_with("/api/v1/") || text.starts_with("/ofrep/");
    texts.filter(is_path).collect()
}

#[test]
fn what_is_answered_is_what_the_document_says() {
    let upstream = Upstream::nowhere();
    let proxy = Proxy::start(&rest_only(&upstream));
    let api = proxy.ask("GET", "/api/v1/admin.json", "").json();
    let paths = api["paths"].as_object().unwrap();
    for text in routed() {
        let known = paths.keys().any(|path| match text.ends_with('/') {
            true => path.starts_with(text),
            false => path == text,
        });
        assert!(known, "the document lacks {text}");
    }
    for (path, methods) in paths {
        let methods = methods.as_object().unwrap().keys();
        let methods =
            methods.filter(|name| ["get", "put", "post", "delete"].contains(&name.as_str()));
        let mut methods: BTreeSet<String> = methods.map(|name| name.to_uppercase()).collect();
        if methods.contains("GET") {
            methods.insert("HEAD".to_owned());
        }
        let target = ["{name}", "{route}", "{key}"];
        let target = target
            .iter()
            .fold(path.clone(), |path, hole| path.replace(hole, "a"));
        let answer = proxy.ask("PATCH", &target, "");
        assert_eq!(answer.status(), 405, "{path}");
        let allow = answer.head.one("allow").unwrap().split(", ");
        let allow: BTreeSet<String> = allow.map(str::to_owned).collect();
        assert_eq!(allow, methods, "{path}");
    }
}

#[test]
fn each_example_of_the_api_is_what_a_live_proxy_answers() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let failing = saying(r#""error":{"code":-32603,"message":"no"}"#);
    let servers = [Upstream::answering(answer), failing];
    let proxy = proxy(&servers);
    for device in ["d1", "d2"] {
        let headers = [("x-client-id", "ios-1"), ("x-device-id", device)];
        proxy.rest("GET", "/items/7", &headers, "");
    }
    becomes(|| failed(&proxy), &2.0);
    for target in ["/orders/7?page=2", "/orders/8"] {
        proxy.rest("GET", target, &[], "");
    }
    let text = page("reference/admin-api.md");
    let api = proxy.ask("GET", "/api/v1/admin.json", "").json();
    let mut asked = BTreeSet::new();
    for block in blocks(&text) {
        for example in shown(block.text) {
            let curl = Curl::read(&words(&example.command)[1..]);
            let (_, target) = curl.target();
            let wanted: Value = serde_json::from_str(&example.output.concat())
                .unwrap_or_else(|error| panic!("{}: {error}", example.command));
            let answer = proxy.ask(curl.method(), target, &curl.body);
            expect(target, &answer, &wanted);
            let path = target.split('?').next().unwrap();
            let path = path
                .replace("/stage:items.read", "/{key}")
                .replace("/ios", "/{name}")
                .replace("/items.read", "/{route}");
            fits_schema(&api, curl.method(), &path, &answer);
            asked.insert(format!("{} {path}", curl.method()));
        }
    }
    let mut known = BTreeSet::new();
    let mut rows = BTreeSet::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(summary) = operation["summary"].as_str() else {
                continue;
            };
            let call = format!("{} {path}", method.to_uppercase());
            rows.insert(format!("| `{call}` | {summary} |"));
            // A page and a stream have tests of their own.
            if !["/api/v1/docs", "/api/v1/live"].contains(&path.as_str()) {
                known.insert(call);
            }
        }
    }
    assert_eq!(asked, known, "each has an example");
    let shown: BTreeSet<String> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(str::to_owned)
        .collect();
    assert_eq!(shown, rows);
}
