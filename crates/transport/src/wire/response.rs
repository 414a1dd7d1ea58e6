//! Response heads and their framing: interim responses, folded fields, and `Content-Length` together with
//! `Transfer-Encoding`.
//!
//! [`is_ready`] inspects bytes before an HTTP parser reads them, [`unfold`] changes them, and [`settle_response`]
//! checks the parsed fields. Laws: an ordinary response is not changed; a change never moves a byte.
//!
//! Used by `wire::interim` and `wire::response_case`.

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use memchr::{memchr, memchr_iter};
use wide::u8x32;

use super::class::trimmed;
use super::head::decimal;
use dualgauge_patterns::simd::first_bits;

/// The beginning of every accepted response.
const PROTOCOL: &[u8] = b"HTTP/1.";

/// Returns whether a parser can read these bytes, the first of a response, unchanged. That holds if they contain a
/// whole head that is not interim and has no folded fields, or are not a response at all.
#[must_use]
pub fn is_ready(bytes: &[u8]) -> bool {
    if !bytes.starts_with(PROTOCOL) {
        return !PROTOCOL.starts_with(bytes);
    }
    if is_interim(bytes) {
        return false;
    }
    // Carries the end of one block to the first byte of the next.
    let (mut behind_end, mut behind_cr) = (0, 0);
    for block in (0..bytes.len()).step_by(64) {
        let block = &bytes[block..];
        let ends = first_bits(block, |bytes| bytes.simd_eq(b'\n'));
        let starts = ends << 1 | behind_end;
        behind_end = ends >> 63;
        if starts == 0 && behind_cr == 0 {
            continue;
        }
        let returns = first_bits(block, |bytes| bytes.simd_eq(b'\r')) & starts;
        let folds = first_bits(block, is_space) & starts;
        let empty = ends & (starts | returns << 1 | behind_cr);
        behind_cr = returns >> 63;
        if empty != 0 {
            let before = empty.wrapping_sub(1) & !empty;
            return folds & before == 0;
        }
        if folds != 0 {
            return false;
        }
    }
    false
}

fn is_space(bytes: u8x32) -> u8x32 {
    bytes.simd_eq(b' ') | bytes.simd_eq(b'\t')
}

/// The first head of a received response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseHead {
    /// The head is incomplete.
    Part,
    /// An interim head (RFC 9110 §15.2) of this many bytes; another head follows.
    Interim(usize),
    /// The final head, of this many bytes.
    Final(usize),
    /// Not a head: a parser rejects it.
    Other,
}

/// Classifies the first head of these bytes.
#[must_use]
pub fn leading(bytes: &[u8]) -> ResponseHead {
    if !bytes.starts_with(PROTOCOL) {
        return match PROTOCOL.starts_with(bytes) {
            true => ResponseHead::Part,
            false => ResponseHead::Other,
        };
    }
    let mut start = 0;
    for end in memchr_iter(b'\n', bytes) {
        if matches!(&bytes[start..end], [] | [b'\r']) {
            return match is_interim(bytes) {
                true => ResponseHead::Interim(end + 1),
                false => ResponseHead::Final(end + 1),
            };
        }
        start = end + 1;
    }
    ResponseHead::Part
}

/// Returns whether another head follows one that begins so; 101 is the last one of its protocol.
pub(super) fn is_interim(line: &[u8]) -> bool {
    let status = line.get(9..).unwrap_or_default();
    status.starts_with(b"1") && !status.starts_with(b"101")
}

/// Replaces each fold of a head, with its white space, by spaces (RFC 9112 §5.2). White space after the first line
/// stays: it belongs to no field.
pub fn unfold(head: &mut [u8]) {
    let Some(mut end) = memchr(b'\n', head) else {
        return;
    };
    while let Some(length) = memchr(b'\n', &head[end + 1..]) {
        end += 1 + length;
        if let Some(b' ' | b'\t') = head.get(end + 1) {
            head[end] = b' ';
            if head[end - 1] == b'\r' {
                head[end - 1] = b' ';
            }
            let (before, behind) = head.split_at_mut(end);
            let is_blank = |byte: &&mut u8| matches!(**byte, b' ' | b'\t');
            let blanks = before.iter_mut().rev().take_while(is_blank);
            blanks
                .chain(behind.iter_mut().take_while(is_blank))
                .for_each(|byte| *byte = b' ');
        }
    }
}

