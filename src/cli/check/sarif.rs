//! The report as SARIF 2.1.0, which code scanning services read.
//!
//! Used by `check`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::findings::{Finding, Weight};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// The root of relative files, which the reader of the document knows.
const ROOT: &str = "%SRCROOT%";

/// Renders the findings of one run.
pub(super) fn render(findings: &[Finding]) -> String {
    let results: Vec<Value> = findings.iter().map(result).collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "dualgauge",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": REPOSITORY,
                "rules": [
                    rule(Weight::Problem, "ConfigurationProblem", "A problem of the configuration."),
                    rule(Weight::Note, "ConfigurationNote", "A note on the configuration."),
                ],
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn rule(weight: Weight, name: &str, short: &str) -> Value {
    let heading = match weight {
        Weight::Problem => "problems",
        Weight::Note => "notes",
    };
    json!({
        "id": id(weight),
        "name": name,
        "shortDescription": { "text": short },
        "fullDescription": { "text": format!("{short} The message names the key, the value and the accepted values.") },
        "help": { "text": "`dualgauge check` reports it with file, line, key and hint." },
        "helpUri": format!("{REPOSITORY}/blob/main/docs/reference/check.md#{heading}"),
        "defaultConfiguration": { "level": level(weight) },
    })
}

fn id(weight: Weight) -> &'static str {
    match weight {
        Weight::Problem => "DUALGAUGE1",
        Weight::Note => "DUALGAUGE2",
    }
}

fn level(weight: Weight) -> &'static str {
    match weight {
        Weight::Problem => "error",
        Weight::Note => "note",
    }
}

fn result(finding: &Finding) -> Value {
    let mut place = json!({ "artifactLocation": artifact(&finding.file) });
    if let Some(position) = finding.position {
        place["region"] = json!({ "startLine": position.line });
        if let Some(column) = position.column {
            place["region"]["startColumn"] = column.into();
        }
    }
    let index = match finding.weight {
        Weight::Problem => 0,
        Weight::Note => 1,
    };
    json!({
        "ruleId": id(finding.weight),
        "ruleIndex": index,
        "level": level(finding.weight),
        "message": { "text": format!("{}: {}", finding.key, finding.text) },
        "locations": [{
            "physicalLocation": place,
            "logicalLocations": [{ "fullyQualifiedName": finding.key, "kind": "member" }],
        }],
    })
}

/// Returns the location of a file, as a URI (RFC 3986).
fn artifact(file: &Path) -> Value {
    let path = escaped(&file.to_string_lossy());
    match file.is_absolute() {
        true => json!({ "uri": format!("file://{path}") }),
        false => json!({ "uri": path, "uriBaseId": ROOT }),
    }
}

/// Escapes the characters that a path of a URI may not have.
fn escaped(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_uris() {
        let uri = |file: &str| artifact(Path::new(file));
        let inside = json!({ "uri": "routes/a%20b.toml", "uriBaseId": ROOT });
        assert_eq!(uri("routes/a b.toml"), inside);
        assert_eq!(uri("/etc/a.toml"), json!({ "uri": "file:///etc/a.toml" }));
    }
}
