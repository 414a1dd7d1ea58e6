//! What the guard remembers of the last few calls, to see at once that the new way is broken.
//!
//! Marks are sums at past moments; between any of them and now lies a span of calls. A span shows a broken way where
//! most of the new way's calls failed in it and those of the old way, over the same time, did not. If both fail, the
//! server behind both is down, and going back would help nobody.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bounds::{Rate, excess};
use super::windows::{Population, number};
use super::{Fast, Share};
use crate::domain::rollout::{ArmTally, Tally, UnixMillis};

/// Marks that are kept. When there are too many, every second one of the older half goes.
const MOST: usize = 32;
/// How far back a span may reach.
const OLDEST: Duration = Duration::from_secs(3600);
/// By how much the new way must be worse for sure. Where both fail, chance alone makes a difference of some points.
const MARGIN: f64 = 0.25;
/// See [`super::bounds`]; each of the two rates is off by chance in one of 3,000 spans at most.
const EVIDENCE: f64 = 8.0;

/// Calls of one way so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct BurstCalls {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
    #[serde(default)]
    pub(super) tool_errors: u64,
    /// Those of which it is known whether they got a tool error.
    #[serde(default)]
    tool_known: u64,
}

impl BurstCalls {
    fn new(arm: &ArmTally) -> BurstCalls {
        BurstCalls {
            calls: arm.calls,
            failed: arm.failed,
            refused: arm.refused,
            tool_errors: arm.tool_errors,
            tool_known: arm.tool_known,
        }
    }

    fn add(&mut self, arm: &ArmTally) {
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

    /// The same, of these calls only.
    fn only(self, among: Population) -> BurstCalls {
        let calls = match among {
            Population::All => self.calls,
            Population::ToolKnown => self.tool_known,
        };
        BurstCalls { calls, ..self }
    }
}

/// The sums at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Checkpoint {
    at: UnixMillis,
    new: BurstCalls,
    old: BurstCalls,
}

/// The marks, oldest first, and the sums as they are now.
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

/// What the last calls look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BurstSignal {
    /// Most are served, or there are too few to tell.
    Fine,
    /// Most fail, and so do those of the old way.
    Alike,
    /// Most fail, and on the old way they do not.
    Broken(BurstSpan),
}

/// One kind of calls that were not served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unserved {
    /// The calls that they are a share of.
    pub(super) among: Population,
    /// How many they are.
    pub(super) of: fn(&BurstCalls) -> u64,
    /// How many are of the kinds that the old way may tell in place of this one.
    pub(super) instead: fn(&BurstCalls) -> u64,
}

impl Checkpoints {
    /// Adds what was counted since the last time.
    pub(super) fn push(&mut self, at: UnixMillis, delta: &Tally) {
        if delta.new.calls > 0 || self.past.is_empty() {
            self.past.push_back(self.now);
        }
        self.now.at = at;
        self.now.new.add(&delta.new);
        self.now.old.add(&delta.old);
        if self.past.len() > MOST {
            let mut place = 0;
            self.past.retain(|_| {
                place += 1;
                place > MOST / 2 || place % 2 == 0
            });
        }
        let old = |mark: &Checkpoint| at.since(mark.at) > OLDEST;
        while self.past.front().is_some_and(old) {
            self.past.pop_front();
        }
    }

    /// A beginning at a moment, without calls.
    pub(super) fn begin(at: UnixMillis) -> Checkpoints {
        Checkpoints {
            past: VecDeque::new(),
            now: Checkpoint {
                at,
                ..Checkpoint::default()
            },
        }
    }

    /// No mark may lie in the future.
    pub(super) fn step_back(&mut self, to: UnixMillis) {
        self.now.at = to;
        for mark in &mut self.past {
            mark.at = mark.at.min(to);
        }
    }

    /// What the last of these calls look like by one kind of failure, the old way being what it was over the same spans, or
    /// `reference` where that is given. What the old way tells as another kind `instead`, beyond what the new way tells so,
    /// counts as this kind of the old way.
    pub(super) fn signal(
        &self,
        fast: &Fast,
        &Unserved { among, of, instead }: &Unserved,
        reference: Option<&ArmTally>,
    ) -> BurstSignal {
        let mut glimpse = BurstSignal::Fine;
        for mark in self.past.iter().rev() {
            let new = self.now.new.since(mark.new).only(among);
            if !mostly(&new, of(&new), fast) {
                continue;
            }
            let old = reference.map_or_else(|| self.now.old.since(mark.old), BurstCalls::new);
            let old = old.only(among);
            let rate = |calls: &BurstCalls, of: fn(&BurstCalls) -> u64| {
                Rate::new(number(of(calls)), number(calls.calls))
            };
            let more = rate(&old, instead).share - rate(&new, instead).share;
            let like = rate(&old, of).raised(more);
            if excess(rate(&new, of), like, EVIDENCE) > MARGIN {
                let took = self.now.at.since(mark.at);
                return BurstSignal::Broken(BurstSpan { new, old, took });
            }
            if like.share > MARGIN {
                glimpse = BurstSignal::Alike;
            }
        }
        glimpse
    }
}

/// Whether so many of the calls failed that nobody would wait for a window.
fn mostly(new: &BurstCalls, bad: u64, fast: &Fast) -> bool {
    let all = bad == new.calls && bad >= fast.in_row;
    let Share(share) = fast.share;
    let most = u128::from(bad) * 1_000_000 >= u128::from(new.calls) * u128::from(share);
    all || (new.calls >= fast.calls && most)
}
