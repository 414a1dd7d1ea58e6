//! Operations on sixty-four bytes with the baseline vectors of the target; other targets use scalar code.

use wide::u8x32;

/// Returns a mask of the bytes for which `fits` holds, the first in the lowest bit.
#[inline(always)]
pub fn bits(bytes: &[u8; 64], mut fits: impl FnMut(u8x32) -> u8x32) -> u64 {
    let (halves, _) = bytes.as_chunks::<32>();
    let mut found = 0;
    for (index, half) in halves.iter().enumerate() {
        found |= u64::from(fits(u8x32::new(*half)).to_bitmask()) << (index * 32);
    }
    found
}

/// Returns the same for the first sixty-four bytes of a text, or for a shorter text.
#[inline(always)]
pub fn first_bits(text: &[u8], fits: impl FnMut(u8x32) -> u8x32) -> u64 {
    match text.first_chunk() {
        Some(block) => bits(block, fits),
        None => bits(&padded(text), fits) & !(u64::MAX << text.len()),
    }
}

/// Returns a text of at most `N` bytes, padded with zeros.
#[inline(always)]
pub fn padded<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut block = [0; N];
    block[..text.len()].copy_from_slice(text);
    block
}

/// Returns the bytes below the space.
#[inline(always)]
pub fn below_space(bytes: u8x32) -> u8x32 {
    bytes.min(u8x32::splat(0x1F)).simd_eq(bytes)
}

/// Iterates over the offsets of the matching bytes, in order.
#[inline(always)]
pub fn positions(text: &[u8], mut fits: impl FnMut(u8x32) -> u8x32) -> impl Iterator<Item = usize> {
    let mut blocks = (0..text.len()).step_by(64);
    let (mut block, mut found) = (0, 0);
    std::iter::from_fn(move || {
        while found == 0 {
            block = blocks.next()?;
            found = first_bits(&text[block..], &mut fits);
        }
        let offset = block + found.trailing_zeros() as usize;
        found &= found - 1;
        Some(offset)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_agree_with_a_check_of_each_byte(
            text in prop::collection::vec(prop_oneof![Just(0), Just(b'a'), any::<u8>()], 0..300),
            byte in prop_oneof![Just(0), Just(b'a'), any::<u8>()],
        ) {
            let found: Vec<usize> = positions(&text, |bytes| bytes.simd_eq(byte)).collect();
            let expected = text.iter().enumerate().filter(|(_, own)| **own == byte);
            prop_assert_eq!(found, expected.map(|(at, _)| at).collect::<Vec<_>>());
        }
    }
}
