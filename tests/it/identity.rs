//! Who calls: every source of identity over real sockets, what is proved before what is said.

use std::collections::BTreeMap;

use dualgauge::telemetry::clock::whole_unix_seconds as now;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::scene::{body_of, call, json as json_answer, saying};
use crate::support::{Proxy, Upstream, becomes, both, program, rest_only, run_to_end, sha256};
use crate::websocket::ends::connect;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

const ROUTES: &str = r#"
[[route]]
name = "agent.get"
rest = "GET /agents/{id}"
rpc = "agents/get"
"#;

const CLIENTS: &str = r#"
[[client]]
name = "cli"
match = { user_agent = "cli/*" }
[[client]]
name = "inside"
match = { address = "192.0.2.0/24" }
key = "address"
[[client]]
name = "phones"
match = { header = { x-client-id = "ios-*" } }
key = { cookie = "sid" }
[[client]]
name = "services"
match = { claim = { "realm.role" = "service" } }
key = { claim = "sub" }
[[client]]
name = "batch"
match = { api_key = "sha256:KEY" }
"#;

const BEARER: &str = r#"
[rollout]
flags = "flags.toml"
[rollout.bearer]
issuer = "https://issuer.example"
keys = [{ secret_file = "hmac.key", algorithm = "HS256" }]
"#;

/// One flag for each client, which none of the others has.
const FLAGS: &str = r#"
[[flag]]
name = "batch"
client = "batch"
stage = "translate"
[[flag]]
name = "services"
client = "services"
stage = "translate"
percent = 50
"#;

struct Scene {
    proxy: Proxy,
    _ends: [Upstream; 2],
}

