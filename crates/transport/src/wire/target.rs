//! Request targets in the client's spelling: raw characters that the HTTP library rejects, and targets of rejected
//! requests.
//!
//! Law: the encoded form of a raw target names the same resource; [`RawTarget::restore`] returns the original bytes.

use http::Method;
use memchr::{memchr, memrchr};

use super::class::{self, QUERY, RAW, TARGET, TOKEN};

/// The maximum length of a rejected target in reports.
const LOGGED: usize = 1024;

/// The target that a client sent, if the HTTP library does not get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentTarget {
    /// A valid target, whose raw characters the library gets percent-encoded.
    Raw(RawTarget),
    /// The target of a rejected request line.
    Refused(RefusedLine),
}

/// A path and query with raw characters, and their percent-encoded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawTarget {
    raw: Box<[u8]>,
    encoded: Box<[u8]>,
}

/// The readable part of a rejected request line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedLine {
    /// The method.
    pub method: Method,
    /// The path and query, or the target without user information if it has no path; invalid bytes are percent-encoded.
    pub target: String,
}

impl RawTarget {
    /// Encodes the target of a valid request line. Returns the line with the encoded target, and the original.
    #[must_use]
    pub fn take(line: &[u8]) -> Option<(Vec<u8>, RawTarget)> {
        let start = memchr(b' ', line)? + 1;
        let end = memrchr(b' ', line)?;
        let target = line.get(start..end)?;
        let path = start + authority_end(target);
        let raw = &line[path..end];
        let encoded = encode(raw, is_raw);
        let written = [&line[..path], &encoded, &line[end..]].concat();
        let target = RawTarget {
            raw: raw.into(),
            encoded: encoded.into(),
        };
        Some((written, target))
    }

    /// Returns the bytes to send in place of `target`, if that has the encoded query or is the whole encoded target.
    #[must_use]
    pub fn restore(&self, target: &str) -> Option<Vec<u8>> {
        if target.as_bytes() == &*self.encoded {
            return Some(self.raw.to_vec());
        }
        let (path, query) = target.split_once('?')?;
        let encoded = memchr(b'?', &self.encoded)?;
        let raw = memchr(b'?', &self.raw)?;
        let is_same = query.as_bytes() == &self.encoded[encoded + 1..];
        is_same.then(|| [path.as_bytes(), &self.raw[raw..]].concat())
    }
}

impl RefusedLine {
    /// Reads a rejected request line, of which only a part may have arrived.
    #[must_use]
    pub fn read(input: &[u8]) -> Option<RefusedLine> {
        let line = &input[..memchr(b'\n', input).unwrap_or(input.len())];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let space = memchr(b' ', line)?;
        let (method, rest) = (&line[..space], &line[space + 1..]);
        if !class::all(method, TOKEN) {
            return None;
        }
        let end = memrchr(b' ', rest).filter(|end| rest[end + 1..].starts_with(b"HTTP/"));
        let target = &rest[..end.unwrap_or(rest.len())];
        let path = &target[authority_end(target)..];
        let shown = match path.first() {
            Some(b'/') => path,
            Some(_) | None => without_user(target),
        };
        let logged = &shown[..shown.len().min(LOGGED)];
        let target = encode(logged, |byte, _| !class::is(byte, TARGET));
        Some(RefusedLine {
            method: Method::from_bytes(method).ok()?,
            target: String::from_utf8(target).ok()?,
        })
    }
}

/// Percent-encodes the raw characters of a target or an absolute URL, for the HTTP library.
#[must_use]
pub fn encode_raw(target: &str) -> String {
    let encoded = encode(target.as_bytes(), is_raw);
    // Only ASCII characters were replaced.
    String::from_utf8(encoded).unwrap_or_else(|_| target.to_owned())
}

/// Returns the length of the scheme and the authority of an absolute target.
fn authority_end(target: &[u8]) -> usize {
    let slashes = target.windows(3).position(|three| three == b"://");
    let Some(slashes) = slashes.filter(|_| target.first() != Some(&b'/')) else {
        return 0;
    };
    let authority = slashes + 3;
    let length = target[authority..]
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    length.map_or(target.len(), |length| authority + length)
}

