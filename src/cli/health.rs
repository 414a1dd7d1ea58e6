//! `dualgauge health`: a health check of a running process, for images without a shell or other programs.
//!
//! Used by `cli`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;

use crate::cli::admin::{AdminArguments, AdminClient};
use crate::cli::command_error::CommandError;

#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    /// Check only that the process is alive, not that it accepts calls
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge health
  dualgauge health --live --admin http://127.0.0.1:9090";

pub(super) fn health(arguments: &HealthArguments) -> Result<ExitCode, CommandError> {
    let admin = AdminClient::new(&arguments.admin)?;
    let path = if arguments.live {
        "/healthz"
    } else {
        "/readyz"
    };
    let (status, body) = admin.text(path)?;
    io::stdout().lock().write_all(body.as_bytes())?;
    Ok(if status.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
