//! A fast path for common header lines: found and validated in one step.
//!
//! Law: if it accepts a line, the step-by-step parser has the same result.
//!
//! Used by `wire::header_case`, `wire::inspector` and `wire::response_case`.

use wide::u8x32;

use dualgauge_patterns::simd::{below_space, bits};

/// The number of bytes of a name that are inspected together.
pub(super) const BLOCK: usize = 32;

/// A line that is valid: a short name of letters, digits, `-` and `_`, and a value without control characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// The length of its name.
    pub(super) name_len: usize,
    /// The length of the line, with its end.
    pub(super) line_len: usize,
    /// The byte classes of its name, and of the bytes after that.
    pub(super) classes: ByteClasses,
}

/// The byte classes of a block as masks, the first byte in the lowest bit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteClasses {
    pub(super) upper: u32,
    pub(super) lower: u32,
    pub(super) dashes: u32,
}

impl ByteClasses {
    #[inline(always)]
    pub(super) fn new(block: &[u8; BLOCK]) -> ByteClasses {
        let bytes = u8x32::new(*block);
        ByteClasses {
            upper: within::<b'A', b'Z'>(bytes),
            lower: within::<b'a', b'z'>(bytes),
            dashes: bytes.simd_eq(b'-').to_bitmask(),
        }
    }
}

/// Returns a mask of the bytes within an inclusive range.
#[inline(always)]
pub(super) fn within<const FROM: u8, const TO: u8>(bytes: u8x32) -> u32 {
    let above = bytes - u8x32::splat(FROM);
    let most = u8x32::splat(TO - FROM);
    above.min(most).simd_eq(above).to_bitmask()
}

impl Field {
    /// Reads the line at the start of an input, if it is a common one and ends within the first 64 bytes.
    #[inline]
    pub(super) fn parse_common(input: &[u8]) -> Option<Field> {
        let mut padded = [0; 64];
        let block = match input.first_chunk() {
            Some(block) => block,
            None => {
                padded[..input.len()].copy_from_slice(input);
                &padded
            }
        };
        let end = bits(block, |bytes| bytes.simd_eq(b'\n')).trailing_zeros() as usize;
        let last = end.checked_sub(1)?;
        if end == block.len() || block[last] != b'\r' {
            return None;
        }
        let controls = bits(block, are_controls);
        if controls & !(u64::MAX << end) != 1 << last {
            return None;
        }
        let start = block.first_chunk::<BLOCK>()?;
        let bytes = u8x32::new(*start);
        let name = bytes.simd_eq(b':').to_bitmask().trailing_zeros();
        if name == 0 || name as usize >= last.min(BLOCK) {
            return None;
        }
        let classes = ByteClasses::new(start);
        let others = within::<b'0', b'9'>(bytes) | bytes.simd_eq(b'_').to_bitmask();
        let common = classes.upper | classes.lower | classes.dashes | others;
        if !common & !(u32::MAX << name) != 0 {
            return None;
        }
        Some(Field {
            name_len: name as usize,
            line_len: end + 1,
            classes,
        })
    }
}

/// Returns the bytes that no value has (RFC 9110 §5.5), which include the padding zeros after an input.
#[inline(always)]
fn are_controls(bytes: u8x32) -> u8x32 {
    (below_space(bytes) & !bytes.simd_eq(b'\t')) | bytes.simd_eq(0x7F)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::head::split_field;
    use crate::wire::line::{LineFinder, LineLimit};
    use crate::wire::violation::Violation;

    /// What a look at each part says of the line at the start: the length of its name, and its size.
    fn step_by_step(input: &[u8]) -> Option<(usize, usize)> {
        let longest = LineLimit {
            bytes: 1000,
            otherwise: Violation::HeadTooLarge,
        };
        let line = LineFinder::default().next(input, longest).ok()??;
        let (name, _) = split_field(line).ok()?;
        Some((name.len(), line.len() + 2))
    }

    proptest! {
        #[test]
        fn a_field_agrees_with_a_check_of_each_part(
            name in "[A-Za-z0-9_-]{0,40}",
            between in prop::sample::select(&[":", ": ", "", "!:", " :"][..]),
            value in prop::collection::vec(prop_oneof![
                30 => 0x20..0x7F_u8,
                1 => any::<u8>(),
            ], 0..60),
            end in prop::sample::select(&["\r\n", "\n", "\r", "", "\r\n\r\n"][..]),
            after in "[a-z:\r\n]{0,60}",
        ) {
            let input = [name.as_bytes(), between.as_bytes(), &value, end.as_bytes(), after.as_bytes()].concat();
            let found = Field::parse_common(&input);
            let expected = step_by_step(&input);
            if let Some(found) = found {
                prop_assert_eq!(Some((found.name_len, found.line_len)), expected);
                let letters = |fits: fn(&u8) -> bool| {
                    let bits = input.iter().take(BLOCK).enumerate();
                    bits.map(|(index, byte)| u32::from(fits(byte)) << index).sum::<u32>()
                };
                prop_assert_eq!(found.classes.upper, letters(u8::is_ascii_uppercase));
                prop_assert_eq!(found.classes.lower, letters(u8::is_ascii_lowercase));
                prop_assert_eq!(found.classes.dashes, letters(|byte| *byte == b'-'));
            } else if let Some((length, size)) = expected {
                let is_common = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
                let is_such = size <= 64 && length < BLOCK && input[..length].iter().all(is_common);
                prop_assert!(!is_such, "{:?}", String::from_utf8_lossy(&input));
            }
        }
    }
}
