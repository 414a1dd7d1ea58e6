//! Keeps the layers of `src/lib.rs`, of `gateway` and of the crates: imports go down only, and the pure crates know no
//! clock, socket, file or log.

#![expect(
    clippy::unwrap_used,
    reason = "sources that cannot be read fail the test"
)]

mod source_graph;

use std::fs;
use std::path::{Path, PathBuf};

use source_graph::{Module, all_files, edges};

/// A crate of the workspace.
struct Crate {
    /// Its folder in `crates/`.
    folder: &'static str,
    /// The crates of the workspace that it may depend on.
    below: &'static [&'static str],
    /// All its other dependencies, if it is pure.
    libraries: Option<&'static [&'static str]>,
}

/// The crates that the program is built from.
const CRATES: &[Crate] = &[
    Crate {
        folder: "patterns",
        below: &[],
        libraries: Some(&[
            "base64",
            "bytes",
            "jsonschema",
            "memchr",
            "proptest",
            "serde_json",
            "simdutf8",
            "thiserror",
            "wide",
        ]),
    },
    Crate {
        folder: "transport",
        below: &["dualgauge-patterns"],
        libraries: Some(&["http", "memchr", "thiserror", "wide"]),
    },
    Crate {
        folder: "recording",
        below: &["dualgauge-patterns"],
        libraries: Some(&[
            "base64",
            "bytes",
            "serde",
            "serde_json",
            "thiserror",
            "time",
        ]),
    },
    Crate {
        folder: "model",
        below: &["dualgauge-patterns", "dualgauge-transport"],
        libraries: Some(&[
            "base64",
            "bytes",
            "foldhash",
            "http",
            "ipnet",
            "itoa",
            "jsonwebtoken",
            "memchr",
            "proptest",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "time",
        ]),
    },
    Crate {
        folder: "net",
        below: &["dualgauge-patterns", "dualgauge-transport"],
        libraries: None,
    },
    Crate {
        folder: "sample",
        below: &[],
        libraries: None,
    },
];

/// The layers of the program, above the crates; modules of one layer do not name each other.
const LAYERS: &[&[&str]] = &[
    &["config", "telemetry"],
    &["upstream", "store"],
    &["gateway"],
    &["server"],
    &["app"],
    &["cli"],
];

/// A layer of `gateway`.
struct Layer {
    /// Its files, without `.rs`; a folder belongs to the layer of its file unless it is listed itself.
    files: &'static [&'static str],
}

/// The layers of `gateway`, from top to bottom: no file names one of a layer above its own.
const GATEWAY_LAYERS: &[Layer] = &[
    // The entries: choose the adapter of a request, or of a recorded call.
    Layer {
        files: &["gateway", "gateway/replay"],
    },
    // The adapters of the protocols.
    Layer {
        files: &[
            "gateway/event_stream",
            "gateway/legacy_socket",
            "gateway/rest",
            "gateway/rpc",
        ],
    },
    // The pipeline.
    Layer {
        files: &["gateway/serve"],
    },
    // The ways of a call.
    Layer {
        files: &[
            "gateway/agent_card",
            "gateway/link_call",
            "gateway/local_reply",
            "gateway/passthrough",
            "gateway/resource_metadata",
            "gateway/socket_call",
            "gateway/streamed_call",
            "gateway/subscribed_call",
            "gateway/translate",
        ],
    },
    // The steps that ways and adapters share: reading, sending, observing, responding.
    Layer {
        files: &[
            "gateway/call_response",
            "gateway/event_translation",
            "gateway/exchange",
            "gateway/failures",
            "gateway/headers",
            "gateway/identity",
            "gateway/offloaded_parsing",
            "gateway/old_failure",
            "gateway/progress_stream",
            "gateway/recorded_call",
            "gateway/recording",
            "gateway/request_body",
            "gateway/resource_challenges",
            "gateway/response",
            "gateway/response_body",
            "gateway/response_observer",
            "gateway/rpc_reply",
            "gateway/rpc_request",
            "gateway/session_listener",
            "gateway/sessions",
            "gateway/shadow",
            "gateway/stream_end",
            "gateway/stream_headers",
            "gateway/subscription_events",
            "gateway/translated_stream",
            "gateway/tunnel",
            "gateway/undelivered",
            "gateway/upstream_stream",
        ],
    },
    // The context of a call, and the state that calls share.
    Layer {
        files: &[
            "gateway/access_record",
            "gateway/call_context",
            "gateway/cancellation",
            "gateway/client_requests",
            "gateway/event_sessions",
            "gateway/guard_recorder",
            "gateway/labels",
            "gateway/log_levels",
            "gateway/offload",
            "gateway/peers",
            "gateway/recording/call_recorder",
            "gateway/request_ids",
            "gateway/request_line",
            "gateway/request_origin",
            "gateway/request_target",
            "gateway/runtime_plan",
            "gateway/session_streams",
            "gateway/session_table",
            "gateway/shadow/offload",
            "gateway/shadow/runner",
            "gateway/shared_state",
            "gateway/suspended_calls",
            "gateway/token_cache",
            "gateway/worker",
        ],
    },
];

/// Returns the layer of a file of `gateway`: that of the longest listed path.
fn gateway_layer(module: &Module) -> Option<usize> {
    let path = module.join("/");
    let listed = GATEWAY_LAYERS
        .iter()
        .enumerate()
        .flat_map(|(at, layer)| layer.files.iter().map(move |file| (at, *file)));
    let own = listed.filter(|(_, file)| {
        let rest = path.strip_prefix(file);
        let is_entry = *file == "gateway";
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') && !is_entry)
    });
    let longest = own.max_by_key(|(_, file)| file.len());
    longest.map(|(at, _)| at)
}

