//! The differences found so far: one for each field and kind, with the number of occurrences.
//!
//! Used by `compare::diff` and `compare::parts`.

use super::{Comparison, DIFFERENCES, Difference};

/// The stored differences, and the number of those that were not stored.
#[derive(Debug, Default)]
pub(super) struct DifferenceList(Comparison);

impl DifferenceList {
    pub(super) fn add(&mut self, found: Difference) {
        let same = |known: &&mut Difference| known.kind == found.kind && known.field == found.field;
        if let Some(known) = self.0.differences.iter_mut().find(same) {
            known.times += 1;
        } else if self.0.differences.len() < DIFFERENCES {
            self.0.differences.push(found);
        } else {
            self.0.more += 1;
        }
    }

    pub(super) fn ignore(&mut self) {
        self.0.ignored += 1;
    }

    pub(super) fn fall_back(&mut self) {
        self.0.fallen_back += 1;
    }

    pub(super) fn finish(self) -> Comparison {
        self.0
    }
}
