//! Strings eight bytes and brackets sixty-four bytes at a time, in any build for any machine.

const ONES: u64 = u64::from_ne_bytes([1; 8]);

/// The top bit of each of eight lanes: set where a byte is not ASCII.
pub(super) const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// How much of a string's inside comes before the next quote, backslash or control character.
/// Every byte before it is laid upon `seen`, eight lanes upon each other, and maybe some behind it.
#[inline(always)]
pub(super) fn plain_length(text: &[u8], seen: &mut u64) -> usize {
    // Many names and texts are this short; the rest is a call, so that this can be a part of its callers.
    let Some(chunk) = text.first_chunk::<8>() else {
        return long_plain_length(text, 0, seen);
    };
    let word = u64::from_le_bytes(*chunk);
    *seen |= word;
    match special(word) {
        0 => long_plain_length(text, 8, seen),
        lanes => lanes.trailing_zeros() as usize / 8,
    }
}

/// The same, where nothing comes before `at`.
#[inline(never)]
fn long_plain_length(text: &[u8], at: usize, seen: &mut u64) -> usize {
    plain_end(text, at, seen)
}

/// Where the next quote, backslash or control character is, from `at` on. Every byte before it is laid upon `seen`.
#[inline(always)]
pub(super) fn plain_end(text: &[u8], mut at: usize, seen: &mut u64) -> usize {
    let mut laid = 0;
    while let Some(chunk) = text[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        laid |= word;
        let special = special(word);
        if special != 0 {
            *seen |= laid;
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(byte) = text.get(at)
        && *byte >= 0x20
        && *byte != b'"'
        && *byte != b'\\'
    {
        laid |= u64::from(*byte);
        at += 1;
    }
    *seen |= laid;
    at
}

/// Whether there is no quote, backslash or control character.
#[inline]
pub(in crate::domain) fn all_plain(text: &[u8]) -> bool {
    // What is left behind the last whole step is looked at together with what comes before it.
    if let Some(last) = text.last_chunk::<8>() {
        let words = text.as_chunks::<8>().0.iter().chain([last]);
        let specials = words.map(|word| special(u64::from_le_bytes(*word)));
        return specials.fold(0, |one, other| one | other) == 0;
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return special(u64::from(first) | (u64::from(last) << 32)) == 0;
    }
    text.iter()
        .all(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\')
}

/// The top bits of the lanes that hold a quote, a backslash or a control character. A borrow may set
/// bits above the first true one as well, so only the lowest counts.
#[inline(always)]
fn special(word: u64) -> u64 {
    // Flipping the second bit puts the quote right behind the control characters, and nothing else there.
    let quotes_and_controls = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslashes = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (quotes_and_controls | backslashes) & !word & HIGHS
}

/// What a bracket does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    /// `[` or `{`
    Opens,
    /// `]` or `}`
    Closes,
}

/// Which bracket a byte is, in valid JSON and outside of a string: without these bits all four are alike, and what
/// else is like them does not occur there.
#[inline(always)]
pub(super) fn bracket(byte: u8) -> Option<Bracket> {
    if byte & 0xD9 != 0x59 {
        None
    } else if byte & 2 != 0 {
        Some(Bracket::Opens)
    } else {
        Some(Bracket::Closes)
    }
}

/// What is carried from one block of 64 bytes of valid JSON to the next, first block outside of a string.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// All ones where the next block begins inside a string.
    inside: u64,
    /// One where the first byte of the next block is escaped.
    escaped: u64,
}

impl Block {
    /// Which bytes of the block are brackets outside of strings, the first byte in the lowest bit.
    #[inline]
    pub(super) fn brackets(&mut self, bytes: &[u8; 64]) -> u64 {
        let quotes = lanes(bytes, |byte| byte == b'"');
        let backslashes = lanes(bytes, |byte| byte == b'\\');
        let quotes = quotes & !self.escaped(backslashes);
        let inside = xor_of_lower(quotes) ^ self.inside;
        self.inside = 0_u64.wrapping_sub(inside >> 63);
        let brackets = lanes(bytes, |byte| bracket(byte).is_some());
        brackets & !inside
    }

    /// Which bytes are escaped: those behind an odd number of backslashes.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        // A backslash that is escaped itself escapes nothing.
        let starting = backslashes & !self.escaped;
        // The subtraction borrows through each run of backslashes, and so leaves every other one of it, from the
        // first on, and the byte behind a run of odd length.
        let every_other = (((starting << 1) | ODD).wrapping_sub(starting)) ^ ODD;
        let escaped = every_other ^ (backslashes | self.escaped);
        self.escaped = (every_other & backslashes) >> 63;
        escaped
    }
}

/// The bytes that fit, as bits. The comparison is one that compilers turn into vectors.
#[inline]
fn lanes(bytes: &[u8; 64], fits: impl Fn(u8) -> bool) -> u64 {
    // Not `map`, which may be called for each byte.
    let mut fitting = *bytes;
    for byte in &mut fitting {
        *byte = u8::from(fits(*byte));
    }
    let mut bits = 0;
    for (index, eight) in fitting.as_chunks::<8>().0.iter().enumerate() {
        // Each byte of 0 or 1 moves into its own bit of the top byte.
        let packed = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= packed << (index * 8);
    }
    bits
}

/// Each bit the sum, without carry, of itself and all lower ones.
#[inline]
fn xor_of_lower(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}
