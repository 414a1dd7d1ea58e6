//! The tally of one flag: the calls of the new and the old way, their results and their latencies.
//!
//! A tally only grows. Each worker keeps one for each guarded flag. The tallies of workers and replicas can be added
//! in any order and grouping. The growth over a time is the later tally [`since`](Tally::since) the earlier one.
//!
//! Used by `app`, `rollout`, `gateway` and `telemetry`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Way;

mod latency;

pub use latency::Latency;

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallEnd {
    /// A response without an error.
    Served,
    /// An error of the client: 4xx, and the codes about -32600. A bad mapping looks like one.
    Refused,
    /// An error of the upstream or the proxy: 5xx, -32603, an aborted response, a timeout.
    Failed,
    /// The result of a tool that reports a failure (MCP, `isError: true`). Neither side is to blame.
    ToolError,
    /// A response without an error to a tool call. It is unknown whether it reports a failure of the tool.
    ToolUnknown,
}

/// The calls of one way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WayTally {
    /// All calls.
    pub calls: u64,
    /// The refused calls.
    pub refused: u64,
    /// The failed calls.
    pub failed: u64,
    /// The calls whose tool reported a failure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_errors: u64,
    /// All calls but `ToolUnknown`, the denominator of the tool error rate; zero in tallies of earlier versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_known: u64,
    /// The latency of the served calls. Failures are judged by their rate; their latency, very short or very long,
    /// would distort this one.
    pub latency: Latency,
}

impl WayTally {
    /// Counts a call.
    pub fn count(&mut self, end: CallEnd, took: Duration) {
        self.calls = self.calls.saturating_add(1);
        if end != CallEnd::ToolUnknown {
            self.tool_known = self.tool_known.saturating_add(1);
        }
        match end {
            CallEnd::Served | CallEnd::ToolUnknown => self.latency.record(took),
            CallEnd::Refused => self.refused = self.refused.saturating_add(1),
            CallEnd::Failed => self.failed = self.failed.saturating_add(1),
            CallEnd::ToolError => self.tool_errors = self.tool_errors.saturating_add(1),
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &WayTally) {
        self.calls = self.calls.saturating_add(other.calls);
        self.refused = self.refused.saturating_add(other.refused);
        self.failed = self.failed.saturating_add(other.failed);
        self.tool_errors = self.tool_errors.saturating_add(other.tool_errors);
        self.tool_known = self.tool_known.saturating_add(other.tool_known);
        self.latency.add(&other.latency);
    }

    /// Returns the growth since an earlier tally of the same counter; nothing if that one is larger.
    #[must_use]
    pub fn since(&self, earlier: &WayTally) -> WayTally {
        let calls = self.calls.saturating_sub(earlier.calls);
        let failed = self.failed.saturating_sub(earlier.failed).min(calls);
        let refused = self.refused.saturating_sub(earlier.refused);
        let refused = refused.min(calls - failed);
        let tool_errors = self.tool_errors.saturating_sub(earlier.tool_errors);
        let tool_known = self.tool_known.saturating_sub(earlier.tool_known);
        WayTally {
            calls,
            refused,
            failed,
            tool_errors: tool_errors.min(calls - failed - refused),
            tool_known: tool_known.min(calls),
            latency: self.latency.since(&earlier.latency),
        }
    }
}

/// The tally of one flag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// The calls of the new way.
    pub new: WayTally,
    /// The calls of the old way by callers that the flag covers.
    pub old: WayTally,
    /// The compared responses.
    pub compared: u64,
    /// The compared responses that differ.
    pub mismatched: u64,
}

impl Tally {
    /// Counts a call.
    pub fn count(&mut self, way: Way, end: CallEnd, took: Duration) {
        match way {
            Way::New => self.new.count(end, took),
            Way::Old => self.old.count(end, took),
        }
    }

    /// Counts a comparison of equal responses.
    pub fn count_match(&mut self) {
        self.compared = self.compared.saturating_add(1);
    }

    /// Counts a comparison of different responses.
    pub fn count_mismatch(&mut self) {
        self.compared = self.compared.saturating_add(1);
        self.mismatched = self.mismatched.saturating_add(1);
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.new.add(&other.new);
        self.old.add(&other.old);
        self.compared = self.compared.saturating_add(other.compared);
        self.mismatched = self.mismatched.saturating_add(other.mismatched);
    }

    /// Returns the growth since an earlier tally of the same counter; nothing if that one is larger.
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

    /// Returns true if a count is lower than before, as after a restart of the counter.
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
