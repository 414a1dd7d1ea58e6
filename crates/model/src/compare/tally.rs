//! Numbers of calls with the time of the last one. Used by `compare::mismatches` and `compare::replies`.

/// A number of calls, and the time of the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number.
    pub count: u64,
    /// The time of the last call in milliseconds since 1970; 0 without a call.
    pub last_ms: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.count = self.count.saturating_add(other.count);
        self.last_ms = self.last_ms.max(other.last_ms);
    }
}
