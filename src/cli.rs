//! The command line: `run`, `check`, `schema`, `routes`, `explain`, `mismatches`, `record`, `replay`, `har`, `learn`,
//! `import`, `mcp`, `rest`, `kit`, `flags`, `usage`, `report`, `reload`, `health`, `completions`, `man`, `sample`, `demo`.
//!
//! Each command is a function of its parsed arguments, and its result is an exit code: 0 for success, 1 for a failure,
//! 2 for an invalid command line. Reports go to standard output, problems to standard error.
//!
//! Used throughout `cli`.

mod admin;
mod check;
mod command_error;
mod completions;
mod configuration;
mod connection;
mod cpu_features;
#[cfg(feature = "demo")]
mod demo;
#[cfg(test)]
mod draft_files;
mod drafted_server;
mod explain;
mod flags;
mod format;
mod har;
mod health;
mod import;
mod kit;
mod learn;
mod man;
mod mcp;
mod mismatches;
mod names;
mod no_route;
mod plain;
mod plural;
mod record;
mod reload;
mod replay;
mod report;
mod rest;
mod routes;
mod run;
#[cfg(feature = "demo")]
mod sample;
mod schema;
mod stdio_bridge;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

pub use cpu_features::has_all;

/// Legacy REST and JSON-RPC 2.0 on one port, translated both ways, client by client
///
/// dualgauge is a proxy in front of an unchanged server. It serves REST and JSON-RPC 2.0 on one port, and moves each
/// client from one to the other, route by route.
#[derive(Debug, Parser)]
#[command(version = VERSION, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: CliCommand,
}

/// The version of the package. `deploy/release` adds the commit and its date.
const VERSION: &str = match option_env!("RELEASE_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

const EXAMPLES: &str = "\
Examples:
  dualgauge check --config config/dualgauge.toml
  dualgauge run --config config/dualgauge.toml --listen 0.0.0.0:8080

Environment variables can set every configuration key: `DUALGAUGE_LIMITS__BODY=1MiB`.
Arguments override variables, and variables override files.";

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve calls according to a configuration
    #[command(after_help = run::EXAMPLES)]
    Run(run::RunArguments),
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
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArguments),
    /// Print the JSON Schema of the configuration, of a route table or of the flags file, for editors
    ///
    /// The schema (draft 2020-12) has every key with its meaning, its accepted values and its default. It describes
    /// single values; `check` also reports keys that exclude each other, and everything that depends on routes.
    #[command(after_help = schema::EXAMPLES)]
    Schema(schema::SchemaArguments),
    /// Print the route table, or an API description generated from it
    ///
    /// Reads the configuration as `check` does. `--format openapi` and `--format openrpc` describe the routes for
    /// people and programs that do not know dualgauge.
    #[command(after_help = routes::EXAMPLES)]
    Routes(routes::RoutesArguments),
    /// Show how a request is routed and translated, without sending it
    ///
    /// Prints the route, the holes with their values, the client, the decision with its reason, the message to the
    /// upstream, the dropped members, and the outcome rows that could answer; or the failure that the caller would
    /// receive. Opens no connection to an upstream. Credentials are shown as `***`.
    ///
    /// The request is a URL with options as in curl, an HTTP file, or JSON-RPC; without any of these, JSON-RPC is read
    /// from standard input. The exit code is 0 if the request is explained, even a refused one, and 2 if the request or
    /// the configuration cannot be read.
    #[command(after_help = explain::EXAMPLES)]
    Explain(Box<explain::ExplainArguments>),
    /// Show where the compared responses of a running process differ
    ///
    /// Asks the admin API of a process for the latest mismatches of the stages shadow and verify: for each route and
    /// each field of its responses, the number of calls that differed, and the latest of them. Values are hidden unless
    /// the configuration shows them. The process forgets the mismatches of a route when the route changes, and on
    /// `--reset`.
    #[command(after_help = mismatches::EXAMPLES)]
    Mismatches(mismatches::MismatchesArguments),
    /// Make recorded calls again, and compare the responses
    ///
    /// Reads a recording or a HAR file, and sends each safe call as the stage shadow would: translated to the new side,
    /// unchanged to the old side, or both. Then it prints verdicts by route and field, times, and the calls that were
    /// skipped with the reasons. No process needs to run. Calls of routes that are not safe are sent only with `--unsafe`.
    ///
    /// The exit code is 0 if calls were compared and all are equal; 1 if a call differs or fails on the side that it is
    /// sent to; 2 if nothing is proven: the command line, the configuration or the file cannot be used, no call was
    /// compared, or a signal ended the replay before a call differed.
    #[command(after_help = replay::EXAMPLES)]
    Replay(Box<replay::ReplayArguments>),
    /// Write a recording as a HAR file, for browsers and other programs
    ///
    /// HAR has no member for the decision about a call and for placeholders; they are kept in `_dualgauge`, and
    /// `dualgauge replay` reads them. The exit code is 1 if a line of the recording is no call; the others are written.
    #[command(after_help = har::EXAMPLES)]
    Har(har::HarArguments),
    /// Draft a route table from OpenAPI and OpenRPC documents, a running server or a command
    ///
    /// Reads OpenAPI 3.0 to 3.2, Swagger 2.0 and OpenRPC 1.x, as JSON or YAML. Asks a server for its `rpc.discover` or
    /// `tools/list`, and an MCP server that is a command for its `tools/list`. An operation that both sides describe becomes one route; one that only one side describes becomes
    /// a route to review; one that cannot be a route stays as a comment with the reason. The draft passes `check`.
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArguments),
    /// Draft a route table from recorded or logged calls
    ///
    /// Reads recordings, HAR files and access logs. Infers paths with their varying segments, names and types of queries,
    /// params and bodies, and pairs REST and RPC calls by name and shape, as `import` does with documents. Each guess is
    /// marked with a comment. The draft passes `check`.
    #[command(after_help = learn::EXAMPLES)]
    Learn(learn::LearnArguments),
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
    #[command(after_help = rest::EXAMPLES, override_usage = rest::USAGE_LINE)]
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
    /// Report the state of a migration, for its owner
    ///
    /// Asks a running proxy, and writes Markdown or one HTML page: the clients that have moved and those that are left,
    /// compared calls, differences found and fixed, guard trips and changes, latency and errors the old way against the
    /// new way, and the routes that may be deleted. It says which data do not cover the whole period.
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArguments),
    /// Record calls of a running process for a bounded time
    ///
    /// Writes one JSON line for each call, with its request, decision and response, to the folder of
    /// `record.directory` on the machine of the process. Credentials are never recorded, and members with sensitive names
    /// are replaced. The recording stops after the time of `--for`, at `record.total_size`, if the disk is full, and on
    /// Ctrl-C; calls go on. The exit code is 1 if the disk is full or a file could not be written.
    #[command(after_help = record::EXAMPLES)]
    Record(record::RecordArguments),
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
    /// Print a script that completes commands, options and names in bash, zsh or fish
    ///
    /// The names of flags and routes come from the file of `--config`; without it, from the running proxy at `--admin`;
    /// without one, from `dualgauge.toml` in the current folder or in `/etc/dualgauge`.
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArguments),
    /// Write the manual pages, one for each command
    #[command(after_help = man::EXAMPLES)]
    Man(man::ManArguments),
    /// Serve only the built-in sample server, as an upstream for trying a deployment
    #[cfg(feature = "demo")]
    Sample(sample::SampleArguments),
    /// Serve a built-in sample server, with its routes and flags, to try things out
    #[cfg(feature = "demo")]
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::DemoArguments),
}

