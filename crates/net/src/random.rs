//! Random numbers without a dependency.

use std::hash::{BuildHasher, RandomState};

/// Returns an unpredictable number: each hasher has its own random keys.
#[must_use]
pub fn random_u64() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
