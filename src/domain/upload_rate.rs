//! The rate at which the body of a request must come.
//!
//! The time that counts is the time in which the proxy waits for the client. Time in which the upstream takes no more does
//! not count.

use std::num::NonZeroU64;
use std::time::Duration;

/// A minimum rate after a grace time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinimumRate {
    /// Bytes a second.
    pub bytes: NonZeroU64,
    /// The time that a client has in any case.
    pub grace: Duration,
}

/// The rate that an upload needs while other calls wait for a connection to its upstream.
pub const CONTENDED: MinimumRate = MinimumRate {
    bytes: NonZeroU64::new(16 * 1024).unwrap(),
    grace: Duration::from_secs(1),
};

impl MinimumRate {
    /// Returns how long a client may have been waited for that has sent `sent` bytes.
    #[must_use]
    pub fn allowance(self, sent: u64) -> Duration {
        let earned = Duration::from_secs(sent / self.bytes);
        let rest = Duration::from_secs(sent % self.bytes) / divisor(self.bytes);
        self.grace.saturating_add(earned).saturating_add(rest)
    }
}

/// A rate of more than 4 GiB a second earns no parts of a second.
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
