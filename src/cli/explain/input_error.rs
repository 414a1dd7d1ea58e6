//! Errors of the input of `explain`. Used by `explain::http_file`, `explain::input` and `explain::live`.

use std::io;
use std::path::PathBuf;

/// The reason why the input is invalid.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum InputError {
    /// A file cannot be read.
    #[error("`{}` cannot be read", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line of an HTTP file.
    #[error("line {line}: {what}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The fault.
        what: String,
    },
    /// An invalid argument.
    #[error("{0}")]
    Argument(String),
    /// An HTTP file without requests.
    #[error("there is no request in it")]
    NoRequest,
}

impl InputError {
    pub(super) fn line(line: usize, what: impl Into<String>) -> InputError {
        InputError::Line {
            line,
            what: what.into(),
        }
    }
}
