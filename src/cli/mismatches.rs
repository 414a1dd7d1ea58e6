//! `dualgauge mismatches`: failed candidates, and fields that differ, as a running process knows them, and their reset.
//!
//! Used by `cli`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use http::Method;
use serde_json::Value;

use crate::cli::admin::{AdminArguments, AdminClient, AdminRequest};
use crate::cli::command_error::CommandError;
use crate::cli::format::Format;
use crate::cli::names;
use crate::cli::no_route::{NoRoute, route_names};
use crate::cli::plain::plain;
use crate::cli::plural;
use dualgauge_patterns::percent::{Keep, encode};

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge mismatches
  dualgauge mismatches --since 30m
  dualgauge mismatches --reset --route items.get
  dualgauge mismatches --route 'agent.*' --format json
  dualgauge mismatches --admin http://10.0.0.5:9090 --token-file token";

#[derive(Debug, Args)]
pub(super) struct MismatchesArguments {
    /// Only routes whose names match; `*` matches any text
    #[arg(long, value_name = "GLOB", default_value = "*", add = names::routes())]
    route: String,
    /// Only mismatches since then: a duration before now, such as `30m`, `12h` or `2d`, or a time, such as
    /// `2026-06-30T12:00:00Z`. Counts also include earlier calls
    #[arg(long, value_name = "DURATION|TIME", conflicts_with = "reset")]
    since: Option<String>,
    /// Forget the mismatches and failed candidates of these routes, for example after a fix. Metrics keep their counts
    #[arg(long)]
    reset: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn mismatches(arguments: &MismatchesArguments) -> Result<ExitCode, CommandError> {
    let admin = AdminClient::new(&arguments.admin)?;
    let mut path = "/api/v1/mismatches?route=".to_owned();
    encode(&arguments.route, Keep::Nothing, &mut path);
    if let Some(since) = &arguments.since {
        path.push_str("&since=");
        encode(since, Keep::Nothing, &mut path);
    }
    let method = match arguments.reset {
        true => Method::DELETE,
        false => Method::GET,
    };
    let response = admin.ask(&AdminRequest {
        method,
        path: &path,
        body: None,
        tag: None,
    })?;
    if arguments.route != "*" && list(&response, "routes").is_empty() {
        let names = route_names(&admin)?;
        NoRoute::check(&arguments.route, names.iter().map(String::as_str))?;
    }
    let text = match arguments.format {
        Format::Human if arguments.reset => human_reset(&response),
        Format::Human => human(&response),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&response).map_err(io::Error::from)?;
            text.push('\n');
            text
        }
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn human_reset(response: &Value) -> String {
    let routes = list(response, "routes");
    let mut text = match routes {
        [] => "no mismatches\n".to_owned(),
        routes => format!("reset: {}\n", plural::count(routes.len() as u64, "route")),
    };
    for route in routes {
        text.push_str(&format!("  {}\n", plain(route.as_str().unwrap_or("?"))));
    }
    text
}

fn human(response: &Value) -> String {
    let routes = list(response, "routes");
    let mut text = String::new();
    let since = response.get("since").and_then(Value::as_str);
    // With `--since`, counts include more calls than requested.
    let counted = |of: &Value| {
        let count = plural::count(number(of, "count"), "call");
        match since {
            None => count,
            Some(_) => format!("{count} in all, the last at {}", word(of, "last")),
        }
    };
    // A failed candidate is more important than a differing field.
    let (with, without): (Vec<_>, Vec<_>) = routes.iter().partition(|route| failures(route) > 0);
    for route in with.into_iter().chain(without) {
        text.push_str(&format!("{}\n", word(route, "route")));
        if failures(route) > 0 {
            let count = counted(&route["failed"]);
            text.push_str(&format!("  candidate failed  {count}\n"));
            for sample in list(&route["failed"], "samples") {
                text.push_str(&failed_line(sample));
            }
        }
        for field in list(route, "fields") {
            let (name, count) = (word(field, "field"), counted(field));
            text.push_str(&format!("  {name}  {count}\n"));
            for sample in list(field, "samples") {
                text.push_str(&line(sample));
            }
        }
        more(&mut text, "  ", number(route, "more"));
    }
    more(&mut text, "", number(response, "more"));
    if text.is_empty() {
        text.push_str(&match since {
            None => "no mismatches\n".to_owned(),
            Some(_) => format!("no mismatches since {}\n", word(response, "since")),
        });
    }
    text
}

fn line(sample: &Value) -> String {
    let word = |name| word(sample, name);
    format!(
        "    {} {} {} {} {}: {}: candidate {}, control {}\n",
        word("at"),
        word("client"),
        word("stage"),
        word("kind"),
        word("pointer"),
        word("call"),
        word("candidate"),
        word("control"),
    )
}

fn failures(route: &Value) -> u64 {
    number(&route["failed"], "count")
}

fn failed_line(sample: &Value) -> String {
    let field = |name| word(sample, name);
    let known = |name: &str| sample[name].as_str().map(|_| word(sample, name));
    let why: Vec<_> = ["reason", "cause"].into_iter().filter_map(known).collect();
    let why = match why[..] {
        [] => String::new(),
        _ => format!(" ({})", why.join(": ")),
    };
    format!(
        "    {} {} {}: {}: candidate {}, control {}{why}\n",
        field("at"),
        field("client"),
        field("stage"),
        field("call"),
        field("candidate"),
        field("control"),
    )
}

fn more(text: &mut String, indent: &str, count: u64) {
    if count > 0 {
        text.push_str(&format!("{indent}and {count} more that had no room\n"));
    }
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    let found = value.get(name).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

/// Returns a text of the API, which may contain server output, without control characters.
fn word(value: &Value, name: &str) -> String {
    plain(value.get(name).and_then(Value::as_str).unwrap_or("?"))
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}
