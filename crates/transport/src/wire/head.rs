//! The parser of one request head: framing and host, line by line.
//!
//! Laws: a line is judged only by its content and the complete lines before it, never by how it arrived; an accepted
//! head has exactly one framing.
//!
//! Used by `wire`.

use super::class::{self, NAME, PATH, QUERY, RAW, TARGET, TOKEN};
use super::violation::Violation;

/// The maximum number of header lines. The HTTP library accepts 100, and one is reserved for the line that the adapter
/// adds (a `te`, or the `connection: close` of a refused head).
pub(super) const MAX_FIELDS: u8 = 99;

/// The presence of a `TE` field from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Te {
    /// The client sent it; its value stays.
    Sent,
    /// The client did not send it.
    #[default]
    Absent,
}

/// The form of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetForm {
    /// A form that the HTTP library accepts.
    Usual,
    /// A form with characters that the library accepts only percent-encoded.
    Raw,
}

/// The maximum length of a raw target: the HTTP library accepts no URI of 64 KiB.
const LONGEST_RAW: usize = 20 * 1024;

/// The framing of the body (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum MessageFraming {
    #[default]
    Empty,
    Sized(u64),
    Chunked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum HttpVersion {
    Http10,
    #[default]
    Http11,
}

/// The state after the lines so far.
#[derive(Debug, Default)]
pub(super) struct HeadParser {
    version: HttpVersion,
    has_host: bool,
    pub(super) te: Te,
    /// True if the client asks to switch protocols (RFC 9110 §7.8).
    pub(super) asks_upgrade: bool,
    pub(super) framing: MessageFraming,
    content_length: Option<u64>,
    fields: u8,
}

impl HeadParser {
    /// Parses a request line, without its end.
    pub(super) fn request_line(
        &mut self,
        line: &[u8],
        longest_target: usize,
    ) -> Result<TargetForm, Violation> {
        let (method, target, version) = split_request_line(line)?;
        self.version = version;
        if target.len() > longest_target {
            return Err(Violation::TargetTooLong);
        }
        if target.first() == Some(&b'/') {
            return path_and_query(target);
        }
        if target == b"*" && method == b"OPTIONS" {
            return Ok(TargetForm::Usual);
        }
        absolute(target)
    }

    /// Parses a header line, without its end, and returns the length of its name.
    pub(super) fn field_line(&mut self, line: &[u8]) -> Result<usize, Violation> {
        self.count_field()?;
        let (name, value) = split_field(line)?;
        self.read_field(name, value)?;
        Ok(name.len())
    }

    /// Processes a field whose line is valid.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        self.count_field()?;
        self.read_field(name, value)
    }

    fn count_field(&mut self) -> Result<(), Violation> {
        if self.fields == MAX_FIELDS {
            return Err(Violation::TooManyFields);
        }
        self.fields += 1;
        Ok(())
    }

    #[inline(always)]
    fn read_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        match name.len() {
            2 if name.eq_ignore_ascii_case(b"te") => self.te = Te::Sent,
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.read_host(class::trimmed(value))?;
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.read_upgrade(),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                self.read_content_length(class::trimmed(value))?;
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.read_transfer_encoding(class::trimmed(value))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the head, and checks that nothing is missing.
    pub(super) fn end(&self) -> Result<(), Violation> {
        if self.version == HttpVersion::Http11 && !self.has_host {
            return Err(Violation::NoHost);
        }
        Ok(())
    }

    fn read_upgrade(&mut self) {
        // RFC 9110 §7.8: ignored in an HTTP/1.0 request.
        if self.version == HttpVersion::Http11 {
            self.asks_upgrade = true;
        }
    }

    fn read_host(&mut self, value: &[u8]) -> Result<(), Violation> {
        if self.has_host {
            return Err(Violation::HostRepeated);
        }
        self.has_host = true;
        if !is_host(value) {
            return Err(Violation::Host);
        }
        // With an absolute target its value is not compared; it must still be one valid `Host` (RFC 9112 §3.2.2).
        Ok(())
    }

    fn read_content_length(&mut self, value: &[u8]) -> Result<(), Violation> {
        if self.framing == MessageFraming::Chunked {
            return Err(Violation::TwoFramings);
        }
        if self.content_length.is_some() || value.contains(&b',') {
            return Err(Violation::ContentLengthRepeated);
        }
        let length = decimal(value).ok_or(Violation::ContentLength)?;
        self.content_length = Some(length);
        if length > 0 {
            self.framing = MessageFraming::Sized(length);
        }
        Ok(())
    }

    fn read_transfer_encoding(&mut self, value: &[u8]) -> Result<(), Violation> {
        if self.version == HttpVersion::Http10 {
            return Err(Violation::TransferEncodingInHttp10);
        }
        if self.content_length.is_some() {
            return Err(Violation::TwoFramings);
        }
        if self.framing == MessageFraming::Chunked {
            return Err(Violation::TransferEncodingRepeated);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(Violation::TransferEncoding);
        }
        self.framing = MessageFraming::Chunked;
        Ok(())
    }
}

