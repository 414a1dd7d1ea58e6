//! Decoder of the PROXY protocol, versions 1 and 2: the header that a load balancer sends before the first request.
//!
//! Sans-io: a [`ProxyHeaderDecoder`] asks for the bytes that certainly belong to the header until it is complete, so
//! that its caller never reads a byte that follows. Laws: it asks for at most [`MOST`] bytes in all; the result does
//! not depend on how the bytes arrived; it never asks for a byte after the end of the header.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The maximum length of a version 1 line, with its end (§2.1).
const LINE: usize = 107;
/// The shortest line of version 1: `PROXY UNKNOWN` and its end.
const SHORTEST: usize = 15;
/// The signature of version 2 (§2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, the version and command, the family, and the length of the rest.
const FIXED: usize = 16;
/// Maximum length of the rest of version 2: addresses take 36 bytes, additional fields a few hundred.
const REST: usize = 2048;

/// The maximum number of bytes that the decoder asks for.
pub const MOST: usize = FIXED + REST;

/// The use of the PROXY protocol on the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocolUse {
    /// Disabled: such a header is invalid HTTP.
    Off,
    /// Each connection comes from a trusted hop and begins with the header.
    Required,
}

/// The source of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocolSource {
    /// The peer: the balancer itself connects (`LOCAL`), or does not name the client.
    Peer,
    /// A client of the balancer.
    Client(IpAddr),
}

/// The reason why a header is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyProtocolError {
    /// The bytes begin neither version.
    #[error("it does not begin with a PROXY header")]
    NoHeader,
    /// The line of version 1 has no end within its length.
    #[error("its PROXY line is longer than {LINE} bytes")]
    LongLine,
    /// A malformed version 1 line.
    #[error("its PROXY line has no valid addresses")]
    Line,
    /// An unknown version or command.
    #[error("its PROXY header has an unknown version or command")]
    Version,
    /// The additional fields are too long.
    #[error("its PROXY header is longer than {MOST} bytes")]
    Long,
    /// The header is too short for its addresses.
    #[error("its PROXY header is too short for its addresses")]
    Short,
}

/// The next step of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeaderStep {
    /// At least this many more bytes belong to the header; at least one.
    Wants(usize),
    /// The header is complete.
    Over(ProxyProtocolSource),
}

/// A decoder of one header, with the bytes so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyHeaderDecoder {
    received: Vec<u8>,
}

impl ProxyHeaderDecoder {
    /// Takes some or all of the bytes that were asked for, and returns the next step. The first call passes none.
    ///
    /// # Errors
    /// [`ProxyProtocolError`] as soon as the header is known to be invalid.
    ///
    /// ```
    /// use dualgauge_transport::proxy_protocol::{ProxyHeaderDecoder, ProxyHeaderStep, ProxyProtocolSource};
    /// let mut decoder = ProxyHeaderDecoder::default();
    /// assert_eq!(decoder.take(b""), Ok(ProxyHeaderStep::Wants(15)));
    /// let end = ProxyHeaderStep::Over(ProxyProtocolSource::Peer);
    /// assert_eq!(decoder.take(b"PROXY UNKNOWN\r\n"), Ok(end));
    /// ```
    pub fn take(&mut self, more: &[u8]) -> Result<ProxyHeaderStep, ProxyProtocolError> {
        self.received.extend_from_slice(more);
        let received = &self.received[..];
        let begun = received.len().min(SIGNATURE.len());
        if received[..begun] == SIGNATURE[..begun] && !received.is_empty() {
            return second(received);
        }
        let begun = received.len().min(b"PROXY ".len());
        if received[..begun] != b"PROXY "[..begun] {
            return Err(ProxyProtocolError::NoHeader);
        }
        first(received)
    }
}

/// Decodes version 1: a line of text.
fn first(received: &[u8]) -> Result<ProxyHeaderStep, ProxyProtocolError> {
    if received.len() < SHORTEST {
        return Ok(ProxyHeaderStep::Wants(SHORTEST - received.len()));
    }
    if let Some(line) = received.strip_suffix(b"\r\n") {
        return read_line(line).map(ProxyHeaderStep::Over);
    }
    // The line ends in two bytes, of which one may have arrived; no other CR or LF is allowed.
    let (before, wanted) = match received {
        [before @ .., b'\r'] => (before, 1),
        before => (before, 2),
    };
    if before.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return Err(ProxyProtocolError::Line);
    }
    if received.len() + wanted > LINE {
        return Err(ProxyProtocolError::LongLine);
    }
    Ok(ProxyHeaderStep::Wants(wanted))
}

