//! Errors of `dualgauge import`. Used by `import` and `cli::command_error`.

use std::io;
use std::path::PathBuf;

use super::command::CommandFault;
use super::discover::DiscoverError;
use super::read::ReadFault;
use super::refresh::RefreshFault;
use dualgauge_model::import::ImportError;

/// The reason why there is no draft.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ImportFault {
    /// A document cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// The server cannot be asked.
    #[error(transparent)]
    Ask(#[from] DiscoverError),
    /// A command does not list its tools.
    #[error(transparent)]
    Command(#[from] CommandFault),
    /// A document cannot be converted.
    #[error(transparent)]
    Document(#[from] ImportError),
    /// A table cannot be refreshed.
    #[error(transparent)]
    Refresh(#[from] RefreshFault),
    /// No operation becomes a tool.
    #[error("no operation becomes a tool; see `--include` and `--exclude`")]
    NoTool,
    /// The output file exists.
    #[error(
        "`{0}` already exists; write to another file, merge changes with `--refresh`, or replace it with `--force`"
    )]
    Exists(PathBuf),
    /// The output file cannot be written.
    #[error("`{path}` cannot be written")]
    Write {
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}
