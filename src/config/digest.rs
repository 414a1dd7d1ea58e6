//! Digests of file contents, 16 bytes each, to detect changes.
//!
//! The hash is XXH3, which is much cheaper than a cryptographic one. Files are hashed all the time, and someone who can
//! write them gains nothing by a collision.
//!
//! Used throughout `config`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_128;

/// The digest of some bytes. It is never stored outside of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u128);

impl Digest {
    /// Returns the digest of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Digest {
        Digest(xxh3_128(bytes))
    }
}

/// The files that were read, each with the digest of its content at that time.
pub type Digests = BTreeMap<PathBuf, Digest>;
