//! The command line: `run`, `check`, `schema`, `routes`, `explain`, `mismatches`, `import`, `mcp`, `rest`, `kit`, `flags`, `usage`, `reload`, `health`,
//! `sample`, `demo`.
//!
//! Each command is a function of its parsed arguments, and its result is an exit code: 0 for success, 1 for a failure,
//! 2 for an invalid command line. Reports go to standard output, problems to standard error.
//!
//! Used throughout `cli`.

mod admin;
mod check;
mod connection;
mod cpu_features;
#[cfg(feature = "demo")]
mod demo;
mod drafted_server;
mod explain;
mod flags;
mod health;
mod import;
mod kit;
mod mcp;
mod mismatches;
mod plural;
mod reload;
mod rest;
mod routes;
mod run;
#[cfg(feature = "demo")]
mod sample;
mod schema;
mod stdio_bridge;
mod usage;

use std::error::Error;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::config::configuration::Configuration;
use crate::config::load::{Sources, environment};

pub use cpu_features::has_all;

/// Legacy REST and JSON-RPC 2.0 on one port, translated both ways, client by client
///
/// dualgauge is a proxy in front of an unchanged server. It serves REST and JSON-RPC 2.0 on one port, and moves each
/// client from one to the other, route by route.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: CliCommand,
}

const EXAMPLES: &str = "\
Examples:
  dualgauge check --config config/dualgauge.toml
  dualgauge run --config config/dualgauge.toml --listen 0.0.0.0:8080

