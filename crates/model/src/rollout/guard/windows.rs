//! The sums over the last window, the last ten and the last hundred windows.
//!
//! A window has ten slices. Both ways run under the same conditions within a slice. Each slice therefore gives the
//! number of failures that the new way would have had at the failure rate of the old way; the windows add up these
//! expectations, not the calls. So a flag is not blamed if its percentage rises during a failure of both ways.
//!
//! Used by `rollout::guard::burst`, `rollout::guard::comparison` and `rollout::guard::state`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::bounds::Rate;
use crate::rollout::{Tally, UnixMillis, WayTally};

/// The number of slices in a window, of windows in the medium span, and of medium spans in the longest.
pub(super) const PARTS: usize = 10;

/// The calls that a comparison counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// All calls.
    All,
    /// The calls with a known tool result, including the failed and the refused ones.
    ToolKnown,
}

impl Population {
    /// Returns the number of these calls in a tally.
    pub(super) const fn calls(self, arm: &WayTally) -> u64 {
        match self {
            Population::All => arm.calls,
            Population::ToolKnown => arm.tool_known,
        }
    }
}

/// Calls and their failures. An expectation may be a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct WindowCounts {
    pub(super) calls: f64,
    pub(super) failed: f64,
    pub(super) refused: f64,
    #[serde(default)]
    pub(super) tool_errors: f64,
}

impl WindowCounts {
    fn add(&mut self, other: WindowCounts) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.refused += other.refused;
        self.tool_errors += other.tool_errors;
    }

    /// Returns the counts of these calls in a tally.
    pub(super) fn new(arm: &WayTally, among: Population) -> WindowCounts {
        WindowCounts {
            calls: number(among.calls(arm)),
            failed: number(arm.failed),
            refused: number(arm.refused),
            tool_errors: number(arm.tool_errors),
        }
    }
}

/// The compared sums of several slices.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct WindowSides {
    /// The calls of the new way, in slices with calls of the old way.
    new: WindowCounts,
    /// The expected results of those calls at the rates of the old way.
    expected: WindowCounts,
    /// Σ new² / old: the variance of the expectation grows with fewer and less evenly distributed calls of the old
    /// way.
    spread: f64,
    /// The calls of the old way.
    pub(super) old_calls: f64,
    /// The calls of the new way, in slices without calls of the old way.
    pub(super) alone: WindowCounts,
}

impl WindowSides {
    /// Returns the counts of these calls in one slice.
    fn new(slice: &Tally, among: Population) -> WindowSides {
        let new = WindowCounts::new(&slice.new, among);
        let old = WindowCounts::new(&slice.old, among);
        if among.calls(&slice.old) == 0 {
            return WindowSides {
                alone: new,
                ..WindowSides::default()
            };
        }
        WindowSides {
            new,
            expected: WindowCounts {
                calls: new.calls,
                failed: new.calls * (old.failed / old.calls),
                refused: new.calls * (old.refused / old.calls),
                tool_errors: new.calls * (old.tool_errors / old.calls),
            },
            spread: new.calls * new.calls / old.calls,
            old_calls: old.calls,
            alone: WindowCounts::default(),
        }
    }

    fn add(&mut self, other: &WindowSides) {
        self.new.add(other.new);
        self.expected.add(other.expected);
        self.spread += other.spread;
        self.old_calls += other.old_calls;
        self.alone.add(other.alone);
    }

    /// Returns the rates of the new and the old way, as if the old way had had the calls of the new one.
    pub(super) fn rates(&self, of: impl Fn(&WindowCounts) -> f64) -> (Rate, Rate) {
        let calls = self.new.calls;
        let weight = if self.spread > 0.0 {
            calls * calls / self.spread
        } else {
            0.0
        };
        let expected = Rate {
            calls: weight,
            ..Rate::new(of(&self.expected), calls)
        };
        (Rate::new(of(&self.new), calls), expected)
    }
}

/// The sums of several slices.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct WindowTotals {
    #[serde(flatten)]
    all: WindowSides,
    /// The calls with a known tool result.
    #[serde(default)]
    tool_known: WindowSides,
    /// The compared responses.
    pub(super) answers: f64,
    /// The compared responses that differ.
    pub(super) mismatched: f64,
}

impl WindowTotals {
    /// Returns the sums of one slice.
    pub(super) fn new(slice: &Tally) -> WindowTotals {
        WindowTotals {
            all: WindowSides::new(slice, Population::All),
            tool_known: WindowSides::new(slice, Population::ToolKnown),
            answers: number(slice.compared),
            mismatched: number(slice.mismatched),
        }
    }

