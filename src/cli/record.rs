//! `dualgauge record`: records the calls of a running process for a bounded time.
//!
//! Used by `cli`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::signal::ctrl_c;
use tokio::time::sleep;

use crate::cli::admin::{AdminArguments, AdminClient, AdminFault, AdminRequest};
use crate::cli::command_error::CommandError;
use crate::cli::format::Format;
use crate::cli::plural;
use dualgauge_model::lifecycle::parse_idle;

/// The path of the recording in the admin API.
const PATH: &str = "/api/v1/recording";

/// The interval of progress lines.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// The interval of questions for the state.
const ASK_EVERY: Duration = Duration::from_millis(500);

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge record --for 10m
  dualgauge record --for 1h --sample 1
  dualgauge record --for 30s --bodies --admin http://10.0.0.5:9090 --token-file token
  dualgauge record --status
  dualgauge record --stop";

#[derive(Debug, Args)]
pub(super) struct RecordArguments {
    /// The time after which the recording stops, such as `30s`, `10m` or `2h`; at most a day
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = duration,
        required_unless_present_any = ["stop", "status"],
        conflicts_with_all = ["stop", "status"]
    )]
    time: Option<Duration>,
    /// The percentage of calls that are recorded
    #[arg(long, value_name = "PERCENT", default_value = "100", value_parser = percent, conflicts_with_all = ["stop", "status"])]
    sample: f64,
    /// Record bodies that are JSON or forms, with sensitive members replaced; by default `record.bodies` decides
    #[arg(long, conflicts_with_all = ["stop", "status"])]
    bodies: bool,
    /// The author of the recording, for the log
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// The reason of the recording, for the log
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Stop the recording that runs
    #[arg(long, conflicts_with = "status")]
    stop: bool,
    /// Show the recording that runs, or the last one
    #[arg(long)]
    status: bool,
    /// Output format of the summary
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn record(arguments: &RecordArguments) -> Result<ExitCode, CommandError> {
    let admin = AdminClient::new(&arguments.admin)?;
    let state = match arguments.time {
        _ if arguments.status => admin.get(PATH)?,
        _ if arguments.stop => stop(&admin, arguments)?,
        Some(time) => {
            let started = start(&admin, arguments, time)?;
            let directory = started["recording"]["directory"].as_str().unwrap_or("?");
            writeln!(
                io::stderr(),
                "recording {} % of calls to {directory} for {} s; Ctrl-C stops it",
                arguments.sample,
                time.as_secs()
            )?;
            follow(&admin, arguments, &started)?
        }
        // clap requires one of the three.
        None => admin.get(PATH)?,
    };
    let text = match arguments.format {
        Format::Human => summary(&state),
        Format::Json => format!("{state:#}\n"),
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(match stopped(&state) {
        _ if is_stopping(&state) => ExitCode::FAILURE,
        Some("disk_full" | "error") => ExitCode::FAILURE,
        Some(_) | None => ExitCode::SUCCESS,
    })
}

fn start(
    admin: &AdminClient,
    arguments: &RecordArguments,
    time: Duration,
) -> Result<Value, AdminFault> {
    let mut body = attribution(arguments);
    body["seconds"] = json!(time.as_secs());
    body["sample"] = json!(arguments.sample);
    if arguments.bodies {
        body["bodies"] = json!(true);
    }
    change(admin, Method::PUT, body)
}

fn stop(admin: &AdminClient, arguments: &RecordArguments) -> Result<Value, AdminFault> {
    change(admin, Method::DELETE, attribution(arguments))
}

fn attribution(arguments: &RecordArguments) -> Value {
    let mut body = json!({});
    if let Some(who) = &arguments.who {
        body["who"] = json!(who);
    }
    if let Some(why) = &arguments.why {
        body["why"] = json!(why);
    }
    body
}

fn change(admin: &AdminClient, method: Method, body: Value) -> Result<Value, AdminFault> {
    admin.ask(&AdminRequest {
        method,
        path: PATH,
        body: Some(body),
        tag: None,
    })
}

/// Shows the progress of a recording until it ends. Ctrl-C stops it.
fn follow(
    admin: &AdminClient,
    arguments: &RecordArguments,
    started: &Value,
) -> Result<Value, CommandError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut until_progress = PROGRESS_EVERY;
    loop {
        let is_interrupted = runtime.block_on(async {
            // Cancel-safe: a signal after this is seen by the next call.
            tokio::select! {
                _ = ctrl_c() => true,
                () = sleep(ASK_EVERY) => false,
            }
        });
        if is_interrupted {
            return Ok(stop(admin, arguments)?);
        }
        let state = admin.get(PATH)?;
        let is_same = state["recording"]["started"] == started["recording"]["started"];
        if !is_same && state["recording"].is_null() {
            writeln!(
                io::stderr(),
                "another process took over, and the recording ended with the one before"
            )?;
        }
        if !is_same || state["running"] != json!(true) {
            return Ok(state);
        }
        until_progress = until_progress.saturating_sub(ASK_EVERY);
        if until_progress.is_zero() {
            until_progress = PROGRESS_EVERY;
            writeln!(io::stderr(), "  {}", amounts(&state["recording"]))?;
        }
    }
}

