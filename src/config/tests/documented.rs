//! The documentation has every key of the table, and the table has what the decoder reads and accepts.
//!
//! `docs/keys.md` is generated here. The test fails if it is not current; with `INSTA_UPDATE=always` it is rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use toml::{Table, Value};

use super::Fixture;
use crate::config::decode::CONFIG;
use crate::config::flags::{FILE, parse_flags};
use crate::config::key::{DefaultValue, DescribedValue, Description, Section, TableShape};
use crate::config::load::load;
use crate::config::table_reader::requested_keys;
use crate::config::value::{NameForm, RawValue, duration};

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

/// All keys of the table, by their form in the documentation.
pub(super) fn table_keys() -> BTreeMap<String, Vec<Description>> {
    let mut keys = BTreeMap::new();
    add_keys("", &CONFIG, &mut keys);
    add_keys("", &FILE, &mut keys);
    keys
}

fn add_keys(under: &str, section: &Section, keys: &mut BTreeMap<String, Vec<Description>>) {
    let more = section.more.iter().flat_map(|more| more.keys);
    for key in section.keys.iter().chain(more) {
        let described = key.describe();
        let path = format!("{under}{}", described.name);
        if let DescribedValue::Tables(section, shape) = described.value {
            let chosen = if described.name == "envelope" {
                "MEMBER"
            } else {
                "NAME"
            };
            let inside = match shape {
                TableShape::One => format!("{path}."),
                TableShape::List => format!("{path}[]."),
                TableShape::Named => format!("{path}.{chosen}."),
                TableShape::NamedLists => format!("{path}.{chosen}[]."),
            };
            add_keys(&inside, section, keys);
        }
        keys.entry(path).or_default().push(described);
    }
}

