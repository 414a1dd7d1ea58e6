//! Errors of `dualgauge mcp`. Used by `mcp` and `cli::command_error`.

use std::io;

use crate::cli::drafted_server::DraftedServerFault;
use crate::cli::import::ImportFault;
use crate::config::problem::Problems;

/// The reason why the tools cannot be served.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum McpFault {
    /// The configuration cannot be written.
    #[error(transparent)]
    Server(#[from] DraftedServerFault),
    /// The document cannot be read or drafted.
    #[error(transparent)]
    Import(#[from] ImportFault),
    /// Standard input is the client, and cannot be the document as well.
    #[error("`--openapi -` and `--stdio` both need standard input; write the document to a file")]
    TwoInputs,
    /// Standard input cannot be read.
    #[error("standard input cannot be read")]
    Input(#[source] io::Error),
    /// The document names no server.
    #[error("the document names no server with a host{0}; name it with `--upstream URL`")]
    NoServer(String),
    /// No operation is a tool.
    #[error("no operation of the document becomes a tool; see `--include` and `--exclude`{0}")]
    Nothing(String),
    /// The draft is not a valid configuration.
    #[error("the draft is not a valid configuration:\n{0}")]
    Invalid(Problems),
}
