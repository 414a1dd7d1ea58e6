//! Errors of `dualgauge rest`. Used by `rest` and `cli::command_error`.

use std::io;
use std::time::Duration;

use crate::cli::drafted_server::DraftedServerFault;
use crate::cli::import::DiscoverError;
use dualgauge_model::import::DocumentFault;

/// The reason why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum RestFault {
    /// The configuration cannot be written.
    #[error(transparent)]
    Server(#[from] DraftedServerFault),
    /// No server is named.
    #[error(
        "no server is named: write its command, `dualgauge rest -- COMMAND`, or its URL, `dualgauge rest --mcp URL`"
    )]
    NoServer,
    /// The server does not list its tools.
    #[error("{server} does not list its tools")]
    List {
        /// The server, for people.
        server: String,
        /// The error of its response.
        source: DiscoverError,
    },
    /// The server does not list its tools in time.
    #[error("{server} did not list its tools within {limit:?}; raise `--timeout`")]
    Late {
        /// The server, for people.
        server: String,
        /// The time limit.
        limit: Duration,
    },
    /// The list is no list of tools.
    #[error("{server}: {source}")]
    Document {
        /// The server, for people.
        server: String,
        /// The fault of the list.
        source: DocumentFault,
    },
    /// The list has nothing to serve.
    #[error("{0} lists no tool that is served; see `--include` and `--exclude`")]
    Nothing(String),
    /// The output or the system fails.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
}

impl RestFault {
    /// Returns the fault of a server that does not list its tools.
    pub(super) fn list(server: &str, source: DiscoverError) -> RestFault {
        let server = server.to_owned();
        if let DiscoverError::Late { limit, .. } = source {
            return RestFault::Late { server, limit };
        }
        RestFault::List { server, source }
    }
}