    fn add(&mut self, other: &WindowTotals) {
        self.all.add(&other.all);
        self.tool_known.add(&other.tool_known);
        self.answers += other.answers;
        self.mismatched += other.mismatched;
    }

    /// Returns the sums of both ways for these calls.
    pub(super) const fn sides(&self, among: Population) -> &WindowSides {
        match among {
            Population::All => &self.all,
            Population::ToolKnown => &self.tool_known,
        }
    }
}

/// Converts a count to a float.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than 53 bits"
)]
pub(super) const fn number(count: u64) -> f64 {
    count as f64
}

/// A span of windows: its totals, and those of its younger half.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The number of windows in the span.
    pub(super) windows: u32,
    pub(super) whole: WindowTotals,
    pub(super) young: WindowTotals,
}

/// The three spans.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Windows {
    slices: VecDeque<WindowSlice>,
    windows: WindowLevel,
    tens: WindowLevel,
}

/// A slice of time and its tally.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct WindowSlice {
    pub(super) from: UnixMillis,
    pub(super) tally: Tally,
}

/// The parts of a longer span: the complete ones, and the one being filled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct WindowLevel {
    whole: VecDeque<WindowTotals>,
    open: WindowTotals,
    filled: usize,
}

impl WindowLevel {
    /// Adds a piece; returns the part that it completes.
    fn push(&mut self, piece: &WindowTotals) -> Option<WindowTotals> {
        self.open.add(piece);
        self.filled += 1;
        if self.filled < PARTS {
            return None;
        }
        self.filled = 0;
        let part = std::mem::take(&mut self.open);
        if self.whole.len() >= PARTS {
            self.whole.pop_front();
        }
        self.whole.push_back(part);
        Some(part)
    }
}

impl Windows {
    /// Adds a complete slice and drops those that began before `oldest`. Returns the tally of the old way for a
    /// window that is now complete, once per window.
    pub(super) fn push(&mut self, slice: WindowSlice, oldest: UnixMillis) -> Option<WayTally> {
        let window = self.windows.push(&WindowTotals::new(&slice.tally));
        if let Some(window) = window {
            self.tens.push(&window);
        }
        self.slices.push_back(slice);
        let old = |slice: &WindowSlice| slice.from < oldest;
        while self.slices.len() > PARTS || self.slices.front().is_some_and(old) {
            self.slices.pop_front();
        }
        window.map(|_| self.window().old)
    }

    /// Returns the tally of all slices of the window, including latencies.
    pub(super) fn window(&self) -> Tally {
        let mut sum = Tally::default();
        self.slices.iter().for_each(|slice| sum.add(&slice.tally));
        sum
    }

    /// Returns the number of calls of the old way within the window.
    pub(super) fn old_calls(&self) -> u64 {
        let calls = self.slices.iter().map(|slice| slice.tally.old.calls);
        calls.fold(0, u64::saturating_add)
    }

    /// Returns the beginning of the window; `None` if it is empty.
    pub(super) fn from(&self) -> Option<UnixMillis> {
        self.slices.front().map(|slice| slice.from)
    }

    /// Returns the spans, shortest first.
    pub(super) fn all(&self) -> [Window; 3] {
        let slices: Vec<WindowTotals> = self
            .slices
            .iter()
            .map(|s| WindowTotals::new(&s.tally))
            .collect();
        let windows = &self.windows;
        let tens = &self.tens;
        [
            look(1, slices.iter(), &[]),
            look(10, windows.whole.iter(), &[windows.open]),
            look(100, tens.whole.iter(), &[tens.open, windows.open]),
        ]
    }

    /// Moves the slices that begin in the future back to `to`.
    pub(super) fn step_back(&mut self, to: UnixMillis) {
        for slice in &mut self.slices {
            slice.from = slice.from.min(to);
        }
    }
}

fn look<'c>(
    windows: u32,
    parts: impl ExactSizeIterator<Item = &'c WindowTotals>,
    open: &'c [WindowTotals],
) -> Window {
    let (mut whole, mut young) = (WindowTotals::default(), WindowTotals::default());
    let half = parts.len() / 2;
    for (index, part) in parts.chain(open).enumerate() {
        whole.add(part);
        if index >= half {
            young.add(part);
        }
    }
    Window {
        windows,
        whole,
        young,
    }
}
