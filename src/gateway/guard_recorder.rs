//! What the guards of flags are told of a call: which way it went, and how it ended.
//!
//! A call counts for the flag that decided it, and as the old way for every flag in force that spared its caller. A
//! candidate counts for the flag that asked for it.

use std::time::Duration;

use super::RuntimePlan;
use crate::domain::compare::Verdict;
use crate::domain::failure::Blame;
use crate::domain::rollout::{CallEnd, DecisionReason, Path};
use crate::telemetry::metrics::{Outcome, Shard};

/// The flags that a call is counted for.
pub(super) struct GuardRecorder<'a> {
    pub(super) installed: &'a RuntimePlan,
    pub(super) why: DecisionReason,
    pub(super) spared: &'a [usize],
}

impl GuardRecorder<'_> {
    /// Counts a call that went a way.
    pub(super) fn call(&self, shard: &mut Shard, way: Path, fate: CallEnd, took: Duration) {
        let spared: &[usize] = match way {
            Path::Old => self.spared,
            Path::New => &[],
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
pub(super) fn fate(outcome: Outcome, blame: Option<Blame>) -> Option<CallEnd> {
    match (outcome, blame) {
        (Outcome::Cancelled, _) => None,
        (Outcome::Success, _) => Some(CallEnd::Served),
        (Outcome::ToolError, _) => Some(CallEnd::ToolError),
        (Outcome::Error | Outcome::Failed | Outcome::Cut, Some(Blame::Client)) => {
            Some(CallEnd::Refused)
        }
        (
            Outcome::Error | Outcome::Failed | Outcome::Cut,
            Some(Blame::Upstream | Blame::Proxy) | None,
        ) => Some(CallEnd::Failed),
    }
}
