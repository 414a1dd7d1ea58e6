//! The keys that are read are those of the documentation, and what may stand under each is what a wrong value is told.
//!
//! `docs/keys.md` is made here. Where it is not what it should be, the test fails; with `INSTA_UPDATE=always` it is
//! written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use super::Fixture;
use crate::config::flags::parse_flags;
use crate::config::load::load;
use crate::config::reader::asked;

const MAIN: &str = include_str!("every_key.toml");
const FLAGS: &str = include_str!("every_flag.toml");

/// Names that the configurations above have chosen, and what stands for them.
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

/// All keys that are asked for, as they are and as the documentation writes them.
fn keys() -> BTreeMap<String, BTreeSet<String>> {
    let _ = asked::take();
    let main: Table = MAIN.parse().unwrap();
    let _ = told(&main, "");
    let _ = parse_flags(Path::new("flags.toml"), FLAGS);
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for key in asked::take() {
        keys.entry(general(&key)).or_default().insert(key);
    }
    keys
}

/// What is told of a key.
fn told(main: &Table, key: &str) -> Option<String> {
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

/// Puts a value that hardly anything takes under a key.
fn put(at: &mut Value, key: &str) {
    let mut at = at;
    for step in key.split(['.', '[']) {
        at = match step.strip_suffix(']') {
            Some(index) => {
                let index: usize = index.parse().unwrap();
                at.as_array_mut().unwrap().get_mut(index).unwrap()
            }
            None => {
                let table = at.as_table_mut().unwrap();
                table.entry(step).or_insert(Value::Boolean(false))
            }
        };
    }
    *at = Value::Float(-0.5);
}

/// What may stand under a key, in the words by which another value is refused.
fn allowed(key: &str) -> Option<String> {
    let text = if key.starts_with("flag[") {
        FLAGS
    } else {
        MAIN
    };
    let mut main = Value::Table(text.parse().unwrap());
    put(&mut main, key);
    told(main.as_table().unwrap(), key)
}

const HEAD: &str = "# Keys

Every key that is read, with what may stand under it: the words in which any other value is refused. This page is made by a
test from the code that reads. What the keys mean, and their defaults, stand in [configuration](configuration.md) and in the
pages that it names. `[]` is each element of a list, `NAME` and `MEMBER` are names of your own choice. What is a pattern
takes any value of JSON.

| key | what it takes |
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
        let words: Vec<_> = words.into_iter().collect();
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
