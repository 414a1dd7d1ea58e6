//! `dualgauge mismatches`: failed candidates, and fields that differ, as a running process knows them.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::cli::admin::{Admin, AdminArguments};
use crate::cli::{CommandError, Format};
use crate::domain::percent::{Keep, encode};

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge mismatches
  dualgauge mismatches --route 'agent.*' --format json
  dualgauge mismatches --admin http://10.0.0.5:9090 --token-file token";

#[derive(Debug, Args)]
pub(super) struct MismatchesArguments {
    /// Only routes whose names fit; `*` stands for any text
    #[arg(long, value_name = "GLOB", default_value = "*")]
    route: String,
    /// How they are written
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn mismatches(arguments: &MismatchesArguments) -> Result<ExitCode, CommandError> {
    let admin = Admin::of(&arguments.admin)?;
    let mut path = "/api/v1/mismatches?route=".to_owned();
    encode(&arguments.route, Keep::Nothing, &mut path);
    let told = admin.get(&path)?;
    let text = match arguments.format {
        Format::Human => human(&told),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&told).map_err(io::Error::from)?;
            text.push('\n');
            text
        }
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn human(told: &Value) -> String {
    let routes = list(told, "routes");
    let mut text = String::new();
    // A failed candidate weighs more than a field that differs.
    let (with, without): (Vec<_>, Vec<_>) = routes.iter().partition(|route| failures(route) > 0);
    for route in with.into_iter().chain(without) {
        text.push_str(&format!("{}\n", word(route, "route")));
        if failures(route) > 0 {
            let count = failures(route);
            text.push_str(&format!("  candidate failed  {count} {}\n", calls(count)));
            for sample in list(&route["failed"], "samples") {
                text.push_str(&failed_line(sample));
            }
        }
        for field in list(route, "fields") {
            let (name, count) = (word(field, "field"), number(field, "count"));
            text.push_str(&format!("  {name}  {count} {}\n", calls(count)));
            for sample in list(field, "samples") {
                text.push_str(&line(sample));
            }
        }
        more(&mut text, "  ", number(route, "more"));
    }
    more(&mut text, "", number(told, "more"));
    if text.is_empty() {
        text.push_str("no mismatches\n");
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
    let told = |name| word(sample, name);
    let known = |name: &str| sample[name].as_str().map(|_| word(sample, name));
    let why: Vec<_> = ["reason", "cause"].into_iter().filter_map(known).collect();
    let why = match why[..] {
        [] => String::new(),
        _ => format!(" ({})", why.join(": ")),
    };
    format!(
        "    {} {} {}: {}: candidate {}, control {}{why}\n",
        told("at"),
        told("client"),
        told("stage"),
        told("call"),
        told("candidate"),
        told("control"),
    )
}

fn more(text: &mut String, indent: &str, count: u64) {
    if count > 0 {
        text.push_str(&format!("{indent}and {count} more that had no room\n"));
    }
}

const fn calls(count: u64) -> &'static str {
    if count == 1 { "call" } else { "calls" }
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    let found = value.get(name).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

/// A text of the API, which may bear what a server said: nothing of it moves the cursor.
fn word(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str).unwrap_or("?");
    let plain = |c: char| !c.is_control();
    if text.chars().all(plain) {
        return text.to_owned();
    }
    text.escape_debug().to_string()
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}
