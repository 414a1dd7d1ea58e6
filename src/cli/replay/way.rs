//! The ways of a replay. Used by `replay` and its modules.

use clap::ValueEnum;

use dualgauge_model::compare::Translated;

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

impl ReplayWay {
    /// Returns the response that the proxy translates, if it translates one.
    pub(in crate::cli) fn translated(self) -> Option<Translated> {
        match self {
            ReplayWay::New | ReplayWay::Both => Some(Translated::Candidate),
            ReplayWay::Old => None,
        }
    }
}
