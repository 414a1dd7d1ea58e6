//! Percent-encoding (RFC 3986 §2.1), exact in both directions.
//!
//! Laws: `decode(encode(text)) == text`; malformed escapes and bytes that are not UTF-8 are errors; normalising is
//! idempotent and changes only escapes of unreserved characters and the case of hexadecimal digits (RFC 3986 §6.2.2).

use std::borrow::Cow;

use super::swar;

/// The reason why a text cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PercentError {
    /// `%` without two hexadecimal digits after it.
    #[error("`%` must be followed by two hexadecimal digits")]
    Malformed,
    /// The decoded bytes are not UTF-8.
    #[error("the decoded bytes are not valid UTF-8")]
    NotUtf8,
}

/// The meaning of `+`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plus {
    /// A literal `+`, as in a path.
    Literal,
    /// A space, as in a query (`application/x-www-form-urlencoded`).
    Space,
}

/// Decodes every escape.
///
/// # Errors
/// [`PercentError`] for a malformed escape or bytes that are no UTF-8.
///
/// ```
/// use dualgauge_patterns::percent::{Plus, decode};
/// assert_eq!(decode("a%2Fb+c", Plus::Literal).unwrap(), "a/b+c");
/// assert_eq!(decode("a+b", Plus::Space).unwrap(), "a b");
/// assert!(decode("100%", Plus::Space).is_err());
/// ```
pub fn decode(text: &str, plus: Plus) -> Result<Cow<'_, str>, PercentError> {
    let plain = |byte: &u8| *byte != b'%' && (*byte != b'+' || plus == Plus::Literal);
    if text.as_bytes().iter().all(plain) {
        return Ok(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'%' => {
                out.push(escaped(bytes, at).ok_or(PercentError::Malformed)?);
                at += 2;
            }
            b'+' if plus == Plus::Space => out.push(b' '),
            _ => out.push(*byte),
        }
    }
    String::from_utf8(out)
        .map(Cow::Owned)
        .map_err(|_| PercentError::NotUtf8)
}

/// Splits a text at the first occurrence of an ASCII character.
#[inline]
pub fn cut<const AT: u8>(text: &str) -> (&str, Option<&str>) {
    let end = swar::length_before(text.as_bytes(), swar::equal::<AT>, |byte| byte == AT);
    (&text[..end], text.get(end + 1..))
}

/// Returns the byte that the two digits at `at` encode.
fn escaped(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

/// `ALPHA / DIGIT / "-" / "." / "_" / "~"` (RFC 3986 §2.3).
const fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// [`unreserved`] as a table: a lookup takes fewer steps.
static UNRESERVED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = unreserved(byte as u8);
        byte += 1;
    }
    table
};

/// Bytes that need no escape in any part of a URL. Dots are excluded, since they may form a dot segment.
static WORD: [bool; 256] = {
    let mut table = UNRESERVED;
    table[b'.' as usize] = false;
    table[b'~' as usize] = false;
    table
};

/// Returns whether a text has only letters, digits, `-` and `_`, which need no escape in any part of a URL.
#[inline]
pub fn is_word(text: &[u8]) -> bool {
    text.iter().all(|byte| WORD[usize::from(*byte)])
}

/// Characters that stay unescaped in addition to the unreserved ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// None.
    Nothing,
    /// `/`, in a value that spans several path segments.
    Slashes,
    /// `,`, in a list that is one path segment.
    Commas,
}

/// Appends `text` with all other characters escaped.
pub fn encode(text: &str, keep: Keep, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let also = match keep {
        Keep::Nothing => None,
        Keep::Slashes => Some(b'/'),
        Keep::Commas => Some(b','),
    };
    let is_kept = |byte: u8| UNRESERVED[usize::from(byte)] || also == Some(byte);
    if text.bytes().all(is_kept) {
        return out.push_str(text);
    }
    for byte in text.bytes() {
        if is_kept(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// Returns a path segment in normal form: unreserved characters decoded, hexadecimal digits in upper case, non-ASCII
/// encoded. A segment with a malformed escape stays unchanged; it equals no literal, and no value can be read from it.
#[must_use]
pub fn normalise(segment: &str) -> Cow<'_, str> {
    if segment.bytes().all(|byte| byte.is_ascii() && byte != b'%') {
        return Cow::Borrowed(segment);
    }
    if !segment.is_ascii() {
        return Cow::Owned(normalise(&encode_beyond_ascii(segment)).into_owned());
    }
    let bytes = segment.as_bytes();
    let mut out = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some(offset) = rest.find('%') {
        out.push_str(&rest[..offset]);
        let at = bytes.len() - rest.len() + offset;
        match escaped(bytes, at + 1) {
            Some(byte) if unreserved(byte) => out.push(char::from(byte)),
            Some(_) => out.push_str(&segment[at..at + 3].to_ascii_uppercase()),
            None => return Cow::Borrowed(segment),
        }
        rest = &segment[at + 3..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn encode_beyond_ascii(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len() * 3);
    for character in segment.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            encode(character.encode_utf8(&mut [0; 4]), Keep::Nothing, &mut out);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &str, keep: Keep) -> String {
        let mut out = String::new();
        encode(text, keep, &mut out);
        out
    }

    #[test]
    fn malformed_escapes_are_refused() {
        for text in ["%", "a%2", "%zz", "%+1", "%c3"] {
            assert!(decode(text, Plus::Literal).is_err(), "{text}");
        }
    }

    #[test]
    fn a_segment_has_one_normal_form() {
        assert_eq!(normalise("%74ools"), "tools");
        assert_eq!(normalise("a%2fb"), "a%2Fb");
        assert_eq!(normalise("%2e%2E"), "..");
        assert_eq!(normalise("100%"), "100%");
        assert_eq!(normalise("é%C3%a9"), "%C3%A9%C3%A9");
        assert_eq!(normalise("%41%"), "%41%");
        assert_eq!(normalise("%%32D"), "%%32D");
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(text in any::<String>()) {
            let once = encoded(&text, Keep::Nothing);
            prop_assert_eq!(decode(&once, Plus::Space).unwrap(), text.clone());
            let once = encoded(&text, Keep::Slashes);
            prop_assert_eq!(decode(&once, Plus::Literal).unwrap(), text);
        }

        #[test]
        fn normalising_twice_changes_nothing(text in "[a-z%0-9A-Fé/]{0,20}") {
            let once = normalise(&text).into_owned();
            prop_assert_eq!(normalise(&once).into_owned(), once.clone());
        }
    }
}