/// The clarity of a response's framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// One framing.
    Clear,
    /// `Transfer-Encoding` together with a `Content-Length`, which was removed (RFC 9112 §6.3): the connection must be
    /// closed.
    Conflicting,
}

/// The reason why the end or the coding of a response body is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFraming {
    /// `Content-Length` is not a number, or has more than one value.
    #[error("its Content-Length is `{0}`, but must be one number up to 2^63 - 1")]
    Length(String),
    /// A `Transfer-Encoding` that the proxy does not decode. It is hop-by-hop, so no later recipient could decode it.
    #[error("its Transfer-Encoding is `{0}`, but only `chunked` is supported")]
    Coding(String),
}

/// Keeps one `Content-Length`, or none together with a `Transfer-Encoding`.
///
/// # Errors
/// [`InvalidFraming`] if the length is not a number or has two values (RFC 9110 §8.6), or if the body has a transfer
/// coding other than `chunked`.
pub fn settle_response(headers: &mut HeaderMap) -> Result<BodyEnd, InvalidFraming> {
    let (mut lengths, mut codings) = (0, 0);
    for name in headers.keys() {
        lengths += usize::from(*name == CONTENT_LENGTH);
        codings += usize::from(*name == TRANSFER_ENCODING);
    }
    if codings > 0 && !is_plain(headers) {
        return Err(InvalidFraming::Coding(listed(headers, &TRANSFER_ENCODING)));
    }
    if lengths == 0 {
        return Ok(BodyEnd::Clear);
    }
    if codings > 0 {
        headers.remove(CONTENT_LENGTH);
        return Ok(BodyEnd::Conflicting);
    }
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    if let (Some(first), None) = (values.next(), values.next())
        && decimal(first.as_bytes()).is_some()
    {
        return Ok(BodyEnd::Clear);
    }
    let one = one_length(headers)
        .ok_or_else(|| InvalidFraming::Length(listed(headers, &CONTENT_LENGTH)))?;
    headers.insert(CONTENT_LENGTH, one);
    Ok(BodyEnd::Clear)
}

/// Returns whether the body is only chunked, or in no coding (`identity` of RFC 2616). With another coding inside, the
/// chunks would not contain the content.
fn is_plain(headers: &HeaderMap) -> bool {
    let all_are = |coding: &[u8]| {
        let values = headers.get_all(TRANSFER_ENCODING).iter();
        let mut members = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        members.all(|member| trimmed(member).eq_ignore_ascii_case(coding))
    };
    all_are(b"chunked") || all_are(b"identity")
}

/// Returns the values of a field as one list, for an error.
fn listed(headers: &HeaderMap, name: &HeaderName) -> String {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    values.join(", ").chars().take(100).collect()
}

