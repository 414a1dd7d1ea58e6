//! Recordings of calls: who is in them, which secrets are not, and when they end.

mod hot_restart;
mod moved;
mod secrets;
mod sockets;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dualgauge_recording::recording::{Reader, RecordedBody, RecordedCall, Responder};
use serde_json::json;

use crate::support::{Ended, Message, Proxy, Upstream, both, eventually, program, run_to_end};

/// Stands in every value that must not be recorded.
const PLANTED: &str = "PLANTED";

const TABLES: &str = r#"
[log.redact]
paths = ["/reset/*"]

[[client]]
name = "mover"
match = { header = { x-client = "mover" } }

[[route]]
name = "notes.make"
rest = "POST /notes"
rpc = "notes/make"

[[route]]
name = "notes.list"
rest = "GET /notes?q={q?}"
rpc = "notes/list"

[[route]]
name = "tools"
rest = "GET /tools/{password}"
rpc = "tools/{password}"
params = {}
"#;

const RECORD: &str = r#"
[record]
directory = "recordings"
headers = ["content-type", "x-note"]
redact = ["card*"]
"#;

const FLAGS: &str = r#"
[[flag]]
name = "moved"
client = "mover"
stage = "translate"
"#;

/// Replays a file with the configuration of a proxy.
fn replay(proxy: &Proxy, file: &Path, more: &[&str]) -> Ended {
    let mut command = program(&["replay"]);
    command.arg(file).arg("--config");
    command
        .arg(proxy.folder().join("dualgauge.toml"))
        .args(more);
    run_to_end(command)
}

struct Scene {
    proxy: Proxy,
    _servers: [Upstream; 2],
}

fn answer(body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: sid={PLANTED}\r\nX-Secret: {PLANTED}\r\n\
         X-Note: token={PLANTED}; kept\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn rest(_: &Message) -> Vec<u8> {
    answer(
        r#"{"seen":"old","card_no":"PLANTED","inside":"{\"password\":\"PLANTED\"}","list":[{"name":"token","value":"PLANTED"}]}"#,
    )
}

fn rpc(request: &Message) -> Vec<u8> {
    let id = request.json()["id"].clone();
    answer(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"seen":"new","accessToken":"PLANTED","card":1234567}}}}"#
    ))
}

fn scene(record: &str) -> Scene {
    let servers = [Upstream::serving(rest), Upstream::serving(rpc)];
    let config = format!("{}{TABLES}{record}", both(&servers[0], &servers[1]));
    Scene {
        proxy: Proxy::start_with_flags(&config, FLAGS),
        _servers: servers,
    }
}

/// Calls of both sides with secrets in every place; returns their number.
fn play(proxy: &Proxy) -> usize {
    let secrets = [
        ("Authorization", "Bearer PLANTED"),
        ("Cookie", "sid=PLANTED"),
        ("X-Api-Key", "PLANTED"),
        ("Proxy-Authorization", "Basic PLANTED"),
        ("X-Note", "see secret=PLANTED"),
        ("Content-Type", "application/json"),
    ];
    let note = r#"{"text":"kept","password":"PLANTED","deep":[{"Api-Key":"PLANTED","n":1.50}],"inside":"{\"token\":\"PLANTED\"}"}"#;
    let rpc = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"notes/make","params":{note}}}"#);
    let tool = r#"{"jsonrpc":"2.0","id":1,"method":"tools/PLANTED"}"#;
    let positional =
        r#"{"jsonrpc":"2.0","id":1,"method":"walletpassphrase","params":["PLANTED",60]}"#;
    let batch = format!("[{rpc},{tool}]");
    let mover = [&secrets[..], &[("X-Client", "mover")]].concat();
    let mut calls = 0;
    for headers in [&secrets[..], &mover] {
        proxy.rest("POST", "/notes", headers, note);
        for target in [
            "/notes?q=kept&access_token=PLANTED&filter=%7B%22pin%22%3A%22PLANTED%22%7D",
            "/tools/PLANTED",
            "/reset/PLANTED?x=1",
        ] {
            proxy.rest("GET", target, &headers[..5], "");
        }
        for body in [rpc.as_str(), tool, positional] {
            proxy.rest("POST", "/rpc", headers, body);
        }
        calls += 7;
        proxy.rest("POST", "/rpc", headers, &batch);
    }
    // One message for the client that passes, and two for the one that is translated.
    calls + 3
}

