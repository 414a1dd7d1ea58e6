//! Errors of commands, with the errors of each. Used throughout `cli`.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use super::admin::AdminFault;
use super::import::ImportFault;
use super::kit::KitFault;
use super::learn::LearnFault;
use super::mcp::McpFault;
use super::no_route::NoRoute;
use super::replay::ReplayFault;
use super::report::ReportFault;
use super::rest::RestFault;
use crate::app::run::RunError;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    #[error(transparent)]
    Admin(#[from] AdminFault),
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Import(#[from] ImportFault),
    #[error("`{0}` is not a percentage; write a number from 0 to 100 in steps of 0.001")]
    Percent(String),
    #[error(transparent)]
    Kit(#[from] KitFault),
    #[error(transparent)]
    Learn(#[from] LearnFault),
    #[error(transparent)]
    Mcp(#[from] McpFault),
    #[error(transparent)]
    NoRoute(#[from] NoRoute),
    #[error(transparent)]
    Replay(#[from] ReplayFault),
    #[error(transparent)]
    Report(#[from] ReportFault),
    #[error(transparent)]
    Rest(#[from] RestFault),
    #[error(transparent)]
    Run(#[from] RunError),
    #[cfg(feature = "demo")]
    #[error("cannot listen on {address}; choose another address with `--listen`")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[cfg(feature = "demo")]
    #[error("the sample database cannot be opened")]
    Database(#[from] dualgauge_sample::DatabaseError),
}

impl CommandError {
    /// Prints the error with its causes.
    pub(super) fn report(&self) -> ExitCode {
        if let CommandError::Output(output) = self
            && output.kind() == io::ErrorKind::BrokenPipe
        {
            // The reader has closed the pipe, as in `check | head`.
            return ExitCode::FAILURE;
        }
        let mut text = format!("error: {self}\n");
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(&format!("  caused by: {error}\n"));
            cause = error.source();
        }
        // If the output is closed, the exit code alone must do.
        let _ = io::stderr().lock().write_all(text.as_bytes());
        ExitCode::FAILURE
    }
}
