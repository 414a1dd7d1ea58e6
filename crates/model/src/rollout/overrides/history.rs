//! The history of changes: author, time, and the state before and after. Used by `rollout::overrides::change`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::in_force::{ChangeMeta, FlagOverrides, Overrides};

/// The maximum number of entries; the oldest are dropped first.
pub const HISTORY: usize = 200;

/// The name of an undo.
pub(super) const UNDO: &str = "undo";
/// The name of a removal by the program.
pub(super) const DROP: &str = "drop";
/// The names of the changes that an undo skips: undos, changes by guards, and removals after an edit of the file.
const NEVER_UNDONE: [&str; 4] = [UNDO, DROP, "trip", "advance"];

/// An entry of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryEntry {
    /// The revision that it led to.
    pub revision: u64,
    /// The kind of change: `flip`, `unflip`, `trip`, `drop`, `rearm`, `advance`, `kill`, `revive`, `call_off`,
    /// `call_on` or `undo`.
    pub what: String,
    /// The author and the time.
    pub by: ChangeMeta,
    /// The state before.
    pub before: Reverted,
    /// The state after.
    pub after: Reverted,
    /// Tells whether the change was reverted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

/// The part of the overrides that a change affects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reverted {
    /// A flag.
    Flag {
        /// The name of the flag.
        flag: String,
        /// The overrides of the flag; absent if there are none.
        #[serde(rename = "standing")]
        overrides: Option<FlagOverrides>,
    },
    /// The kill switch.
    Kill {
        /// The author, if it is on.
        kill: Option<ChangeMeta>,
    },
    /// Brownouts.
    Brownouts {
        /// The routes whose brownouts are suspended.
        called_off: BTreeSet<String>,
    },
}

impl HistoryEntry {
    /// Returns the flag that was changed.
    #[must_use]
    pub fn flag(&self) -> Option<&str> {
        match &self.before {
            Reverted::Flag { flag, .. } => Some(flag),
            Reverted::Kill { .. } | Reverted::Brownouts { .. } => None,
        }
    }

    /// Returns true if the change re-armed a tripped flag.
    fn has_armed(&self) -> bool {
        let is_tripped = |left: &Reverted| match left {
            Reverted::Flag { overrides, .. } => overrides
                .as_ref()
                .is_some_and(|stands| stands.trip.is_some()),
            Reverted::Kill { .. } | Reverted::Brownouts { .. } => false,
        };
        is_tripped(&self.before) && !is_tripped(&self.after)
    }

    /// Returns true if an undo may revert the change. A change by a guard is reverted by re-arming the flag instead.
    pub(super) fn can_be_undone(&self) -> bool {
        !self.undone && !NEVER_UNDONE.contains(&self.what.as_str())
    }
}

impl Overrides {
    /// Returns the revision that last re-armed a flag, as far as the history goes.
    #[must_use]
    pub fn armed_by(&self, flag: &str) -> Option<u64> {
        let mut latest = self.history.iter().rev();
        let armed = latest.find(|entry| entry.flag() == Some(flag) && entry.has_armed());
        armed.map(|entry| entry.revision)
    }

    /// Closes the entries of a flag: its overrides are void, so an undo of them would have no effect.
    pub(super) fn close(&mut self, flag: &str) {
        let open = self.history.iter_mut();
        for entry in open.filter(|entry| entry.can_be_undone() && entry.flag() == Some(flag)) {
            entry.undone = true;
        }
    }

    pub(super) fn remember(&mut self, entry: HistoryEntry) {
        if self.history.len() >= HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(entry);
    }
}
