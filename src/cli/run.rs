//! `dualgauge run`: serve calls as the configuration says. Used by `cli`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::app::inherited_sockets::InheritedSockets;
use crate::app::run::{self, ProcessEnvironment, StartLog};
use crate::app::service_manager::ServiceManager;
use crate::app::startup_summary::StartupSummary;
use crate::cli::command_error::CommandError;
use crate::config::load::{Sources, environment, supervision};

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge run --config dualgauge.toml
  dualgauge run --config dualgauge.toml --listen 0.0.0.0:8080 --admin 127.0.0.1:9090";

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The main configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Address for calls; overrides `listen.address`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address of metrics and the admin API; overrides `admin.address`
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
}

pub(super) fn run(arguments: &RunArguments) -> Result<ExitCode, CommandError> {
    let variables = supervision();
    let process = ProcessEnvironment {
        inherited: InheritedSockets::take(&variables)?,
        supervisor: ServiceManager::new(&variables),
        start_log: StartLog::Written,
    };
    let sources = Sources {
        file: Some(arguments.config.clone()),
        listen: arguments.listen.clone(),
        admin: arguments.admin.clone(),
        environment: environment(),
    };
    run::run(sources, process, announce)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the addresses on one line, followed by the summary, once calls are accepted.
fn announce(started: StartupSummary) -> std::io::Result<()> {
    let StartupSummary {
        addresses, summary, ..
    } = started;
    let mut out = std::io::stdout().lock();
    // One write: a script may read the first line and close its end.
    out.write_all(format!("{addresses}\n{summary}").as_bytes())?;
    out.flush()
}
