//! SIMD scans of strings and brackets: short texts in one word, others in vectors; escapes and brackets in blocks of
//! sixty-four bytes.
//!
//! Used by `json` and `pattern`.

use wide::u8x32;

use crate::simd::{below_space, bits};
use crate::swar::overlapping;

const ONES: u64 = u64::from_ne_bytes([1; 8]);

/// The top bit of each of eight lanes.
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Returns the number of bytes before the next quote, backslash or control character of a string.
#[inline(always)]
pub(super) fn plain_length(text: &[u8]) -> usize {
    // Fast path for short texts; the rest is a separate function, so that this one can be inlined.
    let Some(chunk) = text.first_chunk::<8>() else {
        return long_plain_length(text, 0);
    };
    let word = u64::from_le_bytes(*chunk);
    match special(word) {
        0 => long_plain_length(text, 8),
        lanes => lanes.trailing_zeros() as usize / 8,
    }
}

/// Continues the scan at `at`.
#[inline(never)]
fn long_plain_length(text: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = text[at..].first_chunk::<32>() {
        let bytes = u8x32::new(*chunk);
        let specials = specials(bytes).to_bitmask();
        if specials != 0 {
            return at + specials.trailing_zeros() as usize;
        }
        at += 32;
    }
    while let Some(chunk) = text[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        match special(word) {
            0 => at += 8,
            lanes => return at + lanes.trailing_zeros() as usize / 8,
        }
    }
    while let Some(byte) = text.get(at)
        && *byte >= 0x20
        && *byte != b'"'
        && *byte != b'\\'
    {
        at += 1;
    }
    at
}

/// Masks of sixty-four bytes within a string, the first byte in the lowest bit.
pub(super) struct StringBlock {
    backslashes: u64,
    /// The bytes after an escaping backslash.
    pub(super) escaped: u64,
}

impl StringBlock {
    /// Reads the block after the one that updated `escapes`. All blocks have one size, so that the processor can begin
    /// a block before it has finished the last.
    #[inline(always)]
    pub(super) fn new(bytes: &[u8; 64], escapes: &mut Escapes) -> StringBlock {
        let backslashes = bits(bytes, |bytes| bytes.simd_eq(b'\\'));
        StringBlock {
            backslashes,
            escaped: escapes.of(backslashes),
        }
    }

    /// Returns the quotes that end a string.
    #[inline(always)]
    pub(super) fn ends(&self, bytes: &[u8; 64]) -> u64 {
        bits(bytes, |bytes| bytes.simd_eq(b'"')) & !self.escaped
    }

    /// Returns the bytes that need inspection: quotes that end a string, and escaped bytes other than [`are_escapes`].
    /// Bits after the first such quote are meaningless.
    #[inline(always)]
    pub(super) fn notable(&self, bytes: &[u8; 64]) -> u64 {
        let quotes = bits(bytes, |bytes| bytes.simd_eq(b'"'));
        let ends = quotes & !self.escaped;
        let unusual = match self.escaped {
            0 => 0,
            // The common case.
            escaped => {
                let breaks = bits(bytes, |bytes| bytes.simd_eq(b'n'));
                escaped & !(quotes | self.backslashes | breaks)
            }
        };
        match unusual {
            0 => ends,
            unusual => ends | (unusual & !bits(bytes, are_escapes)),
        }
    }
}

/// A check for control characters: the lowest byte in each lane of blocks within a string.
pub(super) struct ControlCheck(u8x32);

impl ControlCheck {
    pub(super) const NONE: ControlCheck = ControlCheck(u8x32::MAX);

    /// Checks a block that lies within the string.
    #[inline(always)]
    pub(super) fn see(&mut self, bytes: &[u8; 64]) {
        for bytes in bytes.as_chunks::<32>().0 {
            self.0 = self.0.min(u8x32::new(*bytes));
        }
    }

    /// Returns whether there was a control character.
    #[inline(always)]
    pub(super) fn has_control(&self) -> bool {
        below_space(self.0).any()
    }
}

