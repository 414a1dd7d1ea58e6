//! What `explain` says is what happens: the same refusals, and the same request to the upstream.

use std::process::Command;

use serde_json::Value;

use crate::support::{Message, Proxy, program, run_to_end};
use crate::two_servers::Servers;

const ROUTES: &str = r#"
[[route]]
name = "search"
rest = "GET /search?q={query}&limit={limit:integer=50}"
rpc  = "search"

[[route]]
name = "things.make"
rest = "POST /things/{id}"
rpc  = "things/make"

[[route]]
name = "gone"
rest = "GET /gone"
rpc  = "gone"
"#;

const FLAGS: &str = r#"
[[flag]]
name  = "retired"
route = "gone"
stage = "retired"

[[flag]]
name  = "all"
stage = "translate"
"#;

/// A request in the words of both: the real one, and the one that is explained.
struct Call {
    method: &'static str,
    target: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

fn call(method: &'static str, target: &'static str, body: &'static str) -> Call {
    Call {
        method,
        target,
        headers: &[("content-type", "application/json")],
        body,
    }
}

impl Call {
    fn made(&self, proxy: &Proxy) -> Message {
        proxy.rest(self.method, self.target, self.headers, self.body)
    }

    fn explained(&self, proxy: &Proxy) -> Value {
        let config = proxy.folder().join("dualgauge.toml");
        self.explained_by(["--config", config.to_str().unwrap()])
    }

    /// As the process itself tells it.
    fn explained_live(&self, proxy: &Proxy) -> Value {
        self.explained_by(["--admin", &format!("http://{}", proxy.admin())])
    }

    fn explained_by(&self, whom: [&str; 2]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dualgauge"));
        command.args(["explain", "--format", "json"]).args(whom);
        command.args(["-X", self.method]);
        for (name, value) in self.headers {
            command.args(["-H", &format!("{name}: {value}")]);
        }
        if !self.body.is_empty() {
            command.args(["-d", self.body]);
        }
        let output = command.arg(self.target).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all[0]["explanations"][0].take()
    }
}

fn proxy(servers: &Servers) -> Proxy {
    let config = format!("unrouted = \"reject\"\n{}{ROUTES}", servers.config());
    Proxy::start_with_flags(&config, FLAGS)
}

#[test]
fn a_call_is_refused_as_it_is_explained() {
    let servers = Servers::start();
    let proxy = proxy(&servers);
    let calls = [
        call("GET", "/nowhere", ""),
        call("PUT", "/things/7", ""),
        call("GET", "/search?q=a&limit=x", ""),
        call("GET", "/search", ""),
        call("GET", "/search?q=a", "{}"),
        call("GET", "/a/../search?q=a", ""),
        call("GET", "/things//7", ""),
        call("GET", "/gone", ""),
        call("POST", "/things/7", "{"),
        call("POST", "/things/7", r#"{"id":1}"#),
        call("POST", "/things/7", "[1]"),
        Call {
            headers: &[("content-type", "text/plain")],
            ..call("POST", "/things/7", "{}")
        },
        call("POST", "//rpc", "{}"),
        call("POST", "/rpc", "{"),
        call("POST", "/rpc", "[]"),
        call("POST", "/rpc", "{}"),
        call(
            "POST",
            "/rpc",
            r#"{"jsonrpc":"2.0","id":"a","method":"gone"}"#,
        ),
        call(
            "POST",
            "/rpc",
            r#"{"jsonrpc":"2.0","id":1,"method":"search"}"#,
        ),
        call(
            "POST",
            "/rpc",
            r#"{"jsonrpc":"2.0","id":1,"method":"things/read","params":{"id":"."}}"#,
        ),
    ];
    for call in calls {
        let shown = (call.method, call.target, call.body);
        let (made, explained) = (call.made(&proxy), call.explained(&proxy));
        let refused = &explained["refused"];
        assert_eq!(refused["status"], made.status(), "{shown:?}: {explained}");
        assert_eq!(refused["document"], made.json(), "{shown:?}");
    }
}

#[test]
fn a_call_is_sent_as_it_is_explained() {
    let servers = Servers::start();
    let proxy = proxy(&servers);
    let calls = [
        (call("GET", "/search?q=a%20b", ""), &servers.rpc),
        (call("POST", "/things/a%2Fb", r#"{"n":1.10}"#), &servers.rpc),
        (
            call(
                "POST",
                "/rpc",
                r#"{"jsonrpc":"2.0","id":1,"method":"things/make","params":{"id":"7","n":1.10}}"#,
            ),
            &servers.rest,
        ),
    ];
    for (call, upstream) in calls {
        let explained = call.explained(&proxy);
        call.made(&proxy);
        let sent = upstream.requests().pop().unwrap();
        let sends = &explained["sends"];
        let line = format!(
            "{} {} HTTP/1.1",
            sends["method"].as_str().unwrap(),
            sends["target"].as_str().unwrap()
        );
        assert_eq!(sent.head.start, line);
        let mut body = sent.json();
        if let Some(id) = body.get_mut("id").filter(|_| line.contains("/rpc")) {
            // Explained calls have the first id that there is.
            *id = 1.into();
        }
        assert_eq!(body, sends["body"], "{line}");
        for header in sends["headers"].as_array().unwrap() {
            let name = header["name"].as_str().unwrap();
            assert_eq!(sent.head.one(name), header["value"].as_str(), "{line}");
        }
    }
}

#[test]
fn a_running_process_explains_what_is_in_force() {
    let servers = Servers::start();
    let proxy = proxy(&servers);
    let secret = Call {
        headers: &[
            ("content-type", "application/json"),
            ("authorization", "Bearer opensesame"),
        ],
        ..call("POST", "/things/7", r#"{"a":1.10}"#)
    };
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"search","params":{"query":"a"}}"#;
    let calls = [
        secret,
        call("GET", "/search?q=a", ""),
        call("GET", "/nowhere", ""),
        call("POST", "/rpc", message),
    ];
    for call in &calls {
        let live = call.explained_live(&proxy);
        assert!(!live.to_string().contains("opensesame"), "{live}");
        assert_eq!(
            live,
            call.explained(&proxy),
            "{} {}",
            call.method,
            call.target
        );
    }
    let body = r#"{"who":"anna"}"#;
    assert_eq!(proxy.ask("PUT", "/api/v1/kill", body).status(), 200);
    let live = calls[0].explained_live(&proxy);
    assert_eq!(live["decision"]["why"], "kill switch");
    assert_eq!(live["decision"]["stage"], "passthrough");
    let changed = live["decision"]["changed"].as_str().unwrap();
    assert!(
        changed.starts_with("the kill switch was thrown by anna "),
        "{changed}"
    );
    let admin = format!("http://{}", proxy.admin());
    let words = run_to_end(program(&["explain", "--admin", &admin, "/search?q=a"]));
    assert_eq!(words.code, Some(0), "{words:?}");
    let lines: Vec<&str> = words.output.lines().collect();
    assert_eq!(lines[0], "GET /search?q=a");
    assert!(
        words
            .output
            .contains("\n  decision   passthrough, kill switch\n"),
        "{words:?}"
    );
    assert!(
        words
            .output
            .contains("             the kill switch was thrown by anna "),
        "{words:?}"
    );
    // The files say nothing of it.
    let by_files = calls[0].explained(&proxy);
    assert_eq!(by_files["decision"]["stage"], "translate");
}
