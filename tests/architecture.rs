//! Keeps the layers of `src/lib.rs`: imports go down only, and the domain knows no clock, socket, file or log.

#![expect(
    clippy::unwrap_used,
    reason = "sources that cannot be read fail the test"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Layer by layer; modules of one layer do not name each other.
const LAYERS: &[&[&str]] = &[
    &["domain"],
    &["config", "telemetry"],
    &["upstream", "store"],
    &["gateway"],
    &["server", "sample"],
    &["app"],
    &["cli"],
];

/// What a pure module must not name.
const IMPURE: &[&str] = &[
    "std::time::Instant",
    "SystemTime",
    "std::fs",
    "std::net",
    "std::env",
    "std::io",
    "std::thread",
    "std::sync::Mutex",
    "std::sync::RwLock",
    "tokio",
    "hyper",
    "tracing",
    "figment",
    "prometheus",
    "async ",
    ".await",
    "println!",
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    assert!(
        found.len() > 5,
        "the sources were not found under {}",
        root.display()
    );
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(&root).unwrap().to_path_buf(), text)
        })
        .collect()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn module_of(path: &Path) -> String {
    let first = path
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_str()
        .unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The code of a line, without comments.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[test]
fn imports_go_down_only() {
    let mut faults = Vec::new();
    for (path, text) in all_sources() {
        let module = module_of(&path);
        let Some(own) = layer_of(&module) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for part in code(line).split("crate::").skip(1) {
                let named: String = part
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let Some(other) = layer_of(&named) else {
                    continue;
                };
                if named != module && other >= own {
                    faults.push(format!(
                        "{}:{}: {module} names {named}",
                        path.display(),
                        number + 1
                    ));
                }
            }
            if code(line).contains("super::super::") {
                faults.push(format!(
                    "{}:{}: write crate:: instead of super::super::",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_module_has_a_layer() {
    for (path, _) in all_sources() {
        let module = module_of(&path);
        assert!(
            layer_of(&module).is_some() || module == "lib" || module == "main",
            "{} has no layer",
            path.display()
        );
    }
}

#[test]
fn the_domain_is_pure() {
    let mut faults = Vec::new();
    for (path, text) in all_sources()
        .iter()
        .filter(|(path, _)| module_of(path) == "domain")
    {
        for (number, line) in text.lines().enumerate() {
            for word in IMPURE.iter().filter(|word| code(line).contains(**word)) {
                faults.push(format!(
                    "src/{}:{}: the domain names {word}",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Names, paths, methods, members and codes of the systems that the shipped route tables are for. Ordinary words
/// and those of the MCP specification (`tools/call`, `isError`, `structuredContent`) are not among them.
const OF_A_SYSTEM: &[&str] = &[
    "cdev",
    "kuzu",
    "pierre",
    "maxyychen",
    "krishdabhi",
    "bobmatnyc",
    "brianly1003",
    "async-io",
    "mcp-sqlite",
    "claude",
    "coaches",
    "coach_id",
    "favorite",
    "fitness",
    "/mcp/v1",
    "/api/repository",
    "/api/git",
    "/api/agent",
    "query_records",
    "insert_record",
    "execute_raw_query",
    "list_capabilities",
    "mcp.list_tools",
    "agent.chat",
    "status_updates",
    "authentication_failed",
    "resourcenotfound",
    "deprecation_warning",
    "git/push",
    "git/status",
    "workspace/",
    "session/focus",
    "-32030",
    "-32031",
    "-32032",
];

/// Where the systems may be named: the demo plays one.
fn may_name_systems(path: &Path) -> bool {
    ["sample.rs", "sample", "cli/demo.rs", "cli/demo"]
        .iter()
        .any(|part| path.starts_with(part))
}

#[test]
fn no_system_is_known_to_the_program() {
    let mut faults = Vec::new();
    for (path, text) in all_sources() {
        if may_name_systems(&path) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let line = line.to_ascii_lowercase();
            for word in OF_A_SYSTEM.iter().filter(|word| line.contains(**word)) {
                faults.push(format!(
                    "src/{}:{}: `{word}` is of one system; it belongs into a route table",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_file_is_longer_than_500_lines() {
    for (path, text) in all_sources() {
        let lines = text.lines().count();
        assert!(lines <= 500, "src/{} has {lines} lines", path.display());
    }
}