/// All keys that are read, by their form in the documentation.
pub(super) fn keys() -> BTreeMap<String, BTreeSet<String>> {
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
pub(super) fn answer(key: &str, value: Value) -> Option<String> {
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
pub(super) fn allowed(key: &str) -> Option<String> {
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

Every key that the program reads, with the values that it accepts and its default. A test generates this page from the table of keys in the code.
[Configuration](reference/configuration.md) and the pages that it links explain the keys. `[]` is each element of a list; `NAME` and `MEMBER` are
names of your choice. A `/` separates what several kinds of upstream or table have in common. `dualgauge schema` prints the same table as a
[JSON Schema](reference/configuration.md#json-schema).

| key | accepted values | default | meaning |
|---|---|---|---|
";

/// Joins the distinct cells of several entries.
fn joined(cells: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for cell in cells.filter(|cell| !cell.is_empty()) {
        if !distinct.contains(&cell) {
            distinct.push(cell);
        }
    }
    distinct.join(" / ").replace('|', "\\|")
}

/// The default of a key, as in a file.
pub(super) fn default(key: &Description) -> String {
    match &key.default {
        Some(DefaultValue::Fixed(value)) => format!("`{value}`").replace("\",\"", "\", \""),
        Some(DefaultValue::Computed(about)) => (*about).to_owned(),
        None if key.is_required => "required".to_owned(),
        None => String::new(),
    }
}

fn accepted(key: &Description) -> Option<String> {
    match &key.value {
        DescribedValue::Value { accepts, .. } => Some(accepts.clone()),
        DescribedValue::Tables(..) => None,
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (key, entries) in table_keys() {
        let values = entries.iter().filter(|entry| accepted(entry).is_some());
        let values: Vec<_> = values.collect();
        if values.is_empty() {
            continue;
        }
        let accepted = joined(values.iter().filter_map(|entry| accepted(entry)));
        let default = joined(values.iter().map(|entry| default(entry)));
        let about = joined(values.iter().map(|entry| entry.about.trim().to_owned()));
        writeln!(page, "| `{key}` | {accepted} | {default} | {about} |").unwrap();
    }
    page
}

#[test]
fn the_page_of_keys_is_that_of_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
    let page = page();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&file, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), page);
}

/// Keys that are read only to reject them.
const REJECTED: [&str; 6] = [
    "rollout.source.tls.insecure",
    "rollout.source.tls.verify",
    "rollout.store.tls.insecure",
    "rollout.store.tls.verify",
    "upstream.NAME.tls.insecure",
    "upstream.NAME.tls.verify",
];

#[test]
fn the_table_has_the_keys_that_are_read() {
    let (read, table) = (keys(), table_keys());
    let unknown: Vec<_> = read
        .keys()
        .filter(|key| !table.contains_key(*key) && !REJECTED.contains(&key.as_str()))
        .collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
    let unread: Vec<_> = table
        .keys()
        .filter(|key| !read.contains_key(*key))
        .collect();
    assert!(unread.is_empty(), "nothing reads {unread:?}");
}

/// A phrase of the table, in the words of the messages.
fn in_words_of_messages(accepts: &str) -> &str {
    let accepts = accepts.trim_end_matches(", or a list of them");
    match accepts {
        table if table.starts_with("table; ") => "table",
        range if range.starts_with("duration") && range != "duration, `1ms` or more" => "duration",
        percentages if percentages.ends_with("from 0 to 100 in steps of 0.001") => PERCENTAGES,
        other => other,
    }
}

const PERCENTAGES: &str = "a number from 0 to 100 in steps of 0.001";

/// A phrase of the messages, without what depends on other keys.
fn of_single_key(told: &str) -> Option<&str> {
    match told {
        ANYTHING | "a pattern" => None,
        range if range.starts_with("duration: ") => Some("duration"),
        "list, each a percentage" => Some(PERCENTAGES),
        other => Some(other),
    }
}

#[test]
fn a_message_for_another_value_has_the_accepted_values_of_the_table() {
    let read = keys();
    let mut faults = Vec::new();
    let mut checked = 0;
    for (key, entries) in table_keys() {
        let accepted: Vec<_> = entries.iter().filter_map(accepted).collect();
        let is_free = accepted.iter().any(|words| words == ANYTHING);
        if accepted.is_empty() || accepted.len() < entries.len() || is_free {
            continue;
        }
        let table = accepted.iter().map(|words| in_words_of_messages(words));
        let table: BTreeSet<&str> = table.collect();
        let asked = read.get(&key).into_iter().flatten();
        let told: Vec<String> = asked.filter_map(|key| allowed(key)).collect();
        let told: BTreeSet<&str> = told.iter().filter_map(|told| of_single_key(told)).collect();
        let untold: Vec<_> = told.difference(&table).collect();
        // `silence` of a route has limits that depend on other keys.
        if untold.is_empty() || (key == "route[].silence" && untold == [&"duration"]) {
            checked += 1;
        } else {
            faults.push(format!("{key}: table {table:?}, messages {told:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 180, "{checked}");
}

/// Returns the durations in a phrase of the table: 10 s and 24 h of "duration from `10s` to `24h`".
fn bounds(accepts: &str) -> Vec<Duration> {
    let texts = accepts.split('`').skip(1).step_by(2);
    let parse = |text: &str| {
        let found = RawValue {
            value: &text.into(),
            spelling: NameForm::Typed,
        };
        duration(found).unwrap()
    };
    texts.map(parse).collect()
}

#[test]
fn durations_are_accepted_within_the_bounds_of_the_table() {
    const STEP: Duration = Duration::from_millis(1);
    let read = keys();
    let mut checked = Vec::new();
    for (key, entries) in table_keys() {
        for accepts in entries.iter().filter_map(accepted) {
            // Messages have the bounds of all other durations.
            if in_words_of_messages(&accepts) != "duration" || accepts == "duration" {
                continue;
            }
            let (least, most) = match bounds(&accepts)[..] {
                [least] => (least, None),
                [least, most] => (least, Some(most)),
                _ => panic!("{key}: {accepts}"),
            };
            for asked in &read[&key] {
                let told =
                    |time: Duration| answer(asked, Value::from(format!("{}ms", time.as_millis())));
                for accepted in [Some(least), most].into_iter().flatten() {
                    assert_eq!(told(accepted), None, "{asked}: {accepted:?}");
                }
                let over = most.map(|most| most + STEP);
                for refused in [Some(least - STEP), over].into_iter().flatten() {
                    assert!(told(refused).is_some(), "{asked}: {refused:?}");
                }
            }
            checked.push(key.clone());
        }
    }
    let ranges = [
        "flag[].guard.window",
        "rollout.source.interval",
        "rollout.source.timeout",
        "rollout.store.timeout",
        "upstream.NAME.health.every",
    ];
    assert_eq!(checked, ranges);
}
