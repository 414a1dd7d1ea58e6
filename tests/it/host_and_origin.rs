//! `Host` and `Origin` of calls that are not passed through.

use serde_json::Value;

use crate::scene::{json, rpc_failure, saying};
use crate::support::{Message, Proxy, Upstream, becomes, both, program, run_to_end};

const ROUTES: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
"#;
const EVIL: (&str, &str) = ("Origin", "https://evil.example");
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"items/get","params":{"id":"7"}}"#;
const OTHER: &str = r#"{"jsonrpc":"2.0","id":2,"method":"other"}"#;

fn flags(stage: &str) -> String {
    format!("[[flag]]\nname = \"all\"\nstage = \"{stage}\"\n")
}

/// Both servers behind a proxy on loopback that has one stage for all calls of its route.
struct Scene {
    rest: Upstream,
    rpc: Upstream,
    proxy: Proxy,
}

/// `listen` are more keys of `[listen]`, `more` are more tables.
fn scene(stage: &str, listen: &str, more: &str) -> Scene {
    let (rest, rpc) = (Upstream::answering(json("{}")), saying("\"result\":{}"));
    let listen = format!("[listen]\n{listen}\n");
    let config = both(&rest, &rpc).replacen("[listen]\n", &listen, 1);
    let config = format!("{config}{ROUTES}{more}");
    let proxy = Proxy::start_with_own_hosts(&config, &flags(stage));
    Scene { rest, rpc, proxy }
}

impl Scene {
    /// A call of the route over REST, for a host and with more headers.
    fn call(&self, host: &str, headers: &[(&str, &str)]) -> Message {
        self.send("GET /items/7", host, headers, "")
    }

    fn send(&self, line: &str, host: &str, headers: &[(&str, &str)], body: &str) -> Message {
        let mut request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = body.len();
        if length > 0 {
            request.push_str(&format!("Content-Length: {length}\r\n"));
        }
        let mut client = self.proxy.connect();
        client.send(format!("{request}\r\n{body}"));
        client.read_answer()
    }

    /// How many calls the servers have seen.
    fn seen(&self) -> (usize, usize) {
        (self.rest.requests().len(), self.rpc.requests().len())
    }
}

fn expect_refused(answer: &Message, names: &str) {
    assert_eq!(answer.status(), 403, "{answer:?}");
    let problem = answer.json();
    assert_eq!(problem["reason"], "origin_refused");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(names), "{detail}");
}

#[test]
fn a_translated_call_of_a_foreign_page_is_refused() {
    let scene = scene("translate", "hosts = [\"localhost\", \"app.example\"]", "");
    expect_refused(&scene.call("localhost", &[EVIL]), "cors.origins");
    let rpc = scene.send("POST /rpc", "localhost", &[EVIL], CALL);
    assert_eq!(rpc.status(), 403);
    assert_eq!(rpc_failure(&rpc.json()).1, "origin_refused");
    expect_refused(&scene.call("evil.example", &[]), "listen.hosts");
    assert_eq!(scene.seen(), (0, 0));
    for origin in ["http://localhost", "https://app.example"] {
        assert_eq!(scene.call("localhost", &[("Origin", origin)]).status(), 200);
    }
    assert_eq!(scene.seen(), (0, 2));
}

#[test]
fn cors_lets_a_page_of_another_origin_call() {
    let cors = "[cors]\norigins = [\"https://page.example\"]\n";
    let scene = scene("translate", "", cors);
    let from = |origin| scene.call("localhost", &[("Origin", origin)]);
    let page = from("https://page.example");
    assert_eq!(page.status(), 200);
    assert_eq!(
        page.head.one("access-control-allow-origin"),
        Some("https://page.example")
    );
    expect_refused(&from("https://evil.example"), "cors.origins");
}

