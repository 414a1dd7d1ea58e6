//! `dualgauge demo`: the proxy in front of a built-in sample server.

use std::process::ExitCode;

use crate::cli::{CommandError, DemoArguments};

pub(super) fn demo(_arguments: &DemoArguments) -> Result<ExitCode, CommandError> {
    Err(CommandError::Missing("demo"))
}