Environment variables can set every configuration key: `DUALGAUGE_LIMITS__BODY=1MiB`.
Arguments override variables, and variables override files.";

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve calls according to a configuration
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Validate a configuration and report which routes lose data in translation
    ///
    /// Reads the configuration, the files it includes and its flags file, and reports every problem. Opens no
    /// connection. Then it classifies each route and each of its outcomes in both directions, by a round trip:
    /// `lossless` if the message returns unchanged, `normal form` if it returns with the same meaning (a default
    /// written out, null as absent), `lossy` if it loses data, with an example message that differs. Members that no
    /// pattern names are not part of this: they are dropped and counted, refused or carried. The examples of the route
    /// table are run in both directions.
    ///
    /// The exit code is 0 if there is no problem, every example holds, and every lossy direction is accepted with
    /// `lossy = "why"` on its route or row; otherwise it is 1. It is 2 if the command line is invalid.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArguments),
    /// Print the JSON Schema of the configuration or of the flags file, for editors
    ///
    /// The schema (draft 2020-12) has every key with its meaning, its accepted values and its default. It describes
    /// single values; `check` also reports keys that exclude each other, and everything that depends on routes.
    #[command(after_help = schema::EXAMPLES)]
    Schema(schema::SchemaArguments),
    /// Print the route table, or an API description generated from it
    ///
    /// Reads the configuration as `check` does. `--format openapi` and `--format openrpc` describe the routes for
    /// people and programs that do not know dualgauge.
    #[command(after_help = ROUTES_EXAMPLES)]
    Routes(RoutesArguments),
    /// Show how a request is routed and translated, without sending it
    ///
    /// Prints the route, the holes with their values, the client, the decision with its reason, the message to the
    /// upstream, the dropped members, and the outcome rows that could answer; or the failure that the caller would
    /// receive. Opens no connection to an upstream. Credentials are shown as `***`.
    ///
    /// The request is a URL with options as in curl, an HTTP file, or JSON-RPC; without any of these, JSON-RPC is read
    /// from standard input. The exit code is 0 if the request is explained, even a refused one, and 2 if the request or
    /// the configuration cannot be read.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Box<ExplainArguments>),
    /// Show where the compared responses of a running process differ
    ///
    /// Asks the admin API of a process for the latest mismatches of the stages shadow and verify: for each route and
    /// each field of its responses, the number of calls that differed, and the latest of them. Values are hidden unless
    /// the configuration shows them. The process forgets the mismatches of a route when the route changes, and on
    /// `--reset`.
    #[command(after_help = mismatches::EXAMPLES)]
    Mismatches(mismatches::MismatchesArguments),
    /// Draft a route table from OpenAPI and OpenRPC documents, a running server or a command
    ///
    /// Reads OpenAPI 3.0 to 3.2, Swagger 2.0 and OpenRPC 1.x, as JSON or YAML. Asks a server for its `rpc.discover` or
    /// `tools/list`, and an MCP server that is a command for its `tools/list`. An operation that both sides describe becomes one route; one that only one side describes becomes
    /// a route to review; one that cannot be a route stays as a comment with the reason. The draft passes `check`.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArguments),
    /// Serve a REST server as an MCP server, from its OpenAPI document
    ///
    /// Each operation becomes a tool, with the texts and schemas of the document. MCP clients of all revisions connect to
    /// `/mcp`, or start the command with `--stdio`. `--save` writes the configuration, which then works with `check`, `run`,
    /// flags and everything else.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(Box<mcp::McpArguments>),
    /// Serve an MCP server as a REST API, without a configuration
    ///
    /// Asks the server for its tools and serves each as `POST /TOOL`, with `/openapi.json` and `/docs`. The server is a URL,
    /// or a program on standard input and output behind `--`. `--save` writes the configuration, which then works with
    /// `check`, `run`, flags and everything else.
    #[command(after_help = rest::EXAMPLES)]
    Rest(rest::RestArguments),
    /// List ready configurations for known systems, and write one
    ///
    /// A kit has routes, outcomes, flags and a README that says what is lossy. Without a name, all kits are listed; with a
    /// name, its README is printed. `--write` writes its files into a folder, ready for `check` and `run`.
    #[command(after_help = kit::EXAMPLES)]
    Kit(kit::KitArguments),
    /// Show and change the flags of a running process
    ///
    /// Uses the admin API of a running process to list flags, change the stage or percentage of a flag, undo a change,
    /// re-arm a flag after its guard tripped, use the kill switch, and show the history. When the command returns, the
    /// change is stored and applies to the next call.
    ///
    /// The exit code is 1 if the API refuses; its message goes to standard error.
    #[command(after_help = flags::EXAMPLES)]
    Flags(flags::FlagsArguments),
    /// Show who still calls each route, and which routes are safe to delete
    ///
    /// Asks a running proxy. A route is safe to delete if its calls were counted without a gap for the time of
    /// `--idle`, and in that time its deprecated side received no call, no call was translated for it, and no unrouted
    /// call was under its prefix. The evidence is printed as well.
    ///
    /// For MCP clients it also shows the era (with a handshake up to 2025-11-25, or stateless from 2026-07-28 on), the
    /// revision, the programs as they declare themselves, and the last call. With `--era`, the exit code is 0 if the era
    /// with a handshake can be switched off: eras were counted without a gap for the time of `--idle`, and no client
    /// called with a handshake. It is 1 if a client did, or if that is unknown.
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::UsageArguments),
    /// Reload the configuration of a running process
    ///
    /// The configuration is compiled first and applied as a whole. If it has problems, they are printed, the previous
    /// configuration stays in force, and the exit code is 1.
    #[command(after_help = reload::EXAMPLES)]
    Reload(reload::ReloadArguments),
    /// Check whether a running process accepts calls
    ///
    /// Asks `/readyz` of the admin listener, or `/healthz`, and prints the response. The exit code is 0 if the process
    /// is healthy, else 1: for health checks of images that have no other program.
    #[command(after_help = health::EXAMPLES)]
    Health(health::HealthArguments),
    /// Serve only the built-in sample server, as an upstream for trying a deployment
    #[cfg(feature = "demo")]
    Sample(sample::SampleArguments),
    /// Serve a built-in sample server, with its routes and flags, to try things out
    #[cfg(feature = "demo")]
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArguments),
}

const RUN_EXAMPLES: &str = "\
Examples:
  dualgauge run --config dualgauge.toml
  dualgauge run --config dualgauge.toml --listen 0.0.0.0:8080 --admin 127.0.0.1:9090";

const CHECK_EXAMPLES: &str = "\
Examples:
  dualgauge check --config dualgauge.toml
  dualgauge check --config dualgauge.toml --format json";

const ROUTES_EXAMPLES: &str = "\
Examples:
  dualgauge routes --config dualgauge.toml
  dualgauge routes --config dualgauge.toml --route 'agent.*' --format markdown
  dualgauge routes --config dualgauge.toml --format openapi > openapi.json";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  dualgauge explain --config dualgauge.toml '/api/search?query=a&limit=5'
  dualgauge explain --config dualgauge.toml -H 'x-client-id: ios-1' -d '{\"name\":\"a\"}' http://localhost:8080/items
  dualgauge explain --config dualgauge.toml --http requests.http
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | dualgauge explain --config dualgauge.toml
  dualgauge explain --config dualgauge.toml /items/7 --reply answer.json --status 404
  dualgauge explain --admin http://127.0.0.1:9090 -H 'x-client-id: ios-1' /items/7";

