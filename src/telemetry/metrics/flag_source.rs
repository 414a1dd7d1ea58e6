//! The polls of a source of flags, and the state of its values. Used by `app::control` and `metrics::render`.

use std::time::SystemTime;

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollResult {
    /// A flag changed.
    Changed,
    /// No flag changed.
    Unchanged,
    /// The source could not be reached, or its response was incomplete.
    Unreachable,
    /// There was no response in time.
    Timeout,
    /// The token is missing or wrong.
    Unauthorized,
    /// The source limits the rate of requests, or is overloaded.
    Busy,
    /// Another status.
    Status,
    /// The response was too long.
    TooLong,
    /// The response was not one of OFREP.
    Invalid,
}

impl PollResult {
    /// All results, in the order of their counters.
    pub const ALL: [PollResult; 9] = [
        PollResult::Changed,
        PollResult::Unchanged,
        PollResult::Unreachable,
        PollResult::Timeout,
        PollResult::Unauthorized,
        PollResult::Busy,
        PollResult::Status,
        PollResult::TooLong,
        PollResult::Invalid,
    ];

    /// Returns the word used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            PollResult::Changed => "changed",
            PollResult::Unchanged => "unchanged",
            PollResult::Unreachable => "unreachable",
            PollResult::Timeout => "timeout",
            PollResult::Unauthorized => "unauthorized",
            PollResult::Busy => "busy",
            PollResult::Status => "status",
            PollResult::TooLong => "too_long",
            PollResult::Invalid => "invalid",
        }
    }
}

/// The counts of polls since the start, in the order of [`PollResult::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PollCounts([u64; PollResult::ALL.len()]);

impl PollCounts {
    /// Counts a poll.
    pub fn add(&mut self, result: PollResult) {
        self.0[result as usize] += 1;
    }

    /// Returns each result with its count.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        PollResult::ALL
            .iter()
            .map(|result| result.as_str())
            .zip(self.0)
    }
}

/// The state of a source of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagSourceState {
    /// The time of the last good response; without one, of the copy from an earlier process, or of the start.
    pub answered: SystemTime,
    /// The counts of polls.
    pub polls: PollCounts,
    /// The number of flags whose values come from the source.
    pub governed: usize,
    /// The number of flags whose last values could not be used.
    pub refused: usize,
}