impl Scene {
    /// `listen` stands in its table.
    fn of(listen: &str) -> Scene {
        let rest = Upstream::answering(json_answer(r#""rest""#));
        let rpc = saying(r#""result":"rpc""#);
        let hash = sha256("top-secret");
        let ends = both(&rest, &rpc).replace("[listen]\n", &format!("[listen]\n{listen}\n"));
        let config = format!("{ends}{ROUTES}{}{BEARER}", CLIENTS.replace("KEY", &hash));
        let files = [("flags.toml", FLAGS), ("hmac.key", SECRET)];
        Scene {
            proxy: Proxy::start_with(&config, &files),
            _ends: [rest, rpc],
        }
    }

    /// The client, the proof and the rule of a call, as the log tells them.
    fn named(&self, mark: &str, headers: &[(&str, &str)]) -> String {
        let answer = self
            .proxy
            .rest("GET", &format!("/agents/{mark}"), headers, "");
        body_of(&answer, 200);
        let path = format!("path=/agents/{mark} ");
        let line = self.proxy.log_line(&[&path]);
        let word = |name: &str| {
            let found = line.split(' ').find_map(|field| field.strip_prefix(name));
            found.unwrap_or("-").to_owned()
        };
        format!("{} {}", word("client="), word("proof="))
    }

    /// How many tokens proved nothing, by what was wrong with them.
    fn unverified(&self) -> BTreeMap<String, f64> {
        let metrics = self.proxy.metrics();
        let mut all = metrics.table("dualgauge_unverified_tokens_total", &["reason"]);
        all.retain(|_, count| *count > 0.0);
        all
    }
}

fn token(secret: &str, change: Value) -> String {
    let mut claims = json!({
        "iss": "https://issuer.example", "exp": now() + 600, "sub": "svc-1", "realm": { "role": "service" },
    });
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let key = EncodingKey::from_secret(secret.as_bytes());
    let token = encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap();
    format!("Bearer {token}")
}

#[test]
fn what_is_proved_comes_before_what_is_said() {
    let scene = Scene::of("trusted = [\"127.0.0.1\"]");
    let agent = ("User-Agent", "cli/1");
    let hop = ("X-Forwarded-For", "203.0.113.1, 192.0.2.9");
    let header = ("X-Client-Id", "ios-1");
    let good = token(SECRET, json!({}));
    let bearer = ("Authorization", good.as_str());
    let key = ("X-Api-Key", "top-secret");
    assert_eq!(scene.named("a", &[]), "other -");
    assert_eq!(scene.named("b", &[agent]), "cli declared");
    assert_eq!(scene.named("c", &[agent, hop]), "inside declared");
    assert_eq!(scene.named("d", &[agent, hop, header]), "phones declared");
    assert_eq!(
        scene.named("e", &[agent, hop, header, bearer]),
        "services authenticated"
    );
    assert_eq!(
        scene.named("f", &[agent, hop, header, bearer, key]),
        "batch authenticated"
    );
    // A guess takes nothing away.
    assert_eq!(
        scene.named("g", &[header, ("X-Api-Key", "guess")]),
        "phones declared"
    );
}

#[test]
fn what_strangers_declare_is_ignored_where_hops_are_named() {
    let scene = Scene::of("trusted = [\"192.0.2.1\"]");
    let hop = ("X-Forwarded-For", "192.0.2.9");
    let header = ("X-Client-Id", "ios-1");
    assert_eq!(
        scene.named("a", &[hop, header, ("User-Agent", "cli/1")]),
        "other -"
    );
    assert_eq!(
        scene.named("b", &[hop, header, ("X-Api-Key", "top-secret")]),
        "batch authenticated"
    );
}

#[test]
fn a_token_that_proves_nothing_is_counted_and_refuses_nobody() {
    let scene = Scene::of("");
    let rows = [
        ("a", token(SECRET, json!({})), "services authenticated"),
        (
            "b",
            token(SECRET, json!({ "realm": { "role": "person" } })),
            "other -",
        ),
        (
            "c",
            token("another secret of 32 bytes or so", json!({})),
            "other -",
        ),
        ("d", token(SECRET, json!({ "exp": now() - 61 })), "other -"),
        (
            "e",
            token(SECRET, json!({ "iss": "https://other.example" })),
            "other -",
        ),
        ("f", "Bearer opaque".to_owned(), "other -"),
        ("g", "Basic eDp5".to_owned(), "other -"),
    ];
    for (mark, credential, named) in &rows {
        for _ in 0..2 {
            assert_eq!(
                scene.named(mark, &[("Authorization", credential)]),
                *named,
                "{mark}"
            );
        }
    }
    // A message and its batch are one request, whose token is looked at once.
    let credential = [("Authorization", rows[2].1.as_str())];
    let batch = format!(
        "[{},{}]",
        call("agents/get", r#"{"id":"1"}"#),
        call("agents/get", r#"{"id":"2"}"#)
    );
    scene.proxy.rest("POST", "/rpc", &credential, &batch);
    let expected = [
        ("signature", 3.0),
        ("expired", 2.0),
        ("issuer", 2.0),
        ("malformed", 2.0),
    ];
    let expected: BTreeMap<String, f64> = expected
        .map(|(reason, count)| (reason.to_owned(), count))
        .into();
    becomes(|| scene.unverified(), &expected);
    let stopped = scene.proxy.stop();
    for (_, credential, _) in &rows {
        assert!(!stopped.log.contains(credential.split(' ').nth(1).unwrap()));
    }
    assert!(!stopped.log.contains("svc-1") && !stopped.log.contains(SECRET));
}

#[test]
fn a_claim_is_the_key_of_a_percentage() {
    let scene = Scene::of("");
    for number in 0..8 {
        let subject = format!("svc-{number}");
        let credential = token(SECRET, json!({ "sub": subject }));
        let answer = scene
            .proxy
            .rest("GET", "/agents/1", &[("Authorization", &credential)], "");
        let place = dualgauge_model::rollout::bucket("services", &subject).get();
        let server = if place < 50_000 {
            "\"rpc\""
        } else {
            "\"rest\""
        };
        assert_eq!(body_of(&answer, 200), server, "{subject} {place}");
    }
}

#[test]
fn the_plan_tells_what_each_identity_proves() {
    let scene = Scene::of("");
    let plan = scene.proxy.ask("GET", "/api/v1/plan", "").json();
    let clients = plan["clients"].as_array().unwrap().iter();
    let clients: Vec<String> = clients
        .map(|client| {
            format!(
                "{} {} {}",
                client["name"], client["source"], client["proof"]
            )
            .replace('"', "")
        })
        .collect();
    let expected = [
        "cli user_agent declared",
        "inside address declared",
        "phones header declared",
        "services claim authenticated",
        "batch api_key authenticated",
    ];
    assert_eq!(clients, expected);
}

#[test]
fn a_new_key_is_taken_without_a_restart() {
    let scene = Scene::of("");
    let other = "another secret of 32 bytes or so";
    let credential = token(other, json!({}));
    assert_eq!(
        scene.named("a", &[("Authorization", &credential)]),
        "other -"
    );
    std::fs::write(scene.proxy.folder().join("hmac.key"), other).unwrap();
    let mut tries = 0;
    let named = || {
        tries += 1;
        scene.named(&format!("n{tries}"), &[("Authorization", &credential)])
    };
    becomes(named, &"services authenticated".to_owned());
}

#[test]
fn an_mcp_client_is_recognised_by_what_it_declares() {
    let rest = Upstream::nowhere();
    let config = format!(
        "{}{}[[client]]\nname = \"example\"\nmatch = {{ mcp_client = {{ name = \"Example*\", version = \"4.*\" }} }}\n",
        rest_only(&rest),
        "[[local]]\nrpc = \"initialize\"\nanswer = { result = {} }\n\
         [[local]]\nrpc = \"x/*\"\nanswer = { result = {} }\n",
    );
    let proxy = Proxy::start(&config);
    let json = ("Content-Type", "application/json");
    let post = |headers: &[(&str, &str)], method: &str, params: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let answer = proxy.rest("POST", "/rpc", headers, &body);
        assert_eq!(answer.status(), 200, "{answer:?}");
        answer
    };
    let info = |version: &str| format!(r#"{{"name":"Example App","version":"{version}"}}"#);
    let begin = |version: &str| {
        let params = format!(r#"{{"clientInfo":{}}}"#, info(version));
        let answer = post(&[json], "initialize", &params);
        answer.head.one("mcp-session-id").unwrap().to_owned()
    };
    let (new, old) = (begin("4.0"), begin("3.9"));
    assert_ne!(new, begin("4.0"));
    for session in [&new, &old] {
        post(&[json, ("Mcp-Session-Id", session)], "x/a", "{}");
    }
    let meta = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/clientInfo":{}}}}}"#,
        info("4.1")
    );
    post(&[json], "x/b", &meta);
    post(&[json], "x/c", "{}");
    let calls = proxy.metrics().table(
        "dualgauge_calls_total",
        &["client", "side", "route", "stage", "outcome", "blame"],
    );
    let calls: Vec<(String, f64)> = calls.into_iter().collect();
    assert_eq!(
        calls,
        [
            ("example rpc unrouted none success none".to_owned(), 4.0),
            ("other rpc unrouted none success none".to_owned(), 3.0)
        ]
    );
}

/// A proxy that knows an MCP client by its program.
fn with_program(more: &str) -> Proxy {
    Proxy::start(&format!(
        "{}{more}[[client]]\nname = \"example\"\nmatch = {{ mcp_client = {{ name = \"Example*\" }} }}\n\
         [[local]]\nrpc = \"initialize\"\nanswer = {{ result = {{}} }}\n\
         [[local]]\nrpc = \"x/*\"\nanswer = {{ result = {{}} }}\n",
        rest_only(&Upstream::nowhere())
    ))
}

const INTRODUCED: &str = r#"{"clientInfo":{"name":"Example App","version":"4.0"}}"#;

#[test]
fn the_program_of_a_socket_is_that_of_its_first_message() {
    let proxy = with_program("[rpc]\nwebsocket = true\n");
    let mut known = connect(&proxy);
    known.say(call("initialize", INTRODUCED));
    known.hear();
    // The messages after it declare nothing.
    for _ in 0..2 {
        known.say(call("x/a", "{}"));
        known.hear();
    }
    let mut unknown = connect(&proxy);
    unknown.say(call("x/a", "{}"));
    unknown.hear();
    let calls = proxy.metrics();
    let calls = calls.table(
        "dualgauge_calls_total",
        &["client", "side", "route", "stage", "outcome", "blame"],
    );
    let calls: Vec<(&str, f64)> = calls
        .iter()
        .map(|(row, count)| (row.split(' ').next().unwrap(), *count))
        .collect();
    assert_eq!(calls, [("example", 3.0), ("other", 1.0)]);
}

#[test]
fn explain_and_check_tell_of_a_declared_program() {
    let proxy = with_program("");
    let config = proxy.folder().join("dualgauge.toml");
    let config = config.to_str().unwrap();
    let body = call("initialize", INTRODUCED);
    let arguments = [
        "explain", "--config", config, "-X", "POST", "-d", &body, "/rpc",
    ];
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.output.contains("client     example  (declared)"),
        "{ended:?}"
    );
    let ended = run_to_end(program(&["check", "--config", config]));
    assert!(
        ended.output.contains("`mcp_client` is a declared identity"),
        "{ended:?}"
    );
}
