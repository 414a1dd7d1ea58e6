//! The documentation has every key that is read, with the accepted values from the message for an invalid value.
//!
//! `docs/keys.md` is generated here. The test fails if it is not current; with `INSTA_UPDATE=always` it is rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use super::Fixture;
use crate::config::flags::parse_flags;
use crate::config::load::load;
use crate::config::table_reader::requested_keys;

const MAIN: &str = include_str!("every_key.toml");
const FLAGS: &str = include_str!("every_flag.toml");

/// Names in the configurations above, and their placeholders.
const CHOSEN: [(&str, &str); 8] = [
    ("upstream.old", "upstream.NAME"),
    ("upstream.new", "upstream.NAME"),
    ("upstream.child", "upstream.NAME"),
    ("upstream.socket", "upstream.NAME"),
    ("upstream.frames", "upstream.NAME"),
    ("upstream.mcp", "upstream.NAME"),
    ("outcomes.common", "outcomes.NAME"),
    ("envelope.auth", "envelope.MEMBER"),
];

/// A key as the documentation writes it.
fn general(key: &str) -> String {
    let mut general = String::new();
    let mut inside = false;
    for c in key.chars() {
        inside = (inside || c == '[') && c != ']';
        if !inside || c == '[' {
            general.push(c);
        }
    }
    let chosen = |key: String, (from, to): &(&str, &str)| key.replace(from, to);
    CHOSEN.iter().fold(general, chosen)
}

/// All keys that are read, by their form in the documentation.
fn keys() -> BTreeMap<String, BTreeSet<String>> {
    let _ = requested_keys::take();
    let main: Table = MAIN.parse().unwrap();
    let _ = message(&main, "");
    let _ = parse_flags(Path::new("flags.toml"), FLAGS);
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for key in requested_keys::take() {
        keys.entry(general(&key)).or_default().insert(key);
    }
    keys
}

/// The message of the first problem with a key.
fn message(main: &Table, key: &str) -> Option<String> {
    let text = toml::to_string(main).unwrap();
    let problems = if key.starts_with("flag[") {
        parse_flags(Path::new("flags.toml"), &text).err()?
    } else {
        load(&Fixture::new(&text).sources).err()?
    };
    let mut of_key = problems.iter().filter(|problem| problem.key == key);
    let problem = of_key.next()?;
    Some(problem.message.clone())
}

/// Puts a value under a key.
pub(super) fn put(at: &mut Value, key: &str, value: Value) {
    let mut at = at;
    for step in key.split(['.', '[']) {
        at = match step.strip_suffix(']') {
            Some(index) => {
                let index: usize = index.parse().unwrap();
                at.as_array_mut().unwrap().get_mut(index).unwrap()
            }
            None => {
                let table = at.as_table_mut().unwrap();
                table.entry(step).or_insert(Value::Table(Table::new()))
            }
        };
    }
    *at = value;
}

/// The message for a value under a key.
fn answer(key: &str, value: Value) -> Option<String> {
    answer_of(key, value, key)
}

fn answer_of(key: &str, value: Value, reported_key: &str) -> Option<String> {
    let text = if key.starts_with("flag[") {
        FLAGS
    } else {
        MAIN
    };
    let mut main = Value::Table(text.parse().unwrap());
    put(&mut main, key, value);
    message(main.as_table().unwrap(), reported_key)
}

/// Accepts everything, or is not allowed in one of several tables.
const ANYTHING: &str = "a pattern, or any value";

/// A number that hardly any key accepts, and its form in a message.
const NUMBER: (f64, &str) = (-0.5, "the number `-0.5` ");
/// A text that hardly any key accepts, and its form in a message.
const TEXT: (&str, &str) = ("? ?", "`? ?` ");

/// The kind that a message expects: `string` of `is not a string`.
fn expected(message: &str) -> Option<&str> {
    let beginnings = [
        "is not a ",
        "is not an ",
        "is not the ",
        "is neither an ",
        "is neither a ",
        "is no ",
    ];
    let mut kinds = beginnings
        .iter()
        .filter_map(|beginning| message.strip_prefix(beginning));
    kinds.next()
}

