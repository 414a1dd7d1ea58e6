//! Byte classes of the HTTP and URI grammars, as one table.

use crate::domain::words;

/// A byte of a token (RFC 9110 §5.6.2).
pub(super) const TOKEN: u8 = 1;
/// A byte of a path, as `http::Uri` takes it: the grammar, and what real clients leave unencoded; beyond ASCII
/// only where the whole target is UTF-8.
pub(super) const PATH: u8 = 1 << 1;
/// A byte of a query, as `http::Uri` takes it.
pub(super) const QUERY: u8 = 1 << 2;
/// A byte of a target that needs no closer look: both of the above, or the `?` between them.
pub(super) const TARGET: u8 = 1 << 3;
/// A byte of a registered name or IPv4 address (RFC 3986 §3.2.2), without `%`: an encoded host name is one
/// that two parsers compare in two ways, and `http::Uri` refuses it too.
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

/// Whether a byte is in a class.
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Whether all bytes are in a class.
pub(super) fn all(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|byte| is(*byte, class))
}

/// Whether a byte is one that no header value and no quoted string has (RFC 9110 §5.5).
fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7F
}

/// Whether a control byte is among these.
pub(super) fn any_control(bytes: &[u8]) -> bool {
    let exact = || bytes.iter().any(|byte| is_control(*byte));
    let Some(last) = bytes.last_chunk::<8>() else {
        return exact();
    };
    // The last word overlaps the one before, instead of a loop over what is left.
    let (words, _) = bytes.as_chunks::<8>();
    let found = words
        .iter()
        .fold(suspects(*last), |found, word| found | suspects(*word));
    // A tab is suspect too, and allowed.
    found != 0 && exact()
}

/// Not zero if one of eight bytes is below space or is DEL.
fn suspects(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
    (words::at_least::<b' '>(word) ^ words::HIGH) | words::equal::<0x7F>(word)
}

/// How many bytes at the beginning of a line may stand in a token. Most names have letters, digits and dashes alone.
pub(super) fn token_length(line: &[u8]) -> usize {
    let other = |word| (words::alphanumeric(word) | words::equal::<b'-'>(word)) ^ words::HIGH;
    let length = words::length_before(line, other, |byte| !is(byte, TOKEN));
    let more = line[length..].iter().position(|byte| !is(*byte, TOKEN));
    more.map_or(line.len(), |more| length + more)
}

/// The bytes without the white space around them (`OWS`, RFC 9110 §5.6.3).
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
        fn a_token_is_as_long_as_a_look_at_each_byte_says(
            line in prop::collection::vec(prop_oneof![
                6 => prop::sample::select(&b"aZ09-"[..]),
                2 => prop::sample::select(&b"_.~|!^"[..]),
                1 => any::<u8>(),
            ], 0..40),
        ) {
            let end = line.iter().position(|byte| !is(*byte, TOKEN));
            prop_assert_eq!(token_length(&line), end.unwrap_or(line.len()));
        }
    }
}
