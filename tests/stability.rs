//! The promise of docs/reference/stability.md: no name that users depend on changes without a line in the changelog.
//!
//! `tests/data/stable.txt` has the names of the last release. A release writes it again: `NEW_RELEASE=1 cargo test --test
//! stability`.

#![expect(
    clippy::unwrap_used,
    reason = "a file that cannot be read fails the test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

const NAMES: &str = "tests/data/stable.txt";

/// Adds the keys of a schema of configuration files. `NAME` and `[]` stand for names and items.
fn add_keys(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = match path {
            "" => key.clone(),
            _ => format!("{path}.{key}"),
        };
        found.insert(format!("key {path}"));
        add_keys(inner, &path, found);
    }
    for (member, step) in [("items", "[]"), ("additionalProperties", ".NAME")] {
        if schema[member].is_object() {
            add_keys(&schema[member], &format!("{path}{step}"), found);
        }
    }
    for member in ["oneOf", "anyOf", "allOf"] {
        for part in schema[member].as_array().into_iter().flatten() {
            add_keys(part, path, found);
        }
    }
}

/// Adds the metrics of the reference, which another test compares with the program.
fn add_metrics(page: &str, found: &mut BTreeSet<String>) {
    for row in page
        .lines()
        .filter(|line| line.starts_with("| `dualgauge_"))
    {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        found.insert(format!("metric {name} {}", cells[2]));
        for label in cells[3].split(", ").filter(|label| !label.is_empty()) {
            found.insert(format!("label {name} {label}"));
        }
    }
}

/// Adds the methods and the members of the admin API.
fn add_api(document: &Value, found: &mut BTreeSet<String>) {
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys();
        let methods = methods.filter(|name| *name != "parameters");
        found.extend(methods.map(|method| format!("api {} {path}", method.to_uppercase())));
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let members = schema["properties"].as_object().into_iter().flatten();
        found.extend(members.map(|(member, _)| format!("member {name}.{member}")));
    }
}

fn json(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Returns all names that users depend on.
fn names() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in ["dualgauge", "flags"] {
        let schema = json(&format!("config/schema/{file}.schema.json"));
        add_keys(&schema, "", &mut found);
    }
    let page = fs::read_to_string("docs/reference/metrics.md").unwrap();
    add_metrics(&page, &mut found);
    add_api(&json("src/server/admin/admin.json"), &mut found);
    found
}

/// Returns true if an entry of the changelog names something that changed.
fn names_it(entry: &str, line: &str) -> bool {
    let quoted = |name: &str| entry.contains(&format!("`{name}`"));
    let words: Vec<&str> = line.split(' ').collect();
    match words[0] {
        "metric" | "label" => quoted(words[1]),
        "api" => entry.contains(words[2]),
        "member" => {
            let member = words[1].split_once('.').unwrap().1;
            quoted(member) && entry.contains("/api/")
        }
        _ => {
            let path = words[1].replace("[]", "");
            let path: Vec<&str> = path.split('.').filter(|step| *step != "NAME").collect();
            let (last, before) = path.split_last().unwrap();
            let is_named = match before.last() {
                // The key, or `key` of a `table`.
                Some(table) => {
                    entry.contains(&format!("{table}.{last}`"))
                        || (quoted(last) && entry.contains(table))
                }
                None => quoted(last),
            };
            is_named || quoted(&format!("[{last}]"))
        }
    }
}

/// Returns the differences between two releases that no entry of the unreleased part of the changelog names.
fn unnamed(before: &BTreeSet<String>, now: &BTreeSet<String>, changelog: &str) -> Vec<String> {
    let after = changelog.split_once("## Unreleased\n").unwrap().1;
    let unreleased = after.split("\n## ").next().unwrap();
    let rows = unreleased.split("\n- ").flat_map(|part| part.split("\n| "));
    let entries: Vec<&str> = rows.collect();
    let differences = before.symmetric_difference(now);
    let differences = differences.filter(|line| !entries.iter().any(|entry| names_it(entry, line)));
    differences.cloned().collect()
}

#[test]
fn no_name_changes_without_a_line_in_the_changelog() {
    let now = names();
    if std::env::var_os("NEW_RELEASE").is_some() {
        let lines: Vec<&str> = now.iter().map(String::as_str).collect();
        fs::write(NAMES, lines.join("\n") + "\n").unwrap();
    }
    let before = fs::read_to_string(NAMES).unwrap();
    let before = before.lines().map(str::to_owned).collect();
    let changelog = fs::read_to_string("CHANGELOG.md").unwrap();
    let unnamed = unnamed(&before, &now, &changelog);
    assert!(
        unnamed.is_empty(),
        "CHANGELOG.md names none of these changes:\n{}",
        unnamed.join("\n")
    );
}

#[test]
fn each_kind_of_name_is_found_and_each_change_is_noticed() {
    let names = names();
    for (name, entry, other) in [
        (
            "key limits.body",
            "`limits.body` is larger.",
            "`body` of a route.",
        ),
        (
            "key upstream.NAME.url",
            "`url` of an `upstream` is new.",
            "`upstream` is new.",
        ),
        (
            "key record",
            "`[record]` is new.",
            "`dualgauge record` is new.",
        ),
        (
            "metric dualgauge_calls_total counter",
            "`dualgauge_calls_total` is gone.",
            "`dualgauge` has a `counter`.",
        ),
        (
            "label dualgauge_calls_total route",
            "`dualgauge_calls_total` has no `route`.",
            "a `route` has more.",
        ),
        (
            "api GET /api/v1/flags",
            "`GET /api/v1/flags` is gone.",
            "flags are gone.",
        ),
        (
            "member Flag.stage",
            "`stage` of `/api/v1/flags` is gone.",
            "a `stage` is gone.",
        ),
    ] {
        let mut without = names.clone();
        assert!(without.remove(name), "{name}");
        let changelog = |entry: &str| {
            format!("# Changelog\n\n## Unreleased\n\n- {entry}\n\n## 0.1.0\n\n- `limits.body`\n")
        };
        assert_eq!(unnamed(&names, &without, &changelog(other)), [name]);
        assert_eq!(unnamed(&without, &names, &changelog(other)), [name]);
        assert_eq!(unnamed(&names, &without, &changelog(entry)), [""; 0]);
    }
}

/// The files of 0.1.0 are read by every later version: configurations and state by `it upgraded_state`, recordings here.
#[test]
fn a_recording_of_an_earlier_version_is_read() {
    let mut har = Command::new(env!("CARGO_BIN_EXE_dualgauge"));
    let ended = har
        .args(["har", "tests/data/upgrade/recording.jsonl"])
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let har: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 3, "{har}");
}