/// The accepted values of a key, in the words of the message for another value; `None` if it is not allowed there.
fn allowed(key: &str) -> Option<String> {
    let Some(message) = answer(key, Value::Float(NUMBER.0)) else {
        return Some(ANYTHING.to_owned());
    };
    let words = match message.strip_prefix(NUMBER.1) {
        Some(words) => words,
        None if message.contains("` needs `") => "is not a string",
        None if message.contains("is not a table") => "is not a table",
        None if message.contains("written as its hash")
            || message.contains("is a string")
            || message.contains("must be a string") =>
        {
            return Some(message);
        }
        None if message.ends_with("exclude each other; write one") => {
            return Some("a pattern".to_owned());
        }
        // It belongs to another table of this kind, or to none.
        None => return None,
    };
    let Some(kind) = expected(words) else {
        return words
            .strip_prefix("is not allowed here; write ")
            .map(str::to_owned);
    };
    let (kind, more) = kind.split_once("; write ").unwrap_or((kind, ""));
    let message = |value: &str| answer(key, Value::from(value));
    Some(match kind {
        "list" => list(key),
        "string" => message(TEXT.0).map_or_else(|| kind.to_owned(), |message| text(&message)),
        "duration" => {
            // The messages for a too short and a too long duration.
            let short = message("1ms").or_else(|| message("0s"));
            let mut limits: Vec<_> = [short, message("8760h")].into_iter().flatten().collect();
            limits.dedup();
            match &limits[..] {
                [] => kind.to_owned(),
                [message] if message.contains("at least `1ms`") => format!("{kind}, `1ms` or more"),
                message => format!("{kind}: {}", message.join("; ").replace('|', "\\|")),
            }
        }
        "percentage" => more.to_owned(),
        size if size.starts_with("size") => {
            let message = message("0").unwrap_or_default();
            let least = message
                .split("at least ")
                .nth(1)
                .and_then(|message| message.split(' ').next());
            least.map_or_else(
                || size.to_owned(),
                |least| format!("{size}, {least} bytes or more"),
            )
        }
        kind if more.ends_with("or `\"off\"`") => format!("{kind}, or `\"off\"`"),
        kind => kind.to_owned(),
    })
}

/// The accepted elements of a list, from the message for the first one.
fn list(key: &str) -> String {
    let message = |first: Value| answer_of(key, Value::Array(vec![first]), &format!("{key}[0]"));
    let number = message(Value::Float(NUMBER.0)).unwrap_or_default();
    let kind = number.strip_prefix(NUMBER.1).and_then(expected);
    match kind {
        Some("string") => match message(Value::from(TEXT.0)).map(|message| text(&message)) {
            Some(kind) if kind != "string" => format!("list of: {kind}"),
            Some(_) | None => "list of strings".to_owned(),
        },
        Some(kind) => format!(
            "list, each a {}",
            kind.split("; write").next().unwrap_or(kind)
        ),
        // Each is one of some words.
        None => match number.split_once("is not allowed here; write ") {
            Some((_, words)) => format!("list of: {words}"),
            None => "list".to_owned(),
        },
    }
}

/// The accepted texts, from the message for another one.
fn text(message: &str) -> String {
    let message = message.strip_prefix(TEXT.1).unwrap_or(message);
    match expected(message.strip_prefix("this ").unwrap_or(message)) {
        Some(kind) => [" and no ", " nor an ", " nor a "]
            .iter()
            .fold(kind.to_owned(), |kind, and| kind.replace(and, " or "))
            .replace('|', "\\|"),
        None => "string".to_owned(),
    }
}

const HEAD: &str = "# Keys

Every key that the program reads, with the values that it accepts, in the words of the error message for another value. A test generates this page
from the code. [Configuration](reference/configuration.md) and the pages that it links have the meanings and defaults. `[]` is each element of a
list; `NAME` and `MEMBER` are names of your choice. A `/` separates the values of keys that several kinds of upstream or table have in common.

| key | accepted values |
|---|---|
";

fn page() -> String {
    let keys = keys();
    let mut page = HEAD.to_owned();
    for (key, asked) in &keys {
        let is_table = keys.keys().any(|other| {
            let inside = other.strip_prefix(key.as_str());
            inside.is_some_and(|inside| inside.starts_with(['.', '[']))
        });
        if is_table {
            continue;
        }
        let words: BTreeSet<_> = asked.iter().filter_map(|key| allowed(key)).collect();
        if words.is_empty() {
            // Keys that are read only to reject them.
            continue;
        }
        let several = words.len() > 1;
        let words: Vec<_> = words
            .into_iter()
            .filter(|words| !several || words != ANYTHING)
            .collect();
        writeln!(page, "| `{key}` | {} |", words.join(" / ")).unwrap();
    }
    page
}

#[test]
fn the_page_of_keys_is_what_is_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
    let page = page();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&file, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), page);
}

/// Tables of keys in the documentation: the page, the heading, the header cell of the keys, and the prefix of the keys.
const TABLES: [(&str, &str, &str, &str); 12] = [
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
fn defaults_are_those_of_the_program() {
    let documented = documented();
    let defaults: Table = include_str!("../defaults.toml").parse().unwrap();
    let mut tables = vec![(String::new(), defaults)];
    let mut checked = 0;
    while let Some((under, table)) = tables.pop() {
        for (name, value) in table {
            let key = format!("{under}{name}");
            if let Value::Table(inner) = value {
                tables.push((format!("{key}."), inner));
                continue;
            }
            let row = documented
                .get(&key)
                .unwrap_or_else(|| panic!("no row of `{key}`"));
            let shown = value.to_string();
            assert!(
                row[1].contains(&shown),
                "the default of `{key}` is {shown}: {row:?}"
            );
            checked += 1;
        }
    }
    assert!(checked > 25, "{checked}");
}