#[test]
fn a_call_that_passes_through_is_not_checked() {
    let scene = scene("passthrough", "hosts = [\"app.example\"]", "");
    assert_eq!(scene.call("evil.example", &[EVIL]).status(), 200);
    let rpc = scene.send("POST /rpc", "evil.example", &[EVIL], CALL);
    assert_eq!(rpc.json()["result"], serde_json::json!({}));
    assert_eq!(scene.seen(), (1, 1));
}

#[test]
fn each_call_of_a_batch_is_checked_for_itself() {
    let scene = scene("translate", "", "");
    let batch = format!("[{CALL},{OTHER}]");
    let answers = scene.send("POST /rpc", "localhost", &[EVIL], &batch).json();
    assert_eq!(rpc_failure(&answers[0]).1, "origin_refused");
    assert_eq!(answers[1]["result"], serde_json::json!({}));
    assert_eq!(scene.seen(), (0, 1));
}

#[test]
fn a_loopback_listener_refuses_a_rebound_name() {
    let scene = scene("translate", "", "");
    for host in [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
    ] {
        expect_refused(&scene.call(host, &[]), "listen.hosts");
        let own = format!("http://{host}");
        expect_refused(&scene.call(host, &[("Origin", &own)]), "listen.hosts");
        assert_eq!(scene.send("GET /other", host, &[], "").status(), 200);
    }
    for host in ["localhost:8080", "127.0.0.1", "[::1]:1"] {
        assert_eq!(scene.call(host, &[]).status(), 200, "{host}");
    }
    assert_eq!(scene.seen(), (3, 3));
}

#[test]
fn a_trusted_hop_may_name_any_host_and_tells_which_was_asked() {
    let scene = scene("translate", "trusted = [\"127.0.0.1\"]", "");
    assert_eq!(scene.call("backend", &[]).status(), 200);
    let page = ("Origin", "https://app.example");
    expect_refused(&scene.call("backend", &[page]), "listen.hosts");
    let told = ("X-Forwarded-Host", "app.example");
    assert_eq!(scene.call("backend", &[page, told]).status(), 200);
    let told = ("Forwarded", "for=192.0.2.1;host=app.example");
    assert_eq!(scene.call("backend", &[page, told]).status(), 200);
}

#[test]
fn verify_refuses_a_foreign_page_before_either_server_is_asked() {
    let scene = scene("verify", "", "");
    expect_refused(&scene.call("localhost", &[EVIL]), "cors.origins");
    assert_eq!(scene.seen(), (0, 0));
}

#[test]
fn in_shadow_the_candidate_of_a_foreign_page_fails() {
    let scene = scene("shadow", "", "");
    assert_eq!(scene.call("localhost", &[EVIL]).status(), 200);
    let rpc = scene.send("POST /rpc", "evil.example", &[], CALL);
    assert_eq!(rpc.status(), 200);
    let count = |name: &str, labels: &[&str], row: &str| {
        let table = scene.proxy.metrics().table(name, labels);
        table.get(row).copied().unwrap_or(0.0)
    };
    let verdict = |side: &str| {
        let labels = ["route", "client", "side", "stage", "verdict"];
        let row = format!("items.get other {side} shadow candidate-failed");
        count("dualgauge_verdicts_total", &labels, &row)
    };
    let reasons = || {
        let row = "items.get origin_refused";
        count(
            "dualgauge_candidates_failed_total",
            &["route", "reason"],
            row,
        )
    };
    becomes(
        || [verdict("rest"), verdict("rpc"), reasons()],
        &[1.0, 1.0, 2.0],
    );
    assert_eq!(scene.seen(), (1, 1), "only the controls were asked");
}

