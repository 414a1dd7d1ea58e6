//! Servers behind TLS: over HTTP, over a WebSocket, and as MCP.

use rcgen::{CertificateParams, date_time_ymd};

use crate::mcp::scripted;
use crate::scene::{Called, body_of, call, json, problem};
use crate::support::certificates::{
    Authority, Certified, Door, authority, certified, certified_with,
};
use crate::support::{Message, Proxy, Upstream, program, run_to_end};
use crate::websocket::ends;

const NAME: &str = "localhost";

/// A certificate of the authority for the name by which the door is asked.
fn usual(by: &Authority) -> Certified {
    certified(by, "server", NAME)
}

/// A proxy before a REST server behind a door, with more keys of its TLS.
fn before(door: &Door, ca: &Authority, keys: &str) -> Proxy {
    let port = door.port();
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"https://{NAME}:{port}\"\n\
         [upstream.old.tls]\nca = \"ca.pem\"\n{keys}"
    );
    Proxy::start_with(&config, &[("ca.pem", &ca.pem())])
}

#[test]
fn calls_go_through_tls_over_connections_that_are_kept() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let door = Door::before(&rest, &usual(&ours), None);
    let proxy = before(&door, &ours, "");
    for _ in 0..3 {
        assert_eq!(body_of(&proxy.rest("GET", "/a?b=c", &[], ""), 200), "1");
    }
    assert_eq!(door.handshakes(), 1);
    assert_eq!(
        (door.names(), door.protocols()),
        (vec![NAME.to_owned()], vec!["http/1.1".to_owned()])
    );
    let request = rest.requests().remove(0);
    assert_eq!(request.head.start, "GET /a?b=c HTTP/1.1");
}

#[test]
fn translated_calls_and_bodies_go_there_as_well() {
    let echo = |request: &Message| {
        let called = Called::of(request);
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
            called.id(),
            called.params()
        ))
    };
    let (ours, rpc) = (authority(), Upstream::serving(echo));
    let door = Door::before(&rpc, &usual(&ours), None);
    let port = door.port();
    let config = format!(
        "[upstream.new]\nside = \"rpc\"\nurl = \"https://{NAME}:{port}/rpc\"\ntls = {{ ca = \"ca.pem\" }}\n\
         [[route]]\nname = \"a\"\nrest = \"PUT /a/{{id}}\"\nrpc = \"a.put\"\nbody = {{ text = \"{{text}}\" }}\n\
         params = {{ id = \"{{id}}\", text = \"{{text}}\" }}\n"
    );
    let proxy = Proxy::start_with(&config, &[("ca.pem", &ours.pem())]);
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(300_000));
    let fields = [("Content-Type", "application/json")];
    let answer = proxy.rest("PUT", "/a/7", &fields, &long);
    assert!(body_of(&answer, 200).len() > 300_000);
    let passed = proxy.rpc(call("other", &long)).json();
    assert_eq!(passed["result"]["text"].as_str().unwrap().len(), 300_000);
    assert_eq!(rpc.requests()[0].head.start, "POST /rpc HTTP/1.1");
    assert_eq!(
        rpc.requests()[0].head.one("host"),
        Some(&*format!("{NAME}:{port}"))
    );
}

/// What a call gets, and what the log says of it.
fn refused(door: &Door, ca: &Authority, keys: &str) -> String {
    let proxy = before(door, ca, keys);
    let answer = proxy.rest("GET", "/a", &[], "");
    assert_eq!(answer.status(), 502);
    let (reason, said) = problem(&answer);
    assert_eq!(reason, "upstream_unreachable");
    assert!(
        !said.contains("certificate"),
        "the client learns too much: {said}"
    );
    let line = proxy.log_line(&["path=/a ", "blame=upstream", "upstream_unreachable"]);
    line.replace('\\', "")
}

