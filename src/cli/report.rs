//! `dualgauge report`: the state of a migration for its owner, as Markdown or as one HTML page.
//!
//! `data` asks the admin API; `compose` and its sections turn the answers into a document without a format; `markdown` and
//! `html` write it. Used by `cli`.

mod clients;
mod comparisons;
mod compose;
mod data;
mod deletion;
mod document;
mod fault;
mod html;
mod markdown;
mod period;
mod progress;
mod speed;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::cli::admin::{AdminArguments, AdminClient};
use crate::cli::command_error::CommandError;
use compose::compose;
use data::{Since, collect};
use dualgauge_model::lifecycle::parse_idle;
pub(super) use fault::ReportFault;
use html::html;
use markdown::markdown;

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Start of the period: a duration before now, such as `7d` or `12h`, or a time, such as `2026-06-30T12:00:00Z`
    #[arg(long, value_name = "DURATION|TIME", default_value = "7d", value_parser = Since::parse)]
    since: Since,
    /// Time without calls before a route may be deleted: `30d`, `12h`, `90m`, `45s`
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = idle)]
    idle: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Markdown)]
    format: ReportFormat,
    /// Write the report to this file instead of the standard output; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    admin: AdminArguments,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Markdown with tables, as GitHub and most wikis show it
    Markdown,
    /// One HTML page without scripts, which loads nothing
    Html,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge report
  dualgauge report --since 30d --format html --output report.html
  dualgauge report --since 2026-06-01T00:00:00Z --idle 14d
  dualgauge report --admin http://10.0.0.5:9090 --token-file token";

fn idle(text: &str) -> Result<String, &'static str> {
    match parse_idle(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("write a duration such as `30d`, `12h` or `90m`, ten years at most"),
    }
}

pub(super) fn report(arguments: &ReportArguments) -> Result<ExitCode, CommandError> {
    let admin = AdminClient::new(&arguments.admin)?;
    let document = compose(&collect(&admin, &arguments.idle)?, arguments.since);
    let text = match arguments.format {
        ReportFormat::Markdown => markdown(&document),
        ReportFormat::Html => html(&document),
    };
    match &arguments.output {
        Some(path) => fs::write(path, text).map_err(|cause| ReportFault::Unwritable {
            path: path.clone(),
            cause,
        })?,
        None => io::stdout().lock().write_all(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
