//! Errors of the input of `explain`. Used by `explain::http_file`, `explain::input` and `explain::live`.

use std::io;
use std::path::PathBuf;

use dualgauge_patterns::json::JsonFault;

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
    #[error("the HTTP file has no request; write one, such as `GET /items/7`")]
    EmptyFile,
    /// Empty JSON.
    #[error(
        "no request given; give a URL or a path, `--http FILE`, or a JSON-RPC message on standard input"
    )]
    NoRequest,
    /// The request of `--json` or standard input is not JSON.
    #[error(
        "the request is not JSON; give a JSON-RPC message, or a URL with `-d` for another body"
    )]
    NoJson(#[source] JsonFault),
}

impl InputError {
    pub(super) fn line(line: usize, what: impl Into<String>) -> InputError {
        InputError::Line {
            line,
            what: what.into(),
        }
    }
}