/// Returns the bytes in `"\/bfnrt`: after a backslash they need no further check (RFC 8259 §7).
#[inline(always)]
fn are_escapes(bytes: u8x32) -> u8x32 {
    // Two bytes that differ in one bit take one comparison without that bit.
    let quote_or_b = (bytes & !0x40).simd_eq(b'"');
    let b_or_r = (bytes & !0x10).simd_eq(b'b');
    let f_or_n = (bytes & !0x08).simd_eq(b'f');
    let t = bytes.simd_eq(b't');
    let slashes = bytes.simd_eq(b'/') | bytes.simd_eq(b'\\');
    slashes | quote_or_b | b_or_r | f_or_n | t
}

/// Returns the bytes that are a quote, a backslash or a control character.
#[inline(always)]
pub(super) fn specials(bytes: u8x32) -> u8x32 {
    // This moves the quote, and no other byte, next to the control characters.
    let flipped = bytes ^ 2;
    let quotes_and_controls = flipped.min(u8x32::splat(b'"' ^ 2)).simd_eq(flipped);
    quotes_and_controls | bytes.simd_eq(b'\\')
}

/// Returns whether there is no quote, backslash or control character.
#[inline]
pub(crate) fn all_plain(text: &[u8]) -> bool {
    // The rest after the last whole step is checked together with bytes before it.
    if let Some(last) = text.last_chunk::<8>() {
        let words = text.as_chunks::<8>().0.iter().chain([last]);
        let specials = words.map(|word| special(u64::from_le_bytes(*word)));
        return specials.fold(0, |one, other| one | other) == 0;
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return special(overlapping(*first, *last)) == 0;
    }
    text.iter()
        .all(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\')
}

/// Returns the top bits of the lanes with a quote, a backslash or a control character. A borrow may set bits above the
/// first true one, so only the lowest is reliable.
#[inline(always)]
fn special(word: u64) -> u64 {
    // Flipping the second bit moves the quote, and no other byte, next to the control characters.
    let quotes_and_controls = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslashes = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (quotes_and_controls | backslashes) & !word & HIGHS
}

/// The kind of a bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    /// `[` or `{`
    Opens,
    /// `]` or `}`
    Closes,
}

/// The bits that all four brackets share, and no other byte of valid JSON outside of strings has.
const BRACKET_BITS: u8 = 0xD9;
/// The value of these bits in a bracket.
const BRACKET: u8 = 0x59;

/// Returns the kind of bracket of a byte, in valid JSON and outside of a string.
#[inline(always)]
pub(super) fn bracket(byte: u8) -> Option<Bracket> {
    if byte & BRACKET_BITS != BRACKET {
        None
    } else if byte & 2 != 0 {
        Some(Bracket::Opens)
    } else {
        Some(Bracket::Closes)
    }
}

/// State between blocks of 64 bytes of valid JSON; the first block begins outside of a string.
#[derive(Debug, Default)]
pub(super) struct Structure {
    /// All ones if the next block begins inside a string.
    inside: u64,
    escapes: Escapes,
}

/// State of backslashes between blocks of 64 bytes.
#[derive(Debug, Default)]
pub(super) struct Escapes {
    /// One if the first byte of the next block is escaped.
    pub(super) carried: u64,
}

impl Structure {
    /// Returns the brackets of the block outside of strings, the first byte in the lowest bit.
    #[inline]
    pub(super) fn brackets(&mut self, bytes: &[u8; 64]) -> u64 {
        let quotes = bits(bytes, |bytes| bytes.simd_eq(b'"'));
        let backslashes = bits(bytes, |bytes| bytes.simd_eq(b'\\'));
        let quotes = quotes & !self.escapes.of(backslashes);
        let inside = xor_of_lower(quotes) ^ self.inside;
        self.inside = 0_u64.wrapping_sub(inside >> 63);
        let brackets = bits(bytes, |bytes| (bytes & BRACKET_BITS).simd_eq(BRACKET));
        brackets & !inside
    }
}

impl Escapes {
    /// Returns the escaped bytes: those after an odd number of backslashes.
    #[inline]
    fn of(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        // An escaped backslash escapes nothing.
        let starting = backslashes & !self.carried;
        // The subtraction borrows through each run of backslashes. It leaves every other backslash, from the first on,
        // and the byte after a run of odd length.
        let every_other = (((starting << 1) | ODD).wrapping_sub(starting)) ^ ODD;
        let escaped = every_other ^ (backslashes | self.carried);
        self.carried = (every_other & backslashes) >> 63;
        escaped
    }
}

/// Returns the prefix XOR: each bit is the XOR of itself and all lower bits.
#[inline]
fn xor_of_lower(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}
