//! A REST API in front of a server with tools: routes with their documentation, and a list of what they serve.
//!
//! `POST /NAME` takes the arguments as its body. A tool that only reads has a GET as well, with its arguments in the
//! query. Schemas are copied into the routes and never followed, so that a looping one does no harm. Laws (tested):
//! every tool with a name is served, or is left out with a reason; the routes are a valid table for any list of tools.
//!
//! Used by `cli`.

mod any_list;
mod docs;
mod query;
mod sample;
#[cfg(test)]
mod tests;
mod tool;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::refs::{DocumentFault, shown, text};
use super::report::LeftOut;
use super::write::quoted;

pub use any_list::check_any_list;
use query::QueryCall;
use sample::{Sample, sample};
use tool::Tool;

/// The most tools that are served.
const MOST_TOOLS: usize = 10_000;
/// The longest name of a route.
const LONGEST_NAME: usize = 80;

/// The properties of the API that the tools do not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestApiOptions {
    /// Paths that are in use, each with its HTTP method.
    pub reserved: Vec<(&'static str, &'static str)>,
}

/// A drafted REST API.
#[derive(Debug, Clone, PartialEq)]
pub struct RestApi {
    /// The routes, as TOML.
    pub routes: String,
    /// The operations, in the order of the tools.
    pub operations: Vec<RestApiOperation>,
    /// The tools that are not served, or only by POST, each with the reason.
    pub notes: Vec<LeftOut>,
}

/// An operation of the API.
#[derive(Debug, Clone, PartialEq)]
pub struct RestApiOperation {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with the names of the query.
    pub target: String,
    /// The title or description of the tool, on one line.
    pub summary: String,
    /// Example arguments.
    pub arguments: Value,
    /// The required members for which the schema names no valid value. In `arguments`, each has a placeholder or is absent.
    pub placeholders: Vec<String>,
}

/// Drafts the API of the result of `tools/list`.
///
/// # Errors
/// A document without a list of tools.
pub fn draft_rest_api(tools: &Value, options: &RestApiOptions) -> Result<RestApi, DocumentFault> {
    let Some(tools) = tools.get("tools").and_then(Value::as_array) else {
        let what = "`tools` is missing: it is not the result of `tools/list`";
        return Err(DocumentFault::Kind(what.to_owned()));
    };
    let mut draft = RestApiDraft::new(options);
    draft.assign(tools.iter().take(MOST_TOOLS));
    for (index, tool) in tools.iter().enumerate() {
        if index >= MOST_TOOLS {
            draft.leave_out(
                &format!("{} further tools", tools.len() - MOST_TOOLS),
                &format!("at most {MOST_TOOLS} are served; choose some with `--include`"),
            );
            break;
        }
        draft.add(tool);
    }
    Ok(draft.finish())
}

struct RestApiDraft<'o> {
    options: &'o RestApiOptions,
    routes: String,
    operations: Vec<RestApiOperation>,
    notes: Vec<LeftOut>,
    names: BTreeSet<String>,
    /// The path and the route of each tool, by name.
    assigned: BTreeMap<String, (String, String)>,
    routes_by_name: BTreeSet<String>,
    paths: BTreeSet<String>,
    numbers: BTreeMap<String, usize>,
}

impl<'o> RestApiDraft<'o> {
    fn new(options: &'o RestApiOptions) -> RestApiDraft<'o> {
        let of_posts = options.reserved.iter();
        let of_posts = of_posts.filter(|(method, _)| *method == "POST");
        RestApiDraft {
            options,
            routes: "# The tools of the server as a REST API. Written by `dualgauge rest`.\n"
                .to_owned(),
            operations: Vec::new(),
            notes: Vec::new(),
            names: BTreeSet::new(),
            assigned: BTreeMap::new(),
            routes_by_name: BTreeSet::new(),
            paths: of_posts.map(|(_, path)| (*path).to_owned()).collect(),
            numbers: BTreeMap::new(),
        }
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.notes.push(LeftOut {
            what: shown(what),
            why: why.to_owned(),
        });
    }

    /// Assigns paths and names of routes. Names that are segments of a path come first, so that they keep their own.
    fn assign<'t>(&mut self, tools: impl Iterator<Item = &'t Value>) {
        let names = tools.filter_map(|tool| text(tool, "name").filter(|name| !name.is_empty()));
        let (plain, odd): (Vec<&str>, Vec<&str>) = names.partition(|name| segment(name) == *name);
        for name in plain.into_iter().chain(odd) {
            if self.assigned.contains_key(name) {
                continue;
            }
            let segment = segment(name);
            let mut path = format!("/{segment}");
            while !self.paths.insert(path.clone()) {
                path = format!("/{segment}-{}", self.number(&format!("/{segment}")));
            }
            let route = self.route_name(&segment);
            self.assigned.insert(name.to_owned(), (path, route));
        }
    }

