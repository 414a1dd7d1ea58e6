//! The standing of the rollout: what people and guards have changed at run time, over what the flags file says.
//!
//! A pure state machine: a [`Change`] leads from one standing to the next or is refused, and is kept in the history
//! with what it found and what it left. Whoever stores a standing stores all of it at once, under one revision.
//! Laws: a change that is refused changes nothing; what is undone is as it was before; the history is bounded; a
//! standing that is written and read again is the same.

mod change;
mod history;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Arming, Percent, Stage};

pub use change::{Change, ChangeFault, ChangeMeta, ChangeResult};
pub use history::{HISTORY, HistoryEntry, Reverted};

/// Everything that was changed at run time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// The kill switch, where it is on, and who has thrown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<ChangeMeta>,
    /// The routes whose brownouts are called off.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub called_off: BTreeSet<String>,
    /// The flags that are not what the file says, by their names.
    #[serde(default)]
    pub flags: BTreeMap<String, FlagStanding>,
    /// What was changed, the oldest first.
    #[serde(default)]
    pub history: VecDeque<HistoryEntry>,
}

/// How a flag stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagStanding {
    /// What the file said of the flag then. It holds only as long as the file says the same.
    pub text_hash: String,
    /// The revision that changed it last.
    pub revision: u64,
    /// Its flip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<Flip>,
    /// Why its guard has taken it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trip: Option<Tripped>,
    /// How far its ramp has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<RampStanding>,
}

impl FlagStanding {
    /// Whether the flag is in force.
    #[must_use]
    pub const fn arming(&self) -> Arming {
        match self.trip {
            None => Arming::Armed,
            Some(_) => Arming::Tripped,
        }
    }

    /// Whether there is nothing over the file.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.flip.is_none() && self.trip.is_none() && self.ramp.is_none()
    }
}

/// A flag that was given another stage or share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flip {
    /// Its stage from then on.
    pub stage: Stage,
    /// Its share from then on.
    pub percent: Percent,
    /// Who has flipped it, and when.
    pub by: ChangeMeta,
}

/// A flag that its guard has taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tripped {
    /// What was seen, in words.
    pub reason: String,
    /// When, in RFC 3339.
    pub at: String,
}

/// How far a ramp has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RampStanding {
    /// The step that the flag is at, from 0.
    pub step: usize,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}

impl Standing {
    /// Reads what [`LinkStats::written`] has written.
    ///
    /// # Errors
    /// What serde says of the text.
    pub fn read(text: &str) -> Result<Standing, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The standing as a text.
    ///
    /// # Errors
    /// None that is known: every part of it can be written.
    pub fn written(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// How a flag stands whose text in the file has this hash; what was changed for another text does not hold.
    #[must_use]
    pub fn of(&self, flag: &str, text_hash: &str) -> Option<&FlagStanding> {
        let standing = self.flags.get(flag);
        standing.filter(|standing| standing.text_hash == text_hash)
    }
}
