//! Protected resource metadata of an MCP server, and challenges that name them.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::ROUTE;
use super::peers::{Peer, installed, script};
use super::scripted::result;
use crate::scene::{Called, answer, body_of, call, json as json_answer};
use crate::support::{Message, Proxy, Upstream, becomes, program, run_to_end};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
const CHALLENGE: &str = r#"Bearer error="invalid_token", resource_metadata="http://10.0.0.5:8000/.well-known/oauth-protected-resource/api/mcp""#;
const NAMED: &str = r#"Bearer error="invalid_token", resource_metadata="https://p.example/gw/.x""#;
const DOCUMENT: &str = r#"{"resource":"http://10.0.0.5:8000/api/mcp", "authorization_servers":["https://login.example/"], "n":1.0}"#;

/// A server that has its metadata at these paths only, and rejects `tools/call`.
fn protected(paths: &'static [&'static str]) -> Upstream {
    let calls = |_: &Message, called: &Called<'_>| match called.method() {
        "tools/call" => refused(),
        _ => result(called, "1"),
    };
    let sessions = super::scripted::answers(calls);
    Upstream::serving(move |request| {
        let target = request.head.start.split(' ').nth(1).unwrap();
        match target.contains("/.well-known/") {
            false => sessions(request),
            true if paths.contains(&target) => json_answer(DOCUMENT),
            true => answer("404 Not Found", &[], ""),
        }
    })
}

fn refused() -> Vec<u8> {
    let headers = [
        ("Content-Type", "application/json"),
        ("WWW-Authenticate", CHALLENGE),
        ("WWW-Authenticate", "Basic"),
    ];
    answer("401 Unauthorized", &headers, r#"{"error":"invalid_token"}"#)
}

fn before(server: &Upstream, protocol: &str, listen: &str) -> Proxy {
    let address = server.address();
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n{listen}\n[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}/api/mcp\"\n\
         protocol = \"{protocol}\"\n"
    ))
}

const PUBLIC: &str = "public_url = \"https://p.example/gw/\"";

fn counted(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_mcp_resource_metadata_total{{kind="{kind}"}}"#);
    proxy.metrics().value(&series)
}

fn metadata(proxy: &Proxy, resource: &str) -> Message {
    let headers = [("Accept-Encoding", "gzip"), ("Authorization", "Bearer x")];
    proxy.rest("GET", &format!("{WELL_KNOWN}{resource}"), &headers, "")
}

#[test]
fn metadata_name_the_proxy_where_its_url_is_set() {
    for protocol in ["mcp", "jsonrpc"] {
        let server = protected(&["/.well-known/oauth-protected-resource/api/mcp"]);
        let proxy = before(&server, protocol, PUBLIC);
        for (resource, named) in [
            ("/mcp", "https://p.example/gw/mcp"),
            ("/gw/mcp", "https://p.example/gw/mcp"),
            ("/rpc/", "https://p.example/gw/rpc"),
        ] {
            let came = metadata(&proxy, resource);
            let wanted = DOCUMENT.replace("http://10.0.0.5:8000/api/mcp", named);
            assert_eq!(body_of(&came, 200), wanted);
            assert_eq!(came.head.one("content-type"), Some("application/json"));
        }
        let asked = server
            .requests()
            .into_iter()
            .filter(|request| request.head.start.starts_with("GET /.w"));
        for request in asked {
            assert_eq!(request.head.one("accept-encoding"), None);
            // The metadata are public, and a link carries no credentials of a client.
            let token = (protocol == "jsonrpc").then_some("Bearer x");
            assert_eq!(request.head.one("authorization"), token);
        }
        assert_eq!(counted(&proxy, "metadata_rewritten"), 3.0);
        proxy.log_line(&["decision=\"resource metadata\"", "status=200"]);
        // Nothing of it is at the path of another resource.
        assert_eq!(metadata(&proxy, "/other").status(), 404);
    }
}