    fn add(&mut self, tool: &Value) {
        let Some(name) = text(tool, "name").filter(|name| !name.is_empty()) else {
            self.leave_out("a tool without a name", "it cannot be called");
            return;
        };
        if !self.names.insert(name.to_owned()) {
            self.leave_out(
                name,
                "the server lists this name twice; the first tool is served",
            );
            return;
        }
        let Some((path, route)) = self.assigned.remove(name) else {
            return;
        };
        if path != format!("/{name}") {
            let why = format!("it is served at `{path}`");
            self.leave_out(name, &why);
        }
        let tool = Tool {
            name,
            value: tool,
            route,
            path,
        };
        self.add_post(&tool);
        if tool.hint("readOnlyHint") {
            self.add_get(&tool);
        }
    }

    fn number(&mut self, wanted: &str) -> usize {
        let number = self.numbers.entry(wanted.to_owned()).or_insert(1);
        *number += 1;
        *number
    }

    fn route_name(&mut self, segment: &str) -> String {
        let wanted: String = segment
            .chars()
            .filter(char::is_ascii)
            .take(LONGEST_NAME)
            .collect();
        let wanted = match wanted.is_empty() {
            true => "tool".to_owned(),
            false => wanted,
        };
        let mut found = wanted.clone();
        while !self.routes_by_name.insert(found.clone()) {
            found = format!("{wanted}-{}", self.number(&wanted));
        }
        found
    }

    fn add_post(&mut self, tool: &Tool<'_>) {
        let name = literal(tool.name);
        self.route(
            tool,
            &[
                ("name", quoted(&tool.route)),
                ("rest", quoted(&format!("POST {}", literal(&tool.path)))),
                ("rpc", quoted("tools/call")),
                ("from", quoted("rest")),
                ("effect", quoted(tool.effect())),
                ("body", quoted("{arguments:object={}}")),
                (
                    "params",
                    format!(
                        "{{ name = {}, arguments = \"{{arguments}}\" }}",
                        quoted(&name)
                    ),
                ),
            ],
        );
        let absent = Value::Bool(true);
        let schema = tool.value.get("inputSchema").unwrap_or(&absent);
        let Sample {
            value,
            placeholders,
        } = sample(schema);
        self.operations.push(RestApiOperation {
            method: "POST",
            target: tool.path.clone(),
            summary: tool.summary(),
            arguments: value,
            placeholders,
        });
    }

    /// Adds the GET of a tool that only reads.
    fn add_get(&mut self, tool: &Tool<'_>) {
        let is_taken = |(method, path): &(&str, &str)| *method == "GET" && *path == tool.path;
        if self.options.reserved.iter().any(is_taken) {
            let why = format!("it has no GET, because `GET {}` is in use", tool.path);
            self.leave_out(tool.name, &why);
            return;
        }
        let call = match QueryCall::new(tool.value.get("inputSchema")) {
            Ok(call) => call,
            Err(why) => {
                self.leave_out(tool.name, &format!("it has no GET, because {why}"));
                return;
            }
        };
        let route = self.route_name(&format!("{}.get", tool.route));
        let target = format!("{}{}", literal(&tool.path), call.query());
        self.route(
            tool,
            &[
                ("name", quoted(&route)),
                ("rest", quoted(&format!("GET {target}"))),
                ("rpc", quoted("tools/call")),
                ("from", quoted("rest")),
                ("effect", quoted("safe")),
                (
                    "params",
                    format!(
                        "{{ name = {}, arguments = {} }}",
                        quoted(&literal(tool.name)),
                        call.arguments()
                    ),
                ),
            ],
        );
        self.operations.push(RestApiOperation {
            method: "GET",
            target: format!("{}{}", tool.path, call.names()),
            summary: tool.summary(),
            arguments: json!({}),
            placeholders: Vec::new(),
        });
    }

    fn route(&mut self, tool: &Tool<'_>, keys: &[(&str, String)]) {
        self.routes.push_str("\n[[route]]\n");
        let result = ("result", quoted("tool"));
        for (key, value) in keys.iter().chain([&result]).chain(&docs::keys(tool)) {
            self.routes.push_str(&format!("{key} = {value}\n"));
        }
    }

    fn finish(self) -> RestApi {
        RestApi {
            routes: self.routes,
            operations: self.operations,
            notes: self.notes,
        }
    }
}

/// Returns a path segment for a name: letters, digits, `_`, `-` and `.` of ASCII stay.
fn segment(name: &str) -> String {
    let stays = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let mut segment = String::new();
    for character in name.chars() {
        if stays(character) {
            segment.push(character);
        } else if !segment.ends_with('-') {
            segment.push('-');
        }
    }
    match segment.trim_matches('-') {
        "" | "." | ".." => "tool".to_owned(),
        segment => segment.to_owned(),
    }
}

/// Escapes the braces of a literal text.
fn literal(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}