const IMPORT_EXAMPLES: &str = "\
Examples:
  dualgauge import --openapi api.yaml --openrpc rpc.json --output routes.toml
  dualgauge import --openapi api.yaml --from http://127.0.0.1:9002/rpc
  dualgauge import --from http://127.0.0.1:9002/mcp --method tools/list --header 'Authorization: Bearer TOKEN'
  dualgauge import --openapi https://api.example/openapi.json -- npx -y some-mcp-server
  dualgauge import --openapi api.yaml --output routes.toml --refresh

Standard error shows the operations that were read, paired and left out, and what to check in the draft.

Exit codes: 0 with a draft, 1 if a source is refused, 2 for a wrong command line, 3 for a refreshed table with conflicts.";

#[cfg(feature = "demo")]
const DEMO_EXAMPLES: &str = "\
Examples:
  dualgauge demo
  dualgauge demo --listen 127.0.0.1:8080 --admin 127.0.0.1:9090";

#[derive(Debug, Args)]
struct RunArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Address for calls; overrides `listen.address`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address of metrics and the admin API; overrides `admin.address`
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Print no notes on routes that a changed default affects
    #[arg(long)]
    no_upgrade_notes: bool,
    /// Print normal forms as well: values that return in another form with the same meaning
    #[arg(short, long)]
    verbose: bool,
}

/// How the outcome of a command is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people
    Human,
    /// One JSON document
    Json,
}

#[derive(Debug, Args)]
struct RoutesArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Human)]
    format: TableFormat,
    /// Only routes whose names match; `*` matches any text
    #[arg(long, value_name = "GLOB", default_value = "*")]
    route: String,
}

/// How the route table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// Aligned columns
    Human,
    /// One JSON document, a member for each column
    Json,
    /// A Markdown table
    Markdown,
    /// An OpenAPI 3.1 document of the REST side
    Openapi,
    /// An OpenRPC document of the RPC side
    Openrpc,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("input").args(["url", "http", "json"])))]
struct ExplainArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE", required_unless_present = "admin")]
    config: Option<PathBuf>,
    /// The admin listener of a running process, which explains with its current configuration instead of files
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "reply"])]
    admin: Option<String>,
    /// A file with the token of the API; without it, the variable `DUALGAUGE_TOKEN`
    #[arg(long, value_name = "FILE", requires = "admin")]
    token_file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// The URL or the path of a request
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// The HTTP method of the URL; by default POST with data, else GET
    #[arg(short = 'X', long, value_name = "METHOD", requires = "url")]
    request: Option<String>,
    /// A header of the URL or of JSON; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE", conflicts_with = "http")]
    header: Vec<String>,
    /// The body of the URL, or `@FILE`; JSON unless a header says otherwise
    #[arg(short = 'd', long, value_name = "BODY", requires = "url")]
    data: Option<String>,
    /// An HTTP file (`.http`) with `###` between requests; `-` for standard input
    #[arg(long, value_name = "FILE")]
    http: Option<PathBuf>,
    /// A JSON-RPC message or batch; `-` for standard input
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The path that JSON is posted to; by default the first of `rpc.paths`
    #[arg(long, value_name = "PATH", conflicts_with_all = ["url", "http"])]
    path: Option<String>,
    /// The address of the caller; without it, headers are trusted and no address matches
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
    /// A response of the upstream to translate as well: a body, or a whole response with its head
    #[arg(long, value_name = "FILE")]
    reply: Option<PathBuf>,
    /// The HTTP status of the reply; by default the status in the reply, else 200
    #[arg(long, value_name = "STATUS", requires = "reply")]
    status: Option<u16>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("documents").args(["openapi", "openrpc", "from", "command"]).required(true).multiple(true))]
