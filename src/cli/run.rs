//! `dualgauge run`: serve calls as the configuration says.

use std::io::Write;
use std::process::ExitCode;

use crate::app::inherited::Inherited;
use crate::app::run::{self, Addresses, Surroundings};
use crate::app::supervisor::Supervisor;
use crate::cli::{CommandError, RunArguments};
use crate::config::load::{Sources, environment, supervision};

pub(super) fn run(arguments: &RunArguments) -> Result<ExitCode, CommandError> {
    let said = supervision();
    let surroundings = Surroundings {
        inherited: Inherited::take(&said)?,
        supervisor: Supervisor::of(&said),
    };
    let sources = Sources {
        file: Some(arguments.config.clone()),
        listen: arguments.listen.clone(),
        admin: arguments.admin.clone(),
        environment: environment(),
    };
    run::run((sources, surroundings), announce)?;
    Ok(ExitCode::SUCCESS)
}

/// One line for people and scripts, once calls are taken.
fn announce(addresses: Addresses) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{addresses}")?;
    out.flush()
}
