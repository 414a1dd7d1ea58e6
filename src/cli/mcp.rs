//! `dualgauge mcp`: a REST server as an MCP server, from its OpenAPI document.
//!
//! Used by `cli`.

mod fault;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::app::bound_addresses::BoundAddresses;
use crate::app::control::StartError;
use crate::app::run::{self, ProcessEnvironment, RunError};
use crate::cli::command_error::CommandError;
use crate::cli::drafted_server::{
    ConfigFolder, DraftedServerFault, KEY_HEADER, ServeArguments, toml_string, without_credentials,
};
use crate::cli::import::{self, ImportFault};
use crate::cli::plural::count;
use crate::cli::stdio_bridge::StdioBridge;
use dualgauge_model::import::{
    DocumentKind, ImportDraft, SourceDocument, ToolDraftOptions, draft_as_tools, printable,
};
use dualgauge_model::rollout::Glob;
use dualgauge_model::route::Route;

pub(super) use fault::McpFault;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge mcp --openapi api.yaml
  dualgauge mcp --openapi https://api.example/openapi.json --header 'authorization: Bearer {env:TOKEN}'
  curl -s https://api.example/openapi.json | dualgauge mcp --openapi - --upstream http://127.0.0.1:9000
  dualgauge mcp --openapi api.yaml --include 'get*' --exclude '*delete*' --save api
  dualgauge mcp --openapi api.yaml --stdio

