//! What the guard remembers of the last window, of the last ten and of the last hundred.
//!
//! A window has ten slices. Within a slice both ways saw the same world, so each slice tells how many of the new
//! way's calls would have failed had they fared like the old way's; these expectations are added up, not the calls.
//! A flag whose percentage rises while both ways are troubled is therefore not blamed for taking more of the calls.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::bounds::Rate;
use crate::domain::rollout::{ArmTally, Tally, UnixMillis};

/// Slices in a window, windows in a longer look, longer looks in the longest.
pub(super) const PARTS: usize = 10;

/// The calls that a comparison is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Population {
    /// All calls.
    All,
    /// The calls of which it is known whether they got a tool error. Those that failed or were refused are among them.
    ToolKnown,
}

impl Population {
    /// How many of these calls a tally has.
    pub(super) const fn calls(self, arm: &ArmTally) -> u64 {
        match self {
            Population::All => arm.calls,
            Population::ToolKnown => arm.tool_known,
        }
    }
}

/// Calls and their failures; a number of them is not whole where it is an expectation.
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

    /// The counts of these calls of a tally.
    pub(super) fn new(arm: &ArmTally, among: Population) -> WindowCounts {
        WindowCounts {
            calls: number(among.calls(arm)),
            failed: number(arm.failed),
            refused: number(arm.refused),
            tool_errors: number(arm.tool_errors),
        }
    }
}

/// Calls of slices, compared and added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct WindowSides {
    /// The new way, in slices that had calls of the old way.
    new: WindowCounts,
    /// How its calls would have fared on the old way.
    expected: WindowCounts,
    /// Σ new² / old: the fewer calls an expectation rests on, and the less evenly, the more it may be off.
    spread: f64,
    /// Calls of the old way.
    pub(super) old_calls: f64,
    /// The new way, in slices that had none of the old way.
    pub(super) alone: WindowCounts,
}

impl WindowSides {
    /// These calls of one slice.
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

    /// The rates of the new way and of the old, as if the old way had had the new one's calls.
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

/// Slices, compared and added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct WindowTotals {
    #[serde(flatten)]
    all: WindowSides,
    /// The calls of which it is known whether they got a tool error.
    #[serde(default)]
    tool_known: WindowSides,
    /// Compared answers.
    pub(super) answers: f64,
    /// Those that differed.
    pub(super) mismatched: f64,
}

impl WindowTotals {
    /// One slice.
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

    /// Both ways, by these calls.
    pub(super) const fn sides(&self, among: Population) -> &WindowSides {
        match among {
            Population::All => &self.all,
            Population::ToolKnown => &self.tool_known,
        }
    }
}

/// A count to reckon with.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than 53 bits"
)]
pub(super) const fn number(count: u64) -> f64 {
    count as f64
}

/// A look back: all of it, and its younger half.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// How many windows it spans.
    pub(super) windows: u32,
    pub(super) whole: WindowTotals,
    pub(super) young: WindowTotals,
}

/// The three looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Windows {
    slices: VecDeque<WindowSlice>,
    windows: WindowLevel,
    tens: WindowLevel,
}

/// A slice of time, and what was counted within.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct WindowSlice {
    pub(super) from: UnixMillis,
    pub(super) tally: Tally,
}

/// Parts of a longer look: those that are whole, and the one that is being filled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct WindowLevel {
    whole: VecDeque<WindowTotals>,
    open: WindowTotals,
    filled: usize,
}

impl WindowLevel {
    /// Adds a piece; gives the part that it completes.
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
    /// Adds a finished slice; slices that began before `oldest` no longer belong to the window. Gives what the old
    /// way counted in a window that is complete by now, and of which nothing was given before.
    pub(super) fn push(&mut self, slice: WindowSlice, oldest: UnixMillis) -> Option<ArmTally> {
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

    /// The window, with its times: what was counted in all its slices.
    pub(super) fn window(&self) -> Tally {
        let mut sum = Tally::default();
        self.slices.iter().for_each(|slice| sum.add(&slice.tally));
        sum
    }

    /// Calls of the old way within the window.
    pub(super) fn old_calls(&self) -> u64 {
        let calls = self.slices.iter().map(|slice| slice.tally.old.calls);
        calls.fold(0, u64::saturating_add)
    }

    /// When the window begins; none where it is empty.
    pub(super) fn from(&self) -> Option<UnixMillis> {
        self.slices.front().map(|slice| slice.from)
    }

    /// From the shortest look to the longest.
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

    /// No slice may begin in the future.
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
    for (place, part) in parts.chain(open).enumerate() {
        whole.add(part);
        if place >= half {
            young.add(part);
        }
    }
    Window {
        windows,
        whole,
        young,
    }
}
