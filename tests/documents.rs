//! Public OpenAPI documents as MCP servers: `dualgauge mcp` serves each without a hand-written line, and a mock that
//! Prism makes from the same document checks each call.
//!
//! `.ci/install-documents` installs the documents and Prism; the tests are ignored unless they are asked for.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a server that does not do as the test says fails the test"
)]

#[path = "documents/generate.rs"]
mod generate;
#[path = "documents/mock.rs"]
mod mock;
#[path = "documents/served.rs"]
mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use generate::Members;
use mock::{Mock, Operation, Reached};
use serde_json::{Value, json};
use served::{Served, Tool};

/// The documents, and how many of their operations are called: `FILE`, or `FILE 1/4` for each fourth one.
const DOCUMENTS: &str = "tests/documents/documents.txt";
/// The operations that do not become working tools, with the reasons: `FILE METHOD /path: reason`.
const FAILING: &str = "tests/documents/failing.txt";
/// The beginning of a fault of a result.
const RESULT: &str = "the result";
/// The least share of all operations that become working tools.
const WANTED: f64 = 0.98;

/// Calls the tools of each so many operations of a document; returns the title of each operation with its fault.
fn measure(mock: &mut Mock, document: &Path, step: usize) -> Vec<(String, Option<String>)> {
    let opened = mock.open(document);
    let scope = opened.operations.iter().filter(|one| one.is_in_scope());
    let scope: Vec<&Operation> = scope.step_by(step).collect();
    let outcome = match Served::start(document, opened.port) {
        Ok(served) => {
            let drafted = served.drafted();
            let tools = Tools {
                by_operation: by_operation(&drafted, &opened.operations),
                all: served.tools(),
                drafted,
            };
            let scope = scope.iter();
            let mut fault = |one: &&Operation| tools.fault(mock, &served, one);
            scope.map(|one| (one.title(), fault(one))).collect()
        }
        Err(errors) => {
            let errors = errors.replace('\n', " ");
            let scope = scope.iter();
            scope
                .map(|one| (one.title(), Some(errors.clone())))
                .collect()
        }
    };
    mock.close();
    outcome
}

/// The tools of a document.
struct Tools {
    all: Vec<Tool>,
    /// Their names, by the title of the operation.
    by_operation: BTreeMap<String, Vec<String>>,
    drafted: String,
}

impl Tools {
    /// Calls the tools of an operation; returns the first fault.
    fn fault(&self, mock: &mut Mock, served: &Served, operation: &Operation) -> Option<String> {
        let title = operation.title();
        let Some(names) = self.by_operation.get(&title) else {
            let start = format!("#   {title}: ");
            let mut lines = self.drafted.lines();
            let why = lines.find_map(|line| line.strip_prefix(&start));
            return Some(format!(
                "no tool: {}",
                why.unwrap_or("the draft says nothing")
            ));
        };
        let mut tools = self.all.iter().filter(|tool| names.contains(&tool.name));
        tools.find_map(|tool| check(mock, served, tool, operation))
    }
}

/// Returns the names of the tools of each operation, as the draft says.
fn by_operation(drafted: &str, operations: &[Operation]) -> BTreeMap<String, Vec<String>> {
    let table: toml::Table = drafted.parse().unwrap();
    let mut titles: BTreeMap<String, String> = BTreeMap::new();
    for operation in operations {
        titles.insert(without_holes(&operation.title()), operation.title());
    }
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for route in table["route"].as_array().unwrap() {
        let rest = without_holes(route["rest"].as_str().unwrap());
        let (method, path) = rest.split_once(' ').unwrap();
        // The path of the server comes before that of the operation.
        let mut ends = path.match_indices('/').map(|(at, _)| &path[at..]);
        let title = ends.find_map(|end| titles.get(&format!("{method} {end}")));
        let name = route["params"]["name"].as_str().unwrap();
        if let Some(title) = title {
            found
                .entry(title.clone())
                .or_default()
                .push(name.to_owned());
        }
    }
    found
}

/// Returns a method and a path without its query and without the names and types of its parameters.
fn without_holes(title: &str) -> String {
    let mut depth = 0;
    let mut text = String::new();
    for character in title.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            '?' if depth == 0 => break,
            _ if depth > 0 => continue,
            _ => {}
        }
        text.push(character);
    }
    text
}

/// Calls a tool twice: with the required arguments, and with all. Returns the first fault.
fn check(mock: &mut Mock, served: &Served, tool: &Tool, operation: &Operation) -> Option<String> {
    for (members, label) in [
        (Members::Required, "required arguments"),
        (Members::All, "all arguments"),
    ] {
        let arguments = match generate::valid(&tool.input, members) {
            Ok(arguments) => arguments,
            Err(fault) => return Some(shown(label, &format!("no valid value: {fault}"))),
        };
        let params = json!({ "name": tool.name, "arguments": arguments });
        let call = |mock: &mut Mock| {
            let answer = served.call("tools/call", &params);
            fault(&mock.take(), &answer, tool, operation)
        };
        let Some(first) = call(mock) else {
            continue;
        };
        // Some documents have examples that contradict their own schemas.
        if first.starts_with(RESULT) {
            mock.respond_with("random");
            let second = call(mock);
            mock.respond_with("examples");
            if second.is_none() {
                continue;
            }
        }
        return Some(shown(label, &first));
    }
    None
}

