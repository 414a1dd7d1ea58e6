//! Escaping of text from outside, as one harmless value in a line.
//!
//! Laws: control characters, line breaks, and invisible or direction-changing characters are never written literally;
//! two different values never look the same; a value of the text format ends where it seems to end. A message is the
//! program's own text, so it is only kept on one line.
//!
//! Used by `log::format`.

use std::fmt::{self, Write};

use dualgauge_patterns::swar;

/// Writes a value of the text format: unquoted if it is one plain word, else quoted.
pub(super) fn word(out: &mut impl Write, text: &str) -> fmt::Result {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if !text.is_empty() && text.bytes().all(plain) {
        return out.write_str(text);
    }
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            c if is_visible(c) => out.write_char(c)?,
            c => write!(out, "{}", c.escape_default())?,
        }
    }
    out.write_char('"')
}

/// Writes the message of the text format: unquoted, because it comes first and people read it.
pub(super) fn message(out: &mut impl Write, text: &str) -> fmt::Result {
    text.chars().try_for_each(|c| {
        if is_visible(c) {
            out.write_char(c)
        } else {
            write!(out, "{}", c.escape_default())
        }
    })
}

/// Returns the length of the prefix that needs no escaping in a JSON string.
fn plain_length(text: &[u8]) -> usize {
    let is_special = |byte: u8| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\');
    let special = |word: u64| {
        let hidden = swar::within::<b' ', b'~'>(word) ^ swar::HIGH;
        hidden | swar::equal::<b'"'>(word) | swar::equal::<b'\\'>(word)
    };
    swar::plain_length(text, special, is_special)
}

/// Writes a JSON string. It escapes more than JSON requires (RFC 8259 §7).
pub(super) fn json(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    // Most texts need no escaping, and are written in one piece.
    let (whole, rest) = text.split_at(plain_length(text.as_bytes()));
    out.write_str(whole)?;
    for c in rest.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            c if is_visible(c) => out.write_char(c)?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    out.write_char('"')
}

/// Returns true if a terminal shows the character as itself. Beyond ASCII the standard library decides: it escapes
/// controls, separators, formatting such as bidirectional overrides, private use, and combining marks.
fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        c == ' ' || c.is_ascii_graphic()
    } else {
        c.escape_debug().len() == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn plain_length_matches_a_bytewise_search(
            text in prop::collection::vec(prop_oneof![
                20 => 0x20..0x7F_u8,
                1 => prop::sample::select(&b"\"\\\x1F\x7F\xC3"[..]),
            ], 0..40),
        ) {
            let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            let length = text.iter().take_while(|byte| is_plain(byte)).count();
            prop_assert_eq!(plain_length(&text), length);
        }
    }
}
