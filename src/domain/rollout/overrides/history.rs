//! The history: who, when, before, after.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::change::{ChangeMeta, NEVER_UNDONE};
use super::{FlagStanding, Standing};

/// How many changes are kept; the oldest go first.
pub const HISTORY: usize = 200;

/// One change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryEntry {
    /// The revision that it led to.
    pub revision: u64,
    /// What was done: `flip`, `unflip`, `trip`, `drop`, `rearm`, `advance`, `kill`, `revive`, `call_off`, `call_on` or `undo`.
    pub what: String,
    /// Who has done it, and when.
    pub by: ChangeMeta,
    /// What was there.
    pub before: Reverted,
    /// What is there since.
    pub after: Reverted,
    /// Whether it was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

/// The part of a standing that a change is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reverted {
    /// A flag.
    Flag {
        /// Its name.
        flag: String,
        /// How it stands; absent where it is what the file says.
        standing: Option<FlagStanding>,
    },
    /// The kill switch.
    Kill {
        /// Who has thrown it, where it is on.
        kill: Option<ChangeMeta>,
    },
    /// Brownouts.
    Brownouts {
        /// The routes whose brownouts are called off.
        called_off: BTreeSet<String>,
    },
}

impl HistoryEntry {
    /// The flag that was changed.
    #[must_use]
    pub fn flag(&self) -> Option<&str> {
        match &self.before {
            Reverted::Flag { flag, .. } => Some(flag),
            Reverted::Kill { .. } | Reverted::Brownouts { .. } => None,
        }
    }

    /// Whether it put a flag in force again that its guard had taken back.
    fn has_armed(&self) -> bool {
        let is_tripped = |left: &Reverted| match left {
            Reverted::Flag { standing, .. } => standing
                .as_ref()
                .is_some_and(|stands| stands.trip.is_some()),
            Reverted::Kill { .. } | Reverted::Brownouts { .. } => false,
        };
        is_tripped(&self.before) && !is_tripped(&self.after)
    }

    /// Whether a person takes it back by an undo: what a guard did is taken back by re-arming the flag.
    pub(super) fn can_be_undone(&self) -> bool {
        !self.undone && !NEVER_UNDONE.contains(&self.what.as_str())
    }
}

impl Standing {
    /// The revision that put a flag in force again last, as far as the history goes.
    #[must_use]
    pub fn armed_by(&self, flag: &str) -> Option<u64> {
        let mut latest = self.history.iter().rev();
        let armed = latest.find(|entry| entry.flag() == Some(flag) && entry.has_armed());
        armed.map(|entry| entry.revision)
    }

    /// What was changed of a flag is void, so that nobody is told that he has undone it.
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
