//! What stands in a file, in sixteen bytes, to tell whether it has changed.
//!
//! It is XXH3, which costs far less than a cryptographic one: files are looked at all the time, and whoever may write them
//! gains nothing by another text with the same digest.

use std::collections::BTreeMap;
use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_128;

/// The digest of some bytes. It is of this process: nobody keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u128);

impl Digest {
    /// Of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Digest {
        Digest(xxh3_128(bytes))
    }
}

/// Files that were read, each with the digest of what stood in it then.
pub type Digests = BTreeMap<PathBuf, Digest>;