#[test]
fn metadata_pass_unchanged_where_no_url_is_set() {
    for protocol in ["mcp", "jsonrpc"] {
        let server = protected(&["/.well-known/oauth-protected-resource/api/mcp"]);
        let proxy = before(&server, protocol, "");
        assert_eq!(body_of(&metadata(&proxy, "/mcp"), 200), DOCUMENT);
        assert_eq!(counted(&proxy, "metadata_unchanged"), 1.0);
        let rejected = proxy.rpc(call("tools/call", r#"{"name":"x"}"#));
        assert_eq!(rejected.status(), 401);
        assert_eq!(rejected.head.all("www-authenticate"), [CHALLENGE, "Basic"]);
    }
}

#[test]
fn a_server_may_have_the_metadata_of_its_origin_only() {
    for protocol in ["mcp", "jsonrpc"] {
        let server = protected(&[WELL_KNOWN]);
        let proxy = before(&server, protocol, PUBLIC);
        for (resource, named) in [
            ("/mcp", "https://p.example/gw/mcp"),
            ("", "https://p.example/gw"),
        ] {
            let came: Value =
                serde_json::from_str(body_of(&metadata(&proxy, resource), 200)).unwrap();
            assert_eq!(came["resource"], named);
        }
        let none = protected(&[]);
        assert_eq!(
            metadata(&before(&none, protocol, PUBLIC), "/mcp").status(),
            404
        );
    }
}

#[test]
fn a_rest_server_keeps_the_metadata_of_the_origin() {
    let server = protected(&["/.well-known/oauth-protected-resource/api/mcp"]);
    let rest = Upstream::answering(json_answer("\"rest\""));
    let more = format!(
        "{PUBLIC}\n[upstream.r]\nside = \"rest\"\nurl = \"http://{}\"",
        rest.address()
    );
    let proxy = before(&server, "mcp", &more);
    assert_eq!(body_of(&metadata(&proxy, ""), 200), "\"rest\"");
    assert_eq!(body_of(&metadata(&proxy, "/other"), 200), "\"rest\"");
    assert_eq!(
        metadata(&proxy, "/mcp").json()["resource"],
        "https://p.example/gw/mcp"
    );
}

#[test]
fn challenges_name_the_metadata_at_the_proxy() {
    for protocol in ["mcp", "jsonrpc"] {
        let server = protected(&[]);
        let proxy = before(&server, protocol, PUBLIC);
        let rejected = proxy.rpc(call("tools/call", r#"{"name":"x"}"#));
        assert_eq!(rejected.status(), 401);
        let named = NAMED.replace("/gw/.x", &format!("{WELL_KNOWN}/gw/rpc"));
        assert_eq!(rejected.head.all("www-authenticate"), [&*named, "Basic"]);
        assert_eq!(counted(&proxy, "challenge_rewritten"), 1.0);
        proxy.log_line(&["rpc_method=tools/call", "status=401"]);
        // In a batch there is no head for it.
        let batch = format!("[{}]", call("tools/call", r#"{"name":"x"}"#));
        if protocol == "mcp" {
            assert_eq!(proxy.rpc(batch).status(), 200);
        }
    }
}

#[test]
fn a_rejected_call_has_the_status_200_if_the_plan_says_so() {
    let server = protected(&[]);
    let proxy = before(&server, "mcp", "[rpc]\nerror_status = \"always-200\"");
    let rejected = proxy.rpc(call("tools/call", r#"{"name":"x"}"#));
    assert_eq!(rejected.status(), 200);
    assert_eq!(rejected.json()["error"]["data"]["status"], 401);
}

#[test]
fn a_document_that_is_too_long_or_no_object_is_not_changed() {
    let long = format!(r#"{{"resource":"{}"}}"#, "x".repeat(64 * 1024));
    for (document, status) in [(long, 502), ("[1]".to_owned(), 200)] {
        let server = Upstream::answering(json_answer(&document));
        let proxy = before(&server, "jsonrpc", PUBLIC);
        let came = metadata(&proxy, "/mcp");
        assert_eq!(came.status(), status);
        if status == 200 {
            assert_eq!(came.text(), document);
        }
    }
}

#[test]
fn a_request_for_metadata_is_explained() {
    let server = protected(&[]);
    let proxy = before(&server, "mcp", PUBLIC);
    let mut command = program(&["explain", "--format", "json", "--config"]);
    command
        .arg(proxy.folder().join("dualgauge.toml"))
        .arg(format!("{WELL_KNOWN}/mcp"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = run_to_end(command);
    let said: Value = serde_json::from_str(&ended.output).unwrap_or_else(|_| panic!("{ended:?}"));
    let text = said.to_string();
    assert!(text.contains("resource metadata"), "{text}");
    assert!(
        text.contains("/.well-known/oauth-protected-resource/api/mcp"),
        "{text}"
    );
    assert!(
        text.contains("`resource` becomes `https://p.example/gw/mcp`"),
        "{text}"
    );
}

/// A server with sessions that accepts these tokens only.
fn guarded(tokens: &'static [&'static str]) -> Upstream {
    let sessions = super::scripted::answers(|_, called| {
        result(called, r#"{"content":[{"type":"text","text":"seven"}]}"#)
    });
    Upstream::serving(move |request| {
        let token = request.head.one("authorization").unwrap_or_default();
        match tokens.contains(&token) {
            true => sessions(request),
            false => refused(),
        }
    })
}

fn with_token(proxy: &Proxy, token: &str, method: &str) -> Message {
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", token),
    ];
    proxy.rest("POST", "/rpc", &headers, call(method, "{}"))
}

#[test]
fn a_link_of_each_client_has_its_authorization() {
    let server = guarded(&["Bearer one", "Bearer two"]);
    let keys = format!("{PUBLIC}\n");
    let address = server.address();
    let proxy = Proxy::start(&format!(
        "[listen]\nworkers = 1\n{keys}[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}/api/mcp\"\n\
         protocol = \"mcp\"\nauthorization = \"client\"\n{ROUTE}"
    ));
    let named = NAMED.replace("/gw/.x", &format!("{WELL_KNOWN}/gw/rpc"));
    for _ in 0..5 {
        let rejected = proxy.rpc(call("initialize", "{}"));
        assert_eq!(rejected.status(), 401);
        assert_eq!(rejected.head.all("www-authenticate"), [&*named, "Basic"]);
        assert_eq!(
            with_token(&proxy, "Bearer three", "tools/list").status(),
            401
        );
    }
    for token in ["Bearer one", "Bearer two", "Bearer one"] {
        let greeting = with_token(&proxy, token, "initialize").json();
        assert_eq!(greeting["result"]["serverInfo"]["name"], "scripted");
        assert_eq!(with_token(&proxy, token, "tools/list").status(), 200);
    }
    // Each has a session of its own, and all its messages have its token.
    let mut sessions = std::collections::BTreeMap::new();
    for request in server.requests() {
        if let Some(session) = request.head.one("mcp-session-id") {
            let token = request.head.one("authorization").unwrap().to_owned();
            sessions
                .entry(token)
                .or_insert_with(Vec::new)
                .push(session.to_owned());
        }
    }
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    let ones: std::collections::BTreeSet<_> = sessions["Bearer one"].iter().collect();
    let twos: std::collections::BTreeSet<_> = sessions["Bearer two"].iter().collect();
    assert!(
        ones.len() == 1 && twos.len() == 1 && ones != twos,
        "{sessions:?}"
    );
    // REST clients send theirs as well.
    let token = [("Authorization", "Bearer two")];
    assert_eq!(
        body_of(&proxy.rest("GET", "/sum/7", &token, ""), 200),
        r#"{"said":"seven"}"#
    );
    let rejected = proxy.rest("GET", "/sum/7", &[], "");
    assert_eq!(rejected.status(), 401);
    assert_eq!(rejected.head.all("www-authenticate"), [CHALLENGE, "Basic"]);
    let stopped = proxy.stop();
    assert!(
        stopped.status.success() && !stopped.log.contains("Bearer"),
        "{stopped:?}"
    );
}

#[test]
fn a_candidate_gets_the_authorization_of_its_call() {
    let [old, new] = [&["Bearer one"], &["Bearer one"]].map(|tokens| guarded(tokens));
    let upstream = |name: &str, server: &Upstream, keys: &str| {
        let address = server.address();
        format!(
            "[upstream.{name}]\nside = \"rpc\"\nurl = \"http://{address}/mcp\"\nprotocol = \"mcp\"\n\
             authorization = \"client\"\n{keys}"
        )
    };
    let config = format!(
        "{}{}[rollout.candidates]\nnoise = 0\n",
        upstream("old", &old, "candidate = \"new\"\n"),
        upstream("new", &new, "")
    );
    let flags = "[[flag]]\nname = \"compare\"\nstage = \"shadow\"\n";
    let proxy = Proxy::start_with_flags(&config, flags);
    assert_eq!(with_token(&proxy, "Bearer one", "tools/list").status(), 200);
    becomes(
        || super::pair::verdicts(&proxy, "tools/list", "match"),
        &1.0,
    );
    let asked = new.requests();
    let tokens = asked
        .iter()
        .map(|request| request.head.one("authorization"));
    assert!(asked.len() > 1 && tokens.into_iter().all(|token| token == Some("Bearer one")));
    assert_eq!(with_token(&proxy, "Bearer two", "tools/list").status(), 401);
    becomes(
        || super::pair::verdicts(&proxy, "tools/list", "match"),
        &2.0,
    );
}

#[test]
fn a_notification_over_a_rejected_link_is_a_failure() {
    let server = guarded(&["Bearer one"]);
    let address = server.address();
    let proxy = Proxy::start(&format!(
        "[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}/mcp\"\nprotocol = \"mcp\"\nauthorization = \"client\"\n"
    ));
    let notify = |token: &str| {
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", token),
        ];
        let body = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
        proxy.rest("POST", "/rpc", &headers, body)
    };
    let method = "rpc_method=notifications/roots/list_changed";
    notify("Bearer one");
    proxy.log_line(&[method, "outcome=success"]);
    notify("Bearer two");
    proxy.log_line(&[method, "reason=upstream_unreachable"]);
}

#[test]
fn authorization_of_clients_excludes_that_of_the_proxy_and_event_streams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dualgauge.toml");
    let config = "[upstream.m]\nside = \"rpc\"\nurl = \"http://127.0.0.1:1/mcp\"\nprotocol = \"mcp\"\n\
        authorization = \"client\"\ntransport = \"sse\"\nheaders = { authorization = \"Bearer own\" }\n";
    fs::write(&path, config).unwrap();
    let mut command = program(&["check", "--config"]);
    command
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = run_to_end(command);
    let said = format!("{}{}", ended.output, ended.errors);
    assert!(said.contains("`headers` has one as well"), "{said}");
    assert!(said.contains("HTTP with SSE has no sessions for"), "{said}");
}

/// Logs a client of the official library in, and returns what it printed.
fn log_in(proxy: &Proxy) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp/logs_in.py");
    let mut command = std::process::Command::new(installed("peers/bin/python"));
    command
        .arg(script)
        .arg(format!("http://{}/mcp", proxy.address()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", proxy.log());
    serde_json::from_str(&ended.output).unwrap()
}

/// Sets the public URL of a proxy to that of its listener.
fn publish(proxy: &Proxy) {
    let path = proxy.folder().join("dualgauge.toml");
    let config = fs::read_to_string(&path).unwrap();
    let listen = format!("[listen]\npublic_url = \"http://{}\"\n", proxy.address());
    fs::write(path, config.replace("[listen]\n", &listen)).unwrap();
    proxy.signal("HUP");
    becomes(|| counted_reloads(proxy), &1.0);
}

fn counted_reloads(proxy: &Proxy) -> f64 {
    proxy
        .metrics()
        .value(r#"dualgauge_plan_reloads_total{result="ok"}"#)
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_client_of_the_official_library_logs_in() {
    let link = "protocol = \"mcp\"\nauthorization = \"client\"\n";
    for (library, keys) in [
        ("peers", ""),
        ("peers-2", ""),
        ("peers", link),
        ("peers-2", link),
    ] {
        let peer: Peer = script(library, "tests/it/mcp/protected.py", &[]);
        let address = peer.address;
        let proxy = Proxy::start(&format!(
            "[listen]\nworkers = 1\n[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}/mcp\"\n{keys}"
        ));
        // The client refuses metadata of another URL than its own.
        let refused = log_in(&proxy);
        assert!(
            refused["error"].to_string().contains("does not match"),
            "{refused}"
        );
        publish(&proxy);
        let resource = format!("http://{}/mcp", proxy.address());
        assert_eq!(log_in(&proxy), json!({ "resource": resource }));
    }
}
