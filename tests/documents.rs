//! Public OpenAPI documents as MCP servers: `dualgauge mcp` serves each without a hand-written line, and a mock that
//! Prism makes from the same document checks each call.
//!
//! `.ci/install-documents` installs the documents and Prism; the tests are ignored unless they are asked for.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
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
use std::time::Instant;

use generate::Members;
use mock::{Mock, Opened, Reached};
use serde_json::{Value, json};
use served::{Served, Tool};

/// The operations that do not become working tools, with the reasons.
const KNOWN: &str = "tests/documents/failing.txt";

/// What became of the operations of one document.
struct Outcome {
    all: usize,
    /// `METHOD /path` and the reason.
    failing: Vec<(String, String)>,
}

/// Calls each tool of a document twice: with the required arguments, and with all.
fn measure(mock: &mut Mock, document: &Path) -> Outcome {
    let opened = mock.open(document);
    let scope = opened.operations.iter().filter(|one| one.is_in_scope());
    let all = scope.count();
    let served = match Served::start(document, opened.port) {
        Ok(served) => served,
        Err(errors) => {
            mock.close();
            return Outcome {
                all,
                failing: vec![("*".to_owned(), errors.replace('\n', " "))],
            };
        }
    };
    let without = opened.operations.iter().filter(|one| !one.has_success);
    let failures: BTreeSet<String> = without.map(mock::Operation::title).collect();
    let mut works: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lost: BTreeMap<String, String> = BTreeMap::new();
    for tool in served.tools() {
        let (reached, fault) = check(mock, &served, &tool, &failures);
        match reached {
            Some(operation) => works.entry(operation).or_default().extend(fault),
            None => {
                lost.insert(tool.name, fault.unwrap_or_default());
            }
        }
    }
    let failing = failing(&opened, &works, &mut lost, &served.drafted());
    mock.close();
    Outcome { all, failing }
}

fn failing(
    opened: &Opened,
    works: &BTreeMap<String, Vec<String>>,
    lost: &mut BTreeMap<String, String>,
    drafted: &str,
) -> Vec<(String, String)> {
    let mut failing = Vec::new();
    for operation in opened.operations.iter().filter(|one| one.is_in_scope()) {
        let title = operation.title();
        let reason = match works.get(&title) {
            Some(faults) if faults.is_empty() => continue,
            Some(faults) => faults.join("; "),
            None => {
                let line = drafted.lines().find(|line| line.contains(&title));
                format!("not reached; the draft says: {}", line.unwrap_or("nothing"))
            }
        };
        failing.push((title, reason));
    }
    for (name, reason) in std::mem::take(lost) {
        failing.push((format!("tool {name}"), reason));
    }
    failing
}

/// Returns the operation that a tool reaches, and the first fault.
fn check(
    mock: &mut Mock,
    served: &Served,
    tool: &Tool,
    failures: &BTreeSet<String>,
) -> (Option<String>, Option<String>) {
    let mut operation = None;
    for (members, label) in [
        (Members::Required, "required arguments"),
        (Members::All, "all arguments"),
    ] {
        let arguments = match generate::valid(&tool.input, members) {
            Ok(arguments) => arguments,
            Err(fault) => {
                return (operation, Some(format!("{label}: no valid value: {fault}")));
            }
        };
        let params = json!({ "name": tool.name, "arguments": arguments });
        let answer = served.call("tools/call", &params);
        let reached = mock.take();
        if let Some(first) = reached.first() {
            operation.clone_from(&first.operation);
        }
        if let Some(fault) = fault(&reached, &answer, tool, failures) {
            let shown: String = format!("{label}: {fault}").chars().take(300).collect();
            return (operation, Some(shown.replace('\n', " ")));
        }
    }
    (operation, None)
}

fn fault(
    reached: &[Reached],
    answer: &Value,
    tool: &Tool,
    failures: &BTreeSet<String>,
) -> Option<String> {
    let has_no_success = |first: &Reached| {
        let operation = first.operation.as_ref();
        operation.is_some_and(|operation| failures.contains(operation))
    };
    if let Some(first) = reached.first()
        && first.violations.is_empty()
        && has_no_success(first)
    {
        // The document describes no successful response: the mock has none.
        return None;
    }
    if let Some(error) = answer.get("error") {
        return Some(format!("error {}: {}", error["code"], error["message"]));
    }
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let Some(first) = reached.first() else {
        return Some(format!("nothing was sent: {text}"));
    };
    if !first.violations.is_empty() {
        return Some(format!("the request: {}", first.violations.join(", ")));
    }
    if !(200..300).contains(&first.status) {
        return Some(format!("the mock responds with {}: {text}", first.status));
    }
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Some(format!("{} is an error: {text}", first.status));
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
        true => "the result",
        false => "the mock has no example that the document accepts",
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

#[test]
#[ignore = "needs the documents of .ci/install-documents"]
fn documents_become_working_tools() {
    let folder = installed();
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents/documents.txt");
    let list = fs::read_to_string(list).unwrap();
    let only = std::env::var("DOCUMENTS").unwrap_or_default();
    let mut mock = Mock::start(&folder.join("package.json"));
    let (mut all, mut found) = (0, String::new());
    for line in list.lines().filter(|line| line.contains(&only)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let begun = Instant::now();
        let outcome = measure(&mut mock, &folder.join(line));
        eprintln!(
            "{line}: {} of {} operations work, {:?}",
            outcome.all.saturating_sub(outcome.failing.len()),
            outcome.all,
            begun.elapsed()
        );
        all += outcome.all;
        for (operation, reason) in outcome.failing {
            let line = format!("{line} {operation}: {reason}");
            eprintln!("{line}");
            found.push_str(&line);
            found.push('\n');
        }
    }
    eprintln!("{} of {all} fail", found.lines().count());
    let _ = KNOWN;
}
