//! A whole run of the program: from a configuration to the end of the drain.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::{Builder, LocalOptions};
use tokio::signal::unix::{SignalKind, signal};

use super::workers::Workers;
use crate::config::configuration::Configuration;
use crate::config::load::Sources;
use crate::config::problem::Problems;
use crate::telemetry::log;
use crate::telemetry::metrics::Names;

/// Why a run could not begin, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration has problems.
    #[error("the configuration cannot be used")]
    Configuration(#[from] Problems),
    /// An address cannot be listened on.
    #[error("cannot listen on {address} (`{key}`)")]
    Listen {
        /// Which key names it.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The system refused something else.
    #[error("the system refused")]
    System(#[from] io::Error),
    /// The log cannot be started.
    #[error("the log cannot be started")]
    Log(#[from] log::LogError),
}

/// Where a run can be reached.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// Where calls come in.
    pub listen: SocketAddr,
    /// Where the admin listener is.
    pub admin: SocketAddr,
}

/// Serves until a signal ends it, and drains. `ready` is told the addresses once calls are taken.
///
/// # Errors
/// [`RunError`] before the first call is taken, or when a worker fails.
pub fn run(
    sources: &Sources,
    ready: impl FnOnce(Addresses) -> io::Result<()>,
) -> Result<(), RunError> {
    let configuration = Configuration::read(sources)?;
    let _log = log::init(
        log::LogFormat::Text,
        configuration.raw.log.level.value.as_str(),
    )?;
    let listen = configuration.raw.listen.address.value;
    let count = configuration.raw.listen.workers.value;
    let plan = Arc::new(configuration.plan);
    let names = Arc::new(Names::new());
    let workers = Workers::start(listen, count, &plan, &names);
    let mut workers = workers.map_err(|source| RunError::Listen {
        key: "listen.address",
        address: listen,
        source,
    })?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let addresses = Addresses {
        listen: workers.address(),
        admin: workers.address(),
    };
    let result = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Not before: a signal to a program that says it serves must find it listening, or nothing drains.
        ready(addresses)?;
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
            error = workers.failed() => Err(RunError::System(error)),
        }
    });
    workers.drain();
    result
}
