//! The overrides in force, as the store keeps them. Used throughout `overrides`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::history::HistoryEntry;
use crate::rollout::{Arming, Percent, Stage};

/// All overrides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// The kill switch: `Some` if it is on, with the author of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<ChangeMeta>,
    /// The routes whose brownouts are suspended.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub called_off: BTreeSet<String>,
    /// The overrides of flags, by name.
    #[serde(default)]
    pub flags: BTreeMap<String, FlagOverrides>,
    /// The history, oldest change first.
    #[serde(default)]
    pub history: VecDeque<HistoryEntry>,
}

/// The overrides of one flag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagOverrides {
    /// The hash of the flag's text in the file at the time of the change. The overrides hold only while it is the
    /// same.
    pub text_hash: String,
    /// The revision of the last change.
    pub revision: u64,
    /// The manual stage and share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<Flip>,
    /// The trip of its guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trip: Option<Tripped>,
    /// The progress of its ramp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<RampProgress>,
}

impl FlagOverrides {
    /// Returns whether the flag is armed or tripped.
    #[must_use]
    pub const fn arming(&self) -> Arming {
        match self.trip {
            None => Arming::Armed,
            Some(_) => Arming::Tripped,
        }
    }

    /// Returns true if there are no overrides.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.flip.is_none() && self.trip.is_none() && self.ramp.is_none()
    }
}

/// A manual override of the stage and the share of a flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flip {
    /// The new stage.
    pub stage: Stage,
    /// The new share.
    pub percent: Percent,
    /// The author and the time of the change.
    pub by: ChangeMeta,
}

/// A flag that its guard has disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tripped {
    /// A description of the observed breach.
    pub reason: String,
    /// The time, in RFC 3339.
    pub at: String,
}

/// The progress of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RampProgress {
    /// The index of the current step.
    pub step: usize,
    /// The time at which it began, in milliseconds since 1970.
    pub since: u64,
}

impl Overrides {
    /// Parses the output of [`Overrides::written`].
    ///
    /// # Errors
    ///
    /// Fails if serde cannot parse the text.
    pub fn read(text: &str) -> Result<Overrides, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Serializes the overrides.
    ///
    /// # Errors
    ///
    /// Fails if serde fails; no known value causes that.
    pub fn written(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Returns the overrides of a flag whose text in the file has this hash. Overrides for another text do not apply.
    #[must_use]
    pub fn of(&self, flag: &str, text_hash: &str) -> Option<&FlagOverrides> {
        let overrides = self.flags.get(flag);
        overrides.filter(|overrides| overrides.text_hash == text_hash)
    }
}

/// The author, time and reason of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeMeta {
    /// The author.
    pub who: String,
    /// The time, in RFC 3339.
    pub at: String,
    /// The reason, if the author gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