As an entry of `mcpServers` of a desktop client:
  { \"api\": { \"command\": \"dualgauge\", \"args\": [\"mcp\", \"--openapi\", \"/path/api.yaml\", \"--stdio\"] } }

Each operation is a tool. Clients of all MCP revisions from 2024-11-05 to 2026-07-28 connect to `/mcp`.";

/// The file with the tools.
const TOOLS: &str = "tools.toml";
/// The most tools that are printed.
const MOST_SHOWN: usize = 20;
/// The most operations without a tool that are printed.
const MOST_PRINTED: usize = 10;

#[derive(Debug, Args)]
pub(super) struct McpArguments {
    /// The OpenAPI document: a file, a URL, or `-` for standard input; JSON or YAML
    #[arg(long, value_name = "SOURCE")]
    openapi: String,
    /// The URL of the REST server; by default the first server of the document. A path in it replaces that of the document
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Serve one client on standard input and output, as desktop clients start a server
    #[arg(long)]
    stdio: bool,
    /// Send the `authorization` and cookies of callers on to the REST server. MCP forbids passing on tokens that were
    /// issued for the MCP server (2025-11-25, "Authorization"); use `--header` for a credential of the API
    #[arg(long)]
    forward_authorization: bool,
    #[command(flatten)]
    serve: ServeArguments,
}

pub(super) fn mcp(arguments: &McpArguments) -> Result<ExitCode, CommandError> {
    let key = arguments.key()?;
    let (document, base) = arguments.document()?;
    let draft = arguments.draft(document)?;
    let mut folder = arguments.serve.folder().map_err(McpFault::from)?;
    if let Err(fault) = arguments.write(&mut folder, key.as_deref(), &base, &draft) {
        folder.discard(&[TOOLS]);
        return Err(fault.into());
    }
    let mut bridge = None;
    let listen = arguments.serve.address(arguments.default_listen());
    let sources = folder.sources(listen);
    let result = run::run(sources, ProcessEnvironment::default(), |started| {
        let routes = started.plan.routes.routes();
        let served = tool_lines(routes) + &left_out(&draft);
        let text = arguments.introduction(served.trim_end(), started.addresses, &folder);
        if arguments.stdio {
            io::stderr().lock().write_all(text.as_bytes())?;
            bridge = Some(StdioBridge::start(
                started.addresses.reachable(),
                key.clone(),
            )?);
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    });
    drop(bridge);
    match result {
        // The start checks the draft: reading a large one twice takes seconds.
        Err(RunError::Start(StartError::Config(problems))) => {
            folder.discard(&[TOOLS]);
            Err(McpFault::Invalid(problems).into())
        }
        ended => Ok(ended.map(|()| ExitCode::SUCCESS)?),
    }
}

impl McpArguments {
    /// Returns the key of callers. With `--stdio` the listener is for this process only, so it has a random
    /// key, unless `--listen` opens it.
    fn key(&self) -> Result<Option<String>, McpFault> {
        if self.stdio && !self.serve.has_access() {
            let mut bytes = [0_u8; 32];
            let random = fs::File::open("/dev/urandom");
            let read = random.and_then(|mut random| random.read_exact(&mut bytes));
            read.map_err(McpFault::Input)?;
            let mut key = String::new();
            for byte in bytes {
                let _ = write!(key, "{byte:02x}");
            }
            return Ok(Some(key));
        }
        Ok(self.serve.key()?)
    }

    /// Returns the address without `--listen`, if it is not that of any configuration.
    fn default_listen(&self) -> Option<SocketAddr> {
        self.stdio
            .then_some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
    }

    /// Reads the document; returns it with the URL of its server, without a path.
    fn document(&self) -> Result<(SourceDocument, String), McpFault> {
        let is_url = self.openapi.starts_with("http://") || self.openapi.starts_with("https://");
        let mut document = if self.openapi == "-" {
            if self.stdio {
                return Err(McpFault::TwoInputs);
            }
            let mut text = String::new();
            let limit = u64::try_from(import::LARGEST).unwrap_or(u64::MAX);
            let mut bounded = io::stdin().lock().take(limit);
            bounded.read_to_string(&mut text).map_err(McpFault::Input)?;
            import::parse_document("-", &text)?
        } else if is_url {
            import::get_document(&self.openapi)?
        } else {
            import::read_document(&self.openapi)?
        };
        // Something else than an OpenAPI document is reported as such by the draft.
        let is_api = ["openapi", "swagger"]
            .iter()
            .any(|key| document.get(key).is_some());
        let base = match is_api {
            true => self.base(&mut document)?,
            false => String::new(),
        };
        let name = match is_url {
            true => without_credentials(&self.openapi),
            false if self.openapi == "-" => "standard input".to_owned(),
            false => self.openapi.clone(),
        };
        let kind = DocumentKind::OpenApi;
        let document = SourceDocument {
            name,
            kind,
            document,
        };
        Ok((document, base))
    }

    /// Returns the URL of the REST server without its path. The path of `--upstream` becomes that of the document.
    fn base(&self, document: &mut Value) -> Result<String, McpFault> {
        let Some(upstream) = &self.upstream else {
            let server = server_of(document).unwrap_or_default();
            let whole = match (server.contains("://"), self.openapi.split_once("://")) {
                (true, _) => server.clone(),
                // A relative URL begins at that of the document.
                (false, Some((scheme, rest))) if scheme.starts_with("http") => {
                    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
                    format!("{scheme}://{host}")
                }
                (false, _) => String::new(),
            };
            let named = match server.is_empty() {
                true => String::new(),
                false => format!(", only `{}`", printable(&server)),
            };
            let (base, _) = split_path(&whole).ok_or(McpFault::NoServer(named))?;
            return Ok(base);
        };
        let wrong = || McpFault::Server(DraftedServerFault::Url(without_credentials(upstream)));
        let (base, path) = split_path(upstream).ok_or_else(wrong)?;
        if !path.trim_matches('/').is_empty() {
            if document.get("swagger").is_some() {
                document["basePath"] = json!(path.trim_end_matches('/'));
            } else {
                document["servers"] = json!([{ "url": path.trim_end_matches('/') }]);
            }
        }
        Ok(base)
    }

    fn draft(&self, document: SourceDocument) -> Result<ImportDraft, McpFault> {
        let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text.as_str())).collect();
        let options = ToolDraftOptions {
            name: self.serve.name.clone(),
            include: globs(&self.serve.include),
            exclude: globs(&self.serve.exclude),
        };
        let draft = draft_as_tools(&[document], &options).map_err(ImportFault::from)?;
        if tools_of(&draft) == 0 {
            return Err(McpFault::Nothing(left_out(&draft)));
        }
        Ok(draft)
    }

    /// Writes the configuration.
    fn write(
        &self,
        folder: &mut ConfigFolder,
        key: Option<&str>,
        base: &str,
        draft: &ImportDraft,
    ) -> Result<(), McpFault> {
        let credentials = match self.forward_authorization {
            true => "forward",
            false => "drop",
        };
        let headers = folder.set_headers(&self.serve.headers()?);
        let access = self.serve.access(key, self.default_listen(), &headers);
        let main = format!(
            r#"# A REST server as an MCP server. Written by `dualgauge mcp`; serve it again with `dualgauge run --config`.

include = ["{TOOLS}"]
unrouted = "reject"

{access}
[upstream.api]
side = "rest"
url = {url}
credentials = "{credentials}"     # `authorization` and cookies of callers

[rpc]
paths = ["/mcp"]
websocket = true

[log]
level = "warn"
"#,
            url = toml_string(base)
        );
        folder.write(TOOLS, &draft.toml)?;
        Ok(folder.write_main(&main)?)
    }

    fn introduction(
        &self,
        served: &str,
        addresses: BoundAddresses,
        folder: &ConfigFolder,
    ) -> String {
        let source = match &*self.openapi {
            "-" => "standard input".to_owned(),
            url if url.contains("://") => format!("`{}`", without_credentials(url)),
            path => format!("`{}`", printable(path)),
        };
        let mut text = format!("{addresses}\n\n{source} for MCP clients: {served}\n");
        let url = format!("http://{}/mcp", addresses.reachable());
        if !self.stdio {
            let name = self.serve.name.as_deref().unwrap_or("api");
            let mut entry = json!({ "url": url });
            if self.serve.has_key() {
                entry["headers"] = json!({ KEY_HEADER: "KEY" });
            }
            let entry = json!({ "mcpServers": { name: entry } });
            let _ = write!(text, "\nMCP  {url}\n\n  {entry}\n");
        }
        let path = folder.path().display();
        match folder.is_saved() {
            true => {
                let _ = writeln!(
                    text,
                    "\nThe configuration is saved: dualgauge run --config {path}/dualgauge.toml"
                );
            }
            false => {
                let _ = writeln!(
                    text,
                    "\nThe configuration is in {path}; `--save DIR` keeps it."
                );
            }
        }
        if !self.stdio {
            text.push_str("Stop with Ctrl-C.\n");
        }
        text
    }
}