/// Runs the program and returns its exit code. It runs after [`has_all`], and so is never inlined into its caller.
#[must_use]
#[inline(never)]
pub fn main() -> ExitCode {
    if let Some(code) = completions::complete(Arguments::command) {
        return code;
    }
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
        CliCommand::Replay(arguments) => replay::replay(&arguments),
        CliCommand::Har(arguments) => har::har(&arguments),
        CliCommand::Import(arguments) => import::import(&arguments),
        CliCommand::Learn(arguments) => learn::learn(&arguments),
        CliCommand::Mcp(arguments) => mcp::mcp(&arguments),
        CliCommand::Kit(arguments) => kit::kit(&arguments),
        CliCommand::Rest(arguments) => rest::rest(&arguments),
        CliCommand::Flags(arguments) => flags::flags(&arguments),
        CliCommand::Usage(arguments) => usage::usage(&arguments),
        CliCommand::Report(arguments) => report::report(&arguments),
        CliCommand::Record(arguments) => record::record(&arguments),
        CliCommand::Reload(arguments) => reload::reload(&arguments),
        CliCommand::Health(arguments) => health::health(&arguments),
        CliCommand::Completions(arguments) => completions::completions(&arguments),
        CliCommand::Man(arguments) => man::man(&arguments, Arguments::command()),
        #[cfg(feature = "demo")]
        CliCommand::Sample(arguments) => sample::sample(&arguments),
        #[cfg(feature = "demo")]
        CliCommand::Demo(arguments) => demo::demo(&arguments),
    };
    outcome.unwrap_or_else(|error| error.report())
}

/// Prints clap's output: help and version are not errors.
fn print_answer(answer: &clap::Error) -> ExitCode {
    let code = u8::try_from(answer.exit_code()).unwrap_or(2);
    // If the output is closed, the exit code alone must do.
    answer
        .print()
        .map_or(ExitCode::FAILURE, |()| ExitCode::from(code))
}
