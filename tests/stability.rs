//! The promise of docs/reference/stability.md: nothing that users depend on changes without a line in the changelog.
//!
//! `tests/data/stable.txt` has the names of the last release, with their types, values and defaults. A release writes it
//! again: `NEW_RELEASE=1 cargo test --test stability`.

#![expect(
    clippy::unwrap_used,
    reason = "a file that cannot be read fails the test"
)]

#[path = "stability/files.rs"]
mod files;
#[path = "stability/names.rs"]
mod names;
#[path = "stability/planted.rs"]
mod planted;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

const NAMES: &str = "tests/data/stable.txt";
/// The properties whose values an entry of the changelog has, before and after the change.
const VALUES: [&str; 9] = [
    "type",
    "enum",
    "const",
    "default",
    "label",
    "blame",
    "status",
    "code",
    "rpc_status",
];

/// Returns all names that users depend on.
fn names() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    names::add_described(&mut found);
    files::add_recordings(&mut found);
    files::add_state(&mut found);
    found
}

/// Returns the number of words before the path in the lines of a kind: `api GET /api/v1/flags 200.name`, `key limits.body`.
fn words_before_path(kind: &str) -> usize {
    if kind == "api" { 3 } else { 1 }
}

/// Returns the line, and the lines of which it is a part: a changelog that names a new part names its properties too. So
/// does one that names a new method or member of the API or of a file, except for the members of a new schema.
fn with_wholes(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let before = words_before_path(words[0]);
    let (head, Some(path)) = (words[..before].join(" "), words.get(before)) else {
        return vec![line.to_owned()];
    };
    let mut path = path.trim_end_matches("[]");
    let mut wholes = vec![line.to_owned(), format!("{head} {path}")];
    while let Some((whole, step)) = path.rsplit_once('.') {
        path = whole.trim_end_matches("[]");
        let is_schema = words[0] == "member" && !path.contains('.');
        if is_schema || (step != "NAME" && matches!(words[0], "key" | "included")) {
            return wholes;
        }
        wholes.push(format!("{head} {path}"));
    }
    wholes.push(head);
    wholes
}

