//! What one flag counted: calls of the new way and of the old, how they ended, how long they took.
//!
//! A tally only grows. Each worker keeps one for each guarded flag; those of workers and replicas are added up, in
//! any order and grouping, and what a time added is the tally after it [`since`](SequenceCounters::since) the tally before it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Path;

mod latency;

pub use latency::Latency;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallEnd {
    /// With an answer that blames nobody.
    Served,
    /// With a failure that blames the caller: 4xx, and the codes about -32600. A bad mapping looks like one.
    Refused,
    /// With a failure that blames the upstream or the proxy: 5xx, -32603, a cut answer, a timeout.
    Failed,
    /// With the result of a tool that says that it failed (MCP, `isError: true`). It blames nobody.
    ToolError,
    /// With an answer that blames nobody, to a call of a tool. Nobody knows whether it says that the tool failed.
    ToolUnknown,
}

/// The calls of one way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArmTally {
    /// All calls.
    pub calls: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that got the result of a tool that says that it failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_errors: u64,
    /// Those of which it is known whether they got one. A tally that an earlier version wrote knows it of none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_known: u64,
    /// How long the served ones took. Failures are left out, for they have a limit of their own, and a quick refusal
    /// or a long timeout would hide how long an answer takes.
    pub latency: Latency,
}

impl ArmTally {
    /// Counts a call.
    pub fn count(&mut self, fate: CallEnd, took: Duration) {
        self.calls = self.calls.saturating_add(1);
        if fate != CallEnd::ToolUnknown {
            self.tool_known = self.tool_known.saturating_add(1);
        }
        match fate {
            CallEnd::Served | CallEnd::ToolUnknown => self.latency.record(took),
            CallEnd::Refused => self.refused = self.refused.saturating_add(1),
            CallEnd::Failed => self.failed = self.failed.saturating_add(1),
            CallEnd::ToolError => self.tool_errors = self.tool_errors.saturating_add(1),
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &ArmTally) {
        self.calls = self.calls.saturating_add(other.calls);
        self.refused = self.refused.saturating_add(other.refused);
        self.failed = self.failed.saturating_add(other.failed);
        self.tool_errors = self.tool_errors.saturating_add(other.tool_errors);
        self.tool_known = self.tool_known.saturating_add(other.tool_known);
        self.latency.add(&other.latency);
    }

    /// What came after an earlier tally of the same counter; nothing where that one is larger.
    #[must_use]
    pub fn since(&self, earlier: &ArmTally) -> ArmTally {
        let calls = self.calls.saturating_sub(earlier.calls);
        let failed = self.failed.saturating_sub(earlier.failed).min(calls);
        let refused = self.refused.saturating_sub(earlier.refused);
        let refused = refused.min(calls - failed);
        let tool_errors = self.tool_errors.saturating_sub(earlier.tool_errors);
        let tool_known = self.tool_known.saturating_sub(earlier.tool_known);
        ArmTally {
            calls,
            refused,
            failed,
            tool_errors: tool_errors.min(calls - failed - refused),
            tool_known: tool_known.min(calls),
            latency: self.latency.since(&earlier.latency),
        }
    }
}

/// What one flag counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Calls of the new way.
    pub new: ArmTally,
    /// Calls of the old way, by callers whom the flag speaks of.
    pub old: ArmTally,
    /// Answers that were compared.
    pub compared: u64,
    /// Those of them that were not the same.
    pub mismatched: u64,
}

impl Tally {
    /// Counts a call.
    pub fn count(&mut self, way: Path, fate: CallEnd, took: Duration) {
        match way {
            Path::New => self.new.count(fate, took),
            Path::Old => self.old.count(fate, took),
        }
    }

    /// Counts a comparison whose answers were the same.
    pub fn count_match(&mut self) {
        self.compared = self.compared.saturating_add(1);
    }

    /// Counts a comparison whose answers were not the same.
    pub fn count_mismatch(&mut self) {
        self.compared = self.compared.saturating_add(1);
        self.mismatched = self.mismatched.saturating_add(1);
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Tally) {
        self.new.add(&other.new);
        self.old.add(&other.old);
        self.compared = self.compared.saturating_add(other.compared);
        self.mismatched = self.mismatched.saturating_add(other.mismatched);
    }

    /// What came after an earlier tally of the same counter; nothing where that one is larger.
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        let compared = self.compared.saturating_sub(earlier.compared);
        let mismatched = self.mismatched.saturating_sub(earlier.mismatched);
        Tally {
            new: self.new.since(&earlier.new),
            old: self.old.since(&earlier.old),
            compared,
            mismatched: mismatched.min(compared),
        }
    }

    /// Whether something counts less than before: a counter that began anew.
    #[must_use]
    pub fn fell_below(&self, earlier: &Tally) -> bool {
        let arms = [(&self.new, &earlier.new), (&self.old, &earlier.old)];
        let arm_fell = arms.iter().any(|(now, before)| {
            now.calls < before.calls
                || now.failed < before.failed
                || now.refused < before.refused
                || now.tool_errors < before.tool_errors
                || now.tool_known < before.tool_known
        });
        arm_fell || self.compared < earlier.compared || self.mismatched < earlier.mismatched
    }
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
