//! Configurations and a state folder that an earlier version of the program wrote, read by this one.
//!
//! `tests/data/upgrade` holds them as they were before the defaults that CHANGELOG.md lists changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::certificates::{authority, certified};
use crate::support::{Proxy, eventually, program, run_to_end};
use crate::two_servers::{Servers, answers};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/upgrade")
}

fn read(name: &str) -> String {
    fs::read_to_string(fixture().join(name)).unwrap()
}

/// A proxy with the earlier configuration, flags and state, in front of these servers.
fn upgraded(servers: &Servers) -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    let config = read("dualgauge.toml")
        .replace("127.0.0.1:18082", &servers.rest.address().to_string())
        .replace("127.0.0.1:18083", &servers.rpc.address().to_string());
    fs::create_dir(folder.path().join("state")).unwrap();
    fs::write(folder.path().join("dualgauge.toml"), config).unwrap();
    for name in ["flags.toml", "state/rollout.json", "state/watch.json"] {
        fs::write(folder.path().join(name), read(name)).unwrap();
    }
    Proxy::run(folder)
}

fn api(proxy: &Proxy, path: &str) -> Value {
    let answer = proxy.ask("GET", path, "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    answer.json()
}

#[test]
fn every_configuration_of_an_earlier_version_still_passes_check() {
    let folder = fixture().join("config");
    let mut files = vec![
        fixture().join("dualgauge.toml"),
        folder.join("dualgauge.toml"),
    ];
    for entry in fs::read_dir(folder.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(path);
        }
    }
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let ended = run_to_end(program(&["check", "--config", file.to_str().unwrap()]));
        assert_eq!(
            ended.code,
            Some(0),
            "{}:\n{}{}",
            file.display(),
            ended.output,
            ended.errors
        );
    }
}

/// The notes of `check` on the fixture, by the name of the key that they stand at.
fn upgrade_notes(arguments: &[&str]) -> Vec<(String, String)> {
    noted(arguments, "changed defaults affect it: ")
}

/// The notes that begin so.
fn noted(arguments: &[&str], beginning: &str) -> Vec<(String, String)> {
    let file = fixture().join("dualgauge.toml");
    let command = [
        &[
            "check",
            "--format",
            "json",
            "--config",
            file.to_str().unwrap(),
        ],
        arguments,
    ];
    let ended = run_to_end(program(&command.concat()));
    let document: Value = serde_json::from_str(&ended.output).unwrap();
    let notes = document["notes"].as_array().unwrap();
    let text = |note: &Value, member: &str| note[member].as_str().unwrap().to_owned();
    let notes = notes
        .iter()
        .map(|note| (text(note, "key"), text(note, "message")));
    notes
        .filter(|(_, what)| what.starts_with(beginning))
        .collect()
}

#[test]
fn check_notes_each_route_that_a_changed_default_affects() {
    let notes = upgrade_notes(&[]);
    let has = |key: &str, what: &str| {
        let found = notes.iter().find(|(noted, _)| noted == key);
        found.is_some_and(|(_, said)| said.contains(what))
    };
    // `create`: a short form with a body, not safe, with a row for 409 that has a former code.
    assert!(has("route[2]", "`empty_body`"), "{notes:?}");
    assert!(has("route[2]", "`empty_answer`"), "{notes:?}");
    assert!(has("route[2]", "`former_code`"), "{notes:?}");
    // `read` and `delete`: no body.
    assert!(has("route[0]", "`unknown_query`"), "{notes:?}");
    assert!(!has("route[0]", "`empty_body`"), "{notes:?}");
    assert!(!has("route[0]", "`empty_answer`"), "{notes:?}");
    assert!(has("route[3]", "`unknown_members`"), "{notes:?}");
    assert_eq!(notes.len(), 4, "{notes:?}");
    let general = "changed defaults affect all routes: ";
    let all =
        "`failure_codes`, `origin`, `near_paths`, `event_stream`, `queue_timeout`, `draining`";
    let note = format!("{general}{all} (CHANGELOG.md, Upgrading)");
    assert_eq!(noted(&[], general), [("route".to_owned(), note)]);
    assert!(noted(&["--no-upgrade-notes"], "changed defaults").is_empty());
}

