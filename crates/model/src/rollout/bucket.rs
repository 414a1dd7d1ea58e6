//! Buckets: the position of a key within a flag, in steps of 0.001 %.
//!
//! `(u64(murmur3_x86_32(flag ":" key, seed 0)) * 100000) >> 32`, over UTF-8 bytes. The formula uses only integers, so
//! that every implementation agrees; see the test vectors.
//!
//! Used by `rollout::decide`, `rollout::percent` and `shadow_limits`.

/// A bucket: a number from 0 to 99,999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u32);

impl Bucket {
    /// The number of buckets.
    pub const COUNT: u32 = 100_000;

    /// Returns the number of the bucket.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Returns the bucket of a key in a flag.
///
/// ```
/// use dualgauge_model::rollout::bucket;
/// assert_eq!(bucket("ios-first", "device-1"), bucket("ios-first", "device-1"));
/// ```
#[must_use]
pub fn bucket(flag: &str, key: &str) -> Bucket {
    let mut text = Vec::with_capacity(flag.len() + key.len() + 1);
    text.extend_from_slice(flag.as_bytes());
    text.push(b':');
    text.extend_from_slice(key.as_bytes());
    let scaled = (u64::from(murmur3(&text)) * u64::from(Bucket::COUNT)) >> 32;
    // The product of two 32-bit numbers, shifted by 32 bits, has 32 bits.
    Bucket(u32::try_from(scaled).unwrap_or(Bucket::COUNT - 1))
}

/// Returns the MurmurHash3 x86_32 of a text, with seed 0.
pub(super) fn murmur3(text: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mix = |word: u32| word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let (blocks, tail) = text.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash = (hash ^ mix(u32::from_le_bytes(*block)))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        hash ^= mix(u32::from_le_bytes(last));
    }
    // The algorithm uses the length modulo 2^32.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the algorithm takes the length modulo 2^32"
    )]
    let length = text.len() as u32;
    hash ^= length;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
