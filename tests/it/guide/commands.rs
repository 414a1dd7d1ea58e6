//! Every command of the program that stands in a page has a name and options that the program knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{blocks, words};
use crate::pages;
use crate::support::{program, run_to_end};

/// The pages that are read.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = pages::of(&root.join("docs")).into_iter();
    let more = ["README.md", "deploy/README.md"].map(|name| root.join(name));
    let pages = docs.chain(more).map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path.display().to_string(), text)
    });
    pages.collect()
}

/// The options that a command knows, by its help.
fn options(names: &[String]) -> BTreeSet<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ended = run_to_end(program(&[&names[..], &["--help"]].concat()));
    assert_eq!(ended.code, Some(0), "{names:?}: {ended:?}");
    let no_option = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let words = ended.output.split(no_option);
    let options = words.filter(|word| word.starts_with('-') && word.len() > 1);
    options.map(str::to_owned).collect()
}

#[test]
fn every_command_in_a_page_is_one_of_the_program() {
    let mut known: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    let mut seen = 0;
    for (page, text) in pages() {
        for block in blocks(&text) {
            let whole = block.text.replace("\\\n", " ");
            for line in whole.lines() {
                let line = line.trim_start().trim_start_matches("$ ");
                let Some(line) = line.strip_prefix("dualgauge ") else {
                    continue;
                };
                let line = line.split(" #").next().unwrap();
                let words = words(line);
                let is_name = |word: &&String| {
                    word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
                        && !word.starts_with('-')
                };
                let most = if words[0] == "flags" { 2 } else { 1 };
                let names: Vec<String> = words
                    .iter()
                    .take_while(is_name)
                    .take(most)
                    .cloned()
                    .collect();
                assert!(!names.is_empty(), "{page}: {line}");
                let options = known
                    .entry(names.clone())
                    .or_insert_with(|| options(&names));
                let given = words.iter().filter(|word| word.starts_with("--"));
                for option in given.map(|option| option.split('=').next().unwrap()) {
                    assert!(
                        options.contains(option),
                        "{page}: `dualgauge {line}`: {option}"
                    );
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 25, "{seen}");
}
