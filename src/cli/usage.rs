//! `dualgauge usage`: the callers of each route, the routes that may be deleted, and the eras of MCP clients. Used by
//! `cli`.

mod eras;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;

use crate::cli::admin::{AdminArguments, AdminClient, AdminFault};
use crate::cli::command_error::CommandError;
use crate::cli::format::Format;
use crate::cli::names;
use crate::cli::no_route::{NoRoute, route_names};
use crate::cli::plural::count;
use dualgauge_model::lifecycle::{CountReport, RouteReport, UsageReport, parse_idle, span};
use dualgauge_patterns::percent::{Keep, encode};

/// Show who still calls each route, and which routes are safe to delete
///
/// Asks a running proxy. A route is safe to delete if its calls were counted without a gap for the time of `--idle`,
/// and in that time its deprecated side received no call, no call was translated for it, and no unrouted call was under
/// its prefix. The evidence is printed as well.
///
/// For MCP clients it also shows the era (handshake up to 2025-11-25, or stateless from 2026-07-28 on), the revision, the
/// programs as they declare themselves, and the last call. With `--era`, the exit code is 0 if the era with a handshake can
/// be switched off: eras were counted without a gap for the time of `--idle`, and no client called with a handshake. It is 1
/// if a client did, or if that is unknown.
#[derive(Debug, Args)]
pub(super) struct UsageArguments {
    /// Time without calls before a route is safe to delete: `30d`, `12h`, `90m`, `45s`
    #[arg(long, value_name = "TIME", default_value = "30d")]
    idle: String,
    /// Only routes whose names match; `*` matches any text
    #[arg(long, value_name = "GLOB", default_value = "*", add = names::routes())]
    route: String,
    /// Only the eras of MCP clients, and whether the one with a handshake can be switched off
    #[arg(long)]
    era: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge usage
  dualgauge usage --idle 14d --route 'agent.*' --format json
  dualgauge usage --era --idle 14d
  dualgauge usage --admin http://127.0.0.1:9090";

pub(super) fn usage(arguments: &UsageArguments) -> Result<ExitCode, CommandError> {
    if parse_idle(&arguments.idle).is_none() {
        let wrong = "error: `--idle` is not a time; write one such as `30d`, `12h` or `90m`\n";
        io::stderr().lock().write_all(wrong.as_bytes())?;
        return Ok(ExitCode::from(2));
    }
    let admin = AdminClient::new(&arguments.admin)?;
    let mut path = format!("/api/v1/usage?idle={}&route=", arguments.idle);
    encode(&arguments.route, Keep::Nothing, &mut path);
    let document = admin.get(&path)?;
    if arguments.era {
        let report: UsageReport =
            serde_json::from_value(document).map_err(|_| AdminFault::NoJson)?;
        return eras::print(&report, arguments.format);
    }
    if arguments.route != "*" && document["routes"].as_array().is_some_and(Vec::is_empty) {
        let names = route_names(&admin)?;
        NoRoute::check(&arguments.route, names.iter().map(String::as_str))?;
    }
    let mut out = io::stdout().lock();
    match arguments.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &document).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        Format::Human => {
            let report: UsageReport =
                serde_json::from_value(document).map_err(|_| AdminFault::NoJson)?;
            out.write_all(human(&report).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the report as text: a paragraph for each route.
fn human(report: &UsageReport) -> String {
    let mut text = String::new();
    for route in &report.routes {
        paragraph(&mut text, route);
    }
    if let Some(eras) = report.eras.as_ref().filter(|eras| !eras.clients.is_empty()) {
        text.push_str(&eras::human(eras));
        text.push('\n');
    }
    let idle = span(report.idle_seconds);
    line(
        &mut text,
        &format!(
            "{}, at {}; safe to delete after {idle} without calls",
            count(report.routes.len(), "route"),
            report.at
        ),
    );
    text
}

fn paragraph(text: &mut String, route: &RouteReport) {
    line(
        text,
        &format!("{}: {}", route.route, route.verdict.as_str()),
    );
    labelled(text, "rest", &route.rest);
    labelled(text, "rpc", &route.rpc);
    if let Some(deprecation) = &route.deprecated {
        let sunset = deprecation
            .sunset
            .as_ref()
            .map_or(String::new(), |at| format!(", sunset {at}"));
        labelled(
            text,
            "deprecated",
            &format!("{} since {}{sunset}", deprecation.side, deprecation.since),
        );
    }
    for reason in &route.reasons {
        labelled(text, "because", reason);
    }
    for caller in &route.callers {
        let counts = [
            ("old", &caller.old),
            ("new", &caller.new),
            ("refused", &caller.refused),
            ("tool errors", &caller.tool_errors),
        ];
        let counts = counts.into_iter().filter(|(_, count)| count.calls > 0);
        let counts: Vec<String> = counts.map(|(way, count)| counted(way, count)).collect();
        let who = format!(
            "{} on {}: {}",
            caller.client,
            caller.side,
            counts.join("; ")
        );
        labelled(text, "called by", &who);
    }
    if route.callers.is_empty() {
        labelled(text, "called by", "nobody");
    }
    evidence(text, route);
    text.push('\n');
}

fn counted(way: &str, count: &CountReport) -> String {
    let last = count.last.as_deref().unwrap_or("never");
    format!("{} {way}, last {last}", count.calls)
}

fn evidence(text: &mut String, route: &RouteReport) {
    let evidence = &route.evidence;
    let since = evidence.watched_since.as_ref();
    let since = since.map_or("not at all".to_owned(), |since| {
        format!(
            "for {} without a break, since {since}",
            span(evidence.watched_seconds)
        )
    });
    labelled(text, "watched", &since);
    let gaps = match evidence.gaps.len() {
        0 => "no gaps".to_owned(),
        gaps => format!("{}: {}", count(gaps, "gap"), evidence.gaps.join(", ")),
    };
    labelled(text, "replicas", &format!("{}, {gaps}", evidence.replicas));
    if let Some(unrouted) = &evidence.unrouted {
        let last = unrouted
            .last
            .as_ref()
            .map_or(String::new(), |last| format!(", last {last}"));
        let calls = count(unrouted.calls, "call");
        let under = format!("{calls} under {}{last}", unrouted.prefix);
        labelled(text, "unrouted", &under);
    }
}

fn labelled(text: &mut String, label: &str, content: &str) {
    line(text, &format!("  {label:<10}  {content}"));
}

fn line(text: &mut String, content: &str) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{content}");
}