fn state(proxy: &Proxy, method: &str, body: &str) -> serde_json::Value {
    let answer = proxy.ask(method, "/api/v1/recording", body);
    assert_eq!(answer.status(), 200, "{answer:?}");
    answer.json()
}

/// The recordings of a proxy, in order.
fn files(proxy: &Proxy) -> Vec<PathBuf> {
    let folder = fs::read_dir(proxy.folder().join("recordings")).unwrap();
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn calls(file: &Path) -> Vec<RecordedCall> {
    let mut reader = Reader::new();
    reader.push(&fs::read(file).unwrap());
    let mut calls = Vec::new();
    while let Some(call) = reader.next_call().unwrap() {
        calls.push(call);
    }
    reader.finish().unwrap();
    calls
}

fn is_omitted(body: &RecordedBody) -> bool {
    matches!(body, RecordedBody::Empty | RecordedBody::Omitted(_))
}

#[test]
fn no_secret_and_by_default_no_body_is_recorded() {
    let scene = scene(RECORD);
    let proxy = &scene.proxy;
    assert_eq!(
        state(proxy, "GET", ""),
        json!({ "running": false, "stopping": false, "recording": null })
    );
    let started = state(proxy, "PUT", r#"{"seconds":600,"who":"anna"}"#);
    assert_eq!(started["running"], true);
    let played = play(proxy);
    let stopped = state(proxy, "DELETE", "{}");
    assert_eq!(stopped["recording"]["calls"], played);
    assert_eq!(stopped["recording"]["stopped"]["reason"], "command");
    let files = files(proxy);
    let mode = fs::metadata(&files[0]).unwrap().permissions().mode();
    assert_eq!((files.len(), mode & 0o777), (1, 0o600));
    let text = fs::read_to_string(&files[0]).unwrap();
    assert!(!text.contains(PLANTED), "{text}");
    assert!(!text.contains("seen"), "{text}");
    let calls = calls(&files[0]);
    assert_eq!(calls.len(), played);
    for call in &calls {
        let response = call.response.as_ref().unwrap();
        assert!(is_omitted(&response.body), "{call:?}");
        assert!(call.complete, "{call:?}");
    }
    let moved = calls
        .iter()
        .filter(|call| call.stage.as_deref() == Some("translate"));
    let moved: Vec<_> = moved.collect();
    assert!(
        moved
            .iter()
            .all(|call| call.client.as_deref() == Some("mover"))
    );
    let first = moved[0].response.as_ref().unwrap();
    assert_eq!((first.from, first.status), (Responder::New, 200));
    let methods = text.matches(r#""method":"notes/make","params":{}"#).count();
    // Not that of the batch that passes as one message: another of its calls has a secret in its method.
    assert_eq!(methods, 3, "{text}");
    let metrics = proxy.metrics();
    let recorded = metrics.value(r#"dualgauge_recorded_calls_total{result="recorded"}"#);
    assert_eq!(recorded as usize, played);
    assert_eq!(
        metrics.value(r#"dualgauge_recordings_stopped_total{reason="command"}"#),
        1.0
    );
}

#[test]
fn bodies_are_recorded_without_their_secrets() {
    let scene = scene(RECORD);
    let proxy = &scene.proxy;
    state(proxy, "PUT", r#"{"seconds":600,"bodies":true}"#);
    let played = play(proxy);
    state(proxy, "DELETE", "{}");
    let file = files(proxy).remove(0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(PLANTED), "{text}");
    let calls = calls(&file);
    assert_eq!(calls.len(), played);
    let first = &calls[0];
    assert_eq!(
        first.request.body,
        RecordedBody::new(&r#"{"text":"kept","password":"***","deep":[{"Api-Key":"***","n":1.50}],"inside":"{\"token\":\"***\"}"}"#.into())
    );
    let response = first.response.as_ref().unwrap();
    assert_eq!(
        response.body,
        RecordedBody::new(&r#"{"seen":"old","card_no":"***","inside":"{\"password\":\"***\"}","list":[{"name":"token","value":"***"}]}"#.into())
    );
    assert_eq!(response.from, Responder::Old);
    let names: Vec<_> = response
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["content-type", "x-note"]);
    assert_eq!(
        first.redacted,
        [
            "request.body/password",
            "request.body/deep/0/Api-Key",
            "request.body/inside",
            "request.headers.x-note",
            "response.headers.x-note",
            "response.body/card_no",
            "response.body/inside",
            "response.body/list/0/value",
        ]
    );
    assert!(
        text.contains(r#"/notes?q=kept&access_token=***&filter=%7B%22pin%22%3A%22%2A%2A%2A%22%7D"#),
        "{text}"
    );
    assert!(text.contains(r#""accessToken":"***","card":0"#), "{text}");
    assert!(text.contains(r#""params":["***",0]"#), "{text}");
}

#[test]
fn files_are_rotated_and_a_reload_ends_the_recording() {
    let more = "sample = 100\nfile_size = \"64KiB\"\nfiles = 2\n";
    let scene = scene(&format!("{RECORD}{more}"));
    let proxy = &scene.proxy;
    let running = state(proxy, "GET", "");
    assert_eq!(running["recording"]["source"], "configuration");
    let refused = proxy.ask("PUT", "/api/v1/recording", r#"{"seconds":1}"#);
    assert_eq!(refused.status(), 409);
    let long = "x".repeat(6_000);
    for _ in 0..40 {
        proxy.rest("GET", &format!("/notes?q={long}"), &[], "");
    }
    eventually("all calls are written", || {
        (state(proxy, "GET", "")["recording"]["calls"] == 40).then_some(())
    });
    let two = files(proxy);
    assert_eq!(two.len(), 2);
    for file in &two {
        assert!(fs::metadata(file).unwrap().len() <= 64 * 1024);
    }
    let path = proxy.folder().join("dualgauge.toml");
    let config = fs::read_to_string(&path).unwrap();
    fs::write(&path, config.replace("sample = 100\n", "sample = 0\n")).unwrap();
    assert_eq!(proxy.ask("POST", "/api/v1/reload", "").status(), 200);
    let ended = state(proxy, "GET", "");
    assert_eq!(ended["recording"]["stopped"]["reason"], "reload");
    assert_eq!(proxy.rest("GET", "/notes", &[], "").status(), 200);
}

/// The size of files is limited for the process, so the system refuses further bytes as it does on a full disk.
#[test]
fn a_full_disk_stops_the_recording_and_no_call() {
    let servers = [Upstream::serving(rest), Upstream::serving(rpc)];
    let config = format!(
        "{}{TABLES}{RECORD}sample = 100\n",
        both(&servers[0], &servers[1])
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    fs::write(&file, config).unwrap();
    let mut command = program(&[]);
    let of = command.get_program().to_owned();
    command = std::process::Command::new("/bin/sh");
    command
        .env_clear()
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"])
        .arg(of)
        .args([
            "run",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--config",
        ])
        .arg(file)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let proxy = Proxy::launch(command, folder);
    let long = "x".repeat(6_000);
    for _ in 0..40 {
        let answer = proxy.rest("GET", &format!("/notes?q={long}"), &[], "");
        assert_eq!(answer.status(), 200);
    }
    let line = proxy.log_line(&["the recording stopped: the disk is full"]);
    assert!(line.contains("Free space"), "{line}");
    let ended = state(&proxy, "GET", "");
    assert_eq!(ended["recording"]["stopped"]["reason"], "disk_full");
    assert_eq!(
        proxy
            .metrics()
            .value(r#"dualgauge_recordings_stopped_total{reason="disk_full"}"#),
        1.0
    );
    let whole = calls(&files(&proxy)[0]);
    assert!((1..40).contains(&whole.len()), "{}", whole.len());
    assert_eq!(ended["recording"]["calls"], whole.len());
}

#[test]
fn the_command_records_for_a_time_and_sums_up() {
    let scene = scene(RECORD);
    let proxy = &scene.proxy;
    let admin = format!("http://{}", proxy.admin());
    let ended = run_to_end(program(&["record", "--for", "1s", "--admin", &admin]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.output.contains("stopped: its time is over"),
        "{ended:?}"
    );
    assert!(ended.errors.contains("Ctrl-C stops it"), "{ended:?}");
    let shown = run_to_end(program(&["record", "--status", "--admin", &admin]));
    assert_eq!(shown.output, ended.output);
    let wrong = run_to_end(program(&["record", "--admin", &admin]));
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn without_a_folder_a_recording_is_refused() {
    let scene = scene("");
    let admin = format!("http://{}", scene.proxy.admin());
    let refused = run_to_end(program(&["record", "--for", "1s", "--admin", &admin]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.errors.contains("set `record.directory`"),
        "{refused:?}"
    );
}
