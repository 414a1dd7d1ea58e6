//! `dualgauge run`: serve calls as the configuration says.

use std::io::Write;
use std::process::ExitCode;

use crate::app::run::{self, Addresses};
use crate::cli::{CommandError, RunArguments};
use crate::config::load::{Sources, environment};

pub(super) fn run(arguments: &RunArguments) -> Result<ExitCode, CommandError> {
    let sources = Sources {
        file: Some(arguments.config.clone()),
        listen: arguments.listen.clone(),
        admin: arguments.admin.clone(),
        environment: environment(),
    };
    run::run(sources, announce)?;
    Ok(ExitCode::SUCCESS)
}

/// One line for people and scripts, once calls are taken.
fn announce(addresses: Addresses) -> std::io::Result<()> {
    let Addresses { listen, admin } = addresses;
    let mut out = std::io::stdout().lock();
    writeln!(out, "serving http://{listen}, admin http://{admin}")?;
    out.flush()
}
