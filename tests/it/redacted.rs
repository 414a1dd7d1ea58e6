//! What is hidden by its name or its place, planted in calls of every kind, is in nothing that the program tells.

use crate::support::{Message, Proxy, Upstream, both, eventually, program, run_to_end};

/// Stands in every value that must not be seen.
const PLANTED: &str = "PLANTED";

const TABLES: &str = r#"
[log.redact]
headers = ["x-device"]
keys = ["card*"]
paths = ["/reset/*"]

[compare]
show = true
headers = ["x-device"]

[[client]]
name = "mover"
match = { header = { x-client = "mover" } }

[[client]]
name = "compared"
match = { header = { x-client = "compared" } }

[[route]]
name = "notes.get"
rest = "GET /notes/{card}?token={token?}&plain={plain?}"
rpc = "notes/get"

[[route]]
name = "notes.make"
rest = "POST /notes"
rpc = "notes/make"

[[route]]
name = "tools"
rest = "GET /tools/{password}"
rpc = "tools/{password}"
params = {}
"#;

const FLAGS: &str = r#"
[[flag]]
name = "moved"
client = "mover"
stage = "translate"

[[flag]]
name = "watched"
client = "compared"
stage = "shadow"
"#;

/// Both servers, a collector of traces, and the proxy before them.
struct Scene {
    proxy: Proxy,
    collector: Upstream,
    _servers: [Upstream; 2],
}

fn answer(body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Device: {PLANTED}-d{length}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Each server says something else, so that comparisons have something to tell.
fn rest(request: &Message) -> Vec<u8> {
    if request.head.start.contains("gone") {
        return b"HTTP/1.1 200 token=PLANTED\r\nContent-Length: PLANTED\r\n\r\n".to_vec();
    }
    answer(r#"{"cardNumber":"PLANTED-old","password":{"a":["PLANTED-old"]},"seen":"old"}"#)
}

fn rpc(request: &Message) -> Vec<u8> {
    let id = request.json()["id"].clone();
    answer(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"cardNumber":"PLANTED-new","password":{{"a":["PLANTED-new"]}},"seen":"new"}}}}"#
    ))
}

fn scene(more: &str) -> Scene {
    let servers = [Upstream::serving(rest), Upstream::serving(rpc)];
    let collector = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let trace = format!(
        "[trace]\nendpoint = \"http://{}/v1/traces\"\n",
        collector.address()
    );
    let config = format!("{}{trace}{TABLES}{more}", both(&servers[0], &servers[1]));
    Scene {
        proxy: Proxy::start_with_flags(&config, FLAGS),
        collector,
        _servers: servers,
    }
}

