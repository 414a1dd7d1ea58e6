//! `dualgauge rest`: an MCP server as a REST API, without a configuration by hand.
//!
//! The proxy starts with the server behind `/mcp` only. It asks the server for its tools over this path, drafts the
//! routes and the OpenAPI document, and reloads. A child process is started once, and every transport and revision that
//! an upstream may have works for the list as well.
//!
//! Used by `cli`.

mod fault;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
use http::{Method, StatusCode};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};

use crate::app::bound_addresses::BoundAddresses;
use crate::app::run::{self, ProcessEnvironment, StartLog};
use crate::app::startup_summary::StartupSummary;
use crate::cli::admin::{AdminArguments, AdminClient, AdminFault, AdminRequest};
use crate::cli::command_error::CommandError;
use crate::cli::connection::within;
use crate::cli::drafted_server::{
    ConfigFolder, DraftedServerFault, KEY_HEADER, ServeArguments, probe, probe_program,
    toml_string, without_credentials,
};
use crate::cli::import::{list_tools, speaks_sse};
use crate::cli::plural::count;
use crate::upstream::link::LinkLoss;
use dualgauge_model::import::{
    RestApi, RestApiOperation, RestApiOptions, draft_rest_api, printable,
};

pub(super) use fault::RestFault;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge rest -- uvx mcp-server-time
  dualgauge rest --mcp http://127.0.0.1:8000/mcp
  dualgauge rest --mcp https://tools.example/mcp --header 'authorization: Bearer {env:TOKEN}'
  dualgauge rest --listen 0.0.0.0:8080 --api-key '{env:API_KEY}' --save api -- python server.py

`POST /TOOL` calls a tool with the JSON body as its arguments; a tool with `readOnlyHint` has a GET as well.
The response is what the tool returns: its structured content, else its text, as JSON where it is JSON.
A tool that fails gets 422. `/openapi.json` describes the API, and `/docs` shows it.";

/// The command line, which needs a URL or a program.
pub(super) const USAGE_LINE: &str = "dualgauge rest [OPTIONS] <--mcp <URL>|-- <COMMAND>...>";
/// The exit code of wrong arguments.
const USAGE: u8 = 2;
/// The name of the server behind.
const UPSTREAM: &str = "tools";
/// The file with the routes of the tools.
const ROUTES: &str = "routes.toml";
/// The line of the main file with which calls get 503 until the tools are listed.
const UNAVAILABLE: &str = "unrouted = \"unavailable\"\n";
/// The most operations, and the most notes, that are printed.
const MOST_PRINTED: usize = 20;
/// The most requests to load the routes.
const LOAD_ATTEMPTS: usize = 60;
/// The pause between two of them: while a read is late, the admin API answers at once.
const LOAD_PAUSE: Duration = Duration::from_millis(500);
/// The time in which a server shows that it speaks HTTP with SSE.
const TRANSPORT_LIMIT: Duration = Duration::from_secs(10);
/// The seconds that a program may take to start by default.
const DEFAULT_START: u64 = 30;
/// The seconds by which the limits of a program exceed `--timeout`.
const START_MARGIN: u64 = 5;
/// Calls that the proxy answers itself, beside those of tools.
const RESERVED: [(&str, &str); 6] = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("GET", "/docs"),
    ("GET", "/docs/page.js"),
    ("GET", "/docs/page.css"),
    ("GET", "/openapi.json"),
];