/// The changes that `check` notes of a configuration, by the key of the note.
fn changes_of(config: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    fs::write(&file, config).unwrap();
    changes_of_file(&file)
}

fn changes_of_file(file: &Path) -> Vec<(String, String)> {
    let path = file.to_str().unwrap();
    let ended = run_to_end(program(&["check", "--format", "json", "--config", path]));
    let document: Value = serde_json::from_str(&ended.output).unwrap();
    let notes = document["notes"].as_array().unwrap().iter();
    let noted = notes.filter_map(|note| {
        let (_, words) = note["message"].as_str()?.split_once(" affect")?;
        Some((note["key"].as_str()?.to_owned(), words.to_owned()))
    });
    noted.collect()
}

#[test]
fn check_notes_changes_of_tools_of_links_and_of_single_clients() {
    const ROUTES: &str = r#"
[[route]]
name = "tool"
rest = "GET /tool"
rpc = "tools/call"
params = { name = "tool", arguments = {} }

[[route]]
name = "other"
rest = "GET /other"
rpc = "other"
"#;
    const REST: &str = "[upstream.old]\nside = \"rest\"\nurl = \"http://127.0.0.1:9001\"\n";
    let socket = |keys: &str| {
        format!(
            "{REST}[upstream.new]\nside = \"rpc\"\nurl = \"ws://127.0.0.1:9002/\"\n{keys}\n{ROUTES}"
        )
    };
    let links = ["link_answer", "link_messages", "client_socket"];
    for (config, tool, other) in [
        // An RPC client of the REST server alone.
        (
            format!("{REST}{ROUTES}"),
            &["unknown_tool", "client_revision"][..],
            &[][..],
        ),
        (
            socket(""),
            &["link_answer", "link_messages", "client_revision"],
            &["link_answer", "link_messages"],
        ),
        (
            socket("log_messages = \"broadcast\""),
            &["link_answer", "client_revision"],
            &["link_answer"],
        ),
        (
            socket("sharing = \"client\""),
            &["link_answer", "client_socket", "client_revision"],
            &["link_answer", "client_socket"],
        ),
        (
            format!(
                "{REST}[upstream.new]\nside = \"rpc\"\nurl = \"http://127.0.0.1:9002/\"\n{ROUTES}"
            ),
            &["client_revision"],
            &[],
        ),
    ] {
        let notes = changes_of(&config);
        for (key, expected) in [("route[0]", tool), ("route[1]", other)] {
            let (_, words) = notes.iter().find(|(noted, _)| noted == key).unwrap();
            for word in links.iter().chain(&["unknown_tool", "client_revision"]) {
                let has = words.contains(&format!("`{word}`"));
                assert_eq!(
                    has,
                    expected.contains(word),
                    "{key} {word}: {words}\n{config}"
                );
            }
        }
    }
}

