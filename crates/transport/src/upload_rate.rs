//! The minimum upload rate of request bodies.
//!
//! Only time spent waiting for the client counts. Time in which the upstream accepts no data does not.

use std::num::NonZeroU64;
use std::time::Duration;

/// A minimum rate after a grace time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinimumRate {
    /// Bytes per second.
    pub bytes: NonZeroU64,
    /// The grace time of every client.
    pub grace: Duration,
}

/// The required rate while other calls wait for a connection to the same upstream.
pub const CONTENDED: MinimumRate = MinimumRate {
    bytes: NonZeroU64::new(16 * 1024).unwrap(),
    grace: Duration::from_secs(1),
};

impl MinimumRate {
    /// Returns the time that the proxy may have waited for a client that has sent `sent` bytes.
    #[must_use]
    pub fn allowance(self, sent: u64) -> Duration {
        let earned = Duration::from_secs(sent / self.bytes);
        let rest = Duration::from_secs(sent % self.bytes) / divisor(self.bytes);
        self.grace.saturating_add(earned).saturating_add(rest)
    }
}

/// Returns the rate as a divisor; above 4 GiB per second, fractions of a second are ignored.
fn divisor(bytes: NonZeroU64) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_earns_its_time_beyond_the_grace() {
        let rate = MinimumRate {
            bytes: NonZeroU64::new(240).unwrap(),
            grace: Duration::from_secs(5),
        };
        for (sent, allowed) in [(0, 5_000), (120, 5_500), (240, 6_000), (2_460, 15_250)] {
            assert_eq!(
                rate.allowance(sent),
                Duration::from_millis(allowed),
                "{sent}"
            );
        }
        assert!(rate.allowance(u64::MAX) > Duration::from_secs(u64::MAX / 241));
    }
}
