//! The tools that `dualgauge rest` and `dualgauge mcp` are compared with: the same input gives the same operations, tools
//! and results, with no more words to type.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::installed::own;
use crate::processes::{Process, installed, line_after, started};
use serde_json::{Value, json};

const SCRIPTS: &str = "tests/data/originals";
const DUALGAUGE: &str = env!("CARGO_BIN_EXE_dualgauge");

fn python(folder: &str) -> PathBuf {
    installed(&format!("{folder}/bin/python"))
}

/// Runs a script to its end; returns what it prints.
fn printed(folder: &str, script: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(python(folder));
    command.arg(own(SCRIPTS).join(script)).args(arguments);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{script} {arguments:?}: {errors}"))
}

/// Starts mcpo at a port that the system chooses, and returns its URL.
fn mcpo(arguments: &[&str]) -> (Process, String) {
    let mut command = Command::new(installed("peers-mcpo/bin/mcpo"));
    // By default, mcpo serves the whole network.
    command.args(["--host", "127.0.0.1", "--port", "0"]);
    command.args(arguments).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let errors = child.stderr.take().unwrap();
    let process = Process(child);
    let line = line_after(errors, "Uvicorn running on ").unwrap();
    (process, line.split(' ').next().unwrap().to_owned())
}

/// Starts `dualgauge rest` at a port that the system chooses, and returns its URL once the tools are served.
fn ours(arguments: [&[&str]; 2]) -> (Process, String) {
    let mut command = Command::new(DUALGAUGE);
    command.args(["rest", "--listen", "127.0.0.1:0"]);
    command.args(arguments.concat()).stdin(Stdio::null());
    let (process, page) = started(command.stderr(Stdio::null()), "documentation  ");
    (process, page.strip_suffix("/docs").unwrap().to_owned())
}

/// Returns the operations of a REST API and its answers to calls.
fn described(url: &str, key: &str, calls: &[&str]) -> Value {
    let arguments = [&[url, key], calls].concat();
    printed("peers", "calls_rest.py", &arguments)
}

/// Compares mcpo with `dualgauge rest`, whose arguments before those of the server and after them are given.
fn compare_rest(theirs: [&[&str]; 2], own: [&[&str]; 2], key: &str, calls: &[&str]) {
    let length = |command: [&[&str]; 2]| command.iter().map(|part| part.len()).sum::<usize>();
    assert!(length(own) <= length(theirs), "{own:?}");
    let mut wanted = {
        let (_mcpo, url) = mcpo(&theirs.concat());
        described(&url, key, calls)
    };
    let (_ours, url) = ours(own);
    let mut got = described(&url, key, calls);
    let answers = wanted[1].as_array_mut().unwrap();
    assert!(answers.iter().any(|answer| answer[1] == 200), "{answers:?}");
    // A failed tool is 422 with the server's words, not 500.
    for answer in answers.iter_mut().filter(|answer| answer[1] == 500) {
        answer[1] = json!(422);
    }
    // A path segment of other letters is spelled in ASCII.
    for operations in [&mut wanted[0], &mut got[0]] {
        let operations = operations.as_object_mut().unwrap();
        operations.retain(|path, _| path != "/größe" && path != "/gr-e");
        assert!(!operations.is_empty());
    }
    assert_eq!(got, wanted);
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_stdio_server_is_the_rest_api_that_mcpo_makes_of_it() {
    let server = installed("peers-mcpo/bin/mcp-server-time");
    let server = [
        "--",
        server.to_str().unwrap(),
        "--local-timezone=America/New_York",
    ];
    let zones = |source: &str| {
        let body =
            json!({ "source_timezone": source, "time": "12:30", "target_timezone": "Asia/Tokyo" });
        format!("/convert_time={body}")
    };
    let (good, bad) = (zones("Asia/Kolkata"), zones("Nowhere"));
    let calls = [&*good, &bad, "/convert_time={}", "/nosuch={}"];
    let key = ["--api-key", "top-secret"];
    compare_rest([&key, &server], [&key, &server], "top-secret", &calls);
    compare_rest([&[], &server], [&[], &server], "", &calls);
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_over_http_is_the_rest_api_that_mcpo_makes_of_it() {
    let mut server = Command::new(python("peers"));
    server
        .arg(own("tests/it/mcp/server.py"))
        .args(["stateful", "0"]);
    let (_server, port) = started(&mut server, "");
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());
    let calls = [
        r#"/add={"a":1,"b":2}"#,
        r#"/add={"a":1}"#,
        "/add={}",
        r#"/tell={"what":"it"}"#,
        r#"/fail={"why":"out of paper"}"#,
        "/nosuch={}",
    ];
    let key = ["--api-key", "KEY"];
    let theirs = ["--server-type", "streamable-http", "--", &url];
    compare_rest([&key, &theirs], [&key, &["--mcp", &url]], "KEY", &calls);
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn an_openapi_document_is_the_mcp_server_that_fastmcp_makes_of_it() {
    let mut shop = Command::new(python("peers-fastmcp"));
    shop.arg(own(SCRIPTS).join("shop.py"));
    let (_shop, port) = started(&mut shop, "");
    let url = format!("http://127.0.0.1:{}", port.trim());
    let document = format!("{url}/openapi.json");
    let calls = |command: &[&str]| printed("peers-fastmcp", "calls_tools.py", command);
    let fastmcp = python("peers-fastmcp");
    let script = own(SCRIPTS).join("from_openapi.py");
    let wanted = calls(&[fastmcp.to_str().unwrap(), script.to_str().unwrap(), &url]);
    assert!(!wanted[0].as_object().unwrap().is_empty());
    let got = calls(&[DUALGAUGE, "mcp", "--openapi", &document, "--stdio"]);
    assert_eq!(got, wanted);
}
