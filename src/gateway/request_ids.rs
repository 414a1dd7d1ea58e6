//! The ids of the proxy's own that calls go with.
//!
//! Workers share where they come from, and take some at a time. Law: no two calls of the process have one.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many ids a worker takes at a time.
const BLOCK: u64 = 64;

/// Where the ids come from.
#[derive(Debug)]
pub struct RequestIdAllocator {
    /// Where the next block begins.
    next: AtomicU64,
}

impl Default for RequestIdAllocator {
    fn default() -> RequestIdAllocator {
        RequestIdAllocator {
            next: AtomicU64::new(1),
        }
    }
}

impl RequestIdAllocator {
    /// Ids that no worker has had before.
    pub(super) fn block(&self) -> Range<u64> {
        let first = self.next.fetch_add(BLOCK, Ordering::Relaxed);
        first..first + BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_workers_have_one_id() {
        let ids = RequestIdAllocator::default();
        let (one, other) = (ids.block(), ids.block());
        assert_eq!((one.start, one.end), (1, other.start));
    }
}
