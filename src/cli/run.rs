//! `dualgauge run`: serve calls as the configuration says.

use std::process::ExitCode;

use crate::cli::{CommandError, RunArguments};

pub(super) fn run(_arguments: &RunArguments) -> Result<ExitCode, CommandError> {
    Err(CommandError::Missing("run"))
}