/// Splits a header or trailer line into its name, and its value with the white space around it.
pub(super) fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    let Some((name, value)) = class::token_before::<b':'>(line) else {
        return Err(field_fault(line));
    };
    if class::any_control(line) {
        return Err(field_fault(line));
    }
    Ok((name, value))
}

/// Returns the fault of a malformed header line.
#[cold]
fn field_fault(line: &[u8]) -> Violation {
    if line.contains(&b'\r') {
        return Violation::BareCr;
    }
    if let Some(b' ' | b'\t') = line.first() {
        return Violation::ObsFold;
    }
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return Violation::NoColon;
    };
    match &line[..colon] {
        [] => Violation::FieldName,
        [.., b' ' | b'\t'] => Violation::SpaceBeforeColon,
        name if class::all(name, TOKEN) => Violation::FieldValue,
        _ => Violation::FieldName,
    }
}

fn split_request_line(line: &[u8]) -> Result<(&[u8], &[u8], HttpVersion), Violation> {
    let Some((method, rest)) = class::token_before::<b' '>(line) else {
        return Err(method_fault(line));
    };
    let (target, version) = if let Some(target) = rest.strip_suffix(b" HTTP/1.1") {
        (target, HttpVersion::Http11)
    } else if let Some(target) = rest.strip_suffix(b" HTTP/1.0") {
        (target, HttpVersion::Http10)
    } else {
        return Err(version_fault(line));
    };
    if target.is_empty() {
        return Err(Violation::RequestLine);
    }
    if method == b"CONNECT" {
        return Err(Violation::Connect);
    }
    Ok((method, target, version))
}

#[cold]
fn method_fault(line: &[u8]) -> Violation {
    if line.contains(&b'\r') {
        Violation::BareCr
    } else if class::all(line, TOKEN) {
        Violation::RequestLine
    } else {
        Violation::Method
    }
}

#[cold]
fn version_fault(line: &[u8]) -> Violation {
    if line.contains(&b'\r') {
        return Violation::BareCr;
    }
    if line == b"PRI * HTTP/2.0" {
        return Violation::Http2Preface;
    }
    match line.iter().rposition(|byte| *byte == b' ') {
        Some(space) if line[space + 1..].starts_with(b"HTTP/") => Violation::Version,
        Some(_) | None => Violation::RequestLine,
    }
}

pub(super) fn path_and_query(target: &[u8]) -> Result<TargetForm, Violation> {
    if class::all(target, TARGET) {
        return Ok(TargetForm::Usual);
    }
    let question = target.iter().position(|byte| *byte == b'?');
    let (path, query) = target.split_at(question.unwrap_or(target.len()));
    let text = std::str::from_utf8(target).is_ok();
    if text && class::all(path, PATH) && class::all(query, QUERY) {
        return Ok(TargetForm::Usual);
    }
    if !text || !class::all(path, PATH | RAW) || !class::all(query, QUERY | RAW) {
        return Err(target_fault(target));
    }
    // Percent-encoding may triple each character.
    match target.len() < LONGEST_RAW {
        true => Ok(TargetForm::Raw),
        false => Err(Violation::TargetTooLong),
    }
}

#[cold]
fn target_fault(target: &[u8]) -> Violation {
    if target.contains(&b'\r') {
        Violation::BareCr
    } else if target.contains(&b' ') {
        Violation::RequestLine
    } else if target.contains(&b'#') {
        Violation::Fragment
    } else {
        Violation::Target
    }
}

/// Checks an `http` or `https` URL.
fn absolute(target: &[u8]) -> Result<TargetForm, Violation> {
    let colon = target.iter().position(|byte| *byte == b':').unwrap_or(0);
    let (scheme, rest) = target.split_at(colon);
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(target_fault(target));
    }
    let Some(rest) = rest.strip_prefix(b"://") else {
        return Err(target_fault(target));
    };
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
    if authority.is_empty() || !is_host(authority) {
        return Err(target_fault(target));
    }
    path_and_query(path)
}

/// Returns whether a value is `uri-host [":" port]` (RFC 9110 §7.2); empty is allowed, as for a target without
/// authority.
pub(super) fn is_host(value: &[u8]) -> bool {
    let (host_ok, port) = if let Some(literal) = value.strip_prefix(b"[") {
        let Some(end) = literal.iter().position(|byte| *byte == b']') else {
            return false;
        };
        (is_ipv6(&literal[..end]), &literal[end + 1..])
    } else {
        let end = value.iter().position(|byte| !class::is(*byte, NAME));
        let (name, port) = value.split_at(end.unwrap_or(value.len()));
        (!name.is_empty() || port.is_empty(), port)
    };
    host_ok
        && match port {
            [] => true,
            [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        }
}

/// Returns whether a text is an IPv6 address, the only kind of IP literal in use (RFC 3986 §3.2.2).
fn is_ipv6(inside: &[u8]) -> bool {
    let text = std::str::from_utf8(inside);
    text.is_ok_and(|text| text.parse::<core::net::Ipv6Addr>().is_ok())
}

/// Parses a number of digits only, up to 2^63 - 1, so that no signed counter in later software overflows.
pub(super) fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let number = value.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    (number <= i64::MAX as u64).then_some(number)
}
