//! Errors of `dualgauge report`. Used by `report` and `cli::command_error`.

use std::io;
use std::path::PathBuf;

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ReportFault {
    /// The output file cannot be written.
    #[error("`{}` cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}
