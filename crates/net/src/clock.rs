//! The monotonic clock, which tests can pause. Only this module reads it.

use tokio::time::Instant;

/// Returns the current time.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the only reader of the monotonic clock"
)]
pub fn now() -> Instant {
    Instant::now()
}
