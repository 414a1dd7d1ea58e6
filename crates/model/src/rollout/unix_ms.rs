//! Wall-clock times as numbers, for storage on disk and for messages between replicas. Used by `app` and `rollout`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A wall-clock time, in milliseconds since 1970. It may step back.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// Creates a time from milliseconds since 1970.
    #[must_use]
    pub const fn from_millis(millis: u64) -> UnixMillis {
        UnixMillis(millis)
    }

    /// Returns the milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if that one is later.
    #[must_use]
    pub const fn since(self, earlier: UnixMillis) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
