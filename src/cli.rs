//! The command line: `run`, `check`, `routes`, `explain`, `mismatches`, `import`, `flags`, `usage`, `reload`, `health`,
//! `sample`, `demo`.
//!
//! Each command is a function of its parsed arguments, and its result is an exit code: 0 for success, 1 for a failure,
//! 2 for an invalid command line. Reports go to standard output, problems to standard error.

mod admin;
mod check;
mod connection;
mod cpu_features;
#[cfg(feature = "demo")]
mod demo;
mod explain;
mod flags;
mod health;
mod import;
mod mismatches;
mod plural;
mod reload;
mod routes;
mod run;
#[cfg(feature = "demo")]
mod sample;
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
/// dualgauge stands in front of a server that stays unchanged, speaks REST and JSON-RPC 2.0 on the same port, and
/// moves each client from one to the other, route by route.
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

Every key of the configuration can be said by a variable as well: `DUALGAUGE_LIMITS__BODY=1MiB`.
An argument is over a variable, and a variable over the files.";

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve calls as the configuration says
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Tell everything that is wrong with a configuration, and what its routes lose
    ///
    /// Reads the configuration, the files it includes and its flags file, without opening any connection, and tells
    /// every problem. Then it looks at each route and each of its outcomes, from REST and from RPC: `lossless` when
    /// whatever is sent comes back as it was, `normal form` when it comes back as something that means the same (a
    /// default written out, null as absent), `lossy` when something is gone, with a message that was sent there and
    /// back and seen to differ. Members that no pattern names are no part of that: they are dropped and counted,
    /// refused or carried. The examples of the route table are run both ways.
    ///
    /// The exit code is 0 when nothing is wrong, every example holds, and every lossy direction is accepted with
    /// `lossy = "why"` on its route or row; otherwise it is 1. It is 2 when the command cannot be understood.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArguments),
    /// Print the route table, or the documents that are made from it
    ///
    /// Reads the configuration as `check` does. With `--format openapi` and `--format openrpc` it prints what the
    /// routes are for people and programs who know nothing of dualgauge.
    #[command(after_help = ROUTES_EXAMPLES)]
    Routes(RoutesArguments),
    /// Tell what becomes of a request, without sending it
    ///
    /// Prints the route, the holes with their values, the client, the decision with its reason, what would be sent, what
    /// is dropped, and which outcome rows could answer; or the failure that the caller would get. No connection is
    /// opened. Credentials are shown as `***`.
    ///
    /// The request is a URL with options as curl has them, an HTTP file, or JSON-RPC; without any of these, JSON-RPC is
    /// read from standard input. The exit code is 0 when the request could be explained, a refused one as well, and 2
    /// when the request or the configuration cannot be read.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Box<ExplainArguments>),
    /// Tell where answers differ that a running process has compared
    ///
    /// Asks the admin API of a process for the last mismatches of the stages shadow and verify: of each route and each
    /// field of its answers in how many calls they differed, and the last of them. Values are not shown unless the
    /// configuration says so. The process forgets those of a route when the route changes, and when you say `--reset`.
    #[command(after_help = mismatches::EXAMPLES)]
    Mismatches(mismatches::MismatchesArguments),
    /// Draft a route table from OpenAPI and OpenRPC documents, or from a running server
    ///
    /// Reads OpenAPI 3.0 to 3.2 and OpenRPC 1.x, as JSON or YAML, and asks a server for its `rpc.discover` or
    /// `tools/list`. What both sides describe becomes one route; what only one side describes becomes a route to
    /// look at; what cannot be a route stays as a comment with its reason. The draft passes `check`.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArguments),
    /// Show and change who gets what, while the process runs
    ///
    /// Speaks with the admin API of a running process: which flags there are and what they stand at, giving one another
    /// stage or share, taking a change back, putting a flag in force again that its guard has taken back, the kill
    /// switch, and the history of all that. A change is stored and acts on the next call when the command is done.
    ///
    /// The exit code is 1 when the API refuses, with its words on standard error.
    #[command(after_help = flags::EXAMPLES)]
    Flags(flags::FlagsArguments),
    /// Tell who still calls which route, and which routes may be deleted
    ///
    /// Asks a running proxy. A route is safe to delete when its calls were counted without a break for the time of
    /// `--idle`, and in that time nobody has called its deprecated side, nobody's calls were translated for it, and no
    /// call of no route has come under its prefix. What that stands on is told as well.
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::UsageArguments),
    /// Let a running process read its files again
    ///
    /// The configuration is compiled first and put in force whole; with problems, which are printed, what was in force
    /// before stays in force, and the exit code is 1.
    #[command(after_help = reload::EXAMPLES)]
    Reload(reload::ReloadArguments),
    /// Tell by the exit code whether a running process takes calls
    ///
    /// Asks `/readyz` of the admin listener, or `/healthz`, and prints what it says. The exit code is 0 where the answer is
    /// good, else 1: for health checks of images that have no other program.
    #[command(after_help = health::EXAMPLES)]
    Health(health::HealthArguments),
    /// Serve the built-in sample server alone, as an upstream to try a deployment with
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

