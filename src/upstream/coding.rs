//! Content codings of request bodies that are read whole (RFC 9110 §8.4): gzip and br, within the limit of
//! the body, so that a small body cannot become a large one unseen.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use crate::domain::failure::{Failure, Reason};

/// How a body is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Brotli,
}

/// How much of a coded body is looked at in one step.
const STEP: usize = 4096;

impl Coding {
    /// The coding of a name; `None` for one that is not read, and for several.
    pub(super) fn parse(name: &str) -> Option<Coding> {
        match name.trim().to_ascii_lowercase().as_str() {
            "identity" | "" => Some(Coding::Identity),
            "gzip" | "x-gzip" => Some(Coding::Gzip),
            "br" => Some(Coding::Brotli),
            _ => None,
        }
    }

    /// The body as it was before it was coded.
    pub(super) fn decode(self, body: Bytes, limit: usize) -> Result<Bytes, Failure> {
        let decoded = match self {
            Coding::Identity => return Ok(body),
            Coding::Gzip => read(MultiGzDecoder::new(&body[..]), limit),
            Coding::Brotli => read(Decompressor::new(&body[..], STEP), limit),
        };
        let decoded = decoded.map_err(|error| {
            let message = format!("the body is not what its content coding says: {error}");
            Failure::new(Reason::MalformedBody, message)
        })?;
        if decoded.len() > limit {
            return Err(Failure::new(
                Reason::BodyTooLarge,
                format!("the decoded body is longer than {limit} bytes"),
            ));
        }
        Ok(decoded.into())
    }
}

/// Reads one byte more than the limit at most.
fn read(coded: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut decoded = Vec::new();
    coded.take(limit as u64 + 1).read_to_end(&mut decoded)?;
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap().into()
    }

    /// `{"name":"list_tables","arguments":{}}` as `brotli -q 5` writes it.
    const BROTLI: &[u8] = b"\x1b$\x00\x00\x04\xe2l\xa9_\x16\x92VL\x10l|\xf1\xcd\xe4)\xaa,T\xd65\xcb\xf3\x0e\x94\xca\xf9\x86\x0c\xc2\x0f\xdd;";

    #[test]
    fn a_coded_body_is_read_as_it_was() {
        let text = br#"{"a":1.10}"#;
        assert_eq!(Coding::Gzip.decode(gzip(text), 10).unwrap(), &text[..]);
        let plain = Coding::Brotli
            .decode(Bytes::from_static(BROTLI), 100)
            .unwrap();
        assert_eq!(plain, &br#"{"name":"list_tables","arguments":{}}"#[..]);
        assert_eq!(
            Coding::Identity
                .decode(Bytes::from_static(b"{}"), 0)
                .unwrap(),
            &b"{}"[..]
        );
    }

    #[test]
    fn a_small_body_cannot_become_a_large_one() {
        let bomb = gzip(&vec![b' '; 10_000_000]);
        assert!(bomb.len() < 20_000);
        assert_eq!(
            Coding::Gzip.decode(bomb, 1_000_000).unwrap_err().reason,
            Reason::BodyTooLarge
        );
    }

    #[test]
    fn a_body_that_is_not_so_coded_is_refused() {
        for coding in [Coding::Gzip, Coding::Brotli] {
            let refused = coding
                .decode(Bytes::from_static(b"{\"a\":1}"), 100)
                .unwrap_err();
            assert_eq!(refused.reason, Reason::MalformedBody, "{coding:?}");
            let cut = gzip(b"{\"a\":1}").slice(..12);
            assert!(Coding::Gzip.decode(cut, 100).is_err());
        }
        assert_eq!(Coding::parse("gzip, br"), None);
        assert_eq!(Coding::parse("GZIP"), Some(Coding::Gzip));
    }
}
