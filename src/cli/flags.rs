//! `dualgauge flags`: lists and changes flags through the admin API of a running process. Used by `cli`.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use crate::cli::admin::{AdminArguments, AdminClient, AdminRequest};
use crate::cli::command_error::CommandError;
use crate::cli::format::Format;
use crate::cli::names;
use dualgauge_patterns::percent::{Keep, encode};

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge flags
  dualgauge flags set ios-first translate --percent 5 --who anna --why 'ticket 7'
  dualgauge flags undo ios-first
  dualgauge flags rearm ios-first
  dualgauge flags kill --why 'the new server is down'
  dualgauge flags history ios-first
  dualgauge flags list --format json";

#[derive(Debug, Args)]
pub(super) struct FlagsArguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    admin: AdminArguments,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human, global = true)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all flags, in order of evaluation (the default)
    List,
    /// Set the stage and percentage of a flag
    Set {
        /// The flag
        #[arg(add = names::flags())]
        name: String,
        /// passthrough, shadow, verify, translate or retired
        #[arg(add = names::stages())]
        stage: String,
        /// Percentage of callers, 0 to 100 in steps of 0.001
        #[arg(long, value_name = "PERCENT", default_value = "100")]
        percent: String,
        #[command(flatten)]
        signed: Attribution,
    },
    /// Remove the override of a flag: the flags file applies again
    Reset {
        /// The flag
        #[arg(add = names::flags())]
        name: String,
        #[command(flatten)]
        signed: Attribution,
    },
    /// Undo the last change of a flag, or the last change of any kind
    Undo {
        /// The flag
        #[arg(add = names::flags())]
        name: Option<String>,
        #[command(flatten)]
        signed: Attribution,
    },
    /// Re-arm a flag after its guard tripped
    Rearm {
        /// The flag
        #[arg(add = names::flags())]
        name: String,
        #[command(flatten)]
        signed: Attribution,
    },
    /// Activate the kill switch: every call whose side has an upstream passes through
    Kill {
        #[command(flatten)]
        signed: Attribution,
    },
    /// Deactivate the kill switch: the flags decide again
    Revive {
        #[command(flatten)]
        signed: Attribution,
    },
    /// Cancel the brownouts of a route
    CallOff {
        /// The route
        #[arg(add = names::routes())]
        route: String,
        #[command(flatten)]
        signed: Attribution,
    },
    /// Resume the brownouts of a route
    CallOn {
        /// The route
        #[arg(add = names::routes())]
        route: String,
        #[command(flatten)]
        signed: Attribution,
    },
    /// Show changes and their authors, newest first
    History {
        /// Only changes of this flag
        #[arg(add = names::flags())]
        name: Option<String>,
    },
}

/// The author of a change, and its reason.
#[derive(Debug, Args)]
struct Attribution {
    /// Author of the change, for the history
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Reason of the change, for the history
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Change it only if it still has this tag, as printed by `flags list` and `flags set`
    #[arg(long, value_name = "TAG")]
    if_match: Option<String>,
}

impl Attribution {
    fn body(&self) -> Value {
        let mut body = json!({});
        for (name, value) in [("who", &self.who), ("why", &self.why)] {
            if let Some(value) = value {
                body[name] = json!(value);
            }
        }
        body
    }
}

/// A request to the API, and the rendering of its response.
struct FlagQuery<'a> {
    method: Method,
    path: String,
    body: Option<Value>,
    tag: Option<&'a str>,
    shown: fn(&Value) -> String,
}

