//! Starts of `dualgauge rest` and `dualgauge mcp` that fail at once, and secrets that no file contains.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use super::{JSON, LOOPBACK, call, launched, mcp, mcp_server, post};
use crate::scene::{answer, json as json_answer};
use crate::support::{Proxy, Upstream, program, run_to_end};
use serde_json::json;

#[test]
fn a_program_that_ends_is_reported_with_its_standard_error() {
    let script = "echo no module named server >&2; exit 3";
    let child = ["--", "/bin/sh", "-c", script];
    let arguments = [&["rest"], &LOOPBACK[..], &child].concat();
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let errors = &ended.errors;
    assert!(errors.contains("exit status: 3"), "{errors}");
    assert!(errors.contains("\n  no module named server"), "{errors}");
    assert!(!errors.contains("--timeout"), "{errors}");
}

#[test]
fn a_program_that_ends_is_reported_by_the_error_alone() {
    let script = "read line; echo 'Traceback:' >&2; echo '    raise Fault' >&2; exit 3";
    let child = ["--", "/bin/sh", "-c", script];
    let arguments = [&["rest"], &LOOPBACK[..], &child].concat();
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let errors = &ended.errors;
    assert!(errors.starts_with("error: "), "{errors}");
    assert!(
        errors.ends_with("\n  Traceback:\n      raise Fault"),
        "{errors}"
    );
    // A level that is asked for shows what has happened.
    let mut command = program(&arguments);
    command.env("DUALGAUGE_LOG__LEVEL", "info");
    let errors = run_to_end(command).errors;
    assert!(errors.contains("the link is lost"), "{errors}");
}

#[test]
fn a_url_that_is_no_mcp_server_is_reported_with_its_status() {
    let server = Upstream::answering(answer("404 Not Found", &[], ""));
    let url = format!("http://{}/wrong", server.address());
    let arguments = [&["rest", "--mcp", &url], &LOOPBACK[..]].concat();
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let errors = &ended.errors;
    assert!(
        errors.contains("it answered `initialize` with the status 404"),
        "{errors}"
    );
}

#[test]
fn a_start_that_fails_removes_only_the_schemas_that_it_wrote() {
    let server = Upstream::answering(answer("404 Not Found", &[], ""));
    let url = format!("http://{}/wrong", server.address());
    let folder = tempfile::tempdir().unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schema");
    // The user has these two.
    for name in ["flags.schema.json", "routes.schema.json"] {
        fs::copy(shipped.join(name), folder.path().join(name)).unwrap();
    }
    let place = folder.path().to_str().unwrap();
    let arguments = [&["rest", "--mcp", &url, "--save", place], &LOOPBACK[..]].concat();
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    // The start leaves the folder of its state.
    let entries = fs::read_dir(folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = names.filter(|name| name != "state").collect();
    left.sort_unstable();
    assert_eq!(left, ["flags.schema.json", "routes.schema.json"]);
}

#[test]
fn a_command_without_a_server_names_both_ways() {
    let ended = run_to_end(program(&["rest"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let errors = &ended.errors;
    assert!(errors.contains("--mcp URL"), "{errors}");
    assert!(errors.contains("dualgauge rest -- COMMAND"), "{errors}");
}

/// Asserts that no file below a folder contains a text.
fn assert_absent(folder: &Path, text: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_absent(&path, text);
            continue;
        }
        let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!content.contains(text), "{}: {content}", path.display());
    }
}

#[test]
fn header_values_of_a_temporary_configuration_stay_in_memory() {
    let server = mcp_server();
    let url = format!("http://{}/mcp", server.address());
    let header = ["--header", "x-token: s3cr3t"];
    let proxy = launched(&[&["rest", "--mcp", &url], &LOOPBACK[..], &header].concat());
    proxy.printed("Stop with Ctrl-C.");
    let sum = post(&proxy, "/add", &json!({ "a": 1, "b": 2 }));
    assert_eq!(sum.status(), 200);
    assert_absent(proxy.folder(), "s3cr");
    for request in server.requests() {
        assert_eq!(request.head.one("x-token"), Some("s3cr3t"));
    }

    let server = Upstream::answering(json_answer(r#"{"id":7}"#));
    let folder = tempfile::tempdir().unwrap();
    let arguments = mcp(folder.path(), &server, &[&LOOPBACK[..], &header].concat());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = launched(&arguments);
    proxy.printed("Stop with Ctrl-C.");
    let reply = proxy.rest("POST", "/mcp", &[JSON], call().to_string());
    assert_eq!(reply.status(), 200);
    assert_absent(proxy.folder(), "s3cr");
    assert_eq!(server.request().head.one("x-token"), Some("s3cr3t"));
}

#[test]
fn the_check_of_a_saved_configuration_has_one_upgrade_note() {
    let server = mcp_server();
    let url = format!("http://{}/mcp", server.address());
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("api");
    let place = place.to_str().unwrap();
    let proxy = launched(&[&["rest", "--mcp", &url, "--save", place], &LOOPBACK[..]].concat());
    proxy.printed("Stop with Ctrl-C.");
    drop(proxy);
    let main = format!("{place}/dualgauge.toml");
    let ended = run_to_end(program(&["check", "--config", &main]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let notes = ended
        .output
        .lines()
        .filter(|line| line.starts_with("note: "));
    let upgrades: Vec<&str> = notes
        .filter(|line| line.contains("changed defaults"))
        .collect();
    assert_eq!(upgrades.len(), 1, "{}", ended.output);
}

#[test]
fn the_environment_does_not_switch_off_the_key_of_the_option() {
    let server = mcp_server();
    let url = format!("http://{}/mcp", server.address());
    for (name, value) in [
        ("DUALGAUGE_LISTEN__AUTHENTICATION", "off"),
        ("DUALGAUGE_listen__authentication", "off"),
        ("DUALGAUGE_LISTEN", "{ authentication = \"off\" }"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let listen = ["--listen", "127.0.0.1:0", "--api-key", "top-secret"];
        let mut command = program(&[&["rest", "--mcp", &url], &listen[..]].concat());
        command.env("TMPDIR", folder.path()).env(name, value);
        let proxy = Proxy::launch(command, folder);
        proxy.printed("Stop with Ctrl-C.");
        let refused = proxy.rest("GET", "/openapi.json", &[], "");
        assert_eq!(refused.status(), 401, "{name}: {refused:?}");
    }
}

#[test]
fn the_address_of_the_option_overrides_that_of_the_environment() {
    let elsewhere = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = program(arguments);
        command.env("TMPDIR", folder.path());
        // Another address may need a key, which is checked for that of the option.
        command.env("DUALGAUGE_LISTEN__ADDRESS", "127.0.0.2:0");
        let proxy = Proxy::launch(command, folder);
        proxy.printed("Stop with Ctrl-C.");
        proxy
    };
    let server = mcp_server();
    let url = format!("http://{}/mcp", server.address());
    let proxy = elsewhere(&[&["rest", "--mcp", &url], &LOOPBACK[..]].concat());
    assert_eq!(proxy.address().ip(), Ipv4Addr::LOCALHOST);

    let folder = tempfile::tempdir().unwrap();
    let arguments = mcp(folder.path(), &server, &LOOPBACK);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = elsewhere(&arguments);
    assert_eq!(proxy.address().ip(), Ipv4Addr::LOCALHOST);
}
