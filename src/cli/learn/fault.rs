//! Errors of `dualgauge learn`. Used by `learn` and `cli::command_error`.

use std::io;
use std::path::PathBuf;

use dualgauge_model::import::ImportError;

/// The reason why there is no draft.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum LearnFault {
    /// A file cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// A file is too large.
    #[error("`{}` is longer than {limit} bytes; split it, or learn from a part of it", path.display())]
    TooLarge { path: PathBuf, limit: usize },
    /// A file has an unknown format.
    #[error(
        "`{}` has no call; it is read as {format}: {fault}", path.display()
    )]
    NoCall {
        path: PathBuf,
        format: &'static str,
        fault: String,
    },
    /// Mismatches need the configuration of their routes.
    #[error("a file is a report of mismatches; `--config` names the configuration of its routes")]
    NoConfiguration,
    /// No call can be a route.
    #[error("no call can become a route; standard error says why calls were left out")]
    Nothing,
    /// The inferred documents cannot be converted.
    #[error(transparent)]
    Document(#[from] ImportError),
    /// The output file exists.
    #[error("`{}` already exists; write to another file", .0.display())]
    Exists(PathBuf),
    /// The output file cannot be written.
    #[error("`{}` cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}