/// Returns a target without a path from its host on: user information (RFC 3986 §3.2.1) may be a secret.
fn without_user(target: &[u8]) -> &[u8] {
    let scheme = target.windows(3).position(|three| three == b"://");
    let query = memchr(b'?', target).unwrap_or(target.len());
    let user = memrchr(b'@', &target[..query]);
    let start = scheme.map(|at| at + 3).max(user.map(|at| at + 1));
    &target[start.unwrap_or(0)..]
}

/// The part of a target that a byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetPart {
    Path,
    Query,
}

/// Returns whether the library rejects a byte of a valid target in this part.
fn is_raw(byte: u8, part: TargetPart) -> bool {
    let is_accepted = match part {
        TargetPart::Path => class::is(byte, class::PATH) || byte == b'?',
        TargetPart::Query => class::is(byte, QUERY),
    };
    class::is(byte, RAW) && !is_accepted
}

/// Percent-encodes the bytes of a target for which `needs` holds.
fn encode(target: &[u8], needs: impl Fn(u8, TargetPart) -> bool) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = Vec::with_capacity(target.len() + 16);
    let mut part = TargetPart::Path;
    for byte in target {
        if needs(*byte, part) {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            encoded.extend_from_slice(&[b'%', HEX[high], HEX[low]]);
        } else {
            encoded.push(*byte);
        }
        if *byte == b'?' {
            part = TargetPart::Query;
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_target_is_encoded_where_the_library_refuses_it_and_restored() {
        let line = b"GET http://a:80/\"<b>`|{\xC3\xA9?\"<c>`=d? HTTP/1.1\r\n";
        let (written, target) = RawTarget::take(line).unwrap();
        let encoded = "/\"%3Cb%3E%60|{é?%22%3Cc%3E`=d?";
        let expected = format!("GET http://a:80{encoded} HTTP/1.1\r\n");
        assert_eq!(String::from_utf8(written).unwrap(), expected);
        let raw = "/\"<b>`|{é?\"<c>`=d?";
        let restored = |target_text| {
            let restored = target.restore(target_text);
            restored.map(|restored| String::from_utf8(restored).unwrap())
        };
        assert_eq!(restored(encoded).as_deref(), Some(raw));
        let elsewhere = "/rpc?%22%3Cc%3E`=d?";
        assert_eq!(restored(elsewhere).as_deref(), Some("/rpc?\"<c>`=d?"));
        assert_eq!(restored("/rpc?other"), None);
        assert_eq!(restored("/rpc"), None);
    }

    #[test]
    fn a_refused_line_is_reported_as_far_as_possible() {
        let logged = |input: &[u8]| {
            let line = RefusedLine::read(input)?;
            Some(format!("{} {}", line.method, line.target))
        };
        for (input, expected) in [
            (&b"GET /a b HTTP/1.1\r\nHost: a\r\n"[..], "GET /a%20b"),
            (b"POST /a#b?\"c HTTP/1.1\r\n", "POST /a%23b?%22c"),
            (b"GET /\xFF\x00 HTTP/1.1\n", "GET /%FF%00"),
            (b"GET http://u:p@a/x HTTP/1.1\r\n", "GET /x"),
            (b"GET /x HTTP/3.0\r\n", "GET /x"),
            (b"GET /half", "GET /half"),
            (b"GET foo HTTP/1.1\r\n", "GET foo"),
            (b"GET foo\x1B[0m bar HTTP/1.1\r\n", "GET foo%1B[0m%20bar"),
            (b"GET a:1 HTTP/1.1\r\n", "GET a:1"),
            (b"GET u:p@a:1 HTTP/1.1\r\n", "GET a:1"),
            (b"GET u:p/w@a:1?b@c HTTP/1.1\r\n", "GET a:1?b@c"),
            (b"GET http://u:p@a HTTP/1.1\r\n", "GET a"),
            (b"GET http://u:p@a?b HTTP/1.1\r\n", "GET a?b"),
            (b"GET http:/u:p@a HTTP/1.1\r\n", "GET a"),
            (b"GET  HTTP/1.1\r\n", "GET "),
        ] {
            assert_eq!(logged(input).as_deref(), Some(expected));
        }
        for input in ["\x16\x03", "", "GET", "\x16\x03 a HTTP/1.1"] {
            assert_eq!(logged(input.as_bytes()), None);
        }
        for start in ["GET /", "GET a"] {
            let long = [start.as_bytes(), &[b'a'; 9000]].concat();
            assert_eq!(logged(&long).unwrap().len(), 4 + LOGGED);
        }
    }
}