How many operations were read, paired and left over is told on standard error.";

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
    /// Where calls come in, in place of `listen.address`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where metrics and the admin API are, in place of `admin.address`
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// How the outcome is written
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Print no notes on routes that a changed default affects
    #[arg(long)]
    no_upgrade_notes: bool,
    /// Print normal forms as well: what comes back in another form that means the same
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
    /// How the table is written
    #[arg(long, value_enum, default_value_t = TableFormat::Human)]
    format: TableFormat,
    /// Only routes whose names fit; `*` stands for any text
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
    /// The admin listener of a running process, which explains what is in force, in place of the files
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "reply"])]
    admin: Option<String>,
    /// A file with the token of the API; without it, the variable `DUALGAUGE_TOKEN`
    #[arg(long, value_name = "FILE", requires = "admin")]
    token_file: Option<PathBuf>,
    /// How the explanation is written
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// The URL or the path of a request
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// The HTTP method of the URL; POST where there is data, else GET
    #[arg(short = 'X', long, value_name = "METHOD", requires = "url")]
    request: Option<String>,
    /// A header of the URL or of JSON; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE", conflicts_with = "http")]
    header: Vec<String>,
    /// The body of the URL, or `@FILE`; JSON unless a header says otherwise
    #[arg(short = 'd', long, value_name = "BODY", requires = "url")]
    data: Option<String>,
    /// An HTTP file as editors have it, `###` between requests; `-` for standard input
    #[arg(long, value_name = "FILE")]
    http: Option<PathBuf>,
    /// A JSON-RPC message or batch; `-` for standard input
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where JSON is posted to; the first of `rpc.paths` unless it is said
    #[arg(long, value_name = "PATH", conflicts_with_all = ["url", "http"])]
    path: Option<String>,
    /// The address that the request would come from; without it, headers are believed and no address fits
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
    /// An answer of the upstream, whose translation is shown as well: a body, or a whole answer with its head
    #[arg(long, value_name = "FILE")]
    reply: Option<PathBuf>,
    /// The HTTP status of the reply; 200 unless it or the reply says so
    #[arg(long, value_name = "STATUS", requires = "reply")]
    status: Option<u16>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("documents").args(["openapi", "openrpc", "from"]).required(true).multiple(true))]
struct ImportArguments {
    /// An OpenAPI 3.0 to 3.2 document, JSON or YAML; may be given several times
    #[arg(long, value_name = "FILE")]
    openapi: Vec<PathBuf>,
    /// An OpenRPC document, JSON or YAML; may be given several times
    #[arg(long, value_name = "FILE")]
    openrpc: Vec<PathBuf>,
    /// A JSON-RPC server to ask, `http://host[:port]/path` or `https://…`
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// What to ask it; without this `rpc.discover`, and `tools/list` where it does not know that
    #[arg(long, value_enum, value_name = "METHOD", requires = "from")]
    method: Option<import::Method>,
    /// A header to ask it with, `Name: value`; may be given several times
    #[arg(long, value_name = "HEADER", requires = "from")]
    header: Vec<String>,
    /// The authorities whose certificate it must have, PEM, in place of the public ones
    #[arg(long, value_name = "FILE", requires = "from")]
    ca: Option<PathBuf>,
    /// How many seconds it may take to answer, 600 at most
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Where the draft is written, in place of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output file if it is there
    #[arg(long, requires = "output")]
    force: bool,
}

#[cfg(feature = "demo")]
#[derive(Debug, Args)]
struct DemoArguments {
    /// Where calls come in
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where metrics and the admin API are
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
    #[error("`{0}` is no percentage; write a number from 0 to 100 in steps of 0.001")]
    Percent(String),
    #[error(transparent)]
    Run(#[from] crate::app::run::RunError),
    #[cfg(feature = "demo")]
    #[error("the sample server has no database")]
    Database(#[from] rusqlite::Error),
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
        CliCommand::Routes(arguments) => routes::routes(&arguments),
        CliCommand::Explain(arguments) => explain::explain(&arguments),
        CliCommand::Mismatches(arguments) => mismatches::mismatches(&arguments),
        CliCommand::Import(arguments) => import::import(&arguments),
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
