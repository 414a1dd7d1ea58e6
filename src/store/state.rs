//! The data in a store: JSON texts with revisions, which the store does not interpret, and the health of a store.
//!
//! Used by `app` and `store`.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::store::error::{StoreError, chain};
use crate::store::versioned::Versioned;
use dualgauge_net::random_u64;
use dualgauge_patterns::json::Json;

/// The maximum size of a stored text in bytes.
pub const LONGEST_TEXT: usize = 8 << 20;
/// The maximum number of reports returned at once. The others are returned after some of these have been folded.
pub const MOST_REPORTS: usize = 1_000;
/// The highest revision: more than can ever be reached, and the last integer that Lua counts up to exactly.
pub(super) const HIGHEST_REVISION: u64 = 1 << 53;
/// The maximum nesting depth of a stored text.
pub(super) const DEPTH: u16 = 128;

/// The counts of one process since its start. Only that process writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaReport {
    /// The name of the replica.
    pub replica: String,
    /// The id of this start of the process, as returned by [`boot`].
    pub boot: String,
    /// The time of the report, in milliseconds since 1970.
    pub at: u64,
    /// The counts, as JSON. The text is shared, because it is long, and the store and its writer keep it too.
    pub text: Arc<str>,
}

/// The counts of all processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reports {
    /// The folded counts of processes that have ended.
    pub archive: Versioned,
    /// One report for each process, this one's first, at most [`MOST_REPORTS`].
    pub reports: Vec<ReplicaReport>,
}

/// The health of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The last call succeeded, or there was none yet.
    Fine,
    /// The store fails, so its contents are unknown.
    Away {
        /// The time of the first failure.
        since: SystemTime,
        /// The last error with all its causes, for people.
        error: String,
    },
}

/// Tracks the health of a store.
#[derive(Debug, Default)]
pub(super) struct HealthTracker {
    away: Option<(SystemTime, String)>,
}

impl HealthTracker {
    /// Records the result of a call and returns it.
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
            // The store has responded.
            StoreError::Forgot { .. } => self.away = None,
            // The store was not called.
            StoreError::NotOwned(_) | StoreError::TooLong { .. } | StoreError::InvalidJson(_) => {}
        }
    }
}

/// Returns an id that no other start of any process has.
#[must_use]
pub fn boot() -> String {
    format!("{:016x}{:016x}", random_u64(), random_u64())
}

/// Checks that a text can be stored.
pub(super) fn check(text: &str) -> Result<(), StoreError> {
    if text.len() > LONGEST_TEXT {
        return Err(StoreError::TooLong {
            size: text.len(),
            longest: LONGEST_TEXT,
        });
    }
    let parsed = Json::parse(Bytes::copy_from_slice(text.as_bytes()), DEPTH);
    parsed.map(drop).map_err(StoreError::InvalidJson)
}

impl ReplicaReport {
    /// Returns true if both reports are from the same start of the same process.
    pub(super) fn has_same_boot(&self, other: &ReplicaReport) -> bool {
        self.replica == other.replica && self.boot == other.boot
    }
}
