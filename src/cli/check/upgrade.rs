//! Notes on routes that a changed default affects.

use crate::config::configuration::Configuration;
use crate::config::problem::Problem;
use crate::config::raw::RawRoute;
use crate::domain::check::{Written, changes};

/// Whether the notes are part of the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpgradeNotes {
    Shown,
    Hidden,
}

impl UpgradeNotes {
    /// Returns a note on the route at `index` of the plan, if a changed default affects it.
    pub(super) fn note(
        self,
        configuration: &Configuration,
        (index, raw): (usize, &RawRoute),
    ) -> Option<Problem> {
        if self == UpgradeNotes::Hidden {
            return None;
        }
        let written = Written {
            extra: raw.extra.as_ref().map(|extra| extra.value),
        };
        let changes = changes(&configuration.plan, index, written);
        if changes.is_empty() {
            return None;
        }
        let words: Vec<String> = changes
            .iter()
            .map(|change| format!("`{}`", change.as_str()))
            .collect();
        let what = format!(
            "changed defaults affect it: {} (CHANGELOG.md, Upgrading)",
            words.join(", ")
        );
        Some(configuration.raw.places.problem(&raw.key, what))
    }
}
