//! Sixty-four bytes looked at together, by the vectors of whatever processor there is.

use wide::u8x16;

/// Which of sixty-four bytes fit, the first in the lowest bit.
#[inline(always)]
pub(super) fn lanes(bytes: &[u8; 64], mut fits: impl FnMut(u8x16) -> u8x16) -> u64 {
    let (quarters, _) = bytes.as_chunks::<16>();
    let mut bits = 0;
    for (index, quarter) in quarters.iter().enumerate() {
        bits |= u64::from(fits(u8x16::new(*quarter)).to_bitmask()) << (index * 16);
    }
    bits
}

/// Where a byte other than 0 is among the first sixty-four bytes of a text, the first in the lowest bit.
pub(super) fn places(text: &[u8], byte: u8) -> u64 {
    let are = |bytes: u8x16| bytes.simd_eq(byte);
    match text.first_chunk() {
        Some(block) => lanes(block, are),
        None => {
            let mut block = [0; 64];
            block[..text.len()].copy_from_slice(text);
            lanes(&block, are)
        }
    }
}
