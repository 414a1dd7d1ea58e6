//! A moment, as a number: what is kept on disk and sent between replicas bears times of the wall clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970. It may step back, for it is of the wall clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// The moment so many milliseconds after 1970 began.
    #[must_use]
    pub const fn from_millis(millis: u64) -> UnixMillis {
        UnixMillis(millis)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment; none where that one is later.
    #[must_use]
    pub const fn since(self, earlier: UnixMillis) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
