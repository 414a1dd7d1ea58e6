//! `dualgauge sample`: the built-in sample server alone, as an upstream to try a deployment with. Used by `cli`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::command_error::CommandError;
use dualgauge_sample::{Database, serve};

#[derive(Debug, Args)]
pub(super) struct SampleArguments {
    /// Address for calls
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9001")]
    listen: String,
}

pub(super) fn sample(arguments: &SampleArguments) -> Result<ExitCode, CommandError> {
    let database = Database::seeded()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&arguments.listen).await;
        let listener = listener.map_err(|source| CommandError::Listen {
            address: arguments.listen.clone(),
            source,
        })?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        announce(&listener)?;
        let shutdown = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        serve(listener, database, shutdown).await;
        Ok::<_, CommandError>(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one line for people and scripts, once calls are accepted.
fn announce(listener: &TcpListener) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "serving http://{}", listener.local_addr()?)?;
    out.flush()
}