#[derive(Debug, Args)]
pub(super) struct RestArguments {
    /// The URL of an MCP server over Streamable HTTP, or over HTTP with SSE
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    mcp: Option<String>,
    #[command(flatten)]
    serve: ServeArguments,
    /// Timeout of the list of tools, with the start of the program, in seconds, 1 to 600; calls of a program may take 30
    /// seconds, or 5 more than this if it is 30 or more
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// The program of an MCP server over standard input and output, with its arguments; it inherits the environment
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn rest(arguments: &RestArguments) -> Result<ExitCode, CommandError> {
    if arguments.mcp.is_none() && arguments.command.is_empty() {
        CommandError::from(RestFault::NoServer).report();
        return Ok(ExitCode::from(USAGE));
    }
    let key = arguments.serve.key().map_err(RestFault::from)?;
    arguments.probe().map_err(RestFault::from)?;
    let mut folder = arguments.serve.folder().map_err(RestFault::from)?;
    let main = arguments.write_first(&mut folder, key.as_deref())?;
    let mut failed = None;
    let mut loading = None;
    let sources = folder.sources(arguments.serve.address(None));
    let surroundings = ProcessEnvironment {
        start_log: StartLog::HeldWarnings,
        ..ProcessEnvironment::default()
    };
    let result = run::run(sources, surroundings, |started| {
        let drafted = arguments.draft(&mut folder, &started, key.as_deref());
        let drafted = drafted.and_then(|api| {
            folder.write_main(&main.replace(UNAVAILABLE, ""))?;
            Ok(api)
        });
        match drafted {
            Ok(api) => {
                let text = arguments.introduction(&api, started.addresses, &folder, key.is_some());
                loading = Some(load(started.addresses, text)?);
                Ok(())
            }
            Err(fault) => {
                failed = Some(fault);
                Err(io::Error::other("the API cannot be drafted"))
            }
        }
    });
    let is_loaded = loading.is_none_or(|loading| loading.join().unwrap_or(false));
    if let Some(fault) = failed {
        folder.discard(&[ROUTES]);
        return Err(fault.into());
    }
    if !is_loaded {
        folder.discard(&[ROUTES]);
    }
    result?;
    Ok(match is_loaded {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl RestArguments {
    /// Checks that the server can be there, before anything is written.
    fn probe(&self) -> Result<(), DraftedServerFault> {
        match &self.mcp {
            Some(url) => probe(url),
            None if !self.serve.headers()?.is_empty() => Err(DraftedServerFault::ChildHeader),
            None => self
                .command
                .first()
                .map_or(Ok(()), |program| probe_program(program)),
        }
    }

    /// Returns the server behind, for people; a URL without parts that may be secret.
    fn server(&self) -> String {
        match &self.mcp {
            Some(url) => format!("`{}`", without_credentials(url)),
            None => format!("`{}`", printable(&self.command.join(" "))),
        }
    }

    /// Returns the name of the API: the given one, that of the server, else that of the host or the program.
    fn title(&self, server: Option<String>) -> String {
        if let Some(name) = self.serve.name.clone().or(server) {
            return name;
        }
        match &self.mcp {
            Some(url) => {
                let uri: Option<http::Uri> = url.parse().ok();
                let host = uri.as_ref().and_then(http::Uri::host);
                host.unwrap_or("tools").to_owned()
            }
            None => {
                let is_option = |word: &&String| word.starts_with('-');
                let named = self.command.iter().rfind(|word| !is_option(word));
                let word = named.map(String::as_str).unwrap_or_default();
                let name = word.rsplit('/').next().unwrap_or_default();
                printable(name)
            }
        }
    }

    /// Returns the line for a server that speaks HTTP with SSE; empty for any other.
    fn transport(&self, url: &str) -> Result<&'static str, RestFault> {
        let headers = self.serve.headers()?.into_iter();
        let headers: Vec<String> = headers
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let limit = TRANSPORT_LIMIT.min(Duration::from_secs(self.timeout));
        let is_sse = speaks_sse(url, &headers, limit).map_err(|source| RestFault::List {
            server: self.server(),
            source,
        })?;
        Ok(match is_sse {
            true => "transport = \"sse\"\n",
            false => "",
        })
    }

    /// Returns the line with the URL of the API, if only clients on this machine use it: an MCP server that requires
    /// authorization names it to them.
    fn public_url(&self) -> String {
        let address = self.serve.loopback().filter(|_| self.mcp.is_some());
        address.map_or(String::new(), |address| {
            format!("public_url = \"http://{address}\"\n")
        })
    }

    /// Returns the configuration lines with the time limits of a program. They are longer than `--timeout`, which ends first.
    fn start_limits(&self) -> String {
        match self.timeout {
            ..DEFAULT_START => format!("queue_timeout = \"{DEFAULT_START}s\"\n"),
            more => {
                let wait = more + START_MARGIN;
                ["queue_timeout", "start_timeout", "timeout"]
                    .map(|key| format!("{key} = \"{wait}s\"\n"))
                    .concat()
            }
        }
    }

    /// Writes the configuration with the server only, and returns its main file.
    fn write_first(
        &self,
        folder: &mut ConfigFolder,
        key: Option<&str>,
    ) -> Result<String, RestFault> {
        folder.write(ROUTES, "")?;
        let headers = folder.write_headers(UPSTREAM, &self.serve.headers()?)?;
        let upstream = match &self.mcp {
            Some(url) => {
                let transport = self.transport(url)?;
                let url = toml_string(url);
                format!("url = {url}\nprotocol = \"mcp\"\n{transport}{headers}")
            }
            None => {
                let (program, arguments) = self.command.split_first().unzip();
                let program = program.map(|program| from_current_folder(program));
                let arguments = arguments.into_iter().flatten().cloned();
                let words = program.into_iter().chain(arguments);
                let words: Vec<String> = words.map(|word| toml_string(&word)).collect();
                format!(
                    "command = [{}]\nmode = \"pipelined\"\n{}inherit = [\"*\"]\n",
                    words.join(", "),
                    self.start_limits()
                )
            }
        };
        let main = format!(
            r#"# An MCP server as a REST API. Written by `dualgauge rest`; serve it again with `dualgauge run --config`.

include = ["{ROUTES}"]
{UNAVAILABLE}
{access}
[upstream.{UPSTREAM}]
side = "rpc"
{upstream}
[rpc]
paths = ["/mcp"]                # MCP clients can use the server as well

[log]
level = "warn"

[[local]]
rest = "GET /docs"
answer = "docs"
"#,
            access = self.serve.access(key, None, &self.public_url())
        );
        folder.write_main(&main)?;
        Ok(main)
    }

    /// Asks the server for its tools, and writes the routes and the document.
    fn draft(
        &self,
        folder: &mut ConfigFolder,
        started: &StartupSummary,
        key: Option<&str>,
    ) -> Result<RestApi, RestFault> {
        let server = self.server();
        let limit = Duration::from_secs(self.timeout);
        let headers: Vec<String> = key
            .map(|key| format!("{KEY_HEADER}: {key}"))
            .into_iter()
            .collect();
        let url = format!("http://{}/mcp", started.addresses.reachable());
        let loss = async { loss_text(&started.losses.of(UPSTREAM).await) };
        let (mut tools, name) = list_tools(&url, &headers, limit, loss)
            .map_err(|source| RestFault::list(&server, source))?;
        if let Some(Value::Array(list)) = tools.get_mut("tools") {
            let name = |tool: &Value| tool.get("name").and_then(Value::as_str).map(str::to_owned);
            list.retain(|tool| name(tool).is_none_or(|name| self.serve.serves(&name)));
        }
        let options = RestApiOptions {
            reserved: RESERVED.to_vec(),
        };
        let api = draft_rest_api(&tools, &options).map_err(|source| RestFault::Document {
            server: server.clone(),
            source,
        })?;
        if api.operations.is_empty() {
            return Err(RestFault::Nothing(server));
        }
        let document = format!(
            "\n[[local]]\nrest = \"GET /openapi.json\"\nanswer = \"openapi\"\ntitle = {}\n",
            toml_string(&self.title(name))
        );
        folder.write(ROUTES, &format!("{}{document}", api.routes))?;
        Ok(api)
    }

    /// Returns the text that is printed once the API is served.
    fn introduction(
        &self,
        api: &RestApi,
        addresses: BoundAddresses,
        folder: &ConfigFolder,
        needs_key: bool,
    ) -> String {
        let base = format!("http://{}", addresses.reachable());
        let tools = api
            .operations
            .iter()
            .filter(|one| one.method == "POST")
            .count();
        let mut text = format!(
            "{addresses}\n\n{} of {} as a REST API:\n\n",
            count(tools, "tool"),
            self.server()
        );
        for operation in api.operations.iter().take(MOST_PRINTED) {
            text.push_str(&format!(
                "  {:<4} {:<32} {}\n",
                operation.method, operation.target, operation.summary
            ));
        }
        if let Some(more) = api
            .operations
            .len()
            .checked_sub(MOST_PRINTED)
            .filter(|more| *more > 0)
        {
            text.push_str(&format!("  and {more} more\n"));
        }
        for note in api.notes.iter().take(MOST_PRINTED) {
            text.push_str(&format!("note: {}: {}\n", note.what, note.why));
        }
        if let more @ 1.. = api.notes.len().saturating_sub(MOST_PRINTED) {
            text.push_str(&format!("and {}\n", count(more, "further note")));
        }
        text.push_str(&format!(
            "\ndocumentation  {base}/docs\nOpenAPI        {base}/openapi.json\nMCP            {base}/mcp\n\n"
        ));
        if let Some(first) = api.operations.first() {
            text.push_str(&example(first, &base, needs_key));
        }
        let path = folder.path().display();
        match folder.is_saved() {
            true => text.push_str(&format!(
                "The configuration is saved: dualgauge run --config {path}/dualgauge.toml\n"
            )),
            false => text.push_str(&format!(
                "The configuration is in {path}; `--save DIR` keeps it.\n"
            )),
        }
        text.push_str("Stop with Ctrl-C.\n");
        text
    }
}

/// Makes the path of a program absolute, because a configuration file resolves paths in its own folder. A name without a
/// `/` stays as it is: it is looked up in `PATH`.
fn from_current_folder(program: &str) -> String {
    let path = std::path::absolute(program).ok();
    let path = path.filter(|_| program.contains('/'));
    let path = path.and_then(|path| path.into_os_string().into_string().ok());
    path.unwrap_or_else(|| program.to_owned())
}

/// Returns the command that calls an operation, and the values in it that must be filled in.
fn example(operation: &RestApiOperation, base: &str, needs_key: bool) -> String {
    let body = operation.arguments.to_string().replace('\'', "'\\''");
    let key = match needs_key {
        true => format!(" -H '{KEY_HEADER}: KEY'"),
        false => String::new(),
    };
    let target = &operation.target;
    let mut text =
        format!("  curl -s {base}{target} -H 'content-type: application/json'{key} -d '{body}'\n");
    let names = operation.placeholders.iter();
    let names: Vec<String> = names
        .map(|name| match name.is_empty() {
            true => "the arguments".to_owned(),
            false => format!("`{}`", printable(name)),
        })
        .collect();
    if !names.is_empty() {
        let names = names.join(", ");
        text.push_str(&format!(
            "  Fill in {names} first: the tool names no valid value.\n"
        ));
    }
    text + "\n"
}

/// Returns the reason of a loss, with the end of the standard error of a child.
fn loss_text(loss: &LinkLoss) -> String {
    let mut text = printable(&loss.cause);
    if !loss.output.is_empty() {
        text.push_str("; its standard error:");
    }
    for line in &loss.output {
        text.push_str(&format!("\n  {}", printable(line)));
    }
    text
}

/// Starts the thread that lets the process load the drafted routes, and prints the introduction; the process stops if
/// they cannot be loaded. Returns true from the thread if they are.
fn load(addresses: BoundAddresses, text: String) -> io::Result<JoinHandle<bool>> {
    let thread = thread::Builder::new().name("reload".to_owned());
    thread.spawn(move || match reload(addresses) {
        Ok(()) => {
            let mut out = io::stdout().lock();
            // A closed output does not stop the server.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            true
        }
        Err(fault) => {
            let _ = writeln!(
                io::stderr().lock(),
                "error: the routes cannot be loaded: {fault}"
            );
            // A process that is ending already ends anyway.
            let _ = kill_process(getpid(), Signal::TERM);
            false
        }
    })
}

/// Returns true if the process may still be loading the routes.
fn is_late(fault: &AdminFault) -> bool {
    let is_busy = |status: &StatusCode| *status == StatusCode::SERVICE_UNAVAILABLE;
    matches!(fault, AdminFault::Refused { status, .. } if is_busy(status))
        || matches!(fault, AdminFault::Late { .. })
}

fn reload(addresses: BoundAddresses) -> Result<(), AdminFault> {
    let url = format!("http://{}", addresses.admin);
    let client = AdminClient::new(&AdminArguments::at(&url, None))?;
    let request = AdminRequest {
        method: Method::POST,
        path: "/api/v1/reload",
        body: Some(json!({})),
        tag: None,
    };
    let mut attempts = 1;
    loop {
        match client.ask(&request) {
            // Thousands of tools take a slow machine longer than the admin API waits.
            Err(fault) if is_late(&fault) && attempts < LOAD_ATTEMPTS => {
                attempts += 1;
                // Without a runtime the next attempt fails as well.
                let _ = within(LOAD_PAUSE, std::future::pending::<()>());
            }
            asked => return asked.map(drop),
        }
    }
}

#[cfg(test)]
mod tests;
