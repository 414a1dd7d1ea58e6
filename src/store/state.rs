//! What lies in a store: texts of JSON that it does not look into, with their revisions, and how it fares.

use std::time::SystemTime;

use bytes::Bytes;

use crate::domain::json::Json;
use crate::store::error::{StoreError, chain};

/// The bytes of the longest text that is stored.
pub const LONGEST_TEXT: usize = 8 << 20;
/// The most reports that are told at once; the others are told when some of these have been folded.
pub const MOST_REPORTS: usize = 1_000;
/// More replacements than can ever be made, and the last whole number that Lua counts up to.
pub(super) const HIGHEST_REVISION: u64 = 1 << 53;
/// How deep a text may be nested.
pub(super) const DEPTH: u16 = 128;

/// A text with its revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versioned {
    /// How often it was replaced; 0 is "nothing was ever written".
    pub revision: u64,
    /// The text; empty at revision 0.
    pub text: String,
}

/// What one process has counted since it began. Only that process writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaReport {
    /// The name of the replica.
    pub replica: String,
    /// What tells this start of the process from every other one, such as [`boot`] gives.
    pub boot: String,
    /// When it was left, in milliseconds since 1970.
    pub at: u64,
    /// What was counted, as JSON.
    pub text: String,
}

/// What all processes have counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reports {
    /// What was folded of processes that are gone.
    pub archive: Versioned,
    /// One report for each process: the own one first, at most [`MOST_REPORTS`].
    pub reports: Vec<ReplicaReport>,
}

/// Whether a store can be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Its last answer was one, or it was not asked yet.
    Fine,
    /// It fails; what it would tell and take is unknown.
    Away {
        /// Since when.
        since: SystemTime,
        /// Why, with every cause; for people.
        error: String,
    },
}

/// Keeps count of how a store fares.
#[derive(Debug, Default)]
pub(super) struct HealthTracker {
    away: Option<(SystemTime, String)>,
}

impl HealthTracker {
    /// Notes how a call has ended.
    pub(super) fn note<T>(
        &mut self,
        result: Result<T, StoreError>,
        at: SystemTime,
    ) -> Result<T, StoreError> {
        match &result {
            Ok(_) => self.away = None,
            Err(error) => self.note_error(error, at),
        }
        result
    }

    pub(super) fn health(&self) -> Health {
        match &self.away {
            None => Health::Fine,
            Some((since, error)) => Health::Away {
                since: *since,
                error: error.clone(),
            },
        }
    }

    fn note_error(&mut self, error: &StoreError, at: SystemTime) {
        match error {
            StoreError::InUse(_)
            | StoreError::Io { .. }
            | StoreError::Late(_)
            | StoreError::Damaged { .. }
            | StoreError::Away { .. }
            | StoreError::Foreign { .. } => {
                let since = self.away.as_ref().map_or(at, |(since, _)| *since);
                self.away = Some((since, chain(error)));
            }
            // It has answered.
            StoreError::Forgot { .. } => self.away = None,
            // It was not asked.
            StoreError::Elsewhere(_) | StoreError::TooLong { .. } | StoreError::NoJson(_) => {}
        }
    }
}

/// A name that no other start of any process has.
#[must_use]
pub fn boot() -> String {
    format!("{:016x}{:016x}", unforeseen(), unforeseen())
}

/// A number that nobody can foresee: the keys of a hasher are random, and each has its own.
pub(super) fn unforeseen() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Whether a text can be stored.
pub(super) fn check(text: &str) -> Result<(), StoreError> {
    if text.len() > LONGEST_TEXT {
        return Err(StoreError::TooLong {
            size: text.len(),
            longest: LONGEST_TEXT,
        });
    }
    let parsed = Json::parse(Bytes::copy_from_slice(text.as_bytes()), DEPTH);
    parsed.map(drop).map_err(StoreError::NoJson)
}

impl ReplicaReport {
    /// Whether both are of one start of one process.
    pub(super) fn is_of(&self, other: &ReplicaReport) -> bool {
        self.replica == other.replica && self.boot == other.boot
    }
}
