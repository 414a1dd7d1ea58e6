//! The state of a source of flags.

use std::time::UNIX_EPOCH;

use super::*;

pub(super) fn state() -> FlagSourceState {
    let mut polls = PollCounts::default();
    polls.add(PollResult::Changed);
    polls.add(PollResult::Unchanged);
    polls.add(PollResult::Unchanged);
    polls.add(PollResult::Busy);
    FlagSourceState {
        answered: UNIX_EPOCH,
        polls,
        governed: 2,
        refused: 1,
    }
}
