//! Repetitions of the control: for each field that differed from the candidate, the number of times that a repeated
//! control call reproduced its value.
//!
//! Without repetitions, a difference may be unknown noise. Laws: after a few repetitions a field never needs
//! another one; the stored fields are bounded; a field beyond the limit counts as repeated often enough, because noise
//! has no capacity for it either.

use std::collections::BTreeMap;

use super::comparison::Comparison;
use super::noise::{Judgement, Noise};

/// The maximum number of fields per route.
const FIELDS: usize = 256;
/// The number of agreeing repetitions after which a difference is known to come from the candidate.
const ENOUGH: u8 = 3;

/// The repetitions of the control on one route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlRepeats {
    comparisons: u64,
    fields: BTreeMap<String, u8>,
}

/// Whether the control call was repeated for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatOutcome {
    /// It was repeated and got a response.
    Repeated,
    /// It was not repeated.
    NotRepeated,
}

/// The confidence in a mismatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// At least one difference is known not to be noise.
    Sure,
    /// No difference has been checked for noise yet.
    Unsure,
}

impl ControlRepeats {
    /// Returns the index of the next comparison of the route.
    pub fn next_index(&mut self) -> u64 {
        let index = self.comparisons;
        self.comparisons = index.wrapping_add(1);
        index
    }

    /// Returns true if a counted difference has too few repetitions.
    #[must_use]
    pub fn needs_repeat(&self, noise: &Noise, judged: &Judgement<'_>) -> bool {
        let mut counted = judged.counted.iter();
        counted.any(|one| !noise.is_known_noise(&one.field) && !self.is_enough(&one.field))
    }

    /// Records that the control was repeated for this comparison with the candidate, after `noise` has learned from
    /// it.
    pub fn take(&mut self, noise: &Noise, found: &Comparison) {
        for (index, difference) in found.differences.iter().enumerate() {
            let field = difference.field.as_str();
            // A field that differs in several ways counts once.
            let mut earlier = found.differences[..index].iter();
            if noise.is_known_noise(field) || earlier.any(|earlier| earlier.field == field) {
                continue;
            }
            if let Some(repeats) = self.fields.get_mut(field) {
                *repeats = repeats.saturating_add(1);
            } else if self.fields.len() < FIELDS {
                self.fields.insert(field.to_owned(), 1);
            }
        }
    }

    /// Returns the confidence in a mismatch. Differences that were not stored give none.
    #[must_use]
    pub fn confidence(
        &self,
        noise: &Noise,
        judged: &Judgement<'_>,
        repeat: RepeatOutcome,
    ) -> Confidence {
        let mut counted = judged.counted.iter().map(|one| one.field.as_str());
        let sure = match repeat {
            RepeatOutcome::Repeated => counted.next().is_some(),
            RepeatOutcome::NotRepeated => {
                counted.any(|field| noise.is_known_noise(field) || self.is_enough(field))
            }
        };
        if sure {
            Confidence::Sure
        } else {
            Confidence::Unsure
        }
    }

    fn is_enough(&self, field: &str) -> bool {
        match self.fields.get(field) {
            Some(repeats) => *repeats >= ENOUGH,
            None => self.fields.len() >= FIELDS,
        }
    }
}

#[cfg(test)]
mod tests;