#[test]
fn no_file_of_the_gateway_names_one_of_a_layer_above() {
    let files = all_files();
    let edges = edges(&files);
    let mut faults = Vec::new();
    for module in files.keys().filter(|module| module[0] == "gateway") {
        let Some(own) = gateway_layer(module) else {
            faults.push(format!("{} has no layer", module.join("/")));
            continue;
        };
        for named in edges.get(module).into_iter().flatten() {
            if gateway_layer(named).is_some_and(|layer| layer < own) {
                let (module, named) = (module.join("/"), named.join("/"));
                faults.push(format!("{module} names {named}, which is above it"));
            }
        }
    }
    for file in GATEWAY_LAYERS.iter().flat_map(|layer| layer.files) {
        let module: Module = file.split('/').map(str::to_owned).collect();
        if !files.contains_key(&module) {
            faults.push(format!("{file} does not exist"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Names that a pure crate must not use.
const IMPURE: &[&str] = &[
    "std::time::Instant",
    "SystemTime",
    "now_utc",
    "now_local",
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

/// Returns the sources in a folder of the repository, with paths from its root.
fn sources_in(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(&root.join(folder), &mut found);
    assert!(found.len() > 5, "the sources were not found under {folder}");
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root).unwrap().to_path_buf(), text)
        })
        .collect()
}

/// Returns the sources of the program and of all crates.
fn all_sources() -> Vec<(PathBuf, String)> {
    let crates = CRATES.iter().map(|known| known.sources());
    let crates = crates.flat_map(|folder| sources_in(&folder));
    sources_in("src").into_iter().chain(crates).collect()
}

impl Crate {
    fn sources(&self) -> String {
        format!("crates/{}/src", self.folder)
    }
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Returns the module of a source of the program, from its path below the root of the repository.
fn module_of(path: &Path) -> String {
    let path = path.strip_prefix("src").unwrap();
    let first = path.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The code of a line, without comments.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[test]
fn imports_go_down_only() {
    let mut faults = Vec::new();
    for (path, text) in sources_in("src") {
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
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn paths_are_written_from_the_crate() {
    let mut faults = Vec::new();
    for (path, text) in all_sources() {
        for (number, line) in text.lines().enumerate() {
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
    for (path, _) in sources_in("src") {
        let module = module_of(&path);
        assert!(
            layer_of(&module).is_some() || module == "lib" || module == "main",
            "{} has no layer",
            path.display()
        );
    }
}

#[test]
fn pure_crates_name_no_clock_socket_file_or_log() {
    let mut faults = Vec::new();
    let pure = CRATES.iter().filter(|known| known.libraries.is_some());
    for (path, text) in pure.flat_map(|known| sources_in(&known.sources())) {
        for (number, line) in text.lines().enumerate() {
            for word in IMPURE.iter().filter(|word| code(line).contains(**word)) {
                faults.push(format!(
                    "{}:{}: a pure crate names {word}",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn only_the_command_line_starts_the_sample_server() {
    let program = sources_in("src");
    let named = program.iter().filter(|(_, text)| {
        let mut lines = text.lines();
        lines.any(|line| code(line).contains("dualgauge_sample"))
    });
    for (path, _) in named {
        let is_cli = path.to_string_lossy().contains("src/cli");
        assert!(is_cli, "{} names the sample server", path.display());
    }
}

/// Returns the names of the dependencies in some sections of the manifest of a crate.
fn dependencies(folder: &str, sections: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("crates").join(folder).join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let tables = sections.iter().filter_map(|section| manifest.get(*section));
    let names = tables.flat_map(|table| table.as_table().unwrap().keys().cloned());
    names.collect()
}

#[test]
fn every_crate_is_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
    for folder in folders.map(|entry| entry.file_name()) {
        assert!(
            CRATES.iter().any(|known| known.folder == folder),
            "{folder:?} is not in `CRATES`"
        );
    }
}

#[test]
fn crates_depend_on_crates_below_only() {
    let sections = ["dependencies", "dev-dependencies", "build-dependencies"];
    let mut faults = Vec::new();
    for known in CRATES {
        let named = dependencies(known.folder, &sections);
        let crates = named.iter().filter(|name| name.starts_with("dualgauge"));
        for name in crates.filter(|name| !known.below.contains(&name.as_str())) {
            faults.push(format!("crates/{} depends on {name}", known.folder));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn pure_crates_depend_on_known_libraries_only() {
    let mut faults = Vec::new();
    for known in CRATES {
        let Some(libraries) = known.libraries else {
            continue;
        };
        let mut named = dependencies(known.folder, &["dependencies", "build-dependencies"]);
        named.retain(|name| !name.starts_with("dualgauge"));
        for name in named
            .iter()
            .filter(|name| !libraries.contains(&name.as_str()))
        {
            faults.push(format!("crates/{} depends on {name}", known.folder));
        }
        assert_eq!(named.len(), libraries.len(), "{}", known.folder);
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
    ["crates/sample", "src/cli/demo.rs", "src/cli/demo"]
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
                    "{}:{}: `{word}` is of one system; it belongs into a route table",
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
        assert!(lines <= 500, "{} has {lines} lines", path.display());
    }
}