fn tools_of(draft: &ImportDraft) -> usize {
    let active = draft.toml.lines().filter(|line| *line == "[[route]]");
    active.count()
}

/// Returns the number of tools, and a line for each of the first ones.
fn tool_lines(routes: &[Route]) -> String {
    let mut tools: BTreeMap<String, &Route> = BTreeMap::new();
    for route in routes {
        if let Some(name) = route.tool_name() {
            tools.entry(name).or_insert(route);
        }
    }
    let mut text = format!("{}\n", count(tools.len(), "tool"));
    for (name, route) in tools.iter().take(MOST_SHOWN) {
        let line = format!("  {name:<32} {}", route.rest);
        let _ = write!(text, "\n{}", printable(&line));
    }
    if let more @ 1.. = tools.len().saturating_sub(MOST_SHOWN) {
        let _ = write!(text, "\n  and {more} more");
    }
    text.push('\n');
    text
}

/// Returns the operations without a tool, as lines.
fn left_out(draft: &ImportDraft) -> String {
    let all = &draft.report.left_out;
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!("\nwithout a tool: {}", all.len());
    for one in all.iter().take(MOST_PRINTED) {
        let line = format!("{}: {}", one.what, one.why);
        let _ = write!(text, "\n  {}", printable(&line));
    }
    if all.len() > MOST_PRINTED {
        let _ = write!(text, "\n  and {} more", all.len() - MOST_PRINTED);
    }
    text
}

/// Returns the URL of the first server of a document, with the defaults of its variables.
fn server_of(document: &Value) -> Option<String> {
    if document.get("swagger").is_some() {
        let host = document.get("host")?.as_str()?;
        let schemes = document.get("schemes").and_then(Value::as_array);
        let mut schemes = schemes.into_iter().flatten().filter_map(Value::as_str);
        let scheme = schemes.find(|scheme| scheme.starts_with("http"));
        return Some(format!("{}://{host}", scheme.unwrap_or("https")));
    }
    let server = document.get("servers")?.as_array()?.first()?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let default = variable.get("default").and_then(Value::as_str);
        url = url.replace(&format!("{{{name}}}"), default.unwrap_or_default());
    }
    Some(url)
}

/// Splits `scheme://host[:port]` from the path of a URL.
fn split_path(url: &str) -> Option<(String, String)> {
    let uri: http::Uri = url.parse().ok()?;
    let scheme = uri
        .scheme_str()
        .filter(|scheme| matches!(*scheme, "http" | "https"))?;
    let authority = uri.authority()?;
    if authority.as_str().contains('@') {
        return None;
    }
    Some((format!("{scheme}://{authority}"), uri.path().to_owned()))
}