/// Returns the length that all list members agree on.
fn one_length(headers: &HeaderMap) -> Option<HeaderValue> {
    let values = headers.get_all(CONTENT_LENGTH).iter();
    let members = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut lengths = members.map(|member| decimal(trimmed(member)));
    let first = lengths.next()??;
    let are_equal = lengths.all(|length| length == Some(first));
    are_equal.then(|| HeaderValue::from(first))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a look at each line says.
    fn step_by_step(bytes: &[u8]) -> bool {
        let ResponseHead::Final(size) = leading(bytes) else {
            return leading(bytes) == ResponseHead::Other;
        };
        let lines = bytes[..size].split(|byte| *byte == b'\n');
        !lines.skip(1).any(|line| matches!(line, [b' ' | b'\t', ..]))
    }

    proptest! {
        #[test]
        fn readiness_of_a_response_agrees_with_a_check_of_each_line(
            status in prop::sample::select(&["200 OK", "103 Early Hints", "101 Switching Protocols", "20"][..]),
            lines in prop::collection::vec((prop::sample::select(&["", "", "", " ", "\t"][..]), "[ -~]{0,70}", prop::sample::select(&["\r\n", "\n"][..])), 0..6),
            end in prop::sample::select(&["\r\n", "\n", "", "\r"][..]),
            body in "[\r\n a]{0,20}",
            size in any::<prop::sample::Index>(),
        ) {
            let lines: String = lines.iter().map(|(start, line, end)| format!("{start}{line}{end}")).collect();
            let whole = format!("HTTP/1.1 {status}\r\n{lines}{end}{body}");
            prop_assert_eq!(is_ready(whole.as_bytes()), step_by_step(whole.as_bytes()), "{:?}", whole);
            let part = &whole.as_bytes()[..size.index(whole.len())];
            prop_assert_eq!(is_ready(part), step_by_step(part), "{:?}", part);
        }
    }

    #[test]
    fn a_folded_field_becomes_one_line_of_the_same_size() {
        let mut head = *b"HTTP/1.1 200 OK\r\nA: 1,\r\n\t2,\n 3\r\nB: 4\r\n \r\nC:\t\r\n\t5\r\n\r\n";
        unfold(&mut head);
        let expected = b"HTTP/1.1 200 OK\r\nA: 1,   2,  3\r\nB: 4   \r\nC:    5\r\n\r\n";
        assert_eq!(
            String::from_utf8_lossy(&head),
            String::from_utf8_lossy(expected)
        );
        let mut odd = *b"HTTP/1.1 200 OK\r\n A: 1\r\n\r\n";
        unfold(&mut odd);
        assert_eq!(&odd, b"HTTP/1.1 200 OK\r\n A: 1\r\n\r\n");
    }

    #[test]
    fn a_length_is_one_number() {
        let settled = |lengths: &[&'static str], coding: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            for length in lengths {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static(length));
            }
            if let Some(coding) = coding {
                headers.insert(TRANSFER_ENCODING, HeaderValue::from_static(coding));
            }
            let ending = settle_response(&mut headers).map_err(|error| match error {
                InvalidFraming::Length(listed) | InvalidFraming::Coding(listed) => listed,
            })?;
            let values = headers.get_all(CONTENT_LENGTH).iter();
            let values = values.map(|value| value.to_str().unwrap().to_owned());
            Ok((ending, values.collect::<Vec<_>>().join("|")))
        };
        let clear = |length: &str| Ok((BodyEnd::Clear, length.to_owned()));
        assert_eq!(settled(&[], None), clear(""));
        assert_eq!(settled(&[], Some("chunked")), clear(""));
        assert_eq!(settled(&["5"], None), clear("5"));
        assert_eq!(settled(&["5", "5"], None), clear("5"));
        assert_eq!(settled(&["5, 5", "5"], None), clear("5"));
        for coding in ["chunked", "identity"] {
            for length in ["5", "+5", "5, 6"] {
                let expected = Ok((BodyEnd::Conflicting, String::new()));
                assert_eq!(settled(&[length], Some(coding)), expected);
            }
        }
        for coding in ["gzip, chunked", "chunked, identity", "xchunked", "chunked,"] {
            assert_eq!(settled(&[], Some(coding)), Err(coding.to_owned()));
            assert_eq!(settled(&["5"], Some(coding)), Err(coding.to_owned()));
        }
        assert_eq!(settled(&[], Some("Chunked, chunked")), clear(""));
        let bad: [&[&str]; 7] = [
            &["+5"],
            &["-1"],
            &[""],
            &["5, 6"],
            &["5", "6"],
            &["5,"],
            &["9223372036854775808"],
        ];
        for lengths in bad {
            assert_eq!(settled(lengths, None), Err(lengths.join(", ")));
        }
    }
}
