//! Operations on eight bytes in one register (SWAR): the highest bit of each byte is its flag; the first byte is the
//! lowest.
//!
//! No byte carries into another, so each flag is exact.

/// One in each byte.
pub const ONES: u64 = u64::from_le_bytes([1; 8]);
const LOW: u64 = 0x7F * ONES;
/// The flag bit of each byte.
pub const HIGH: u64 = 0x80 * ONES;

/// Flags the bytes equal to `BYTE`.
#[inline]
pub const fn equal<const BYTE: u8>(word: u64) -> u64 {
    let other = word ^ (BYTE as u64 * ONES);
    // A non-zero byte sets its highest bit, either directly or through the sum.
    !(((other & LOW) + LOW) | other | LOW)
}

/// Flags the bytes that are at least this value.
#[inline]
const fn at_least<const BYTE: u8>(word: u64) -> u64 {
    const { assert!(BYTE <= 0x80) };
    (((word & LOW) + (0x80 - BYTE as u64) * ONES) | word) & HIGH
}

/// Flags the bytes within an inclusive range.
#[inline]
pub const fn within<const FIRST: u8, const LAST: u8>(word: u64) -> u64 {
    const { assert!(FIRST <= LAST && LAST < 0x80) };
    let is_above = (word & LOW) + (0x7F - LAST as u64) * ONES;
    at_least::<FIRST>(word) & !is_above & !word
}

/// Returns the bytes with letters in lower case.
#[inline]
pub const fn lowered(word: u64) -> u64 {
    word | within::<b'A', b'Z'>(word) >> 2
}

/// Returns the index of the first flagged byte.
#[inline]
pub const fn index_of_first(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

/// Returns the number of bytes before the first flagged one: word by word, then byte by byte.
#[inline]
pub fn length_before(
    text: &[u8],
    found: impl Fn(u64) -> u64,
    is_found: impl Fn(u8) -> bool,
) -> usize {
    let (words, last) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = found(u64::from_le_bytes(*word));
        if found != 0 {
            return index * 8 + index_of_first(found);
        }
    }
    let position = last.iter().position(|byte| is_found(*byte));
    words.len() * 8 + position.unwrap_or(last.len())
}

/// Returns the number of bytes before the first flagged one, where usually none is flagged: the last word overlaps the
/// one before.
#[inline]
pub fn plain_length(
    text: &[u8],
    found: impl Fn(u64) -> u64,
    is_found: impl Fn(u8) -> bool,
) -> usize {
    let is_plain = if let Some(last) = text.last_chunk::<8>() {
        let words = text.as_chunks::<8>().0.iter().chain([last]);
        words.fold(0, |any, word| any | found(u64::from_le_bytes(*word))) == 0
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        found(overlapping(*first, *last)) == 0
    } else {
        !text.iter().any(|byte| is_found(*byte))
    };
    match is_plain {
        true => text.len(),
        false => length_before(text, found, is_found),
    }
}

/// Joins four bytes with four that may overlap them.
#[inline]
pub const fn overlapping(first: [u8; 4], last: [u8; 4]) -> u64 {
    u32::from_le_bytes(first) as u64 | (u32::from_le_bytes(last) as u64) << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The word with the high bit set for each marked byte.
    fn each(bytes: [u8; 8], is_marked: impl Fn(u8) -> bool) -> u64 {
        u64::from_le_bytes(bytes.map(|byte| if is_marked(byte) { 0x80 } else { 0 }))
    }

    proptest! {
        #[test]
        fn a_word_agrees_with_a_check_of_each_byte(
            bytes in prop::array::uniform8(prop_oneof![
                any::<u8>(),
                prop::sample::select(&b"-,./09:@AZ[`az{\"!#\x1F \x7E\x7F\x80"[..]),
            ]),
        ) {
            let word = u64::from_le_bytes(bytes);
            prop_assert_eq!(equal::<b'-'>(word), each(bytes, |byte| byte == b'-'));
            prop_assert_eq!(equal::<0x7F>(word), each(bytes, |byte| byte == 0x7F));
            prop_assert_eq!(at_least::<b' '>(word), each(bytes, |byte| byte >= b' '));
            prop_assert_eq!(at_least::<0x7F>(word), each(bytes, |byte| byte >= 0x7F));
            prop_assert_eq!(within::<b'0', b'9'>(word), each(bytes, |byte| byte.is_ascii_digit()));
            prop_assert_eq!(within::<b'A', b'Z'>(word), each(bytes, |byte| byte.is_ascii_uppercase()));
            prop_assert_eq!(lowered(word).to_le_bytes(), bytes.map(|byte| byte.to_ascii_lowercase()));
        }

        #[test]
        fn the_length_before_a_byte_is_its_offset(
            text in prop::collection::vec(prop_oneof![9 => Just(b'a'), 1 => Just(b'-')], 0..40),
        ) {
            let length = length_before(&text, equal::<b'-'>, |byte| byte == b'-');
            let position = text.iter().position(|byte| *byte == b'-');
            prop_assert_eq!(length, position.unwrap_or(text.len()));
        }
    }
}
