//! Flags from another server: a second dualgauge as it is, and a stub written from the OpenAPI document of OFREP.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::scene::{json, saying};
use crate::stages::{CLIENTS, flag};
use crate::support::certificates::{Door, authority, certified};
use crate::support::{Message, Proxy, Upstream, becomes, both, eventually, sha256};

const ROUTE: &str =
    "[[route]]\nname = \"agent.get\"\nrest = \"GET /agents/{id}\"\nrpc = \"agents/get\"\n";
const FLIP: &str = r#"{"stage":"translate","percent":100}"#;
const AGE: &str = "dualgauge_flag_source_age_seconds";

/// Both servers of the calls.
struct Servers(Upstream, Upstream);

impl Servers {
    fn start() -> Servers {
        Servers(
            Upstream::answering(json(r#""rest""#)),
            saying(r#""result":"rpc""#),
        )
    }

    /// A proxy before them with the flag `half`, which is off, and further tables.
    fn proxy(&self, tables: &str, files: &[(&str, &str)]) -> Proxy {
        let config = both(&self.0, &self.1);
        let config = format!("{config}{ROUTE}{CLIENTS}[rollout]\nflags = \"flags.toml\"\n{tables}");
        let flags = flag(
            "half",
            "client = \"ios-app\"\nstage = \"translate\"\npercent = 0",
        );
        let files: Vec<_> = [("flags.toml", &*flags)]
            .into_iter()
            .chain(files.iter().copied())
            .collect();
        Proxy::start_with(&config, &files)
    }
}

/// The server that answers a call of the client.
fn served(proxy: &Proxy) -> String {
    let headers = [("X-Client-Id", "ios-1"), ("X-Device-Id", "d")];
    let answer = proxy.rest("GET", "/agents/7", &headers, "");
    assert_eq!(answer.status(), 200);
    answer.text().trim_matches('"').to_owned()
}

fn polls(proxy: &Proxy, result: &str) -> f64 {
    let series = format!("dualgauge_flag_source_polls_total{{result=\"{result}\"}}");
    proxy.metrics().value(&series)
}

fn ready(proxy: &Proxy) -> (u16, String) {
    let answer = proxy.ask("GET", "/readyz", "");
    (answer.status(), answer.text().to_owned())
}

#[test]
fn a_second_dualgauge_is_a_source_as_it_is() {
    let servers = Servers::start();
    let digest = sha256("opensesame");
    let source = servers.proxy(
        &format!("[admin.tokens]\nedge = \"sha256:{digest}\"\n"),
        &[],
    );
    let admin = source.admin();
    let follow = format!(
        "[rollout.source]\nurl = \"http://{admin}\"\ntoken_file = \"token\"\ninterval = \"1s\"\n"
    );
    let proxy = servers.proxy(&follow, &[("token", "opensesame\n")]);
    let flip = |body: &str| {
        let length = body.len();
        let head = format!("PUT /api/v1/flags/half HTTP/1.1\r\nHost: {admin}\r\n");
        let head =
            format!("{head}Authorization: Bearer opensesame\r\nContent-Type: application/json\r\n");
        let answer = source.ask_raw(&format!("{head}Content-Length: {length}\r\n\r\n{body}"));
        assert_eq!(answer.status(), 200, "{}", answer.text());
    };
    becomes(|| ready(&proxy), &(200, "ready\n".to_owned()));
    assert_eq!(served(&proxy), "rest");
    flip(FLIP);
    becomes(|| served(&proxy), &"rpc".to_owned());
    let line = proxy.log_line(&["the source has changed a flag", "flag=half", "100 %"]);
    assert!(!proxy.log().contains("opensesame"), "{line}");

    // A person changes the flag at the source, and stops it here.
    let refused = proxy.ask("PUT", "/api/v1/flags/half", FLIP);
    assert_eq!(refused.status(), 409);
    let text = format!("the flag `half` follows the source http://{admin}/; change it there");
    assert_eq!(refused.json()["detail"], text);
    assert_eq!(proxy.ask("PUT", "/api/v1/kill", "").status(), 200);
    assert_eq!(served(&proxy), "rest");
    assert_eq!(proxy.ask("DELETE", "/api/v1/kill", "").status(), 200);
    assert_eq!(served(&proxy), "rpc");

    // The last good state stays without the source, also over restarts of both kinds.
    source.stop();
    eventually("a failed poll", || {
        (polls(&proxy, "unreachable") > 0.0).then_some(())
    });
    let (status, notes) = ready(&proxy);
    assert!(
        status == 200 && notes.contains("the source of flags is unavailable"),
        "{notes}"
    );
    assert_eq!(served(&proxy), "rpc");
    let mut proxy = proxy.restart();
    assert_eq!(served(&proxy), "rpc");
    assert!(ready(&proxy).0 == 200, "{:?}", ready(&proxy));
    proxy.replace();
    assert_eq!(served(&proxy), "rpc");
    assert!(proxy.metrics().value(AGE) > 0.0);
}

/// The responses of a stub, from the OpenAPI document.
fn evaluations(tag: &str, percent: u32) -> Vec<u8> {
    let body = format!(
        r#"{{"flags":[{{"key":"flag:half","reason":"STATIC","variant":"on","value":{{"stage":"translate","percent":{percent}}},"metadata":{{"owner":"team"}}}},{{"key":"other","errorCode":"GENERAL","errorDetails":"broken"}}]}}"#
    );
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"{tag}\"\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn status(line: &str) -> Vec<u8> {
    format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

#[test]
fn a_source_is_polled_with_the_tag_and_its_limits_are_respected() {
    let state = Arc::new(Mutex::new(("1", 100)));
    let polled = Arc::new(AtomicUsize::new(0));
    let (now, count) = (state.clone(), polled.clone());
    let source = Upstream::serving(move |request: &Message| {
        assert_eq!(request.head.start, "POST /ofrep/v1/evaluate/flags HTTP/1.1");
        let (tag, percent) = *now.lock().unwrap();
        let number = count.fetch_add(1, Ordering::SeqCst);
        let known = request.head.one("if-none-match") == Some(&format!("\"{tag}\""));
        match (number, known) {
            (2, _) => status("429 Too Many Requests\r\nRetry-After: 3"),
            (_, true) => status("304 Not Modified"),
            (_, false) => evaluations(tag, percent),
        }
    });
    let servers = Servers::start();
    let address = source.address();
    let follow = format!("[rollout.source]\nurl = \"http://{address}/\"\ninterval = \"1s\"\n");
    let proxy = servers.proxy(&follow, &[]);
    becomes(|| served(&proxy), &"rpc".to_owned());
    eventually("a limited poll", || {
        (polls(&proxy, "busy") > 0.0).then_some(())
    });
    // Nothing is sent until the time that the source has named, so this is after it.
    eventually("polls after it", || {
        (polls(&proxy, "unchanged") >= 2.0).then_some(())
    });
    assert_eq!(served(&proxy), "rpc");
    *state.lock().unwrap() = ("2", 0);
    becomes(|| served(&proxy), &"rest".to_owned());
    assert_eq!(polls(&proxy, "changed"), 2.0);
    let log = proxy.stop().log;
    let limited = "the source accepts no request now: status 429 Too Many Requests";
    assert_eq!(log.matches(limited).count(), 1, "{log}");
    assert!(log.contains("the source of flags answers again"), "{log}");
}

#[test]
fn one_task_polls_however_many_workers_there_are() {
    let source = Upstream::start();
    let servers = Servers::start();
    let config = format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\n[listen]\nworkers = 3\n[rollout.source]\nurl = \"http://{}\"\ninterval = \"1h\"\ntimeout = \"30s\"\n",
        servers.0.address(),
        source.address()
    );
    let proxy = Proxy::start(&config);
    let mut poll = source.accept();
    let request = poll.read_request();
    assert_eq!(request.head.one("content-type"), Some("application/json"));
    let (status, notes) = ready(&proxy);
    assert!(
        status == 503 && notes.contains("the source of flags has not answered yet"),
        "{notes}"
    );
    // The proxy serves and answers commands while the poll waits.
    assert_eq!(proxy.rest("GET", "/agents/7", &[], "").status(), 200);
    poll.send(evaluations("1", 5));
    becomes(|| ready(&proxy), &(200, "ready\n".to_owned()));
    source.expect_no_connection();
    assert_eq!(polls(&proxy, "unchanged"), 1.0);
}

#[test]
fn a_source_behind_tls_is_polled_while_its_authority_is_trusted() {
    let percent = Arc::new(Mutex::new(100));
    let now = percent.clone();
    let source = Upstream::serving(move |_: &Message| evaluations("1", *now.lock().unwrap()));
    let (trusted, other) = (authority(), authority());
    let door = Door::before(&source, &certified(&trusted, "flags", "localhost"), None);
    let servers = Servers::start();
    let follow = format!(
        "[rollout.source]\nurl = \"https://localhost:{}/\"\ninterval = \"1s\"\ntimeout = \"30s\"\ntls.ca = \"ca.pem\"\n",
        door.port()
    );
    let proxy = servers.proxy(&follow, &[("ca.pem", &trusted.pem())]);
    becomes(|| served(&proxy), &"rpc".to_owned());
    assert_eq!(door.names()[0], "localhost");

    // The values stay while the certificate of the source is not trusted.
    fs::write(proxy.folder().join("ca.pem"), other.pem()).unwrap();
    eventually("a refused certificate", || {
        (polls(&proxy, "unreachable") > 0.0).then_some(())
    });
    let requests = source.requests().len();
    *percent.lock().unwrap() = 0;
    let untrusted = "cannot connect to the source: the TLS handshake failed: invalid peer certificate: UnknownIssuer";
    let line = proxy.log_line(&["the source of flags is unavailable", "reason=unreachable"]);
    assert!(line.contains(untrusted), "{line}");
    let failed = polls(&proxy, "unreachable");
    eventually("another refused certificate", || {
        (polls(&proxy, "unreachable") > failed).then_some(())
    });
    assert_eq!(served(&proxy), "rpc");
    let (status, notes) = ready(&proxy);
    assert!(status == 200 && notes.contains(untrusted), "{notes}");
    // No request, and so no token, reached the server.
    assert_eq!(source.requests().len(), requests);

    fs::write(proxy.folder().join("ca.pem"), trusted.pem()).unwrap();
    becomes(|| served(&proxy), &"rest".to_owned());
    let log = proxy.stop().log;
    assert_eq!(
        log.matches("the source of flags is unavailable").count(),
        1,
        "{log}"
    );
    assert!(log.contains("the source of flags answers again"), "{log}");
}