#[test]
fn a_server_that_is_not_the_one_gets_no_call_and_the_log_says_why() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let expired = certified_with(&ours, "server", NAME, |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let another = certified(&ours, "server", "another.example");
    let cases = [
        (usual(&authority()), "", "UnknownIssuer"),
        (expired, "", "expired"),
        (another, "", "not valid for name \"localhost\""),
        (
            usual(&ours),
            "server_name = \"another.example\"\n",
            "not valid for name",
        ),
    ];
    for (shown, keys, why) in cases {
        let door = Door::before(&rest, &shown, None);
        let line = refused(&door, &ours, keys);
        assert!(line.contains("the TLS handshake failed: "), "{line}");
        assert!(line.contains(why), "{why}: {line}");
    }
    assert_eq!(rest.requests().len(), 0);
}

#[test]
fn a_server_that_speaks_plainly_or_not_at_all_is_none() {
    let plain = Upstream::start();
    let config = format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"https://{}\"\nconnect_timeout = \"300ms\"\n",
        plain.address()
    );
    let proxy = Proxy::start(&config);
    // Nothing comes back: the handshake has the time of the connection.
    let answer = proxy.rest("GET", "/silent", &[], "");
    assert_eq!(problem(&answer).0, "upstream_unreachable");
    let line = proxy.log_line(&["path=/silent "]);
    assert!(line.contains("no connection within 300ms"), "{line}");
    let mut asked = proxy.connect();
    asked.send("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
    plain.accept();
    plain.accept().send("HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(
        problem(&asked.read_answer_to("GET")).0,
        "upstream_unreachable"
    );
    let line = proxy.log_line(&["path=/plain "]);
    assert!(line.contains("the TLS handshake failed"), "{line}");
}

#[test]
fn a_server_may_be_asked_by_another_name() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let door = Door::before(&rest, &certified(&ours, "server", "inner.example"), None);
    let proxy = before(&door, &ours, "server_name = \"inner.example\"\n");
    assert_eq!(body_of(&proxy.rest("GET", "/", &[], ""), 200), "1");
    assert_eq!(door.names(), ["inner.example"]);
}

#[test]
fn a_server_by_its_address_needs_a_certificate_for_that() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let door = Door::before(&rest, &certified(&ours, "server", "127.0.0.1"), None);
    let port = door.port();
    let config = format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"https://127.0.0.1:{port}\"\ntls.ca = \"ca.pem\"\n"
    );
    let proxy = Proxy::start_with(&config, &[("ca.pem", &ours.pem())]);
    assert_eq!(body_of(&proxy.rest("GET", "/", &[], ""), 200), "1");
}

