//! How closely a route was looked at: for each field that differed from the candidate, how often the control was run
//! a second time beside such a difference, and agreed with itself.
//!
//! A difference that nobody has looked at so may be noise that is not known yet. Laws: a field is looked at a few
//! times and then never again for its own sake; what is kept is bounded; a field that has no room counts as looked at,
//! for noise has no room for it either.

use std::collections::BTreeMap;

use super::{Comparison, Judgement, Noise};

/// Fields of one route that are kept.
const FIELDS: usize = 256;
/// Looks at a field after which it is known to differ only from the candidate.
const ENOUGH: u8 = 3;

/// How closely one route was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlRepeats {
    comparisons: u64,
    fields: BTreeMap<String, u8>,
}

/// Whether the control was run a second time beside a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatLook {
    /// It was, and answered.
    Taken,
    /// It was not.
    None,
}

/// What may be built on a mismatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// Something differs that is known not to be noise.
    Sure,
    /// Nobody has looked yet whether it is noise.
    Unsure,
}

impl ControlRepeats {
    /// The place of the next comparison in the sequence of the route.
    pub fn next_place(&mut self) -> u64 {
        let place = self.comparisons;
        self.comparisons = place.wrapping_add(1);
        place
    }

    /// Whether something counts in a comparison that was not looked at often enough.
    #[must_use]
    pub fn asks_for_one(&self, noise: &Noise, judged: &Judgement<'_>) -> bool {
        let mut counted = judged.counted.iter();
        counted.any(|one| !noise.is_met(&one.field) && !self.is_enough(&one.field))
    }

    /// The control was run a second time beside this comparison with the candidate, and `noise` has learned from it.
    pub fn take(&mut self, noise: &Noise, found: &Comparison) {
        for (index, difference) in found.differences.iter().enumerate() {
            let field = difference.field.as_str();
            // A field may differ in several ways, and is one field.
            let mut earlier = found.differences[..index].iter();
            if noise.is_met(field) || earlier.any(|earlier| earlier.field == field) {
                continue;
            }
            if let Some(looks) = self.fields.get_mut(field) {
                *looks = looks.saturating_add(1);
            } else if self.fields.len() < FIELDS {
                self.fields.insert(field.to_owned(), 1);
            }
        }
    }

    /// What may be built on a mismatch. Differences that were not kept are nothing to build on.
    #[must_use]
    pub fn footing(&self, noise: &Noise, judged: &Judgement<'_>, look: RepeatLook) -> Confidence {
        let mut counted = judged.counted.iter().map(|one| one.field.as_str());
        let sure = match look {
            RepeatLook::Taken => counted.next().is_some(),
            RepeatLook::None => counted.any(|field| noise.is_met(field) || self.is_enough(field)),
        };
        if sure {
            Confidence::Sure
        } else {
            Confidence::Unsure
        }
    }

    fn is_enough(&self, field: &str) -> bool {
        match self.fields.get(field) {
            Some(looks) => *looks >= ENOUGH,
            None => self.fields.len() >= FIELDS,
        }
    }
}

#[cfg(test)]
mod tests;
