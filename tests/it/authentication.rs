//! `listen.authentication = "required"`: every path needs the credentials of a client, and refusals are told apart.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::scene::{call, json as json_answer, problem, rpc_failure};
use crate::support::{Proxy, Upstream, becomes, rest_only};
use crate::websocket::ends::connect_with;

/// The SHA-256 of `sesame` is that of the key.
const REQUIRED: &str = r#"
[rollout.api_key]
header = "x-api-key"
authorization = true
basic = true

[[client]]
name = "known"
match = { api_key = "sha256:d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272" }
key = "api_key"

[[client]]
name = "declared"
match = { header = { x-client-id = "*" } }

[cors]
origins = ["https://app.example"]

[rpc]
websocket = true

[[local]]
rest = "GET /here"
answer = { status = 200, body = "here" }

[[local]]
rest = "GET /openapi.json"
answer = "openapi"
title = "Own title"

[[route]]
name = "things.get"
rest = "GET /things/{id}"
rpc = "things/get"
"#;

fn before(rest: &Upstream) -> Proxy {
    let required = "[listen]\nauthentication = \"required\"\n";
    let config = rest_only(rest).replace("[listen]\n", required);
    Proxy::start(&format!("{config}{REQUIRED}"))
}

const KEY: (&str, &str) = ("X-Api-Key", "sesame");
/// `any:sesame`
const BASIC: (&str, &str) = ("Authorization", "Basic YW55OnNlc2FtZQ==");

#[test]
fn calls_without_credentials_are_refused_and_told_apart() {
    let rest = Upstream::answering(json_answer("1"));
    let proxy = before(&rest);
    let declared = ("X-Client-Id", "me");
    for path in ["/here", "/things/1", "/nowhere", "/openapi.json"] {
        let refused = proxy.rest("GET", path, &[declared], "");
        assert_eq!(refused.status(), 401, "{path}");
        let (reason, detail) = problem(&refused);
        assert_eq!(reason, "unauthenticated");
        assert!(detail.starts_with("credentials are required: "), "{detail}");
        assert!(
            detail.ends_with("`x-api-key`, as a bearer token, as the password of HTTP Basic"),
            "{detail}"
        );
    }
    // Credentials of HTTP Basic: `any:other`, no base64, and no password.
    for wrong in [
        "Basic YW55Om90aGVy",
        "Basic ?",
        "Basic YW55Og==",
        "Bearer other",
        "Other x",
    ] {
        let refused = proxy.rest("GET", "/here", &[("Authorization", wrong)], "");
        assert_eq!(refused.status(), 401, "{wrong}");
        assert!(
            problem(&refused)
                .1
                .starts_with("the credentials are not those of a client")
        );
    }
    let refused = proxy.rpc(call("things/get", r#"{"id":"1"}"#));
    assert_eq!(refused.status(), 401);
    assert_eq!(rpc_failure(&refused.json()), (-31015, "unauthenticated"));
    assert!(rest.requests().is_empty());
    let bearer = ("Authorization", "Bearer sesame");
    for own in [KEY, BASIC, bearer] {
        assert_eq!(
            proxy.rest("GET", "/here", &[own], "").status(),
            200,
            "{own:?}"
        );
        assert_eq!(
            proxy.rest("GET", "/things/1", &[own], "").status(),
            200,
            "{own:?}"
        );
    }
    let metrics = proxy.metrics();
    let table = metrics.table("dualgauge_unauthenticated_requests_total", &["credentials"]);
    let counts: Vec<(&str, f64)> = table.iter().map(|(row, count)| (&**row, *count)).collect();
    assert_eq!(counts, [("missing", 5.0), ("unknown", 5.0)]);
    proxy.log_line(&["reason=unauthenticated", "missing credentials"]);
    proxy.log_line(&["reason=unauthenticated", "unknown credentials"]);
    assert!(!proxy.log().contains("sesame"));
}

#[test]
fn the_document_states_the_credentials() {
    let rest = Upstream::nowhere();
    let proxy = before(&rest);
    let document = proxy.rest("GET", "/openapi.json", &[KEY], "").json();
    assert_eq!(document["info"]["title"], "Own title");
    assert_eq!(
        document["security"],
        json!([{ "apiKey": [] }, { "bearer": [] }, { "basic": [] }])
    );
    let schemes = &document["components"]["securitySchemes"];
    let key = json!({ "type": "apiKey", "in": "header", "name": "x-api-key" });
    assert_eq!(schemes["apiKey"], key);
    assert_eq!(schemes["basic"]["scheme"], "basic");
    let admin = proxy.ask("GET", "/api/v1/openapi.json", "").json();
    assert_eq!(admin["security"], document["security"]);
}

#[test]
fn a_preflight_has_no_credentials() {
    let rest = Upstream::answering(json_answer("1"));
    let proxy = before(&rest);
    let preflight = |path: &str| {
        let headers = [
            ("Origin", "https://app.example"),
            ("Access-Control-Request-Method", "GET"),
        ];
        proxy.rest("OPTIONS", path, &headers, "").status()
    };
    assert_eq!(preflight("/here"), 204);
    // The old server would answer these.
    assert_eq!(preflight("/things/1"), 401);
    assert_eq!(preflight("/nowhere"), 401);
    assert!(rest.requests().is_empty());
}

#[test]
fn a_socket_is_opened_with_credentials_only() {
    let rest = Upstream::answering(json_answer("1"));
    let proxy = before(&rest);
    let handshake = |more: &[(&str, &str)]| {
        let headers = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        proxy.rest("GET", "/rpc", &[&headers[..], more].concat(), "")
    };
    assert_eq!(handshake(&[]).status(), 401);
    assert_eq!(handshake(&[("X-Api-Key", "other")]).status(), 401);
    let (mut client, _) = connect_with(&proxy, &[("x-api-key", "sesame")]);
    client.say(call("things/get", r#"{"id":"1"}"#));
    assert_eq!(client.hear()["result"], 1);
}

#[test]
fn a_socket_whose_key_is_removed_makes_no_more_calls() {
    let rest = Upstream::answering(json_answer("1"));
    let proxy = before(&rest);
    let (mut client, _) = connect_with(&proxy, &[("x-api-key", "sesame")]);
    client.say(call("things/get", r#"{"id":"1"}"#));
    assert_eq!(client.hear()["result"], 1);
    let file = proxy.folder().join("dualgauge.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("sha256:d0c0", "sha256:d1c1")).unwrap();
    proxy.signal("HUP");
    becomes(
        || {
            client.say(call("things/get", r#"{"id":"1"}"#));
            let answer = client.hear();
            answer["error"]["code"].clone()
        },
        &json!(-31015),
    );
}

/// What `explain` says of a request to the configuration of the proxy.
fn explained(proxy: &Proxy, more: &[&str]) -> Value {
    let config = proxy.folder().join("dualgauge.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualgauge"));
    command
        .args(["explain", "--format", "json", "--config"])
        .arg(config);
    let output = command.args(more).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all[0]["explanations"][0].clone()
}

#[test]
fn explain_tells_the_refusal() {
    let rest = Upstream::nowhere();
    let proxy = before(&rest);
    let refused = explained(&proxy, &["/here"]);
    assert!(refused.to_string().contains("unauthenticated"), "{refused}");
    let served = explained(&proxy, &["-H", "x-api-key: sesame", "/here"]);
    assert!(!served.to_string().contains("unauthenticated"), "{served}");
    assert_eq!(served["client"], "known");
}
