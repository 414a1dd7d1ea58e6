//! Request ids that the proxy assigns to upstream calls.
//!
//! Workers share the allocator and take ids in blocks. Law: an id is assigned once per process.
//!
//! Used by `shared_state` and `worker`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of ids in a block.
const BLOCK: u64 = 64;

/// The allocator of request ids.
#[derive(Debug)]
pub struct RequestIdAllocator {
    /// First id of the next block.
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
    /// Returns a block of ids that no other worker has.
    pub(super) fn reserve_block(&self) -> Range<u64> {
        let first = self.next.fetch_add(BLOCK, Ordering::Relaxed);
        first..first + BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap() {
        let ids = RequestIdAllocator::default();
        let (one, other) = (ids.reserve_block(), ids.reserve_block());
        assert_eq!((one.start, one.end), (1, other.start));
    }
}