fn read_line(line: &[u8]) -> Result<ProxyProtocolSource, ProxyProtocolError> {
    let line = core::str::from_utf8(line).map_err(|_| ProxyProtocolError::Line)?;
    let mut words = line.split(' ').skip(1);
    let family = words.next();
    // The rest of an `UNKNOWN` line is ignored (§2.1).
    if family == Some("UNKNOWN") {
        return Ok(ProxyProtocolSource::Peer);
    }
    let (source, target) = (words.next(), words.next());
    let ports = [words.next(), words.next()];
    if words.next().is_some() || !ports.into_iter().all(is_port) {
        return Err(ProxyProtocolError::Line);
    }
    let read = |text: Option<&str>| {
        let text = text?;
        match family? {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    match (read(source), read(target)) {
        (Some(source), Some(_)) => Ok(ProxyProtocolSource::Client(source.to_canonical())),
        (Some(_) | None, _) => Err(ProxyProtocolError::Line),
    }
}

/// Returns whether a text is a decimal number up to 65535 without leading zeros.
fn is_port(text: Option<&str>) -> bool {
    text.is_some_and(|text| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits && text.parse::<u16>().is_ok() && (text == "0" || !text.starts_with('0'))
    })
}

/// Decodes version 2: bytes.
fn second(received: &[u8]) -> Result<ProxyHeaderStep, ProxyProtocolError> {
    let Some((fixed, rest)) = received.split_first_chunk::<FIXED>() else {
        return Ok(ProxyHeaderStep::Wants(FIXED - received.len()));
    };
    let [.., command, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if command >> 4 != 2 || command & 0xf > 1 {
        return Err(ProxyProtocolError::Version);
    }
    if length > REST {
        return Err(ProxyProtocolError::Long);
    }
    if rest.len() < length {
        return Ok(ProxyHeaderStep::Wants(length - rest.len()));
    }
    if command & 0xf == 0 {
        return Ok(ProxyHeaderStep::Over(ProxyProtocolSource::Peer));
    }
    // A stream over IPv4 or IPv6; other families are skipped without a source (§2.2).
    let source = match family {
        0x11 => {
            let addresses = rest.first_chunk::<12>().ok_or(ProxyProtocolError::Short)?;
            let [a, b, c, d, ..] = *addresses;
            ProxyProtocolSource::Client(Ipv4Addr::new(a, b, c, d).into())
        }
        0x21 => {
            rest.first_chunk::<36>().ok_or(ProxyProtocolError::Short)?;
            let source = rest.first_chunk::<16>().ok_or(ProxyProtocolError::Short)?;
            ProxyProtocolSource::Client(IpAddr::from(*source).to_canonical())
        }
        _ => ProxyProtocolSource::Peer,
    };
    Ok(ProxyHeaderStep::Over(source))
}

/// Checks that the result for any bytes is independent of their partition, and that nothing after the header is read.
/// For fuzzing.
///
/// # Panics
/// If a check fails.
pub fn check_any_cut(bytes: &[u8]) {
    let whole = read(bytes, usize::MAX);
    for piece in [1, 2, 7] {
        let pieces = read(bytes, piece);
        match (&whole, &pieces) {
            // An error may be found before all requested bytes have arrived.
            (Some((Err(_), at)), Some((Err(_), sooner))) => assert!(sooner <= at),
            (None, Some((Err(_), _))) => {}
            (_, _) => assert_eq!(whole, pieces),
        }
    }
    if let Some((Ok(source), length)) = whole {
        assert!(length <= MOST, "the decoder asked for too many bytes");
        assert_eq!(
            read(&bytes[..length], usize::MAX),
            Some((Ok(source), length))
        );
        assert_eq!(read(&bytes[..length - 1], usize::MAX), None);
    }
}

/// Decodes a header in chunks of at most `piece` bytes. Returns the result and the number of bytes taken; `None` if
/// there are too few.
fn read(
    bytes: &[u8],
    piece: usize,
) -> Option<(Result<ProxyProtocolSource, ProxyProtocolError>, usize)> {
    let (mut preface, mut at) = (ProxyHeaderDecoder::default(), 0);
    let mut next = preface.take(b"");
    loop {
        match next {
            Err(fault) => return Some((Err(fault), at)),
            Ok(ProxyHeaderStep::Over(source)) => return Some((Ok(source), at)),
            Ok(ProxyHeaderStep::Wants(wanted)) => {
                let more = bytes.get(at..)?;
                let more = &more[..wanted.min(piece.max(1)).min(more.len())];
                if more.is_empty() {
                    return None;
                }
                at += more.len();
                next = preface.take(more);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A header of version 2.
    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    fn found(bytes: &[u8]) -> Result<ProxyProtocolSource, ProxyProtocolError> {
        read(bytes, usize::MAX).unwrap().0
    }

    fn client(text: &str) -> Result<ProxyProtocolSource, ProxyProtocolError> {
        Ok(ProxyProtocolSource::Client(text.parse().unwrap()))
    }

    #[test]
    fn text_headers_name_the_client() {
        for (line, wanted) in [
            (
                "PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n",
                client("192.0.2.7"),
            ),
            (
                "PROXY TCP6 2001:db8::7 ::1 0 65535\r\n",
                client("2001:db8::7"),
            ),
            (
                "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n",
                client("192.0.2.7"),
            ),
            ("PROXY UNKNOWN\r\n", Ok(ProxyProtocolSource::Peer)),
            (
                "PROXY UNKNOWN whatever it is\r\n",
                Ok(ProxyProtocolSource::Peer),
            ),
            (
                "PROXY TCP4 192.0.2.7 10.0.0.1 56324 65536\r\n",
                Err(ProxyProtocolError::Line),
            ),
            (
                "PROXY TCP4 192.0.2.7 10.0.0.1 056 443\r\n",
                Err(ProxyProtocolError::Line),
            ),
            (
                "PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
                Err(ProxyProtocolError::Line),
            ),
            (
                "PROXY TCP4 192.0.2.7 10.0.0.1 1 2 3\r\n",
                Err(ProxyProtocolError::Line),
            ),
            (
                "PROXY TCP4 192.0.2.7  10.0.0.1 1 2\r\n",
                Err(ProxyProtocolError::Line),
            ),
            (
                "PROXY TCP4\n192.0.2.7 10.0.0.1 1 2\r\n",
                Err(ProxyProtocolError::Line),
            ),
            (
                "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n",
                Err(ProxyProtocolError::Line),
            ),
            ("GET / HTTP/1.1\r\n\r\n", Err(ProxyProtocolError::NoHeader)),
            (
                "\r\n\r\n\0\r\nQUIX\n0000",
                Err(ProxyProtocolError::NoHeader),
            ),
        ] {
            assert_eq!(found(line.as_bytes()), wanted, "{line:?}");
        }
        let endless = format!("PROXY UNKNOWN {}", "x".repeat(200));
        assert_eq!(
            read(endless.as_bytes(), 1),
            Some((Err(ProxyProtocolError::LongLine), 106))
        );
    }

    #[test]
    fn binary_headers_name_the_client() {
        let four = [192, 0, 2, 7, 10, 0, 0, 1, 1, 1, 2, 2];
        let mut six = [0; 36];
        six[..16].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        for (header, wanted) in [
            (binary(0x21, 0x11, &four), client("192.0.2.7")),
            (
                binary(0x21, 0x11, &[&four[..], b"\x04\0\x01x"].concat()),
                client("192.0.2.7"),
            ),
            (binary(0x21, 0x21, &six), client("2001:db8::7")),
            (binary(0x20, 0x11, &four), Ok(ProxyProtocolSource::Peer)),
            (binary(0x20, 0, &[]), Ok(ProxyProtocolSource::Peer)),
            (binary(0x21, 0x00, &[]), Ok(ProxyProtocolSource::Peer)),
            (binary(0x21, 0x31, &[0; 216]), Ok(ProxyProtocolSource::Peer)),
            (binary(0x21, 0x12, &four), Ok(ProxyProtocolSource::Peer)),
            (
                binary(0x21, 0x11, &four[1..]),
                Err(ProxyProtocolError::Short),
            ),
            (
                binary(0x21, 0x21, &six[1..]),
                Err(ProxyProtocolError::Short),
            ),
            (binary(0x22, 0x11, &four), Err(ProxyProtocolError::Version)),
            (binary(0x11, 0x11, &four), Err(ProxyProtocolError::Version)),
            (
                binary(0x21, 0x11, &[0; REST + 1]),
                Err(ProxyProtocolError::Long),
            ),
        ] {
            assert_eq!(found(&header), wanted, "{header:?}");
        }
    }

    /// Headers and near misses.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let line = "PROXY (TCP4|TCP6|UNKNOWN|X)( [0-9.:a-f]{1,30}){0,3}( [0-9]{1,6}){0,3}(\r\n|\r|\n)?.{0,9}";
        let rest = proptest::collection::vec(any::<u8>(), 0..60);
        let header = (any::<u8>(), any::<u8>(), rest.clone());
        prop_oneof![
            line.prop_map(String::into_bytes),
            header.prop_map(|(command, family, rest)| binary(0x20 | command & 3, family, &rest)),
            (prop_oneof![Just(0x11), Just(0x21)], rest.clone())
                .prop_map(|(family, rest)| binary(0x21, family, &rest)),
            rest,
        ]
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_the_chunks(bytes in any_bytes()) {
            check_any_cut(&bytes);
        }

        #[test]
        fn no_byte_after_the_header_is_read(bytes in any_bytes(), after in any_bytes()) {
            if let Some((Ok(source), length)) = read(&bytes, usize::MAX) {
                let longer = [&bytes[..length], &after[..]].concat();
                prop_assert_eq!(read(&longer, usize::MAX), Some((Ok(source), length)));
            }
        }
    }
}
