//! Guard counters of flags: which way each call took, and how it ended.
//!
//! A call counts for the flag that decided it, and on the old way for each flag in force that excluded its caller. A
//! candidate counts for the flag that requested it.
//!
//! Used by `access_record::report` and `shadow::run`.

use std::time::Duration;

use super::runtime_plan::RuntimePlan;
use crate::telemetry::metrics::{Outcome, Shard};
use dualgauge_model::compare::Verdict;
use dualgauge_model::failure::Blame;
use dualgauge_model::rollout::{CallEnd, DecisionReason, Way};

/// The flags that a call counts for.
pub(super) struct GuardRecorder<'a> {
    pub(super) runtime_plan: &'a RuntimePlan,
    pub(super) why: DecisionReason,
    pub(super) excluded_by: &'a [usize],
}

impl GuardRecorder<'_> {
    /// Counts a call that took `way`.
    pub(super) fn count_call(&self, shard: &mut Shard, way: Way, end: CallEnd, duration: Duration) {
        let excluded_by: &[usize] = match way {
            Way::Old => self.excluded_by,
            Way::New => &[],
        };
        for flag in self
            .deciding_flag()
            .into_iter()
            .chain(excluded_by.iter().copied())
        {
            if let Some(label) = self.runtime_plan.guard_label(flag) {
                shard.tally(label).count(way, end, duration);
            }
        }
    }

    /// Counts the verdict of a comparison.
    pub(super) fn count_verdict(&self, shard: &mut Shard, verdict: Verdict) {
        let Some(label) = self
            .deciding_flag()
            .and_then(|flag| self.runtime_plan.guard_label(flag))
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

    fn deciding_flag(&self) -> Option<usize> {
        self.why.flag()
    }
}

/// Returns the outcome as guards count it; `None` for a cancelled call, which says nothing about either way.
pub(super) fn call_end(outcome: Outcome, blame: Option<Blame>) -> Option<CallEnd> {
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
