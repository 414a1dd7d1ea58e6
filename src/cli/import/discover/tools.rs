//! The list of tools of a server for the command `rest`, which a signal can stop. Used by `import`.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::{DiscoverError, DiscoverServer, SourceDocument};
use crate::cli::connection::within;

impl DiscoverServer {
    /// Lists the tools, unless a signal to stop comes first.
    ///
    /// # Errors
    /// Those of [`DiscoverServer::ask`], and [`DiscoverError::Interrupted`].
    pub(in crate::cli::import) fn ask_for_tools(
        &self,
        limit: Duration,
    ) -> Result<SourceDocument, DiscoverError> {
        let unreachable = |source| DiscoverError::Unreachable(self.name(), source);
        let asking = async {
            let mut terminated = signal(SignalKind::terminate()).map_err(unreachable)?;
            tokio::select! {
                document = self.tools() => document,
                _ = tokio::signal::ctrl_c() => Err(DiscoverError::Interrupted),
                _ = terminated.recv() => Err(DiscoverError::Interrupted),
            }
        };
        let outcome = within(limit, asking).map_err(unreachable)?;
        outcome.unwrap_or_else(|| {
            Err(DiscoverError::Late {
                server: self.name(),
                limit,
            })
        })
    }
}
