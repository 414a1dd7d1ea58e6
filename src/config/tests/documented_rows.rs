//! The tables of the documentation have every key, with its default.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::documented::{allowed, default, keys, table_keys};
use crate::config::key::{DefaultValue, Description};

/// Tables of keys in the documentation: the page, the heading, the header cell of the keys, and the prefix of the keys.
const TABLES: [(&str, &str, &str, &str); 13] = [
    ("reference/configuration.md", "Main file", "key", ""),
    (
        "reference/configuration.md",
        "Keys of a route",
        "key",
        "route[].",
    ),
    (
        "reference/configuration.md",
        "Keys of a route",
        "of an outcome",
        "route[].outcome[].",
    ),
    (
        "reference/configuration.md",
        "Keys of a route",
        "of an example",
        "route[].example[].",
    ),
    ("reference/configuration.md", "Comparing", "key", "compare."),
    (
        "reference/configuration.md",
        "Local answers",
        "key",
        "local[].",
    ),
    ("reference/configuration.md", "Flags", "key", "flag[]."),
    (
        "explanation/guard.md",
        "Guard and ramp",
        "key of `guard`",
        "flag[].guard.",
    ),
    ("reference/stdio.md", "", "key", "upstream.NAME."),
    ("reference/websocket.md", "", "key", "upstream.NAME."),
    ("reference/mcp.md", "", "key", "upstream.NAME."),
    ("reference/frames.md", "", "key", "upstream.NAME."),
    ("reference/old.md", "Routes", "key of `old`", "route[].old."),
];

/// Keys without a row of their own: the page with the default, and the text around `DEFAULT`.
const WITHOUT_ROW: [(&str, &str, &str); 5] = [
    (
        "cors.credentials",
        "reference/configuration.md",
        "# not with \"*\"; default DEFAULT\n",
    ),
    (
        "flag[].guard.fast.calls",
        "explanation/guard.md",
        "| `fast` | `{ in_row = 10, calls = DEFAULT, share = 0.5 }` |",
    ),
    (
        "flag[].guard.fast.in_row",
        "explanation/guard.md",
        "| `fast` | `{ in_row = DEFAULT, calls = 20, share = 0.5 }` |",
    ),
    (
        "flag[].guard.fast.share",
        "explanation/guard.md",
        "| `fast` | `{ in_row = 10, calls = 20, share = DEFAULT }` |",
    ),
    (
        "route[].deprecated.side",
        "reference/configuration.md",
        "| `deprecated.side` | `DEFAULT` |",
    ),
];

/// Returns the rows of a page: their heading, their first header cell, and their cells.
fn rows(page: &str) -> Vec<(&str, &str, Vec<&str>)> {
    let (mut heading, mut above) = ("", "");
    let mut rows = Vec::new();
    for line in page.lines() {
        // A third level divides the tables of one heading.
        if let Some(title) = line.strip_prefix('#')
            && !title.starts_with("##")
        {
            heading = title.trim_start_matches('#').trim();
        }
        let Some(row) = line.strip_prefix("| ") else {
            above = if line.starts_with("|---") { above } else { "" };
            continue;
        };
        let cells: Vec<_> = row
            .trim_end_matches('|')
            .split(" | ")
            .map(str::trim)
            .collect();
        if above.is_empty() {
            above = cells[0];
        } else {
            rows.push((heading, above, cells));
        }
    }
    rows
}

/// The keys of a first cell: `` `tls.certificate`, `.key` `` are two.
fn in_cell(cell: &str) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for code in cell.split('`').skip(1).step_by(2) {
        let code = code.trim_start_matches("[[route.").trim_end_matches("]]");
        match (code.strip_prefix('.'), keys.last()) {
            (Some(last), Some(before)) => {
                let table = before.rsplit_once('.').map_or("", |(table, _)| table);
                keys.push(format!("{table}.{last}"));
            }
            (_, _) => keys.push(code.to_owned()),
        }
    }
    keys
}

fn read(page: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    fs::read_to_string(docs.join(page)).unwrap()
}

/// Every key of the tables, with its row.
fn documented() -> BTreeMap<String, Vec<String>> {
    let mut documented = BTreeMap::new();
    for (page, heading, above, under) in TABLES {
        let text = read(page);
        let mut found = 0;
        for (of, head, cells) in rows(&text) {
            if head != above || (!heading.is_empty() && of != heading) {
                continue;
            }
            found += 1;
            for key in in_cell(cells[0]) {
                // Some rows of these pages say the whole key.
                let key = match key.contains('.') && under.starts_with("upstream") {
                    true => key,
                    false => format!("{under}{key}"),
                };
                documented.insert(key, cells.iter().map(|&cell| cell.to_owned()).collect());
            }
        }
        assert!(
            found > 0,
            "{page} has no table of `{above}` under `{heading}`"
        );
    }
    documented
}

#[test]
fn every_key_of_the_tables_is_read() {
    let keys = keys();
    let documented = documented();
    let unread: Vec<_> = documented
        .keys()
        .filter(|key| !keys.contains_key(*key))
        .collect();
    assert!(unread.is_empty(), "nothing reads {unread:?}");
}

#[test]
fn every_key_that_is_read_is_in_the_documentation() {
    let documented = documented();
    let pages = ["reference/configuration.md", "explanation/guard.md"]
        .map(read)
        .concat();
    let blocks = pages.split("```").skip(1).step_by(2);
    let words = pages
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let code = blocks.chain(words);
    let no_name = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let code: BTreeSet<&str> = code.flat_map(|code| code.split(no_name)).collect();
    let keys = keys();
    let nowhere: Vec<_> = keys
        .iter()
        .filter(|(key, asked)| {
            // Keys of a table of its own are documented there; others in an example.
            let within = format!("{key}.");
            let mut known = documented.keys();
            let inside = known.any(|known| known == *key || known.starts_with(&within));
            let last = key.rsplit('.').next().unwrap();
            let named = inside || code.contains(last.trim_end_matches("[]"));
            !named && asked.iter().any(|key| allowed(key).is_some())
        })
        .map(|(key, _)| key)
        .collect();
    assert!(nowhere.is_empty(), "{nowhere:?}");
}

#[test]
fn defaults_are_those_of_the_table() {
    let documented = documented();
    let (mut checked, mut faults) = (0, Vec::new());
    for (key, entries) in table_keys() {
        let is_of_upstream = key.starts_with("upstream.NAME.");
        // Keys of several kinds of upstream have several defaults.
        if is_of_upstream && entries.len() > 1 {
            continue;
        }
        let fixed = |entry: &&Description| matches!(entry.default, Some(DefaultValue::Fixed(_)));
        for entry in entries.iter().filter(fixed) {
            let shown = default(entry);
            let shown = shown.trim_matches('`');
            let outside = WITHOUT_ROW.iter().find(|(of, ..)| *of == key);
            if let Some((_, page, text)) = outside {
                assert!(!documented.contains_key(&key), "`{key}` has a row");
                if !read(page).contains(&text.replace("DEFAULT", shown)) {
                    faults.push(format!("the default of `{key}` is {shown}: {page}"));
                }
                checked += 1;
                continue;
            }
            let row = documented
                .get(&key)
                .unwrap_or_else(|| panic!("no row of `{key}`"));
            // A cell that begins with `|` is empty.
            let is_empty = row[1].starts_with('|');
            // The page of another kind of upstream has the default.
            if is_empty && is_of_upstream {
                continue;
            }
            if is_empty || !row[1].contains(shown) {
                faults.push(format!("the default of `{key}` is {shown}: {row:?}"));
            }
            checked += 1;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 80, "{checked}");
}
