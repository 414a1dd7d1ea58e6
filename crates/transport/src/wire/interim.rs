//! Interim responses (RFC 9110 §15.2) in the form that a proxy forwards over HTTP/1.1.

use super::class::trimmed;
use super::head::split_field;
use super::response::unfold;

/// The maximum size of an interim response.
const LARGEST: usize = 16 * 1024;

/// Hop-by-hop fields, and fields that no interim response has.
const LEFT_OUT: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "trailer",
    "via",
];

/// Returns the head of an interim response without hop-by-hop fields. Returns `None` if it must not be forwarded: `100
/// Continue`, which the proxy sends itself, and invalid heads.
#[must_use]
pub fn interim(head: &[u8]) -> Option<Vec<u8>> {
    if head.len() > LARGEST {
        return None;
    }
    let mut head = head.to_vec();
    unfold(&mut head);
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut lines = lines
        .by_ref()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines.next()?;
    let status = first.get(8..13)?;
    let [b' ', digits @ .., end] = status else {
        return None;
    };
    let is_status = digits.iter().all(u8::is_ascii_digit) && digits != b"100" && *end == b' ';
    let reason = &first[13..];
    let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    if !is_status || !reason.iter().all(is_text) {
        return None;
    }
    let mut fields = Vec::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        if let [b' ' | b'\t', ..] = line {
            return None;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = trimmed(&line[..colon]);
        let line = [name, &line[colon..]].concat();
        split_field(&line).ok()?;
        fields.push((name.to_ascii_lowercase(), line));
    }
    let mut named = Vec::new();
    for (_, line) in fields.iter().filter(|(name, _)| name == b"connection") {
        let values = line["connection:".len()..].split(|byte| *byte == b',');
        named.extend(values.map(|name| trimmed(name).to_ascii_lowercase()));
    }
    let mut written = [b"HTTP/1.1", status, reason, b"\r\n"].concat();
    for (name, line) in &fields {
        let is_left = LEFT_OUT
            .iter()
            .any(|left| left.as_bytes() == name.as_slice());
        if !is_left && !named.contains(name) {
            written.extend_from_slice(line);
            written.extend_from_slice(b"\r\n");
        }
    }
    written.extend_from_slice(b"\r\n");
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(head: &str) -> Option<String> {
        interim(head.as_bytes()).map(|head| String::from_utf8(head).unwrap())
    }

    #[test]
    fn an_interim_response_is_forwarded_without_connection_fields() {
        let head = "HTTP/1.0 103 Early Hints\r\nLink : </a>;\r\n rel=preload\r\nConnection: x-own\r\nX-Own: 1\r\n\
                    Keep-Alive: 5\r\nContent-Length: 5\r\nx-ODD: 2\r\nLink: </b>\r\n\r\n";
        let expected = "HTTP/1.1 103 Early Hints\r\nLink: </a>;   rel=preload\r\nx-ODD: 2\r\nLink: </b>\r\n\r\n";
        assert_eq!(passed(head).as_deref(), Some(expected));
        let bare = "HTTP/1.1 102 \n\n";
        assert_eq!(passed(bare).as_deref(), Some("HTTP/1.1 102 \r\n\r\n"));
    }

    #[test]
    fn an_invalid_interim_response_is_not_forwarded() {
        for head in [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 103\r\n\r\n",
            "HTTP/1.1 1x3 \r\n\r\n",
            "HTTP/1.1 103 a\x07\r\n\r\n",
            "HTTP/1.1 103 a\r\nno colon\r\n\r\n",
            "HTTP/1.1 103 a\r\nA: \0\r\n\r\n",
            "HTTP/1.1 103 a\r\n A: 1\r\n\r\n",
            "HTTP/1.1 103 a\r\n: 1\r\n\r\n",
            &format!("HTTP/1.1 103 a\r\nA: {}\r\n\r\n", "a".repeat(LARGEST)),
        ] {
            assert_eq!(passed(head), None, "{head:.60}");
        }
    }
}
