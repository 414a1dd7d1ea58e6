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

    /// The counts of a tally.
    pub(super) fn of(arm: &ArmTally) -> Counts {
        Counts {
            calls: number(arm.calls),
            failed: number(arm.failed),
            refused: number(arm.refused),
            tool_errors: number(arm.tool_errors),
        }
    }

    /// The calls that were not served as their callers wished, whoever was to blame.
    pub(super) fn unserved(&self) -> f64 {
        self.failed + self.refused + self.tool_errors
    }
}

/// Slices, compared and added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Compared {
    /// The new way, in slices that had calls of the old way.
    pub(super) new: Counts,
    /// How its calls would have fared on the old way.
    expected: Counts,
    /// Σ new² / old: the fewer calls an expectation rests on, and the less evenly, the more it may be off.
    spread: f64,
    /// Calls of the old way.
    pub(super) old_calls: f64,
    /// The new way, in slices that had none of the old way.
    pub(super) alone: Counts,
    /// Compared answers.
    pub(super) answers: f64,
    /// Those that differed.
    pub(super) mismatched: f64,
}

impl Compared {
    /// One slice.
    pub(super) fn of(slice: &Tally) -> Compared {
        let new = Counts::of(&slice.new);
        let old_calls = number(slice.old.calls);
        let compared = Compared {
            old_calls,
            answers: number(slice.compared),
            mismatched: number(slice.mismatched),
            ..Compared::default()
        };
        if slice.old.calls == 0 {
            return Compared {
                alone: new,
                ..compared
            };
        }
        Compared {
            new,
            expected: Counts {
                calls: new.calls,
                failed: new.calls * (number(slice.old.failed) / old_calls),
                refused: new.calls * (number(slice.old.refused) / old_calls),
                tool_errors: new.calls * (number(slice.old.tool_errors) / old_calls),
            },
            spread: new.calls * new.calls / old_calls,
            ..compared
        }
    }

    fn add(&mut self, other: &Compared) {
        self.new.add(other.new);
        self.expected.add(other.expected);
        self.spread += other.spread;
        self.old_calls += other.old_calls;
        self.alone.add(other.alone);
        self.answers += other.answers;
        self.mismatched += other.mismatched;
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
