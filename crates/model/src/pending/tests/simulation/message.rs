//! Messages as the other end reads them.

use super::*;

/// Reads a message as the server does.
pub(super) fn read(message: &Bytes) -> Read {
    let text = std::str::from_utf8(message).unwrap();
    let after = |name: &str| {
        let digits = text.split_once(name)?.1;
        let end = digits.find(|c: char| !c.is_ascii_digit())?;
        digits[..end].parse().ok()
    };
    let is_request = text.contains("\"method\"");
    Read {
        id: after("\"id\":").filter(|_| is_request),
        ticket: after("\"params\":["),
    }
}
