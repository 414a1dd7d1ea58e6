//! What a balancer says of a connection before its first byte: the PROXY protocol, versions 1 and 2.
//!
//! Sans-io: a [`ProxyHeaderDecoder`] says how many bytes certainly belong to it, is given them, and says so again until it is over,
//! so that whoever reads never takes a byte of what follows. Laws: it asks for [`MOST`] bytes at most in all; what it
//! finds does not depend on how the bytes came; it never asks for a byte beyond the end of the header.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A line of version 1 is no longer, with its end (§2.1).
const LINE: usize = 107;
/// The shortest line of version 1: `PROXY UNKNOWN` and its end.
const SHORTEST: usize = 15;
/// What version 2 begins with (§2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, the version and command, the family, and the length of the rest.
const FIXED: usize = 16;
/// How long the rest of version 2 may be: addresses take 36 bytes, what is said beside them a few hundred.
const REST: usize = 2048;

/// The most bytes that are ever asked for.
pub const MOST: usize = FIXED + REST;

/// Whether the PROXY protocol is spoken on the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocolUse {
    /// It is not: its bytes are no HTTP.
    Off,
    /// Each connection comes from a trusted hop and begins with it.
    Required,
}

/// Whom a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocolSource {
    /// Whoever has opened it: the balancer itself asks (`LOCAL`), or says nothing of the client.
    Peer,
    /// A client behind the balancer.
    Client(IpAddr),
}

/// Why a connection is none of a balancer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyProtocolError {
    /// Neither version begins like that.
    #[error("it does not begin with a PROXY header")]
    NoHeader,
    /// The line of version 1 has no end within its length.
    #[error("its PROXY line is longer than {LINE} bytes")]
    LongLine,
    /// The line of version 1 is not what it should be.
    #[error("its PROXY line says no addresses")]
    Line,
    /// A version or a command that is not known.
    #[error("its PROXY header has a version or a command that is not known")]
    Version,
    /// More beside the addresses than is read.
    #[error("its PROXY header is longer than {MOST} bytes")]
    Long,
    /// Too short for the addresses that it promises.
    #[error("its PROXY header is too short for its addresses")]
    Short,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeaderStep {
    /// So many more bytes belong to the header, one at least.
    Wants(usize),
    /// It is over.
    Over(ProxyProtocolSource),
}

/// The beginning of a connection, as far as it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyHeaderDecoder {
    came: Vec<u8>,
}

impl ProxyHeaderDecoder {
    /// Takes the bytes that were asked for, or some of them, and says what comes next. Nothing came at first.
    ///
    /// # Errors
    /// [`ProxyProtocolError`] as soon as it is none.
    ///
    /// ```
    /// use dualgauge::domain::preface::{Next, Preface, Source};
    /// let mut preface = Preface::default();
    /// assert_eq!(preface.take(b""), Ok(Next::Wants(15)));
    /// assert_eq!(preface.take(b"PROXY UNKNOWN\r\n"), Ok(Next::Over(Source::Peer)));
    /// ```
    pub fn take(&mut self, more: &[u8]) -> Result<ProxyHeaderStep, ProxyProtocolError> {
        self.came.extend_from_slice(more);
        let came = &self.came[..];
        let begun = came.len().min(SIGNATURE.len());
        if came[..begun] == SIGNATURE[..begun] && !came.is_empty() {
            return second(came);
        }
        let begun = came.len().min(b"PROXY ".len());
        if came[..begun] != b"PROXY "[..begun] {
            return Err(ProxyProtocolError::NoHeader);
        }
        first(came)
    }
}

/// Version 1: a line of text.
fn first(came: &[u8]) -> Result<ProxyHeaderStep, ProxyProtocolError> {
    if came.len() < SHORTEST {
        return Ok(ProxyHeaderStep::Wants(SHORTEST - came.len()));
    }
    if let Some(line) = came.strip_suffix(b"\r\n") {
        return read_line(line).map(ProxyHeaderStep::Over);
    }
    // The end of the line is two bytes, or what is left of them; a line has no other CR or LF.
    let (before, wanted) = match came {
        [before @ .., b'\r'] => (before, 1),
        before => (before, 2),
    };
    if before.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return Err(ProxyProtocolError::Line);
    }
    if came.len() + wanted > LINE {
        return Err(ProxyProtocolError::LongLine);
    }
    Ok(ProxyHeaderStep::Wants(wanted))
}

fn read_line(line: &[u8]) -> Result<ProxyProtocolSource, ProxyProtocolError> {
    let line = core::str::from_utf8(line).map_err(|_| ProxyProtocolError::Line)?;
    let mut words = line.split(' ').skip(1);
    let family = words.next();
    // What follows `UNKNOWN` is not looked at (§2.1).
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

/// A decimal number up to 65535, without zeros before it.
fn is_port(text: Option<&str>) -> bool {
    text.is_some_and(|text| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits && text.parse::<u16>().is_ok() && (text == "0" || !text.starts_with('0'))
    })
}

/// Version 2: bytes.
fn second(came: &[u8]) -> Result<ProxyHeaderStep, ProxyProtocolError> {
    let Some((fixed, rest)) = came.split_first_chunk::<FIXED>() else {
        return Ok(ProxyHeaderStep::Wants(FIXED - came.len()));
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
    // A stream over IPv4 or IPv6; of others nothing is known, and what they say is skipped (§2.2).
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

/// Checks on any bytes that what is found depends on no cut, and that nothing behind a header is taken: for fuzzing.
///
/// # Panics
/// Where it is not so.
pub fn check_any_cut(bytes: &[u8]) {
    let whole = read(bytes, usize::MAX);
    for piece in [1, 2, 7] {
        let pieces = read(bytes, piece);
        match (&whole, &pieces) {
            // A fault may be seen before all that was asked for has come.
            (Some((Err(_), at)), Some((Err(_), sooner))) => assert!(sooner <= at),
            (None, Some((Err(_), _))) => {}
            (_, _) => assert_eq!(whole, pieces),
        }
    }
    if let Some((Ok(source), taken)) = whole {
        assert!(taken <= MOST, "more was asked for than is read");
        assert_eq!(read(&bytes[..taken], usize::MAX), Some((Ok(source), taken)));
        assert_eq!(read(&bytes[..taken - 1], usize::MAX), None);
    }
}

/// Reads a preface from bytes, in pieces of `piece` at most: what it finds and how many bytes it took; nothing where
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
    fn lines_say_who_calls() {
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
    fn bytes_say_who_calls() {
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

    /// Headers, and what is almost one.
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
        fn what_is_found_does_not_depend_on_the_pieces(bytes in any_bytes()) {
            check_any_cut(&bytes);
        }

        #[test]
        fn nothing_behind_the_header_is_taken(bytes in any_bytes(), behind in any_bytes()) {
            if let Some((Ok(source), taken)) = read(&bytes, usize::MAX) {
                let longer = [&bytes[..taken], &behind[..]].concat();
                prop_assert_eq!(read(&longer, usize::MAX), Some((Ok(source), taken)));
            }
        }
    }
}