/// Returns the reason why the recording stopped.
fn stopped(state: &Value) -> Option<&str> {
    state["recording"]["stopped"]["reason"].as_str()
}

/// Returns true if the recording was to stop and has not.
fn is_stopping(state: &Value) -> bool {
    state["stopping"] == json!(true)
}

fn amounts(recording: &Value) -> String {
    let number = |name: &str| recording[name].as_u64().unwrap_or(0);
    let mut text = format!(
        "{}, {} bytes, {}",
        plural::count(number("calls"), "call"),
        number("bytes"),
        plural::count(number("files"), "file"),
    );
    if number("dropped") > 0 {
        text.push_str(&format!(
            "; {} not recorded",
            plural::count(number("dropped"), "call")
        ));
    }
    text
}

fn summary(state: &Value) -> String {
    let recording = &state["recording"];
    if recording.is_null() {
        return "no recording since the start of the process\n".to_owned();
    }
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut text = match stopped(state) {
        None if is_stopping(state) => {
            "not stopped yet: the disk does not respond; no more calls are recorded".to_owned()
        }
        None => format!("recording since {}", word(&recording["started"])),
        Some(reason) => format!("stopped: {}", explained(reason)),
    };
    if let Some(error) = recording["stopped"]["error"].as_str() {
        text.push_str(&format!(" ({error})"));
    }
    text.push_str(&format!(
        "\n{}\n{}/{}\n",
        amounts(recording),
        word(&recording["directory"]),
        word(&recording["file"]),
    ));
    text
}

/// Returns the reason of an end in words.
fn explained(reason: &str) -> &str {
    match reason {
        "command" => "by command",
        "time" => "its time is over",
        "size" => "it has `record.total_size` bytes",
        "disk_full" => "the disk is full; free space, and start it again",
        "error" => "its file cannot be written; check `record.directory`",
        "reload" => "`[record]` was changed",
        "shutdown" => "the process ended",
        other => other,
    }
}

/// Parses a duration of at least a second.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write whole seconds, minutes or hours, such as `30s`, `10m` or `2h`".to_owned();
    let seconds = parse_idle(text).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

/// Parses a percentage, which the API checks again.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (0.001..=100.0).contains(number));
    number.ok_or_else(|| "write a number from 0.001 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_waits_for_the_disk_is_shown() {
        let recording =
            json!({ "directory": "d", "file": "f", "calls": 1, "bytes": 9, "files": 1 });
        let state = json!({ "running": true, "stopping": true, "recording": recording });
        assert!(summary(&state).starts_with("not stopped yet: the disk does not respond"));
    }

    #[test]
    fn a_duration_has_a_number_and_a_unit() {
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for text in [
            "",
            "s",
            "0s",
            "10",
            "10µ",
            "é",
            "1.5h",
            "99999999999999999999h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
