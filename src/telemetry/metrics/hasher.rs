//! The hasher of the maps of a shard. Used by `metrics::mcp_calls` and `metrics::shard`.

use std::hash::Hasher;

/// Hashes ids and enums in a few instructions. Callers choose neither, so they cannot provoke collisions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        // The table takes its index from the low bits, but the multiplication mixes best into the high ones.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_isize(&mut self, discriminant: isize) {
        self.write_u64(discriminant as u64);
    }
}
