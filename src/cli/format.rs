//! The format of a command's output. Used throughout `cli`.

use clap::ValueEnum;

/// The format of the outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Lines for people
    Human,
    /// One JSON document
    Json,
}
