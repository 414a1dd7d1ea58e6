//! The ways of a replay. Used by `replay` and its modules.

use clap::ValueEnum;

/// The servers that receive the calls, and the responses to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ReplayWay {
    /// Translated to the new side; compared with the recorded responses
    New,
    /// Unchanged to the old side; compared with the recorded responses
    Old,
    /// To both sides; compared with each other
    Both,
}
