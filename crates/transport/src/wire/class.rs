//! Byte classes of the HTTP and URI grammars, as one table. Used by `wire`.

use dualgauge_patterns::swar::{HIGH, ONES, equal, length_before};

/// A byte of a token (RFC 9110 §5.6.2).
pub(super) const TOKEN: u8 = 1;
/// A byte of a path that `http::Uri` accepts: the grammar, and characters that real clients leave unencoded. Non-ASCII
/// bytes are accepted only if the whole target is UTF-8.
pub(super) const PATH: u8 = 1 << 1;
/// A byte of a query that `http::Uri` accepts.
pub(super) const QUERY: u8 = 1 << 2;
/// A byte of a target that needs no further check: both of the above, or the `?` between them.
pub(super) const TARGET: u8 = 1 << 3;
/// A character outside of the grammar that real clients leave unencoded and `http::Uri` rejects in a path or query.
pub(super) const RAW: u8 = 1 << 5;
/// A byte of a registered name or IPv4 address (RFC 3986 §3.2.2), without `%`: two parsers may compare an encoded host
/// name differently, and `http::Uri` rejects it too.
pub(super) const NAME: u8 = 1 << 4;
static CLASSES: [u8; 256] = build();

const fn build() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = classes_of(byte as u8);
        byte += 1;
    }
    table
}

const fn classes_of(byte: u8) -> u8 {
    let mut found = 0;
    if byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_'
        )
        || matches!(byte, b'`' | b'|' | b'~')
    {
        found |= TOKEN;
    }
    let path =
        matches!(byte, 0x21 | 0x22 | 0x24..=0x3B | 0x3D | 0x40..=0x5F | 0x61..=0x7E | 0x80..);
    let query = matches!(byte, 0x21 | 0x24..=0x3B | 0x3D | 0x3F..=0x7E | 0x80..);
    if path {
        found |= PATH;
    }
    if query {
        found |= QUERY;
    }
    if byte.is_ascii() && ((path && query) || byte == b'?') {
        found |= TARGET;
    }
    if matches!(byte, b'"' | b'<' | b'>' | b'`') {
        found |= RAW;
    }
    if byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~')
        || matches!(
            byte,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
    {
        found |= NAME;
    }
    found
}

/// Returns whether a byte is in a class.
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Returns whether all bytes are in a class.
pub(super) fn all(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|byte| is(*byte, class))
}

/// Returns whether a byte is invalid in header values and quoted strings (RFC 9110 §5.5).
fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7F
}

/// Returns whether there is a control byte.
pub(super) fn any_control(bytes: &[u8]) -> bool {
    let exact = || bytes.iter().any(|byte| is_control(*byte));
    let Some(last) = bytes.last_chunk::<8>() else {
        return exact();
    };
    // The last word overlaps the one before; that is faster than a loop over the rest.
    let (words, _) = bytes.as_chunks::<8>();
    let found = words
        .iter()
        .fold(suspects(*last), |found, word| found | suspects(*word));
    // A tab is flagged too, but allowed.
    found != 0 && exact()
}

/// Returns non-zero if one of eight bytes is below space or is DEL. A borrow reaches the high bit of a byte only from
/// such a byte, or from one below it in the word.
fn suspects(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
    let below_space = word.wrapping_sub(0x20 * ONES) & !word;
    let not_delete = word ^ (0x7F * ONES);
    let delete = not_delete.wrapping_sub(ONES) & !not_delete;
    (below_space | delete) & HIGH
}

/// Splits at the first `END` byte, and returns the token before it with the rest.
pub(super) fn token_before<const END: u8>(line: &[u8]) -> Option<(&[u8], &[u8])> {
    const { assert!(classes_of(END) & TOKEN == 0) };
    let end = length_before(line, equal::<END>, |byte| byte == END);
    let (token, rest) = line.split_at(end);
    let tail = rest.get(1..)?;
    // Without a branch for each byte.
    let common = token
        .iter()
        .fold(TOKEN, |all, byte| all & CLASSES[usize::from(*byte)]);
    (common != 0 && !token.is_empty()).then_some((token, tail))
}

/// Returns the bytes without surrounding white space (`OWS`, RFC 9110 §5.6.3).
pub(super) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_end_of_a_token_agrees_with_a_check_of_each_byte(
            line in prop::collection::vec(prop_oneof![
                6 => prop::sample::select(&b"aZ09-:"[..]),
                2 => prop::sample::select(&b"_.~|!^"[..]),
                1 => any::<u8>(),
            ], 0..40),
        ) {
            let end = line.iter().position(|byte| !is(*byte, TOKEN));
            let end = end.filter(|end| *end > 0 && line[*end] == b':');
            let expected = end.map(|end| (&line[..end], &line[end + 1..]));
            prop_assert_eq!(token_before::<b':'>(&line), expected);
        }
    }
}
