//! The format of a command's output. Used throughout `cli`.

use clap::ValueEnum;

/// How the outcome of a command is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Lines for people
    Human,
    /// One JSON document
    Json,
}
