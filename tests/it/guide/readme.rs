//! The section "Use it" of the README, followed word for word in an empty folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::{blocks, words};
use crate::support::{Proxy, program, run_to_end};

/// The documents of the two servers: the README takes them for given.
const API: &str = r#"
openapi: 3.1.0
info: { title: Items, version: "1" }
paths:
  /items/{id}:
    get:
      operationId: items.get
      parameters:
        - { name: id, in: path, required: true, schema: { type: integer } }
      responses: { "200": { description: The item } }
"#;
const RPC: &str = r#"{
  "openrpc": "1.3.2",
  "info": {"title": "Items", "version": "1"},
  "methods": [{
    "name": "items.get",
    "paramStructure": "by-name",
    "params": [{"name": "id", "required": true, "schema": {"type": "integer"}}],
    "result": {"name": "item", "schema": {"type": "object"}}
  }]
}"#;

fn section() -> &'static str {
    const README: &str = include_str!("../../../README.md");
    let (_, section) = README.split_once("\n## Use it\n").unwrap();
    section.split("\n## ").next().unwrap()
}

/// The command of a line of a shell block, in a folder.
fn command(line: &str, folder: &Path) -> Option<(Vec<String>, Command)> {
    let line = line.split(" #").next()?.trim();
    let words = words(line.strip_prefix("dualgauge ")?);
    let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = program(&arguments);
    command.current_dir(folder);
    Some((words, command))
}

/// Writes a block of TOML to the file that it is of.
fn write(text: &str, folder: &Path) {
    let main = folder.join("dualgauge.toml");
    let (path, text) = match text {
        text if text.starts_with("# flags.toml") => (folder.join("flags.toml"), text.to_owned()),
        text if text.starts_with("include = ") => {
            let before = fs::read_to_string(&main).unwrap();
            (main, format!("{text}\n{before}"))
        }
        text => (main, text.to_owned()),
    };
    fs::write(path, text).unwrap();
}

fn succeeds(command: Command, line: &str) -> String {
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "`{line}`: {ended:?}");
    ended.output
}

#[test]
fn the_readme_works_word_for_word_in_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut running: Option<Proxy> = None;
    let mut followed = Vec::new();
    let mut checked = String::new();
    for block in blocks(section()) {
        match block.kind {
            "toml" => write(block.text, folder.path()),
            "sh" => {
                for line in block.text.lines() {
                    let Some((words, command)) = command(line, folder.path()) else {
                        continue;
                    };
                    let output = follow(&words, command, (line, &mut running));
                    if words[0] == "check" {
                        checked = output;
                    }
                    followed.push(words[0].clone());
                }
            }
            kind => panic!("`{kind}` is out of place in this section"),
        }
    }
    let expected = [
        "check",
        "explain",
        "run",
        "import",
        "check",
        "flags",
        "mismatches",
        "flags",
        "flags",
        "usage",
    ];
    assert_eq!(followed, expected);
    // The drafted routes are part of the configuration by now, also of the process that runs.
    assert!(checked.contains("items.get"), "{checked}");
    let running = running.unwrap();
    // The page says that the guard rolls the flag back.
    let flags = running.ask("GET", "/api/v1/flags", "").json();
    assert_eq!(flags["flags"][0]["name"], "ios-first", "{flags}");
    assert!(flags["flags"][0]["guard"].is_string(), "{flags}");
    running.log_line(&["the configuration is reloaded", "routes=2"]);
}

fn follow(
    words: &[String],
    mut command: Command,
    (line, running): (&str, &mut Option<Proxy>),
) -> String {
    let folder = command.get_current_dir().unwrap().to_owned();
    match words[0].as_str() {
        "run" => {
            command
                .env("DUALGAUGE_LISTEN__ADDRESS", "127.0.0.1:0")
                .env("DUALGAUGE_ADMIN__ADDRESS", "127.0.0.1:0");
            // The folder of the test outlives the process, which needs one of its own.
            *running = Some(Proxy::launch(command, TempDir::new().unwrap()));
            return String::new();
        }
        "import" => {
            fs::write(folder.join("api.yaml"), API).unwrap();
            fs::write(folder.join("rpc.json"), RPC).unwrap();
        }
        _ => {}
    }
    if let ("flags" | "mismatches" | "usage", Some(running)) = (words[0].as_str(), running) {
        command.args(["--admin", &format!("http://{}", running.admin())]);
    }
    succeeds(command, line)
}
