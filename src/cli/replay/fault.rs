//! Errors of `dualgauge replay` and `dualgauge har`. Used by `replay`, `input`, `cli::har` and `cli::command_error`.

use std::io;
use std::path::{Path, PathBuf};

use crate::cli::drafted_server::DraftedServerFault;
use dualgauge_recording::har::HarError;
use dualgauge_recording::recording::ReadError;

/// The reason why a file cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ReplayFault {
    /// A header of the command line cannot be used.
    #[error(transparent)]
    Header(#[from] DraftedServerFault),
    /// The file cannot be read.
    #[error("`{path}` cannot be read")]
    Read {
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The file is a recording that cannot be used.
    #[error("`{path}` cannot be replayed")]
    Recording {
        /// The path.
        path: PathBuf,
        /// The fault.
        source: ReadError,
    },
    /// The file is a HAR file that cannot be used.
    #[error("`{path}` cannot be replayed")]
    Har {
        /// The path.
        path: PathBuf,
        /// The fault.
        source: HarError,
    },
    /// The file is something else.
    #[error(
        "`{path}` is neither a recording of dualgauge nor a HAR file: {what}; export a HAR file from a browser's network tools, for example"
    )]
    Foreign {
        /// The path.
        path: PathBuf,
        /// The apparent kind of the file.
        what: &'static str,
    },
    /// Standard output or standard error cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    /// An output file cannot be written.
    #[error("`{path}` cannot be written")]
    Write {
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The output file is the file that is read.
    #[error("`{}` is the file that is read; write to another file", .0.display())]
    SameFile(PathBuf),
    /// The worker cannot start.
    #[error("the replay cannot start")]
    Start(#[source] io::Error),
}

impl ReplayFault {
    /// Returns the fault of an output file.
    pub(super) fn unwritable(path: &Path, source: io::Error) -> ReplayFault {
        ReplayFault::Write {
            path: path.to_owned(),
            source,
        }
    }
}