struct ImportArguments {
    /// An OpenAPI 3.0 to 3.2 or Swagger 2.0 document, JSON or YAML: a file, `http(s)://…`, or `-`; may be given several
    /// times
    #[arg(long, value_name = "SOURCE")]
    openapi: Vec<PathBuf>,
    /// An OpenRPC document, JSON or YAML: a file, `http(s)://…`, or `-`; may be given several times
    #[arg(long, value_name = "SOURCE")]
    openrpc: Vec<PathBuf>,
    /// A JSON-RPC server to ask, `http://host[:port]/path` or `https://…`
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    #[command(flatten)]
    tools: import::ToolArguments,
    /// The method to call; by default `rpc.discover`, then `tools/list` if the server does not know it
    #[arg(long, value_enum, value_name = "METHOD", requires = "from")]
    method: Option<import::Method>,
    /// A request header for each server and URL, `Name: value`; may be given several times
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// PEM file with the CAs trusted for the server; replaces the public ones
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Timeout of each server or command in seconds, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Write the draft to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long, requires = "output")]
    force: bool,
    /// Merge the changes since the last draft into the output file; edits stay, and conflicts become comments (exit code 3)
    #[arg(long, requires = "output", conflicts_with = "force")]
    refresh: bool,
    /// After `--`: an MCP server to start and to ask for its tools over standard input and output
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[cfg(feature = "demo")]
#[derive(Debug, Args)]
struct DemoArguments {
    /// Address for calls
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address of metrics and the admin API
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// Start no clients: only serve
    #[arg(long)]
    no_traffic: bool,
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Admin(#[from] admin::AdminFault),
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Import(#[from] import::ImportFault),
    #[error("`{0}` is not a percentage; write a number from 0 to 100 in steps of 0.001")]
    Percent(String),
    #[error(transparent)]
    Kit(#[from] kit::KitFault),
    #[error(transparent)]
    Mcp(#[from] mcp::McpFault),
    #[error(transparent)]
    Rest(#[from] rest::RestFault),
    #[error(transparent)]
    Run(#[from] crate::app::run::RunError),
    #[cfg(feature = "demo")]
    #[error("the sample database cannot be opened")]
    Database(#[from] dualgauge_sample::DatabaseError),
}

/// Runs the program and returns its exit code. It runs after [`has_all`], and so is never inlined into its caller.
#[must_use]
#[inline(never)]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return print_answer(&answer),
    };
    let outcome = match arguments.command {
        CliCommand::Run(arguments) => run::run(&arguments),
        CliCommand::Check(arguments) => check::check(&arguments),
        CliCommand::Schema(arguments) => schema::schema(&arguments),
        CliCommand::Routes(arguments) => routes::routes(&arguments),
        CliCommand::Explain(arguments) => explain::explain(&arguments),
        CliCommand::Mismatches(arguments) => mismatches::mismatches(&arguments),
        CliCommand::Import(arguments) => import::import(&arguments),
        CliCommand::Mcp(arguments) => mcp::mcp(&arguments),
        CliCommand::Kit(arguments) => kit::kit(&arguments),
        CliCommand::Rest(arguments) => rest::rest(&arguments),
        CliCommand::Flags(arguments) => flags::flags(&arguments),
        CliCommand::Usage(arguments) => usage::usage(&arguments),
        CliCommand::Reload(arguments) => reload::reload(&arguments),
        CliCommand::Health(arguments) => health::health(&arguments),
        #[cfg(feature = "demo")]
        CliCommand::Sample(arguments) => sample::sample(&arguments),
        #[cfg(feature = "demo")]
        CliCommand::Demo(arguments) => demo::demo(&arguments),
    };
    outcome.unwrap_or_else(|error| report(&error))
}

/// Reads the configuration for a command that only inspects it; prints the problems if it is invalid.
fn configuration(file: &Path) -> io::Result<Option<Configuration>> {
    let sources = Sources {
        file: Some(file.to_owned()),
        environment: environment(),
        ..Sources::default()
    };
    match Configuration::read(&sources) {
        Ok(configuration) => Ok(Some(configuration)),
        Err(problems) => {
            writeln!(io::stderr().lock(), "{problems}")?;
            Ok(None)
        }
    }
}

/// Prints clap's output: help and version are not errors.
fn print_answer(answer: &clap::Error) -> ExitCode {
    let code = u8::try_from(answer.exit_code()).unwrap_or(2);
    // If the output is closed, the exit code alone must do.
    answer
        .print()
        .map_or(ExitCode::FAILURE, |()| ExitCode::from(code))
}

/// Prints an error with its causes.
fn report(error: &CommandError) -> ExitCode {
    if let CommandError::Output(output) = error
        && output.kind() == io::ErrorKind::BrokenPipe
    {
        // The reader has closed the pipe, as in `check | head`.
        return ExitCode::FAILURE;
    }
    let mut text = format!("error: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!("  caused by: {error}\n"));
        cause = error.source();
    }
    // If the output is closed, the exit code alone must do.
    let _ = io::stderr().lock().write_all(text.as_bytes());
    ExitCode::FAILURE
}