pub(super) fn flags(arguments: &FlagsArguments) -> Result<ExitCode, CommandError> {
    let admin = AdminClient::new(&arguments.admin)?;
    let question = question(arguments.action.as_ref().unwrap_or(&Action::List))?;
    let mut value = admin.ask(&AdminRequest {
        method: question.method,
        path: &question.path,
        body: question.body,
        tag: question.tag,
    })?;
    if let Some(Action::History { name: Some(name) }) = &arguments.action {
        only(&mut value, name);
    }
    let text = match arguments.format {
        Format::Human => (question.shown)(&value),
        Format::Json => format!("{value:#}\n"),
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    if let Some(Action::Set { .. } | Action::Undo { .. }) = &arguments.action
        && let Some(note) = still_tripped(&value)
    {
        io::stderr().lock().write_all(note.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a note on a changed flag that still takes no calls, since its guard has rolled it back.
fn still_tripped(flag: &Value) -> Option<String> {
    let name = flag["name"].as_str()?;
    let reason = flag["tripped"]["reason"].as_str()?;
    Some(format!(
        "note: `{name}` is still tripped and takes no call: {reason}\n  hint: `dualgauge flags rearm {name}` re-arms it\n"
    ))
}

fn question(action: &Action) -> Result<FlagQuery<'_>, CommandError> {
    let read = |path: &str, shown| FlagQuery {
        method: Method::GET,
        path: path.to_owned(),
        body: None,
        tag: None,
        shown,
    };
    let write = |method, path: String, signed: &'_ Attribution| FlagQuery {
        method,
        path,
        body: Some(signed.body()),
        tag: None,
        shown: after,
    };
    let flag = |name: &str| format!("/api/v1/flags/{}", segment(name));
    let called_off = |route: &str| format!("/api/v1/called-off/{}", segment(route));
    let (mut question, signed) = match action {
        Action::List => return Ok(read("/api/v1/flags", listed)),
        Action::History { .. } => return Ok(read("/api/v1/history", history)),
        Action::Set {
            name,
            stage,
            percent,
            signed,
        } => {
            let mut question = write(Method::PUT, flag(name), signed);
            let percent: serde_json::Number = percent
                .parse()
                .map_err(|_| CommandError::Percent(percent.clone()))?;
            let body = question.body.get_or_insert_default();
            body["stage"] = json!(stage);
            body["percent"] = Value::Number(percent);
            (question, signed)
        }
        Action::Reset { name, signed } => (write(Method::DELETE, flag(name), signed), signed),
        Action::Undo { name, signed } => {
            let path = name.as_deref().map(|name| flag(name) + "/undo");
            let path = path.unwrap_or_else(|| "/api/v1/undo".to_owned());
            (write(Method::POST, path, signed), signed)
        }
        Action::Rearm { name, signed } => {
            (write(Method::POST, flag(name) + "/rearm", signed), signed)
        }
        Action::Kill { signed } => (
            write(Method::PUT, "/api/v1/kill".to_owned(), signed),
            signed,
        ),
        Action::Revive { signed } => (
            write(Method::DELETE, "/api/v1/kill".to_owned(), signed),
            signed,
        ),
        Action::CallOff { route, signed } => {
            (write(Method::PUT, called_off(route), signed), signed)
        }
        Action::CallOn { route, signed } => {
            (write(Method::DELETE, called_off(route), signed), signed)
        }
    };
    question.tag = signed.if_match.as_deref();
    Ok(question)
}

/// Returns a name as a path segment.
fn segment(name: &str) -> String {
    let mut text = String::new();
    encode(name, Keep::Nothing, &mut text);
    text
}

/// Keeps only the entries of one flag.
fn only(history: &mut Value, name: &str) {
    if let Some(entries) = history.as_array_mut() {
        entries.retain(|entry| entry["before"]["flag"]["flag"] == name);
    }
}

/// Returns the state after a change: the flag, or everything.
fn after(value: &Value) -> String {
    if value.get("flags").is_some() {
        return listed(value);
    }
    table(&[value])
}

fn listed(value: &Value) -> String {
    let mut text = String::new();
    if let Some(kill) = value.get("kill").filter(|kill| !kill.is_null()) {
        let _ = writeln!(
            text,
            "KILL SWITCH ON since {} by {}{}: every call passes through whose side has an upstream",
            word(kill, "at"),
            word(kill, "who"),
            because(kill)
        );
        if let Some(error) = value["kill_unstored"].as_str() {
            let _ = writeln!(
                text,
                "  NOT STORED YET: it acts in this process only, and storing it is tried again each second: {error}"
            );
        }
        for route in value["still_translated"].as_array().into_iter().flatten() {
            let _ = writeln!(
                text,
                "  still translated: {}",
                route.as_str().unwrap_or("?")
            );
        }
    }
    for route in value["called_off"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "brownouts called off: {}",
            route.as_str().unwrap_or("?")
        );
    }
    let flags: Vec<&Value> = value["flags"].as_array().into_iter().flatten().collect();
    if flags.is_empty() {
        text.push_str("there are no flags; `rollout.flags` names their file\n");
        return text;
    }
    text.push_str(&table(&flags));
    text
}

const COLUMNS: [&str; 8] = [
    "FLAG", "CLIENT", "ROUTE", "SIDE", "STAGE", "PERCENT", "STATE", "TAG",
];

fn table(flags: &[&Value]) -> String {
    let head = COLUMNS.map(str::to_owned);
    let rows: Vec<[String; 8]> = std::iter::once(head)
        .chain(flags.iter().map(|flag| row(flag)))
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = String::new();
    // The header line has no line below it.
    let below = std::iter::once(None).chain(flags.iter().map(|flag| long_reason(flag)));
    for (row, below) in rows.iter().zip(below) {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
        if let Some(reason) = below {
            let _ = writeln!(text, "  tripped: {reason}");
        }
    }
    text
}

/// Longer reasons of trips would make every row too wide.
const REASON: usize = 24;

fn long_reason(flag: &Value) -> Option<&str> {
    let reason = flag["tripped"]["reason"].as_str()?;
    (reason.chars().count() > REASON).then_some(reason)
}

fn row(flag: &Value) -> [String; 8] {
    [
        word(flag, "name"),
        word(flag, "client"),
        word(flag, "route"),
        flag["side"].as_str().unwrap_or("both").to_owned(),
        word(flag, "stage"),
        flag["percent"].to_string(),
        state(flag),
        word(flag, "tag"),
    ]
}

/// Returns the reason for a flag's state.
fn state(flag: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(trip) = flag.get("tripped").filter(|trip| !trip.is_null()) {
        let reason = match long_reason(flag) {
            Some(_) => String::new(),
            None => format!(": {}", word(trip, "reason")),
        };
        parts.push(format!("TRIPPED {}{reason}", word(trip, "at")));
    }
    if let Some(flip) = flag.get("flipped").filter(|flip| !flip.is_null()) {
        parts.push(format!(
            "flipped by {} {}{}",
            word(flip, "who"),
            word(flip, "at"),
            because(flip)
        ));
    }
    if let Some(ramp) = flag.get("ramp").filter(|ramp| !ramp.is_null()) {
        parts.push(format!("ramp step {} of {}", ramp["step"], ramp["steps"]));
    }
    if let Some(ruling) = flag.get("guard").and_then(Value::as_str) {
        parts.push(format!("guard: {ruling}"));
    }
    if parts.is_empty() {
        parts.push("as the file says".to_owned());
    }
    for (name, fits) in flag["headers"].as_object().into_iter().flatten() {
        parts.push(format!("where {name}: {}", fits.as_str().unwrap_or("?")));
    }
    if let Some(share) = flag.get("holdback").filter(|share| !share.is_null()) {
        parts.push(format!("{share} % held back"));
    }
    parts.join("; ")
}

fn history(value: &Value) -> String {
    let mut text = String::new();
    for entry in value.as_array().into_iter().flatten() {
        let by = &entry["by"];
        let what = word(entry, "what");
        let subject = entry["before"]["flag"]["flag"].as_str().unwrap_or("-");
        let undone = if entry["undone"] == true {
            " (undone)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{}  r{}  {what:<9} {subject}  {} -> {}  by {}{}{undone}",
            word(by, "at"),
            entry["revision"],
            left(&entry["before"]),
            left(&entry["after"]),
            word(by, "who"),
            because(by)
        );
    }
    if text.is_empty() {
        text.push_str("nothing was changed yet\n");
    }
    text
}

/// Returns a short form of the state before or after a change.
fn left(left: &Value) -> String {
    if let Some(flag) = left.get("flag") {
        let standing = &flag["standing"];
        let flip = &standing["flip"];
        let mut words = match flip.is_object() {
            true => format!("{} {} %", word(flip, "stage"), word(flip, "percent")),
            false => "file".to_owned(),
        };
        if standing["trip"].is_object() {
            words.push_str(" tripped");
        }
        if let Some(step) = standing["ramp"]["step"].as_u64() {
            words.push_str(&format!(" ramp step {}", step + 1));
        }
        return words;
    }
    if let Some(kill) = left.get("kill") {
        return if kill["kill"].is_null() { "off" } else { "on" }.to_owned();
    }
    left["brownouts"]["called_off"].to_string()
}

fn because(by: &Value) -> String {
    by["why"]
        .as_str()
        .map_or_else(String::new, |why| format!(" ({why})"))
}

fn word(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_is_still_tripped_is_told_with_the_way_to_arm_it() {
        let mut flag = json!({"name": "ios", "stage": "translate", "tripped": null});
        assert_eq!(still_tripped(&flag), None);
        flag["tripped"] = json!({"at": "2026-02-03T04:05:06.000Z", "reason": "failures: 12 %"});
        let expected = "note: `ios` is still tripped and takes no call: failures: 12 %\n  \
                        hint: `dualgauge flags rearm ios` re-arms it\n";
        assert_eq!(still_tripped(&flag).as_deref(), Some(expected));
    }

    #[test]
    fn a_long_reason_stands_below_its_row_and_what_narrows_a_flag_is_told() {
        let plain = json!({
            "name": "a", "client": "*", "route": "*", "side": null, "stage": "translate", "percent": 5,
            "tag": "1-ab", "headers": {"x-beta": "1*"}, "holdback": 2.5,
        });
        let mut short = plain.clone();
        short["tripped"] = json!({"at": "2026-02-03T04:05:06.000Z", "reason": "failures"});
        let mut long = plain.clone();
        let reason = "failures: 12 % of 300 calls of the new way, 0.1 % of the old";
        long["tripped"] = json!({"at": "2026-02-03T04:05:06.000Z", "reason": reason});
        let text = table(&[&plain, &short, &long]);
        let expected = "\
FLAG  CLIENT  ROUTE  SIDE  STAGE      PERCENT  STATE                                                                           TAG
a     *       *      both  translate  5        as the file says; where x-beta: 1*; 2.5 % held back                             1-ab
a     *       *      both  translate  5        TRIPPED 2026-02-03T04:05:06.000Z: failures; where x-beta: 1*; 2.5 % held back  1-ab
a     *       *      both  translate  5        TRIPPED 2026-02-03T04:05:06.000Z; where x-beta: 1*; 2.5 % held back            1-ab
  tripped: failures: 12 % of 300 calls of the new way, 0.1 % of the old
";
        let squeezed = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(squeezed(&text), squeezed(expected));
        assert_eq!(text.lines().last(), expected.lines().last());
    }
}
