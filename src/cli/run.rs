//! `dualgauge run`: serve calls as the configuration says. Used by `cli`.

use std::io::Write;
use std::process::ExitCode;

use crate::app::inherited_sockets::InheritedSockets;
use crate::app::run::{self, ProcessEnvironment};
use crate::app::service_manager::ServiceManager;
use crate::app::startup_summary::StartupSummary;
use crate::cli::{CommandError, RunArguments};
use crate::config::load::{Sources, environment, supervision};

pub(super) fn run(arguments: &RunArguments) -> Result<ExitCode, CommandError> {
    let variables = supervision();
    let process = ProcessEnvironment {
        inherited: InheritedSockets::take(&variables)?,
        supervisor: ServiceManager::new(&variables),
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