#[test]
fn the_proxy_shows_its_certificate_to_a_server_that_asks_for_it() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let door = Door::before(&rest, &usual(&ours), Some(&ours));
    let proxy = before(&door, &ours, "");
    let answer = proxy.rest("GET", "/without", &[], "");
    assert_eq!(answer.status(), 502);
    let line = proxy.log_line(&["path=/without ", "blame=upstream"]);
    assert!(line.contains("CertificateRequired"), "{line}");
    let own = certified(&ours, "proxy", "proxy.example");
    let port = door.port();
    let config = format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"https://{NAME}:{port}\"\n\
         tls = {{ ca = \"ca.pem\", certificate = \"own.pem\", key = \"own.key\" }}\n"
    );
    let files = [
        ("ca.pem", ours.pem()),
        ("own.pem", own.pem.clone()),
        ("own.key", own.key_pem()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let proxy = Proxy::start_with(&config, &files);
    assert_eq!(body_of(&proxy.rest("GET", "/", &[], ""), 200), "1");
}

#[test]
fn a_websocket_is_spoken_behind_tls() {
    let (ours, live) = (authority(), Upstream::start());
    let door = Door::before(&live, &usual(&ours), None);
    let port = door.port();
    let config = format!(
        "[upstream.live]\nside = \"rpc\"\nurl = \"wss://{NAME}:{port}/live\"\ntls.ca = \"ca.pem\"\n\
         headers = {{ authorization = {{ file = \"token\" }} }}\n"
    );
    let files = [
        ("ca.pem", ours.pem()),
        ("token", "Bearer hunter2\n".to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let proxy = Proxy::start_with(&config, &files);
    let (mut server, asked) = ends::accept_asked(&live);
    assert_eq!(asked.uri().path(), "/live");
    assert_eq!(asked.headers()["authorization"], "Bearer hunter2");
    assert_eq!(asked.headers()["host"], *format!("{NAME}:{port}"));
    let mut client = ends::connect(&proxy);
    client.say(call("echo", r#"{"a":1}"#));
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(client.hear()["result"]["got"]["a"], 1);
    assert!(!proxy.log().contains("hunter2"));
}

#[test]
fn a_websocket_before_a_stranger_is_none_and_the_log_says_why() {
    let (ours, live) = (authority(), Upstream::start());
    let door = Door::before(&live, &usual(&authority()), None);
    let config = format!(
        "[upstream.live]\nside = \"rpc\"\nurl = \"wss://{NAME}:{}/live\"\ntls.ca = \"ca.pem\"\n",
        door.port()
    );
    let proxy = Proxy::start_with(&config, &[("ca.pem", &ours.pem())]);
    let answer = proxy.rpc(call("echo", "{}")).json();
    assert_eq!(answer["error"]["data"]["reason"], "upstream_unreachable");
    proxy.log_line(&[
        "upstream=live",
        "the TLS handshake failed: ",
        "UnknownIssuer",
    ]);
}

#[test]
fn an_mcp_server_is_spoken_to_behind_tls_with_credentials() {
    let server = scripted::with_sessions(|_, called| scripted::result(called, called.params()));
    let ours = authority();
    let door = Door::before(&server, &usual(&ours), None);
    let config = format!(
        "[upstream.m]\nside = \"rpc\"\nurl = \"https://{NAME}:{}/mcp\"\nprotocol = \"mcp\"\n\
         headers = {{ Authorization = {{ file = \"token\" }}, x-tenant = \"a\" }}\n[upstream.m.tls]\nca = \"ca.pem\"\n",
        door.port()
    );
    let files = [
        ("ca.pem", ours.pem()),
        ("token", "Bearer hunter2\n".to_owned()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let proxy = Proxy::start_with(&config, &files);
    let answer = proxy.rpc(call("echo", r#"{"a":1}"#)).json();
    assert_eq!(answer["result"]["a"], 1);
    for method in ["initialize", "notifications/initialized", "echo"] {
        let head = scripted::last(&server, method).head;
        assert_eq!(
            head.one("authorization"),
            Some("Bearer hunter2"),
            "{method}"
        );
        assert_eq!(head.one("x-tenant"), Some("a"));
    }
    let stopped = proxy.stop();
    assert!(!stopped.log.contains("hunter2"), "{stopped:?}");
}

#[test]
fn an_mcp_server_that_is_a_stranger_gets_no_word() {
    let server = scripted::with_sessions(|_, called| scripted::result(called, called.params()));
    let door = Door::before(&server, &usual(&authority()), None);
    let config = format!(
        "[upstream.m]\nside = \"rpc\"\nurl = \"https://{NAME}:{}/mcp\"\nprotocol = \"mcp\"\n",
        door.port()
    );
    let proxy = Proxy::start(&config);
    let answer = proxy.rpc(call("echo", "{}")).json();
    assert_eq!(answer["error"]["data"]["reason"], "upstream_unreachable");
    proxy.log_line(&["upstream=m", "the TLS handshake failed: ", "UnknownIssuer"]);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn import_asks_a_server_behind_tls() {
    let document = |request: &Message| {
        let id = Called::of(request).id().to_owned();
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"openrpc":"1.3.2","methods":[{{"name":"pets.get","params":[]}}]}}}}"#
        ))
    };
    let (ours, rpc) = (authority(), Upstream::serving(document));
    let door = Door::before(&rpc, &usual(&ours), None);
    let url = format!("https://{NAME}:{}/rpc", door.port());
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, ours.pem()).unwrap();
    let drafted = run_to_end(program(&[
        "import",
        "--from",
        &url,
        "--ca",
        ca.to_str().unwrap(),
    ]));
    assert_eq!(drafted.code, Some(0), "{}", drafted.errors);
    assert!(drafted.output.contains("pets.get"), "{}", drafted.output);
    let stranger = run_to_end(program(&["import", "--from", &url]));
    assert_ne!(stranger.code, Some(0));
    assert!(
        stranger.errors.contains("UnknownIssuer"),
        "{}",
        stranger.errors
    );
}
