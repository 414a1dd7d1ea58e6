//! Notes on routes that a changed default affects.

use crate::config::configuration::Configuration;
use crate::config::problem::Problem;
use crate::config::raw::RawRoute;
use crate::domain::check::{Written, changes, general_changes};

/// Whether the notes are part of the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpgradeNotes {
    Shown,
    Hidden,
}

impl UpgradeNotes {
    /// Returns a note on all routes, at the place of the first, if changed defaults affect them alike.
    pub(super) fn general(self, configuration: &Configuration) -> Option<Problem> {
        let changes = general_changes(&configuration.plan);
        let first = configuration.raw.routes.first()?;
        if self == UpgradeNotes::Hidden || changes.is_empty() {
            return None;
        }
        let words = listed(changes.iter().map(|change| change.as_str()));
        let what = format!("changed defaults affect all routes: {words} (CHANGELOG.md, Upgrading)");
        let at_first = configuration.raw.places.problem(&first.key, what);
        Some(Problem {
            key: "route".to_owned(),
            ..at_first
        })
    }

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
        let words = listed(changes.iter().map(|change| change.as_str()));
        let what = format!("changed defaults affect it: {words} (CHANGELOG.md, Upgrading)");
        Some(configuration.raw.places.problem(&raw.key, what))
    }
}

fn listed<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
