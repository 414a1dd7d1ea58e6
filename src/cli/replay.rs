//! `dualgauge replay`: recorded calls, made again on the new way, the old way or both, and compared.
//!
//! It runs one worker without a listener, and sends each call as a candidate of a live shadow call is sent. So routing,
//! translation, links, rules and noise are those of `run`. Another way would be to start the whole proxy and to call it
//! over a socket; then the comparison could not tell a failure of the proxy from a response of the server, as shadow does.
//!
//! Used by `cli`.

mod calls;
mod driver;
mod fault;
mod input;
mod json;
mod junit;
mod latencies;
mod pace;
mod prepare;
mod progress;
mod prometheus;
mod summary;
mod text;
mod way;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::app::replay::{for_replay, with_worker};
use crate::cli::command_error::CommandError;
use crate::cli::configuration::read_configuration;
use crate::cli::drafted_server::headers;
use crate::cli::format::Format;
use crate::cli::names;
use crate::gateway::{ReplayTerms, UnsafeCalls};
use dualgauge_model::rollout::Glob;

pub(super) use calls::FilePart;
use driver::Driver;
pub(super) use fault::ReplayFault;
pub(super) use input::Input;
use prepare::Preparer;
use summary::{Conclusion, Summary};
use way::ReplayWay;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge replay calls.jsonl --config dualgauge.toml
  dualgauge replay calls.jsonl --config dualgauge.toml --to both --rate 50 --only 'orders.*'
  dualgauge replay browser.har --config dualgauge.toml --header 'authorization: Bearer {env:TOKEN}' --junit replay.xml";

/// The exit code if nothing was proven: the command line, the configuration or the file cannot be used, or no call was
/// compared.
const CANNOT_RUN: u8 = 2;

#[derive(Debug, Args)]
pub(super) struct ReplayArguments {
    /// A recording of dualgauge, or a HAR file; told apart by content
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The servers that receive the calls, and the responses to compare with
    #[arg(long, value_enum, default_value_t = ReplayWay::New)]
    to: ReplayWay,
    /// The most calls per second; without it, as many as `rollout.candidates.concurrency` at a time allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,
    /// Send only calls of routes whose names match; `*` matches any text
    #[arg(long, value_name = "GLOB", add = names::routes())]
    only: Option<String>,
    /// A header of every call, for credentials, which recordings never have; `{env:NAME}` and `{file:PATH}` are replaced
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Send calls that may have an effect as well
    #[arg(long = "unsafe")]
    sends_unsafe: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// A file for the results by route, as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// A file for the results as Prometheus metrics
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

pub(super) fn replay(arguments: &ReplayArguments) -> Result<ExitCode, CommandError> {
    match run(arguments) {
        Ok(code) => Ok(code),
        Err(fault) => {
            CommandError::from(fault).report();
            Ok(ExitCode::from(CANNOT_RUN))
        }
    }
}

fn run(arguments: &ReplayArguments) -> Result<ExitCode, ReplayFault> {
    let given = headers(&arguments.header)?;
    let mut input = Input::open(&arguments.file)?;
    let Some(configuration) = read_configuration(&arguments.config)? else {
        return Ok(ExitCode::from(CANNOT_RUN));
    };
    let plan = Arc::new(for_replay(configuration.plan));
    let terms = ReplayTerms {
        unsafe_calls: match arguments.sends_unsafe {
            true => UnsafeCalls::Sent,
            false => UnsafeCalls::Skipped,
        },
        only: arguments.only.as_deref().map(Glob::new),
    };
    let driver = Driver {
        preparer: Preparer::new(&plan, arguments.to, &given),
        terms,
        concurrency: plan.candidates.concurrency,
        rate: arguments.rate,
    };
    let junit = OutputFile::open(arguments.junit.as_deref())?;
    let metrics = OutputFile::open(arguments.metrics.as_deref())?;
    let mut summary = Summary::new(arguments.to);
    let driven = with_worker(&plan, async |worker| {
        driver.drive(worker, &mut input, &mut summary).await
    });
    driven.map_err(ReplayFault::Start)??;
    summary.note_statuses();
    summary.note_answered_by_new();
    if let Some(file) = junit {
        file.write(&junit::render(&summary))?;
    }
    if let Some(file) = metrics {
        file.write(&prometheus::render(&summary))?;
    }
    print(arguments.format, &summary).map_err(ReplayFault::Output)?;
    Ok(match summary.conclusion() {
        Conclusion::Equal => ExitCode::SUCCESS,
        Conclusion::Different => ExitCode::FAILURE,
        Conclusion::Unproven => ExitCode::from(CANNOT_RUN),
    })
}

/// A file for results. It is opened before a call is sent, so that a wrong path does not lose the results.
struct OutputFile<'p> {
    path: &'p Path,
    file: File,
}

impl<'p> OutputFile<'p> {
    /// Opens a file, if it is wanted. An existing one keeps its content until the results are written.
    fn open(path: Option<&'p Path>) -> Result<Option<OutputFile<'p>>, ReplayFault> {
        let Some(path) = path else { return Ok(None) };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        match options.open(path) {
            Ok(file) => Ok(Some(OutputFile { path, file })),
            Err(source) => Err(ReplayFault::unwritable(path, source)),
        }
    }

    fn write(mut self, text: &str) -> Result<(), ReplayFault> {
        let written = self.replace(text);
        written.map_err(|source| ReplayFault::unwritable(self.path, source))
    }

    fn replace(&mut self, text: &str) -> io::Result<()> {
        // A pipe or a device has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(text.as_bytes())
    }
}

fn print(format: Format, summary: &Summary) -> io::Result<()> {
    let text = match format {
        Format::Human => text::render(summary),
        Format::Json => json::render(summary)?,
    };
    io::stdout().lock().write_all(text.as_bytes())
}
