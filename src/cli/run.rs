//! `dualgauge run`: serve calls as the configuration says.

use std::io::Write;
use std::process::ExitCode;

use crate::app::inherited::Inherited;
use crate::app::run::{self, Surroundings};
use crate::app::started::Started;
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

/// Prints one line for people and scripts, and the summary below it, once calls are taken.
fn announce(started: Started) -> std::io::Result<()> {
    let Started { addresses, summary } = started;
    let mut out = std::io::stdout().lock();
    // In one piece: a script may read the first line and close its end.
    out.write_all(format!("{addresses}\n{summary}").as_bytes())?;
    out.flush()
}
