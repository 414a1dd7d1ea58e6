//! The round trip of the public documents that `.ci/install-documents` installs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::round_trip::{differences, there_and_back};
use crate::cli::import::read;
use dualgauge_model::import::upgrade_swagger;

/// Returns the path that precedes those of a document.
fn base_of(document: &Value) -> String {
    let server = &document["servers"][0];
    let mut url = server["url"].as_str().unwrap_or_default().to_owned();
    for (name, variable) in server["variables"].as_object().into_iter().flatten() {
        let default = variable["default"].as_str().unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |begin| &rest[begin..]),
        None => &url,
    };
    path.trim_end_matches('/').to_owned()
}

/// The differences between public documents and those of their routes: `FILE METHOD /path PART`.
const DIFFERENCES: &str = "tests/documents/differences.txt";

/// `UPDATE=1` writes the list of differences, and `DOCUMENTS=part` compares only the documents whose name has this part.
#[test]
#[ignore = "needs the documents of .ci/install-documents"]
#[expect(
    clippy::disallowed_methods,
    reason = "options of this test, no configuration of the program"
)]
fn public_documents_come_back_but_for_the_known_differences() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().nth(3).unwrap().join("documents");
    let documents = std::fs::read_to_string(root.join("tests/documents/documents.txt")).unwrap();
    let only = std::env::var("DOCUMENTS").unwrap_or_default();
    let mut found = String::new();
    let lines = documents.lines().filter(|line| line.contains(&only));
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let file = line.split(' ').next().unwrap();
        let path = match file.contains('/') {
            true => folder.join("node_modules").join(file),
            false => folder.join(file),
        };
        let document = read::read(&path).unwrap();
        let (_, generated) = there_and_back(&document);
        let document = match document.get("swagger") {
            Some(_) => upgrade_swagger(&document).unwrap(),
            None => document,
        };
        for [place, part, values] in differences(&document, &generated, &base_of(&document)) {
            found.push_str(&format!("{file} {place} {part}\n"));
            if std::env::var_os("SHOW").is_some() {
                let values: String = values.chars().take(3000).collect();
                eprintln!("{file} {place} {part}: {values}");
            }
        }
    }
    let read_known = || std::fs::read_to_string(root.join(DIFFERENCES)).unwrap_or_default();
    if std::env::var_os("UPDATE").is_some() {
        let known = read_known();
        let comments = known.lines().filter(|line| line.starts_with('#'));
        let comments: String = comments.map(|line| format!("{line}\n")).collect();
        std::fs::write(root.join(DIFFERENCES), comments + &found).unwrap();
    }
    let known = read_known();
    let is_named = |line: &&str| !line.starts_with('#') && line.contains(&only);
    let known: BTreeSet<&str> = known.lines().filter(is_named).collect();
    let found: BTreeSet<&str> = found.lines().collect();
    let more: Vec<&&str> = found.difference(&known).collect();
    let fewer: Vec<&&str> = known.difference(&found).collect();
    assert!(
        more.is_empty() && fewer.is_empty(),
        "these differ now: {more:#?}\nthese of {DIFFERENCES} do not: {fewer:#?}"
    );
}