#[test]
fn check_notes_clients_whose_subject_is_compared_field_by_field() {
    const CONFIG: &str = r#"
[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001"

[listen.tls]
certificate = "own.pem"
key = "own.key"
client_ca = "ca.pem"

[[client]]
name = "page"
match = { header = { x-client-id = "page" } }

[[client]]
name = "app"
match = { subject = "CN=app,*" }
"#;
    let folder = tempfile::tempdir().unwrap();
    let ours = authority();
    let own = certified(&ours, "proxy", "proxy.example");
    for (name, text) in [
        ("own.pem", &*own.pem),
        ("own.key", &own.key_pem()),
        ("ca.pem", &ours.pem()),
        ("dualgauge.toml", CONFIG),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let file = folder.path().join("dualgauge.toml");
    let notes = changes_of_file(&file);
    let [(key, words)] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert_eq!(key, "client[1].match.subject");
    assert!(words.contains("`match_subject`"), "{words}");
}

#[test]
fn check_notes_no_change_that_a_key_settles() {
    let settled = |keys: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dualgauge.toml");
        let config = format!(
            "{keys}\n[upstream.old]\nside = \"rest\"\nurl = \"http://127.0.0.1:9001/\"\n[upstream.new]\nside = \"rpc\"\n\
             url = \"http://127.0.0.1:9002/\"\n[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\nschema.result = {{ type = \"array\" }}\n"
        );
        fs::write(&file, config).unwrap();
        run_to_end(program(&[
            "check",
            "-v",
            "--config",
            file.to_str().unwrap(),
        ]))
        .output
    };
    let plain = settled("");
    assert!(
        plain.contains("affect all routes: `failure_codes`, `origin`, "),
        "{plain}"
    );
    assert!(plain.contains("`schema_budget`"), "{plain}");
    let keys = "[rpc]\nfailure_codes = { upstream_timeout = -32002 }\n[cors]\norigins = \"*\"";
    let settled = settled(keys);
    assert!(
        settled.contains(
            "affect all routes: `near_paths`, `event_stream`, `queue_timeout`, `draining` "
        ),
        "{settled}"
    );
}

#[test]
fn overrides_of_an_earlier_version_stay_in_force() {
    let servers = Servers::start();
    let proxy = upgraded(&servers);
    for (flag, stage, percent, why) in [
        ("ios-first", "translate", 25, "ticket 7"),
        ("batch-all", "translate", 100, "all of it"),
    ] {
        let found = api(&proxy, &format!("/api/v1/flags/{flag}"));
        assert_eq!(found["stage"], stage, "{found}");
        assert_eq!(found["percent"], percent, "{found}");
        assert_eq!(found["flipped"]["who"], "anna", "{found}");
        assert_eq!(found["flipped"]["why"], why, "{found}");
    }
    // `batch-all` is at passthrough in the flags file: only the override moves the client.
    let call = proxy.rest("GET", "/things/7", &[("x-client-id", "batch")], "");
    assert_eq!(call.status(), 200, "{call:?}");
    assert_eq!(call.json()["by"], "rpc");
    assert_eq!(answers(&proxy, "nobody"), "rest");
}

#[test]
fn history_and_usage_of_an_earlier_version_are_kept() {
    let servers = Servers::start();
    let proxy = upgraded(&servers);
    let history = api(&proxy, "/api/v1/history");
    let kinds: Vec<&Value> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|change| &change["what"])
        .collect();
    assert_eq!(kinds, ["revive", "kill", "flip", "flip"], "{history}");
    let callers = eventually("callers that were counted before", || {
        let usage = api(&proxy, "/api/v1/usage");
        let routes = usage["routes"].as_array().unwrap();
        let read = routes.iter().find(|route| route["route"] == "read")?;
        let callers = read["callers"].as_array().unwrap().clone();
        (!callers.is_empty()).then_some(callers)
    });
    let calls: Vec<(&str, u64, u64)> = callers
        .iter()
        .map(|caller| {
            let calls = |side: &str| caller[side]["calls"].as_u64().unwrap();
            (
                caller["client"].as_str().unwrap(),
                calls("old"),
                calls("new"),
            )
        })
        .collect();
    assert_eq!(calls, [("batch", 0, 1), ("ios", 6, 0)]);
}

#[test]
fn an_example_without_a_body_shows_a_call_with_an_empty_object_and_no_other() {
    let checked = |body: &str, shown: &str, params: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dualgauge.toml");
        let config = format!(
            r#"
[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001/"

[upstream.new]
side = "rpc"
url = "http://127.0.0.1:9002/"

[[route]]
name = "reload"
rest = "POST /reload"
rpc = "reload"
{body}

[[route.example]]
way = "rpc"
rest = {{ {shown} }}
rpc = {{ method = "reload", params = {params} }}
"#
        );
        fs::write(&file, config).unwrap();
        let ended = run_to_end(program(&["check", "--config", file.to_str().unwrap()]));
        (ended.code, ended.errors)
    };
    let none = r#"call = "POST /reload""#;
    let empty = r#"call = "POST /reload", body = {}"#;
    for (body, shown, params) in [
        ("", none, "{}"),
        ("", empty, "{}"),
        (r#"body = "none""#, none, "{}"),
    ] {
        let (code, errors) = checked(body, shown, params);
        assert_eq!(code, Some(0), "{body} {shown}: {errors}");
    }
    for (body, shown, params) in [
        ("", none, "{ a = 1 }"),
        ("", r#"call = "POST /again""#, "{}"),
        (r#"body = "none""#, empty, "{}"),
    ] {
        let (code, errors) = checked(body, shown, params);
        assert_eq!(code, Some(1), "{body} {shown}");
        assert!(errors.contains("expected `POST "), "{errors}");
    }
}
