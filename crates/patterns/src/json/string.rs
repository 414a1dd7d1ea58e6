//! JSON strings: decoding and encoding.

use std::borrow::Cow;

use super::simd::{all_plain, specials};
use crate::simd::positions;

/// A `\uD800`–`\uDFFF` escape without its partner: valid JSON grammar, but not Unicode text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a lone surrogate escape is not Unicode text")]
pub struct LoneSurrogate;

/// Decodes the inside of a JSON string that a scan accepted.
///
/// # Errors
/// [`LoneSurrogate`]: the grammar allows it, but Unicode does not.
///
/// ```
/// use dualgauge_patterns::json::decode;
/// assert_eq!(decode(br"a\u00e9\n").unwrap(), "aé\n");
/// assert!(decode(br"\ud800").is_err());
/// ```
pub fn decode(inner: &[u8]) -> Result<Cow<'_, str>, LoneSurrogate> {
    let text = simdutf8::basic::from_utf8(inner).map_err(|_| LoneSurrogate)?;
    if all_plain(inner) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for at in positions(inner, |bytes| bytes.simd_eq(b'\\')) {
        // A character consumed by an escape does not begin another.
        let Some(plain) = text.get(done..at) else {
            continue;
        };
        out.push_str(plain);
        let (decoded, length) = escape(&text[at..])?;
        out.push(decoded);
        done = at + length;
    }
    out.push_str(text.get(done..).ok_or(LoneSurrogate)?);
    Ok(Cow::Owned(out))
}

/// Returns the character of an escape, and the escape's length.
fn escape(text: &str) -> Result<(char, usize), LoneSurrogate> {
    let decoded = match text.as_bytes().get(1) {
        Some(b'u') => return unicode(text),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(byte) => char::from(*byte),
        None => return Err(LoneSurrogate),
    };
    Ok((decoded, 2))
}

fn unicode(text: &str) -> Result<(char, usize), LoneSurrogate> {
    let high = code_unit(text, 0).ok_or(LoneSurrogate)?;
    if let Some(single) = char::from_u32(high) {
        return Ok((single, 6));
    }
    let low = code_unit(text, 6)
        .filter(|low| (0xDC00..0xE000).contains(low))
        .ok_or(LoneSurrogate)?;
    if high >= 0xDC00 {
        return Err(LoneSurrogate);
    }
    let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    char::from_u32(code)
        .map(|pair| (pair, 12))
        .ok_or(LoneSurrogate)
}

fn code_unit(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// Writes a text as a JSON string with quotes; escapes only where required.
pub fn encode(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    if all_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        escape_into(text.as_bytes(), out);
    }
    out.push(b'"');
}

fn escape_into(text: &[u8], out: &mut Vec<u8>) {
    let mut done = 0;
    for at in positions(text, specials) {
        out.extend_from_slice(&text[done..at]);
        match text[at] {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte @ 0..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            byte => out.extend_from_slice(&[b'\\', byte]),
        }
        done = at + 1;
    }
    out.extend_from_slice(&text[done..]);
}
