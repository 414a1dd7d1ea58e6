//! `dualgauge rest -- COMMAND` before a child, which is this very test program.

use std::io::{BufRead, Write, stdin, stdout};

use serde_json::{Value, json};

use super::{LOOPBACK, post, tool, tools};
use crate::support::{Proxy, program, run_to_end};

/// The variable that makes a child of the program, which inherits it. `lists nothing` is one without tools.
const CHILD: &str = "TOOLS_OF_THE_TEST_CHILD";

/// The child: an MCP server with a handshake.
#[test]
fn serves() {
    let Some(kind) = std::env::var_os(CHILD) else {
        return;
    };
    for line in stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "peer", "title": "The child", "version": "1" },
            }),
            "tools/list" if kind == "lists nothing" => json!({ "tools": [] }),
            "tools/list" => json!({ "tools": tools() }),
            "tools/call" => tool(params["name"].as_str().unwrap(), &params["arguments"]),
            _ => Value::Null,
        };
        let mut reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        if result.is_null() {
            reply["error"] = json!({ "code": -32601, "message": "Method not found" });
            reply.as_object_mut().unwrap().remove("result");
        }
        if !message["id"].is_null() {
            let mut out = stdout().lock();
            out.write_all(format!("{reply}\n").as_bytes()).unwrap();
            out.flush().unwrap();
        }
    }
}

fn command(kind: &str, more: &[&str]) -> std::process::Command {
    let child = std::env::current_exe().unwrap();
    command_of(child.to_str().unwrap(), kind, more)
}

fn command_of(child: &str, kind: &str, more: &[&str]) -> std::process::Command {
    // With one thread, the name of the test would stand before the first answer.
    let child = [
        child,
        "drafted::child::serves",
        "--exact",
        "--nocapture",
        "--test-threads=2",
    ];
    let mut command = program(&[&["rest"], more, &["--"], &child].concat());
    command.env(CHILD, kind);
    command
}

#[test]
fn a_program_is_a_rest_api() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command("lists tools", &LOOPBACK);
    command.env("TMPDIR", folder.path());
    let proxy = Proxy::launch(command, folder);
    let printed = proxy.printed("Stop with Ctrl-C.");
    assert!(printed.contains("POST /add "), "{printed}");
    assert!(printed.contains("GET  /add?a=&b="), "{printed}");
    let sum = post(&proxy, "/add", &json!({ "a": 1, "b": 2 }));
    assert_eq!((sum.status(), sum.json()), (200, json!({ "sum": 3 })));
    let failed = post(&proxy, "/fail", &json!({}));
    assert_eq!(
        (failed.status(), &failed.json()["detail"]),
        (422, &json!("it broke"))
    );
    let document = proxy.rest("GET", "/openapi.json", &[], "").json();
    assert_eq!(document["info"]["title"], "The child");
}

#[test]
fn a_program_in_the_current_folder_is_started_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let child = std::env::current_exe().unwrap();
    std::os::unix::fs::symlink(child, folder.path().join("server")).unwrap();
    for more in [&[][..], &["--save", "sv"]] {
        let mut command = command_of("./server", "lists tools", &[&LOOPBACK, more].concat());
        let temporary = tempfile::tempdir().unwrap();
        command.env("TMPDIR", temporary.path());
        command.current_dir(folder.path());
        let proxy = Proxy::launch(command, temporary);
        proxy.printed("Stop with Ctrl-C.");
        let sum = post(&proxy, "/add", &json!({ "a": 1, "b": 2 }));
        assert_eq!(sum.json(), json!({ "sum": 3 }), "{more:?}");
    }
}

#[test]
fn a_program_without_tools_is_reported() {
    let ended = run_to_end(command("lists nothing", &LOOPBACK));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let errors = &ended.errors;
    assert!(errors.contains("lists no tool that is served"), "{errors}");
    let ended = run_to_end(command("lists tools", &["--header", "a: b"]));
    let errors = &ended.errors;
    assert!(errors.contains("`--header` is for `--mcp URL`"), "{errors}");
}

#[test]
fn a_program_that_is_no_mcp_server_is_reported() {
    let ended = run_to_end(program(&[
        "rest",
        "--timeout",
        "2",
        "--",
        "/bin/sh",
        "-c",
        "exit 0",
    ]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let errors = &ended.errors;
    assert!(
        errors.contains("`/bin/sh -c exit 0` does not list its tools"),
        "{errors}"
    );
}

#[test]
fn a_child_that_answers_too_late_is_named_with_the_limit() {
    let command = ["rest", "--timeout", "1", "--listen", "127.0.0.1:0", "--"];
    let ended = run_to_end(program(&[&command[..], &["/bin/sleep", "100"]].concat()));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = "error: `/bin/sleep 100` did not list its tools within 1s; raise `--timeout`";
    assert_eq!(ended.errors, error);
}