/// Returns true if an entry of the changelog names something that changed.
fn names_it(entry: &str, line: &str) -> bool {
    let quoted = |name: &str| entry.contains(&format!("`{name}`"));
    let words: Vec<&str> = line.split(' ').collect();
    let before = words_before_path(words[0]);
    let property = words.get(before + 1).copied().unwrap_or_default();
    if VALUES.contains(&property) {
        let value = words[before + 2..].join(" ");
        if !entry.contains(value.trim_matches('"')) {
            return false;
        }
    }
    let path = words
        .get(before)
        .map_or(String::new(), |path| path.replace("[]", ""));
    // A media type is no name.
    let steps = path
        .split('.')
        .filter(|step| *step != "NAME" && !step.contains('/'));
    let steps: Vec<&str> = steps.collect();
    let last = steps.last().copied().unwrap_or_default();
    match words[0] {
        "metric" | "failure" => quoted(last),
        "api" => {
            let is_status = last.parse::<u16>().is_ok();
            let is_named = quoted(last) || last.is_empty() || last == "body";
            entry.contains(words[2]) && (is_named || (is_status && entry.contains(last)))
        }
        // Users see no name of a schema. Each of its members has a line.
        "member" if words.len() == 2 && steps.len() == 1 => true,
        "member" => quoted(last) && entry.contains("/api/"),
        "recording" | "state" => quoted(last) && entry.contains(words[0]),
        _ => {
            let is_named = match steps.iter().rev().nth(1) {
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
    // A release renames the heading.
    let after = changelog.split_once("## Unreleased\n");
    let after = after.map_or("", |(_, after)| after);
    let unreleased = after.split("\n## ").next().unwrap();
    let rows = unreleased.split("\n- ").flat_map(|part| part.split("\n| "));
    let entries: Vec<&str> = rows.collect();
    let differences: BTreeSet<&String> = before.symmetric_difference(now).collect();
    let is_named = |line: &str| {
        let wholes = with_wholes(line).into_iter();
        let mut changed = wholes.filter(|whole| differences.contains(whole));
        changed.any(|whole| entries.iter().any(|entry| names_it(entry, &whole)))
    };
    let unnamed = differences.iter().filter(|line| !is_named(line));
    unnamed.map(|line| (*line).clone()).collect()
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

/// A changelog with this entry for the next release.
fn changelog(entry: &str) -> String {
    format!("# Changelog\n\n## Unreleased\n\n- {entry}\n\n## 0.1.0\n\n- `limits.body`\n")
}

/// Each name, an entry that names it, and one that does not.
const ENTRIES: [(&str, &str, &str); 15] = [
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
        "key flag[].side enum \"rest\"",
        "`flag.side` has no `rest`.",
        "`flag.side` has changed.",
    ),
    (
        "key admin.address default \"127.0.0.1:9090\"",
        "`admin.address` is no longer 127.0.0.1:9090.",
        "`admin.address` is another one.",
    ),
    (
        "included route[].name",
        "`name` of a route is gone.",
        "a name is gone.",
    ),
    (
        "metric dualgauge_calls_total type counter",
        "`dualgauge_calls_total` is no counter.",
        "`dualgauge` has a `counter`.",
    ),
    (
        "metric dualgauge_calls_total label route",
        "`dualgauge_calls_total` has no `route`.",
        "`dualgauge_calls_total` has more.",
    ),
    (
        "failure upstream_timeout code -31022",
        "`upstream_timeout` is no longer -31022.",
        "`upstream_timeout` has another code.",
    ),
    (
        "api GET /api/v1/flags",
        "`GET /api/v1/flags` is gone.",
        "flags are gone.",
    ),
    (
        "api GET /api/v1/flags query.search",
        "`GET /api/v1/flags` has no `search`.",
        "`GET /api/v1/flags` has no query.",
    ),
    (
        "member Flag.stage",
        "`stage` of `/api/v1/flags` is gone.",
        "a `stage` is gone.",
    ),
    (
        "member Flag.tripped.reason",
        "`reason` of `/api/v1/flags` is gone.",
        "`tripped` of `/api/v1/flags` is gone.",
    ),
    (
        "recording call.response.latency_us",
        "A recording has no `latency_us`.",
        "A recording has no latency.",
    ),
    (
        "state rollout.state.flags.NAME.text_hash",
        "The state has no `text_hash`.",
        "The state has no `flags`.",
    ),
];

#[test]
fn each_kind_of_name_is_found_and_each_change_is_noticed() {
    let names = names();
    for (name, entry, other) in ENTRIES {
        let mut without = names.clone();
        assert!(without.remove(name), "{name}");
        assert_eq!(unnamed(&names, &without, &changelog(other)), [name]);
        assert_eq!(unnamed(&without, &names, &changelog(other)), [name]);
        assert_eq!(unnamed(&names, &without, &changelog(entry)), [""; 0]);
    }
}

#[test]
fn an_entry_for_a_whole_names_its_properties_and_new_members() {
    let names = names();
    for (whole, entry) in [
        ("key admin.address", "`admin.address` is gone."),
        ("api GET /api/v1/flags", "`GET /api/v1/flags` is gone."),
        (
            "member Flag.tripped",
            "`tripped` of `/api/v1/flags` is gone.",
        ),
    ] {
        let mut without = names.clone();
        without.retain(|line| !with_wholes(line).iter().any(|part| part == whole));
        assert!(names.len() > without.len() + 2, "{whole}");
        assert_eq!(unnamed(&names, &without, &changelog(entry)), [""; 0]);
        without.insert(whole.to_owned());
        assert_ne!(
            unnamed(&names, &without, &changelog(entry)),
            [""; 0],
            "{whole}"
        );
    }
    // Each key and each member of a schema has an entry of its own.
    for (whole, part, entry) in [
        ("key admin", "key admin.address", "`[admin]` is gone."),
        (
            "member Flag",
            "member Flag.client",
            "`Flag` of `/api/` is gone.",
        ),
    ] {
        let mut without = names.clone();
        without.retain(|line| line != whole && line != part);
        assert_eq!(unnamed(&names, &without, &changelog(entry)), [part]);
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