#[test]
fn a_link_is_not_asked_for_a_foreign_page() {
    let socket = Upstream::start();
    let address = socket.address();
    for server in [
        format!("url = \"ws://{address}/live\""),
        "command = [\"cat\"]".to_owned(),
        format!("url = \"http://{address}/mcp\"\nprotocol = \"mcp\""),
    ] {
        let config = format!("[upstream.link]\nside = \"rpc\"\n{server}\n");
        let proxy = Proxy::start_with_own_hosts(&config, "");
        for (host, origin) in [
            ("localhost", "https://evil.example"),
            ("evil.example", "http://evil.example"),
        ] {
            let mut client = proxy.connect();
            let length = OTHER.len();
            client.send(format!(
                "POST /rpc HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\n\r\n{OTHER}"
            ));
            let answer = client.read_answer();
            assert_eq!(answer.status(), 403, "{server}");
            assert_eq!(rpc_failure(&answer.json()).1, "origin_refused", "{server}");
        }
    }
}

#[test]
fn a_websocket_of_a_foreign_page_is_not_opened() {
    let upstream = Upstream::start();
    let address = upstream.address();
    let config = format!("[upstream.link]\nside = \"rpc\"\nurl = \"ws://{address}/live\"\n");
    let proxy = Proxy::start_with_own_hosts(&config, "");
    for (host, origin, status) in [
        ("localhost", "http://localhost", 101),
        ("localhost", "https://evil.example", 403),
        ("evil.example", "http://evil.example", 403),
    ] {
        let mut client = proxy.connect();
        client.send(format!(
            "GET /rpc HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ));
        assert_eq!(client.read_head().status(), status, "{host} {origin}");
    }
}

#[test]
fn a_stream_of_the_other_side_is_not_opened_for_a_foreign_page() {
    let stream = "[[stream]]\nname = \"events\"\nrest = \"GET /events\"\nrpc = \"GET /sse\"\n";
    let translated = scene("translate", "", stream);
    expect_refused(
        &translated.send("GET /events", "localhost", &[EVIL], ""),
        "cors.origins",
    );
    assert_eq!(translated.seen(), (0, 0));
    let passed = scene("passthrough", "", stream);
    let answer = passed.send("GET /events", "localhost", &[EVIL], "");
    assert_eq!(answer.status(), 200);
}

#[test]
fn explain_and_check_tell_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("dualgauge.toml");
    let text = format!(
        "[listen]\naddress = \"127.0.0.1:8080\"\n[upstream.old]\nside = \"rest\"\nurl = \"http://127.0.0.1:1\"\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://127.0.0.1:2/rpc\"\n{ROUTES}\
         [rollout]\nflags = \"flags.toml\"\n"
    );
    std::fs::write(&config, text).unwrap();
    std::fs::write(folder.path().join("flags.toml"), flags("translate")).unwrap();
    let mut explain = program(&["explain", "--format", "json", "-H", "Host: evil.example"]);
    explain.args(["/items/7", "--config"]).arg(&config);
    let ended = run_to_end(explain);
    let explained: Value =
        serde_json::from_str(&ended.output).unwrap_or_else(|error| panic!("{error} in {ended:?}"));
    let refused = &explained[0]["explanations"][0]["refused"];
    assert_eq!(refused["reason"], "origin_refused", "{explained}");
    let mut check = program(&["check", "--config"]);
    check.arg(&config);
    let ended = run_to_end(check);
    assert!(ended.output.contains("`listen.hosts`"), "{ended:?}");
}

#[test]
fn a_notification_of_a_foreign_page_is_refused_with_an_error() {
    let scene = scene("translate", "", "");
    let told = r#"{"jsonrpc":"2.0","method":"items/get","params":{"id":"7"}}"#;
    for (headers, host, status) in [
        (&[][..], "localhost", 204),
        (&[EVIL], "localhost", 403),
        (&[], "evil.example", 403),
    ] {
        let answer = scene.send("POST /rpc", host, headers, told);
        assert_eq!(answer.status(), status, "{answer:?}");
        if status == 403 {
            assert_eq!(answer.json()["id"], Value::Null);
            assert_eq!(rpc_failure(&answer.json()).1, "origin_refused");
        }
    }
    assert_eq!(scene.seen(), (1, 0));
    scene
        .proxy
        .log_line(&["status=403", "reason=origin_refused"]);
}
