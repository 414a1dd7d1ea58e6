//! The report on a migration, of a running proxy with compared calls, a change and a moved client.

use std::fs;

use tempfile::TempDir;

use crate::scene::{json, saying};
use crate::support::{Proxy, Upstream, becomes, both, program, rest_only, run_to_end};

const CONFIG: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
[[client]]
name = "ios-app"
match = { header = { x-client-id = "ios-*" } }
[[client]]
name = "web"
match = { header = { x-client-id = "web" } }
[[client]]
name = "tv"
match = { header = { x-client-id = "tv" } }
[rollout.candidates]
noise = 0
"#;

const FLAGS: &str = r#"
[[flag]]
name = "ios"
client = "ios-app"
stage = "shadow"
[[flag]]
name = "web"
client = "web"
stage = "translate"
"#;

fn report(proxy: &Proxy, arguments: &[&str]) -> String {
    let admin = format!("http://{}", proxy.admin());
    let mut command = program(&["report", "--admin", &admin]);
    command.args(arguments);
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.output
}

fn has_all(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn the_owner_of_a_migration_reads_how_far_it_is() {
    let rest = Upstream::answering(json(r#"{"name":"old"}"#));
    let rpc = saying(r#""result":{"name":"new"}"#);
    let proxy = Proxy::start_with_flags(&format!("{}{CONFIG}", both(&rest, &rpc)), FLAGS);
    proxy.rest("GET", "/items/7", &[("x-client-id", "ios-1")], "");
    proxy.rest("GET", "/items/7", &[("x-client-id", "web")], "");
    let differs = || report(&proxy, &[]).contains("/body/name");
    becomes(differs, &true);
    let set = ["ios", "verify", "--why", "ticket | 7"];
    flags(&proxy, &[&["set"], &set[..]].concat());
    has_all(
        &report(&proxy, &[]),
        &[
            "- Clients: 1 not moved, 1 moved, 1 without calls in the period.",
            "- Calls compared: 1; 0 % equal, 1 different, 0 in which a side failed.",
            "- Differences: 1 found, 0 fixed.",
            "the start of the process of replica `local`: later than the period begins.",
            "| `ios-app` | rest | not moved | 1 |",
            "| `web` | rest | moved | 0 | never | 1 |",
            "Configured, and never seen: `tv`",
            "| `items.get` | 1 | 0 | 1 | 0 | 0 | 0 |",
            "flag set: `ios` to verify, 100 %",
            "ticket \\| 7",
            "| `items.get` | old | 1 | 0 | 0 % |",
            "Routes without an announced deprecation",
        ],
    );

    let admin = format!("http://{}", proxy.admin());
    run_to_end(program(&["mismatches", "--reset", "--admin", &admin]));
    let fixed = report(&proxy, &["--since", "1h"]);
    has_all(
        &fixed,
        &["- Differences: 1 found, 1 fixed.", "Fixed differences"],
    );

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("report.html");
    let output = ["--format", "html", "--output", file.to_str().unwrap()];
    assert_eq!(report(&proxy, &output), "");
    let page = fs::read_to_string(&file).unwrap();
    has_all(&page, &["<!doctype html>", "<td><code>ios-app</code></td>"]);
}

fn flags(proxy: &Proxy, arguments: &[&str]) {
    let admin = format!("http://{}", proxy.admin());
    let mut command = program(&["flags", "--admin", &admin]);
    command.args(arguments);
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_report_that_cannot_be_made_says_why() {
    let rest = Upstream::nowhere();
    let proxy = Proxy::start(&rest_only(&rest));
    let admin = format!("http://{}", proxy.admin());
    for (arguments, code, said) in [
        (
            ["--since", "7w"],
            2,
            "write a duration before now such as `7d`",
        ),
        (["--idle", "30"], 2, "write a duration such as `30d`"),
        (
            ["--output", "/nowhere/at/all"],
            1,
            "`/nowhere/at/all` cannot be written",
        ),
    ] {
        let mut command = program(&["report", "--admin", &admin]);
        command.args(arguments);
        let ended = run_to_end(command);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.errors.contains(said), "{ended:?}");
    }
}
