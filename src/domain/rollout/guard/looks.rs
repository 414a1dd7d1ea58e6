//! What the guard remembers of the last window, of the last ten and of the last hundred.
//!
//! A window has ten slices. Within a slice both ways saw the same world, so each slice tells how many of the new
//! way's calls would have failed had they fared like the old way's; these expectations are added up, not the calls.
//! A flag whose percentage rises while both ways are troubled is therefore not blamed for taking more of the calls.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::bounds::Rate;
use crate::domain::rollout::{ArmTally, At, Tally};

/// Slices in a window, windows in a longer look, longer looks in the longest.
pub(super) const PARTS: usize = 10;

/// The calls that a comparison is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Among {
    /// All calls.
    All,
    /// The calls of which it is known whether they got a tool error. Those that failed or were refused are among them.
    ToolKnown,
}

impl Among {
    /// How many of these calls a tally has.
    pub(super) const fn calls(self, arm: &ArmTally) -> u64 {
        match self {
            Among::All => arm.calls,
            Among::ToolKnown => arm.tool_known,
        }
    }
}

/// Calls and their failures; a number of them is not whole where it is an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) calls: f64,
    pub(super) failed: f64,
    pub(super) refused: f64,
    #[serde(default)]
    pub(super) tool_errors: f64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.refused += other.refused;
        self.tool_errors += other.tool_errors;
    }

    /// The counts of these calls of a tally.
    pub(super) fn of(arm: &ArmTally, among: Among) -> Counts {
        Counts {
            calls: number(among.calls(arm)),
            failed: number(arm.failed),
            refused: number(arm.refused),
            tool_errors: number(arm.tool_errors),
        }
    }
}

/// Calls of slices, compared and added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Sides {
    /// The new way, in slices that had calls of the old way.
    new: Counts,
    /// How its calls would have fared on the old way.
    expected: Counts,
    /// Σ new² / old: the fewer calls an expectation rests on, and the less evenly, the more it may be off.
    spread: f64,
    /// Calls of the old way.
    pub(super) old_calls: f64,
    /// The new way, in slices that had none of the old way.
    pub(super) alone: Counts,
}

impl Sides {
    /// These calls of one slice.
    fn of(slice: &Tally, among: Among) -> Sides {
        let new = Counts::of(&slice.new, among);
        let old = Counts::of(&slice.old, among);
        if among.calls(&slice.old) == 0 {
            return Sides {
                alone: new,
                ..Sides::default()
            };
        }
        Sides {
            new,
            expected: Counts {
                calls: new.calls,
                failed: new.calls * (old.failed / old.calls),
                refused: new.calls * (old.refused / old.calls),
                tool_errors: new.calls * (old.tool_errors / old.calls),
            },
            spread: new.calls * new.calls / old.calls,
            old_calls: old.calls,
            alone: Counts::default(),
        }
    }

    fn add(&mut self, other: &Sides) {
        self.new.add(other.new);
        self.expected.add(other.expected);
        self.spread += other.spread;
        self.old_calls += other.old_calls;
        self.alone.add(other.alone);
    }

    /// The rates of the new way and of the old, as if the old way had had the new one's calls.
    pub(super) fn rates(&self, of: impl Fn(&Counts) -> f64) -> (Rate, Rate) {
        let calls = self.new.calls;
        let weight = if self.spread > 0.0 {
            calls * calls / self.spread
        } else {
            0.0
        };
        let expected = Rate {
            calls: weight,
            ..Rate::of(of(&self.expected), calls)
        };
        (Rate::of(of(&self.new), calls), expected)
    }
}

/// Slices, compared and added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Compared {
    #[serde(flatten)]
    all: Sides,
    /// The calls of which it is known whether they got a tool error.
    #[serde(default)]
    tool_known: Sides,
    /// Compared answers.
    pub(super) answers: f64,
    /// Those that differed.
    pub(super) mismatched: f64,
}

impl Compared {
    /// One slice.
    pub(super) fn of(slice: &Tally) -> Compared {
        Compared {
            all: Sides::of(slice, Among::All),
            tool_known: Sides::of(slice, Among::ToolKnown),
            answers: number(slice.compared),
            mismatched: number(slice.mismatched),
        }
    }

    fn add(&mut self, other: &Compared) {
        self.all.add(&other.all);
        self.tool_known.add(&other.tool_known);
        self.answers += other.answers;
        self.mismatched += other.mismatched;
    }

    /// Both ways, by these calls.
    pub(super) const fn sides(&self, among: Among) -> &Sides {
        match among {
            Among::All => &self.all,
            Among::ToolKnown => &self.tool_known,
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
pub(super) struct Look {
    /// How many windows it spans.
    pub(super) windows: u32,
    pub(super) whole: Compared,
    pub(super) young: Compared,
}

/// The three looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Looks {
    slices: VecDeque<Slice>,
    windows: Level,
    tens: Level,
}

/// A slice of time, and what was counted within.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Slice {
    pub(super) from: At,
    pub(super) tally: Tally,
}

/// Parts of a longer look: those that are whole, and the one that is being filled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Level {
    whole: VecDeque<Compared>,
    open: Compared,
    filled: usize,
}

impl Level {
    /// Adds a piece; gives the part that it completes.
    fn push(&mut self, piece: &Compared) -> Option<Compared> {
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

impl Looks {
    /// Adds a finished slice; slices that began before `oldest` no longer belong to the window. Gives what the old
    /// way counted in a window that is complete by now, and of which nothing was given before.
    pub(super) fn push(&mut self, slice: Slice, oldest: At) -> Option<ArmTally> {
        let window = self.windows.push(&Compared::of(&slice.tally));
        if let Some(window) = window {
            self.tens.push(&window);
        }
        self.slices.push_back(slice);
        let old = |slice: &Slice| slice.from < oldest;
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
    pub(super) fn from(&self) -> Option<At> {
        self.slices.front().map(|slice| slice.from)
    }

    /// From the shortest look to the longest.
    pub(super) fn all(&self) -> [Look; 3] {
        let slices: Vec<Compared> = self.slices.iter().map(|s| Compared::of(&s.tally)).collect();
        let windows = &self.windows;
        let tens = &self.tens;
        [
            look(1, slices.iter(), &[]),
            look(10, windows.whole.iter(), &[windows.open]),
            look(100, tens.whole.iter(), &[tens.open, windows.open]),
        ]
    }

    /// No slice may begin in the future.
    pub(super) fn step_back(&mut self, to: At) {
        for slice in &mut self.slices {
            slice.from = slice.from.min(to);
        }
    }
}

fn look<'c>(
    windows: u32,
    parts: impl ExactSizeIterator<Item = &'c Compared>,
    open: &'c [Compared],
) -> Look {
    let (mut whole, mut young) = (Compared::default(), Compared::default());
    let half = parts.len() / 2;
    for (place, part) in parts.chain(open).enumerate() {
        whole.add(part);
        if place >= half {
            young.add(part);
        }
    }
    Look {
        windows,
        whole,
        young,
    }
}
