//! What the guards of flags are told of a call: which way it went, and how it ended.
//!
//! A call counts for the flag that decided it, and as the old way for every flag in force that spared its caller. A
//! candidate counts for the flag that asked for it.

use std::time::Duration;

use super::Installed;
use crate::domain::compare::Verdict;
use crate::domain::failure::Blame;
use crate::domain::rollout::{Fate, Way, Why};
use crate::telemetry::metrics::{Outcome, Shard};

/// The flags that a call is counted for.
pub(super) struct Guarded<'a> {
    pub(super) installed: &'a Installed,
    pub(super) why: Why,
    pub(super) spared: &'a [usize],
}

impl Guarded<'_> {
    /// Counts a call that went a way.
    pub(super) fn call(&self, shard: &mut Shard, way: Way, fate: Fate, took: Duration) {
        let spared: &[usize] = match way {
            Way::Old => self.spared,
            Way::New => &[],
        };
        for flag in self.decided().into_iter().chain(spared.iter().copied()) {
            if let Some(label) = self.installed.guard_label(flag) {
                shard.tally(label).count(way, fate, took);
            }
        }
    }

    /// Counts what a comparison came to.
    pub(super) fn verdict(&self, shard: &mut Shard, verdict: Verdict) {
        let Some(label) = self
            .decided()
            .and_then(|flag| self.installed.guard_label(flag))
        else {
            return;
        };
        match verdict {
            Verdict::Match => shard.tally(label).count_match(),
            Verdict::Mismatch => shard.tally(label).count_mismatch(),
            Verdict::ControlFailed
            | Verdict::CandidateFailed
            | Verdict::BothFailed
            | Verdict::Skipped(_) => {}
        }
    }

    fn decided(&self) -> Option<usize> {
        self.why.flag()
    }
}

/// How a call ended, as guards see it; a client that went away tells nothing of either way.
pub(super) fn fate(outcome: Outcome, blame: Option<Blame>) -> Option<Fate> {
    match (outcome, blame) {
        (Outcome::Cancelled, _) => None,
        (Outcome::Success, _) => Some(Fate::Served),
        (Outcome::ToolError, _) => Some(Fate::ToolError),
        (Outcome::Error | Outcome::Failed | Outcome::Cut, Some(Blame::Client)) => {
            Some(Fate::Refused)
        }
        (
            Outcome::Error | Outcome::Failed | Outcome::Cut,
            Some(Blame::Upstream | Blame::Proxy) | None,
        ) => Some(Fate::Failed),
    }
}
