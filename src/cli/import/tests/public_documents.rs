//! The round trip of the public documents that `.ci/install-documents` installs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::round_trip::{Difference, differences, there_and_back};
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

/// The reason of a difference that the test does not know.
const UNKNOWN: &str = "unknown";

/// Returns the reason of a difference, if it has one of the known ones.
fn reason(difference: &Difference) -> Option<&'static str> {
    let Difference {
        part,
        old,
        new,
        parameters,
        ..
    } = difference;
    match *part {
        "operation" => Some("a server is declared beside the path"),
        "parameter" => {
            // `PLACE NAME REQUIRED SCHEMA TEXT`
            let head = |text: &str| text.split(' ').take(2).collect::<Vec<_>>().join(" ");
            let own = head(new.as_str()?);
            let mut known = old.as_array()?.iter().filter_map(Value::as_str);
            let known = known.find(|known| head(known) == own)?;
            let is_lost =
                |member: &str| known.contains(member) && !new.to_string().contains(member);
            match () {
                () if is_lost("$schema") => Some("the schema names a `$schema` of its own"),
                () if is_lost("pattern\"") => Some("the proxy cannot compile the `pattern`"),
                () => None,
            }
        }
        "body" => {
            let (old, new) = (old.as_object()?, new.as_object()?);
            let mut names = old.keys().chain(new.keys());
            let is_twin =
                |name: &String| old.get(name) == new.get(name) || parameters.contains(name);
            names
                .all(is_twin)
                .then_some("a parameter has the name of the member")
        }
        "required" => {
            let members = old["members"].as_array()?;
            let is_known = |name: &&Value| {
                !members.contains(name) || new.as_array().is_some_and(|new| new.contains(name))
            };
            let mut required = old["required"].as_array()?.iter();
            let all_known = required.all(|name| is_known(&name));
            all_known.then_some("a required member has no schema")
        }
        "response" => {
            let (old, new) = (old.get(1)?, new.get(1)?);
            let keys = |schema: &Value| schema.as_object().map(|all| all.keys().cloned().collect());
            let own: Option<Vec<String>> = keys(old);
            let parts = new["anyOf"].as_array().into_iter().flatten();
            let is_one_of_several = parts.map(keys).any(|part| part == own);
            match () {
                () if is_one_of_several => Some("several successes have a schema"),
                () if old.to_string().contains("$dynamicRef") => {
                    Some("a dynamic reference names nothing in another document")
                }
                () if *old == json!({ "type": "object", "properties": {} }) => {
                    Some("an object without members is left out")
                }
                () => None,
            }
        }
        _ => None,
    }
}

/// The differences between public documents and those of their routes: `FILE METHOD /path PART: REASON`.
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
        for difference in differences(&document, &generated, &base_of(&document)) {
            let reason = reason(&difference);
            let Difference {
                place,
                part,
                old,
                new,
                ..
            } = difference;
            if reason.is_none() || std::env::var_os("SHOW").is_some() {
                eprintln!("{file} {place} {part}: {new} instead of {old}");
            }
            let reason = reason.unwrap_or(UNKNOWN);
            found.push_str(&format!("{file} {place} {part}: {reason}\n"));
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
    let unexplained: Vec<&&str> = found
        .iter()
        .filter(|line| line.ends_with(UNKNOWN))
        .collect();
    assert!(unexplained.is_empty(), "no known reason: {unexplained:#?}");
    assert!(
        more.is_empty() && fewer.is_empty(),
        "these differ now: {more:#?}\nthese of {DIFFERENCES} do not: {fewer:#?}"
    );
}