fn shown(label: &str, fault: &str) -> String {
    const LONGEST: usize = 200;
    let text = format!("{label}: {fault}").replace('\n', " ");
    text.chars().take(LONGEST).collect()
}

fn fault(
    reached: &[Reached],
    answer: &Value,
    tool: &Tool,
    operation: &Operation,
) -> Option<String> {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let Some(first) = reached.first() else {
        return Some(format!(
            "nothing was sent: {text}{}",
            answer["error"]["message"]
        ));
    };
    if first
        .operation
        .as_ref()
        .is_some_and(|one| *one != operation.title())
    {
        return Some(format!("it reaches {:?}", first.operation));
    }
    if !first.violations.is_empty() {
        return Some(format!("the request: {}", first.violations.join(", ")));
    }
    if !operation.has_success {
        // The document describes no successful response: the mock has none.
        return None;
    }
    if let Some(error) = answer.get("error") {
        return Some(format!("error {}: {}", error["code"], error["message"]));
    }
    if !(200..300).contains(&first.status) || result.get("isError") == Some(&Value::Bool(true)) {
        return Some(format!("the mock responds with {}: {text}", first.status));
    }
    let schema = tool.output.as_ref()?;
    let Some(value) = result.get("structuredContent") else {
        return Some(format!("no structured content: {text}"));
    };
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(fault) => return Some(format!("outputSchema: {fault}")),
    };
    let fault = validator.validate(value).err()?;
    let from = match first.doubts.is_empty() {
        true => RESULT,
        false => "the result, of which Prism says that the document does not accept it",
    };
    Some(format!("{from}: {} {fault}", fault.instance_path()))
}

/// Returns the folder with the documents.
fn installed() -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_dualgauge"));
    let folder = own.ancestors().nth(2).unwrap().join("documents");
    assert!(
        folder.exists(),
        "{} is missing; run .ci/install-documents",
        folder.display()
    );
    folder
}

/// Returns the path of a document: one of a package, or one that an application of our own prints.
fn place(folder: &Path, file: &str) -> PathBuf {
    match file.contains('/') {
        true => folder.join("node_modules").join(file),
        false => folder.join(file),
    }
}

/// Reads `FILE` or `FILE 1/4`.
fn listed(line: &str) -> (&str, usize) {
    match line.split_once(" 1/") {
        Some((file, step)) if std::env::var_os("ALL").is_none() => (file, step.parse().unwrap()),
        Some((file, _)) => (file, 1),
        None => (line, 1),
    }
}

/// `DOCUMENTS=part` calls only the documents whose name has this part, `ALL=1` all their operations, and `UPDATE=1` writes
/// the list of failing operations.
#[test]
#[ignore = "needs the documents of .ci/install-documents"]
fn documents_become_working_tools() {
    let folder = installed();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents = fs::read_to_string(root.join(DOCUMENTS)).unwrap();
    let known = fs::read_to_string(root.join(FAILING)).unwrap_or_default();
    let only = std::env::var_os("DOCUMENTS").unwrap_or_default();
    let only = only.to_str().unwrap();
    let mut mock = Mock::start(&folder.join("package.json"));
    let (mut all, mut working, mut found, mut seen) = (0, 0, Vec::new(), BTreeSet::new());
    for line in documents.lines().filter(|line| line.contains(only)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (file, step) = listed(line);
        let outcome = measure(&mut mock, &place(&folder, file), step);
        let works = outcome.iter().filter(|(_, fault)| fault.is_none()).count();
        eprintln!("{file}: {works} of {} operations work", outcome.len());
        all += outcome.len();
        working += works;
        for (title, fault) in outcome {
            let name = format!("{file} {title}: ");
            found.extend(fault.map(|fault| format!("{name}{fault}")));
            seen.insert(name);
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        let text = found.join("\n") + "\n";
        fs::write(root.join(FAILING), text).unwrap();
    }
    let expected = known
        .lines()
        .filter(|line| seen.iter().any(|name| line.starts_with(name)));
    let (expected, found): (BTreeSet<&str>, BTreeSet<&str>) = (
        expected.collect(),
        found.iter().map(String::as_str).collect(),
    );
    let worse: Vec<&&str> = found.difference(&expected).collect();
    let better: Vec<&&str> = expected.difference(&found).collect();
    eprintln!("{working} of {all} operations work");
    assert!(
        worse.is_empty() && better.is_empty(),
        "these fail now: {worse:#?}\nthese of {FAILING} do not, or for another reason: {better:#?}"
    );
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let share = f64::from(u32::try_from(working).unwrap()) / all as f64;
    let is_whole = only.is_empty() && std::env::var_os("ALL").is_some();
    assert!(share >= WANTED || !is_whole, "only {share:.4} work");
}
