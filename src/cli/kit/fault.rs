//! Errors of `dualgauge kit`. Used by `kit` and `cli::command_error`.

use std::io;
use std::path::PathBuf;

/// The reason why a kit cannot be shown or written.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum KitFault {
    #[error("there is no kit `{name}`; the kits are {known}")]
    Unknown { name: String, known: String },
    #[error("`{}` exists; write the kit into another folder, or move the file away", path.display())]
    Exists { path: PathBuf },
    #[error("`{}` cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}
