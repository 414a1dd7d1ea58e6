//! `dualgauge flags`: lists and changes flags through the admin API of a running process. Used by `cli`.

mod text;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use crate::cli::admin::{AdminArguments, AdminClient, AdminFault, AdminRequest};
use crate::cli::command_error::CommandError;
use crate::cli::format::Format;
use crate::cli::names;
use dualgauge_patterns::percent::{Keep, encode};
use text::{after, history, listed};

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
        /// Percentage of callers, 0 to 100 in steps of 0.001; without it, the flag keeps its percentage
        #[arg(long, value_name = "PERCENT")]
        percent: Option<String>,
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
        /// The flag; without it, the last change of any kind is undone
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
    /// Cancel the brownouts of a route, so that they refuse no calls
    CallOff {
        /// The route
        #[arg(add = names::routes())]
        route: String,
        #[command(flatten)]
        signed: Attribution,
    },
    /// Resume the brownouts of a route that `call-off` has cancelled
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
    /// Apply the change only if TAG is current: for a flag, its tag in `flags list`; for a change of no flag, such as `kill`,
    /// the latest revision in `flags history`, `7` for `r7`
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
struct FlagQuery {
    method: Method,
    path: String,
    body: Option<Value>,
    tag: Option<String>,
    shown: fn(&Value) -> String,
}

pub(super) fn flags(arguments: &FlagsArguments) -> Result<ExitCode, CommandError> {
    let admin = AdminClient::new(&arguments.admin)?;
    let mut question = question(arguments.action.as_ref().unwrap_or(&Action::List))?;
    if let Some(Action::Set { percent: None, .. }) = &arguments.action {
        keep_percent(&admin, &mut question)?;
    }
    let mut value = admin.ask(&AdminRequest {
        method: question.method,
        path: &question.path,
        body: question.body,
        tag: question.tag.as_deref(),
    })?;
    let mut shown = question.shown;
    if let Some(Action::History { name: Some(name) }) = &arguments.action
        && !only(&mut value, name)
    {
        shown = |_| "no change of a flag with this name\n".to_owned();
    }
    let text = match arguments.format {
        Format::Human => shown(&value),
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

/// Adds the current percentage of the flag to a change. The change fails if the flag changes meanwhile.
fn keep_percent(admin: &AdminClient, question: &mut FlagQuery) -> Result<(), AdminFault> {
    let flag = admin.get(&question.path)?;
    question.body.get_or_insert_default()["percent"] = flag["percent"].clone();
    if question.tag.is_none() {
        question.tag = flag["tag"].as_str().map(str::to_owned);
    }
    Ok(())
}

/// Returns a note on a changed flag that still takes no calls, since its guard has rolled it back.
fn still_tripped(flag: &Value) -> Option<String> {
    let name = flag["name"].as_str()?;
    let reason = flag["tripped"]["reason"].as_str()?;
    Some(format!(
        "note: `{name}` is still tripped and takes no call: {reason}\n  hint: `dualgauge flags rearm {name}` re-arms it\n"
    ))
}

fn question(action: &Action) -> Result<FlagQuery, CommandError> {
    let read = |path: &str, shown| FlagQuery {
        method: Method::GET,
        path: path.to_owned(),
        body: None,
        tag: None,
        shown,
    };
    let write = |method, path: String, signed: &Attribution| FlagQuery {
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
            let body = question.body.get_or_insert_default();
            body["stage"] = json!(stage);
            if let Some(percent) = percent {
                body["percent"] = percentage(percent)?;
            }
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
    question.tag = signed.if_match.clone();
    Ok(question)
}

fn percentage(text: &str) -> Result<Value, CommandError> {
    let number = text.parse().map(Value::Number);
    number.map_err(|_| CommandError::Percent(text.to_owned()))
}

/// Returns a name as a path segment.
fn segment(name: &str) -> String {
    let mut text = String::new();
    encode(name, Keep::Nothing, &mut text);
    text
}

/// Keeps only the entries of one flag. Returns true if there are any.
fn only(history: &mut Value, name: &str) -> bool {
    history.as_array_mut().is_some_and(|entries| {
        entries.retain(|entry| entry["before"]["flag"]["flag"] == name);
        !entries.is_empty()
    })
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
}
