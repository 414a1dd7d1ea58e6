//! The server information of the proxy as an MCP server: from the file, else derived from the routes.
//!
//! Used by `compile::local` and `compile::local_frames`.

use serde_json::{Map, Value, json};

use crate::config::problem::Problem;
use crate::config::raw::{LocalWord, RawAnswer, RawConfig, RawLocal, RawLocalCall};
use dualgauge_model::document::TITLE;
use dualgauge_model::local_reply::McpServerInfo;
use dualgauge_model::route::RouteTable;

/// The capabilities of an MCP server, and the methods that imply them.
const OFFERS: [(&str, &str); 4] = [
    ("tools", "tools/"),
    ("resources", "resources/"),
    ("prompts", "prompts/"),
    ("completions", "completion/"),
];

/// Rejects server-information keys and titles of other local replies.
pub(super) fn check_keys(local: &RawLocal, problems: &mut Vec<Problem>) {
    let has_info = matches!(
        local.answer.value,
        RawAnswer::Word(LocalWord::Initialize | LocalWord::Discover)
    );
    if let (false, Some(key)) = (has_info, local.server_info.first_key()) {
        let message = "`server`, `capabilities`, `instructions` and `versions` need `answer = \"initialize\"` or `answer = \"discover\"`";
        problems.push(key.problem(message));
    }
    let is_document = matches!(
        local.answer.value,
        RawAnswer::Word(LocalWord::OpenApi | LocalWord::OpenRpc)
    );
    if let (false, Some(title)) = (is_document, &local.title) {
        let message = "`title` needs `answer = \"openapi\"` or `answer = \"openrpc\"`";
        problems.push(title.problem(message));
    }
}

/// Compiles the server information of a local reply.
pub(super) fn info(
    raw: &RawConfig,
    local: &RawLocal,
    routes: &RouteTable,
    versions: &[&str],
) -> McpServerInfo {
    let raw_info = &local.server_info;
    let versions = match raw_info.versions.as_slice() {
        [] => versions
            .iter()
            .map(|version| (*version).to_owned())
            .collect(),
        versions => versions
            .iter()
            .map(|version| version.value.clone())
            .collect(),
    };
    let table = |table: &Map<String, Value>| table.clone();
    let capabilities = raw_info.capabilities.as_ref().map(|raw| table(&raw.value));
    let server = raw_info.server.as_ref().map(|raw| table(&raw.value));
    McpServerInfo {
        versions,
        capabilities: capabilities.unwrap_or_else(|| offers(raw, routes)),
        server: named(server.unwrap_or_default()),
        instructions: raw_info.instructions.as_ref().map(|raw| raw.value.clone()),
    }
}

/// Adds a name and a version, which a server must have.
fn named(mut server: Map<String, Value>) -> Map<String, Value> {
    server.entry("name").or_insert_with(|| json!(TITLE));
    let version = env!("CARGO_PKG_VERSION");
    server.entry("version").or_insert_with(|| json!(version));
    server
}

/// Returns the capabilities that routes and other local replies imply.
fn offers(raw: &RawConfig, routes: &RouteTable) -> Map<String, Value> {
    let routes = routes.routes().iter().map(|route| route.rpc.as_str());
    let locals = raw.locals.iter().filter_map(|local| match &local.call {
        RawLocalCall::Rpc(method) => Some(method.value.as_str()),
        RawLocalCall::Rest(_) | RawLocalCall::Frame(_) => None,
    });
    let methods: Vec<&str> = routes.chain(locals).collect();
    let offered =
        |(_, prefix): &(&str, &str)| methods.iter().any(|method| method.starts_with(prefix));
    let offers = OFFERS.iter().filter(|offer| offered(offer));
    offers
        .map(|(name, _)| ((*name).to_owned(), json!({})))
        .collect()
}