/// Calls of all quadrants, compared ones and bad ones; tells how many.
fn play(proxy: &Proxy) -> usize {
    let posts = [
        ("/notes", r#"{"card_no":"PLANTED-1","note":"a"}"#),
        ("/notes", r#"{"card_no":"PLANTED-1""#),
        (
            "/rpc",
            r#"{"jsonrpc":"2.0","id":1,"method":"notes/make","params":{"card_no":"PLANTED-2"}}"#,
        ),
        (
            "/rpc",
            r#"{"jsonrpc":"2.0","id":1,"method":"notes/get","params":{"card":"PLANTED-3","token":"PLANTED-4"}}"#,
        ),
        (
            "/rpc",
            r#"{"jsonrpc":"2.0","id":1,"method":"notes/get","params":{"card":["PLANTED-3"]}}"#,
        ),
        (
            "/rpc",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/PLANTED-5"}"#,
        ),
        ("/rpc", r#"{"password":"PLANTED-6"}"#),
    ];
    let gets = [
        "/notes/PLANTED-7?token=PLANTED-8&plain=b",
        "/notes/PLANTED-7?token=%zzPLANTED-8",
        "/Notes/./PLANTED-9",
        "/notes/gone-PLANTED",
        "/tools/PLANTED-10",
        "/reset/PLANTED-11?a=PLANTED",
        "//reset/x%2fPLANTED",
        "/x/../reset/PLANTED-12",
    ];
    for client in ["somebody", "mover", "compared"] {
        let headers = [
            ("x-client", client),
            ("x-device", "PLANTED-device"),
            ("x-api-key", "PLANTED-key"),
            ("authorization", "Bearer PLANTED-bearer"),
            ("cookie", "sid=PLANTED-cookie"),
            ("content-type", "application/json"),
        ];
        for target in gets {
            proxy.rest("GET", target, &headers, "");
        }
        for (target, body) in posts {
            proxy.rest("POST", target, &headers, body);
        }
    }
    3 * (gets.len() + posts.len())
}

/// Everything that the admin API tells of what was said.
fn told(proxy: &Proxy) -> String {
    let asked = [
        "flags",
        "history",
        "plan",
        "usage",
        "mismatches",
        "openapi.json",
        "openrpc.json",
        "explain?call=GET%20/notes/PLANTED-1?token=PLANTED-2&header=x-device:PLANTED-3",
    ];
    let mut told: String = asked
        .map(|path| {
            let answer = proxy.ask("GET", &format!("/api/v1/{path}"), "");
            assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
            answer.text().to_owned()
        })
        .concat();
    for client in ["somebody", "mover", "compared"] {
        let questions = [
            format!(
                r#"{{"target":"/notes/PLANTED-1?token=PLANTED-2&plain=b","headers":{{"x-client":"{client}","x-device":"PLANTED-3","cookie":"PLANTED-4"}}}}"#
            ),
            format!(
                r#"{{"target":"/notes","headers":{{"x-client":"{client}"}},"body":{{"card_no":"PLANTED-5","password":{{"a":["PLANTED-6",1234567]}},"n":1}}}}"#
            ),
            format!(
                r#"{{"headers":{{"x-client":"{client}"}},"body":{{"jsonrpc":"2.0","id":1,"method":"notes/get","params":{{"card":"PLANTED-7","token":"PLANTED-8"}}}}}}"#
            ),
            format!(r#"{{"target":"/reset/PLANTED-9","headers":{{"x-client":"{client}"}}}}"#),
        ];
        for question in questions {
            let answer = proxy.ask("POST", "/api/v1/explain", &question);
            assert_eq!(answer.status(), 200, "{question}: {}", answer.text());
            told.push_str(answer.text());
        }
    }
    told
}

fn leaks(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains(PLANTED)).collect()
}

#[test]
fn what_is_hidden_is_in_no_log_metric_span_mismatch_or_answer_of_the_api() {
    for log in [
        "[log]\nlevel = \"trace\"\n",
        "[log]\nlevel = \"trace\"\nformat = \"json\"\n",
    ] {
        let scene = scene(log);
        let calls = play(&scene.proxy);
        let fields = eventually("the mismatches", || {
            let told = scene.proxy.ask("GET", "/api/v1/mismatches", "").json();
            let routes = told["routes"].as_array().unwrap();
            (routes.len() >= 2).then(|| told.to_string())
        });
        // Values are shown where their names are not hidden.
        assert!(fields.contains(r#"\"old\""#), "{fields}");
        assert!(fields.contains("(hidden)"), "{fields}");
        let told = told(&scene.proxy);
        assert_eq!(leaks(&told), [""; 0]);
        assert!(!told.contains("1234567"), "{told}");
        assert_eq!(leaks(scene.proxy.metrics().text()), [""; 0]);
        let stopped = scene.proxy.stop();
        let lines = stopped
            .log
            .lines()
            .filter(|line| line.contains("dualgauge::call"));
        assert_eq!(lines.count(), calls, "{}", stopped.log);
        assert_eq!(leaks(&stopped.log), [""; 0]);
        for shown in ["/notes/***", "/reset/***", "/tools/***", "tools/{password}"] {
            assert!(stopped.log.contains(shown), "{shown}: {}", stopped.log);
        }
        let mut spans = Vec::new();
        for request in scene.collector.requests() {
            spans.extend_from_slice(&request.body);
        }
        let spans = String::from_utf8_lossy(&spans);
        assert!(spans.contains("/notes/***"), "{spans}");
        assert!(!spans.contains(PLANTED), "{spans}");
    }
}

#[test]
fn another_reload_hides_more() {
    let upstream = Upstream::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let main = crate::support::rest_only(&upstream);
    let proxy = Proxy::start(&main);
    proxy.rest("GET", "/reset/open", &[], "");
    proxy.log_line(&["path=/reset/open"]);
    let file = proxy.folder().join("dualgauge.toml");
    std::fs::write(
        file,
        format!("{main}[log]\nredact = {{ paths = [\"/reset/*\"] }}\n"),
    )
    .unwrap();
    assert_eq!(proxy.ask("POST", "/api/v1/reload", "{}").status(), 200);
    proxy.rest("GET", "/reset/closed", &[], "");
    proxy.log_line(&["path=/reset/***"]);
    assert!(!proxy.log().contains("closed"));
}

#[test]
fn what_would_hide_nothing_or_everything_is_a_problem_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let redact =
        "[log.redact]\nheaders = ['a b']\nkeys = ['*']\npaths = ['/a', 'reset/*']\nkey = 'x'\n";
    let main = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n";
    std::fs::write(&file, format!("{main}{redact}")).unwrap();
    let ended = run_to_end(program(&["check", "--config", file.to_str().unwrap()]));
    let said = ended.errors + &ended.output;
    assert_eq!(ended.code, Some(1), "{said}");
    for wanted in [
        "log.redact.headers[0]",
        "log.redact.keys[0]",
        "it would match every name",
        "log.redact.paths[0]",
        "it hides nothing",
        "log.redact.paths[1]",
        "a path begins with a slash",
        "log.redact.key",
        "did you mean `keys`?",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}

/// Values that people write by mistake where a hash, an address or a word belongs.
#[test]
fn what_is_wrong_with_a_secret_of_the_configuration_is_told_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let wrong = "[admin]\ntokens = { anna = 'PLANTED' }\n\
        [upstream.old]\nside = 'rest'\nurl = 'http://user:PLANTED@127.0.0.1:1'\n\
        [rollout.store]\nurl = 'redis://user:PLANTED@host:x/0'\n\
        [[client]]\nname = 'a'\nmatch = { api_key = 'PLANTED' }\n";
    std::fs::write(&file, wrong).unwrap();
    let ended = run_to_end(program(&["check", "--config", file.to_str().unwrap()]));
    let said = ended.errors + &ended.output;
    assert_eq!(ended.code, Some(1), "{said}");
    for key in [
        "admin.tokens",
        "upstream.old.url",
        "rollout.store.url",
        "client[0].match",
    ] {
        assert!(said.contains(key), "{key}: {said}");
    }
    assert_eq!(leaks(&said), [""; 0]);
}
