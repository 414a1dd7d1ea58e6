//! Detection of a broken new way from its last few calls.
//!
//! Checkpoints are sums at earlier times; the difference to the current sums is a span of calls. A span shows a broken
//! way if most calls of the new way failed in it, and those of the old way in the same time did not. If both fail,
//! their common server is down and a rollback would not help.
//!
//! Used by `rollout::guard::state`.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bounds::{Rate, excess};
use super::settings::Fast;
use super::windows::{Population, number};
use crate::rollout::{Tally, UnixMillis, WayTally};

/// The maximum number of checkpoints. Beyond it, every second one of the older half is dropped.
const MOST: usize = 32;
/// The maximum length of a span.
const OLDEST: Duration = Duration::from_secs(3600);
/// The minimum certain difference of the rates. If both ways fail, chance alone makes a difference of some points.
const MARGIN: f64 = 0.25;
/// See [`super::bounds`]; chance puts each of the two rates beyond its bound in at most one of 3,000 spans.
const EVIDENCE: f64 = 8.0;

/// The cumulative calls of one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct BurstCalls {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
    #[serde(default)]
    pub(super) tool_errors: u64,
    /// The calls with a known tool result.
    #[serde(default)]
    tool_known: u64,
}

impl BurstCalls {
    fn new(arm: &WayTally) -> BurstCalls {
        BurstCalls {
            calls: arm.calls,
            failed: arm.failed,
            refused: arm.refused,
            tool_errors: arm.tool_errors,
            tool_known: arm.tool_known,
        }
    }

    fn add(&mut self, arm: &WayTally) {
        self.calls = self.calls.saturating_add(arm.calls);
        self.failed = self.failed.saturating_add(arm.failed);
        self.refused = self.refused.saturating_add(arm.refused);
        self.tool_errors = self.tool_errors.saturating_add(arm.tool_errors);
        self.tool_known = self.tool_known.saturating_add(arm.tool_known);
    }

    fn since(self, earlier: BurstCalls) -> BurstCalls {
        BurstCalls {
            calls: self.calls.saturating_sub(earlier.calls),
            failed: self.failed.saturating_sub(earlier.failed),
            refused: self.refused.saturating_sub(earlier.refused),
            tool_errors: self.tool_errors.saturating_sub(earlier.tool_errors),
            tool_known: self.tool_known.saturating_sub(earlier.tool_known),
        }
    }

    /// Returns the same counts for these calls only.
    fn only(self, among: Population) -> BurstCalls {
        let calls = match among {
            Population::All => self.calls,
            Population::ToolKnown => self.tool_known,
        };
        BurstCalls { calls, ..self }
    }
}

/// The sums at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Checkpoint {
    at: UnixMillis,
    new: BurstCalls,
    old: BurstCalls,
}

/// The checkpoints, oldest first, and the current sums.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkpoints {
    past: VecDeque<Checkpoint>,
    now: Checkpoint,
}

/// A span in which most calls of the new way failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BurstSpan {
    pub(super) new: BurstCalls,
    pub(super) old: BurstCalls,
    pub(super) took: Duration,
}

/// The signal of the last calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BurstSignal {
    /// Most calls are served, or there are too few to decide.
    Fine,
    /// Most calls fail, on the old way too.
    Alike,
    /// Most calls fail, but not on the old way.
    Broken(BurstSpan),
}

/// A kind of calls that were not served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unserved {
    /// The population that the kind is a share of.
    pub(super) among: Population,
    /// Returns the number of these calls.
    pub(super) of: fn(&BurstCalls) -> u64,
    /// Returns the number of calls that ended in another form in which the old way may show the same problem.
    pub(super) instead: fn(&BurstCalls) -> u64,
}

impl Checkpoints {
    /// Adds the tally since the last call.
    pub(super) fn push(&mut self, at: UnixMillis, delta: &Tally) {
        if delta.new.calls > 0 || self.past.is_empty() {
            self.past.push_back(self.now);
        }
        self.now.at = at;
        self.now.new.add(&delta.new);
        self.now.old.add(&delta.old);
        if self.past.len() > MOST {
            let mut position = 0;
            self.past.retain(|_| {
                position += 1;
                position > MOST / 2 || position % 2 == 0
            });
        }
        let old = |checkpoint: &Checkpoint| at.since(checkpoint.at) > OLDEST;
        while self.past.front().is_some_and(old) {
            self.past.pop_front();
        }
    }

    /// Creates an empty state that starts at a time.
    pub(super) fn begin(at: UnixMillis) -> Checkpoints {
        Checkpoints {
            past: VecDeque::new(),
            now: Checkpoint {
                at,
                ..Checkpoint::default()
            },
        }
    }

    /// Moves the checkpoints that lie in the future back to `to`.
    pub(super) fn step_back(&mut self, to: UnixMillis) {
        self.now.at = to;
        for checkpoint in &mut self.past {
            checkpoint.at = checkpoint.at.min(to);
        }
    }

    /// Returns the signal of the last calls for one kind of failure, against the old way over the same spans, or
    /// against `reference` if given. Calls of the old way of a kind `instead`, beyond the number of those on the new
    /// way, count as this kind.
    pub(super) fn signal(
        &self,
        fast: &Fast,
        &Unserved { among, of, instead }: &Unserved,
        reference: Option<&WayTally>,
    ) -> BurstSignal {
        let mut signal = BurstSignal::Fine;
        for checkpoint in self.past.iter().rev() {
            let new = self.now.new.since(checkpoint.new).only(among);
            if !mostly(&new, of(&new), fast) {
                continue;
            }
            let old = reference.map_or_else(|| self.now.old.since(checkpoint.old), BurstCalls::new);
            let old = old.only(among);
            let rate = |calls: &BurstCalls, of: fn(&BurstCalls) -> u64| {
                Rate::new(number(of(calls)), number(calls.calls))
            };
            let more = rate(&old, instead).share - rate(&new, instead).share;
            let baseline = rate(&old, of).raised(more);
            if excess(rate(&new, of), baseline, EVIDENCE) > MARGIN {
                let took = self.now.at.since(checkpoint.at);
                return BurstSignal::Broken(BurstSpan { new, old, took });
            }
            if baseline.share > MARGIN {
                signal = BurstSignal::Alike;
            }
        }
        signal
    }
}

/// Returns true if so many calls failed that waiting for a window is not justified.
fn mostly(new: &BurstCalls, bad: u64, fast: &Fast) -> bool {
    let all = bad == new.calls && bad >= fast.in_row;
    let share = fast.share.millionths();
    let most = u128::from(bad) * 1_000_000 >= u128::from(new.calls) * u128::from(share);
    all || (new.calls >= fast.calls && most)
}
