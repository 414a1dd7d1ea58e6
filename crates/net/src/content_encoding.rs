//! Content codings of bodies that are read completely (RFC 9110 §8.4): gzip and br.
//!
//! Each piece of the decoded body is charged before it is kept, so that a small body cannot expand without limit.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use super::{BodyCopy, MemoryBudget};

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentEncoding {
    /// Not encoded.
    Identity,
    /// `gzip`
    Gzip,
    /// `br`
    Brotli,
}

/// The reason why a body was not decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The body is not valid in its coding.
    #[error("the body does not match its content coding: {0}")]
    Malformed(io::Error),
    /// The decoded body is longer than the limit in bytes.
    #[error("the decoded body is longer than {0} bytes")]
    TooLarge(usize),
    /// The budget for the decoded body is exhausted.
    #[error("the buffer limit leaves no space for the decoded body")]
    NoRoom,
}

/// The size of the decoder's buffers, in bytes; at most this much is charged at a time.
const DECODE_BUFFER: usize = 4096;

impl ContentEncoding {
    /// Parses the name of a coding; `None` for an unsupported one, and for several.
    #[must_use]
    pub fn parse(name: &str) -> Option<ContentEncoding> {
        match name.trim().to_ascii_lowercase().as_str() {
            "identity" | "" => Some(ContentEncoding::Identity),
            "gzip" | "x-gzip" => Some(ContentEncoding::Gzip),
            "br" => Some(ContentEncoding::Brotli),
            _ => None,
        }
    }

    /// Returns the coding declared by `Content-Encoding`.
    ///
    /// # Errors
    /// The declared value, if unsupported or a list.
    pub fn from_headers(headers: &HeaderMap) -> Result<ContentEncoding, String> {
        if !headers.contains_key(CONTENT_ENCODING) {
            return Ok(ContentEncoding::Identity);
        }
        // Several field lines form one list (RFC 9110 §5.3).
        let lines: Vec<_> = headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .map(|line| String::from_utf8_lossy(line.as_bytes()))
            .collect();
        let name = lines.join(", ");
        ContentEncoding::parse(&name).ok_or(name)
    }

    /// Decodes a body. The size of each decoded piece is passed to `charge`, which returns false to stop.
    ///
    /// # Errors
    /// [`DecodeError`]
    pub fn decode(
        self,
        body: Bytes,
        limit: usize,
        charge: impl FnMut(usize) -> bool,
    ) -> Result<Bytes, DecodeError> {
        let decoded = match self {
            ContentEncoding::Identity => return Ok(body),
            // A response without content may declare a coding, too.
            ContentEncoding::Gzip | ContentEncoding::Brotli if body.is_empty() => return Ok(body),
            ContentEncoding::Gzip => read(MultiGzDecoder::new(&body[..]), limit, charge),
            ContentEncoding::Brotli => {
                read(Decompressor::new(&body[..], DECODE_BUFFER), limit, charge)
            }
        };
        decoded.map(Bytes::from)
    }

    /// Decodes a body and charges it to `memory`, or to the copy if it is read only for comparison.
    ///
    /// # Errors
    /// [`DecodeError`]
    pub fn decode_within(
        self,
        body: Bytes,
        limit: usize,
        memory: &MemoryBudget,
        budget: Option<&BodyCopy>,
    ) -> Result<Bytes, DecodeError> {
        if self == ContentEncoding::Identity {
            return Ok(body);
        }
        match budget {
            Some(budget) => self.decode(body, limit, |bytes| budget.charge(bytes)),
            None => {
                let mut reservation = memory.new_reservation();
                let decoded = self.decode(body, limit, |bytes| reservation.grow(bytes).is_ok())?;
                Ok(reservation.attach_to(decoded))
            }
        }
    }
}

fn read(
    mut coded: impl Read,
    limit: usize,
    mut charge: impl FnMut(usize) -> bool,
) -> Result<Vec<u8>, DecodeError> {
    let mut decoded = Vec::new();
    let mut piece = [0; DECODE_BUFFER];
    loop {
        let read = match coded.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(DecodeError::Malformed(error)),
        };
        if read == 0 {
            return Ok(decoded);
        }
        if decoded.len() + read > limit {
            return Err(DecodeError::TooLarge(limit));
        }
        if !charge(read) {
            return Err(DecodeError::NoRoom);
        }
        decoded.extend_from_slice(&piece[..read]);
    }
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

    fn decode(coding: ContentEncoding, body: Bytes, limit: usize) -> Result<Bytes, DecodeError> {
        coding.decode(body, limit, |_| true)
    }

    #[test]
    fn a_coded_body_is_read_as_it_was() {
        let text = br#"{"a":1.10}"#;
        assert_eq!(
            decode(ContentEncoding::Gzip, gzip(text), 10).unwrap(),
            &text[..]
        );
        let plain = decode(ContentEncoding::Brotli, Bytes::from_static(BROTLI), 100).unwrap();
        assert_eq!(plain, &br#"{"name":"list_tables","arguments":{}}"#[..]);
        assert_eq!(
            decode(ContentEncoding::Identity, Bytes::from_static(b"{}"), 0).unwrap(),
            &b"{}"[..]
        );
    }

    #[test]
    fn a_small_body_cannot_become_a_large_one() {
        let bomb = gzip(&vec![b' '; 10_000_000]);
        assert!(bomb.len() < 20_000);
        let refused = decode(ContentEncoding::Gzip, bomb.clone(), 1_000_000);
        assert!(matches!(refused, Err(DecodeError::TooLarge(1_000_000))));
        let mut total = 0;
        let refused = ContentEncoding::Gzip.decode(bomb, usize::MAX, |bytes| {
            total += bytes;
            total < 100_000
        });
        assert!(matches!(refused, Err(DecodeError::NoRoom)));
        let memory = MemoryBudget::new(10);
        let refused = ContentEncoding::Gzip.decode_within(gzip(b"01234567890"), 100, &memory, None);
        assert!(matches!(refused, Err(DecodeError::NoRoom)));
        assert_eq!(memory.reserved(), 0);
        let fits = ContentEncoding::Gzip.decode_within(gzip(b"0123456789"), 100, &memory, None);
        let fits = fits.unwrap();
        assert_eq!((&fits[..], memory.reserved()), (&b"0123456789"[..], 10));
        drop(fits);
        assert_eq!(memory.reserved(), 0);
    }

    #[test]
    fn a_coded_body_without_content_is_none() {
        for coding in [ContentEncoding::Gzip, ContentEncoding::Brotli] {
            assert!(decode(coding, Bytes::new(), 0).unwrap().is_empty());
        }
    }

    #[test]
    fn a_body_that_is_not_so_coded_is_refused() {
        for coding in [ContentEncoding::Gzip, ContentEncoding::Brotli] {
            let refused = decode(coding, Bytes::from_static(b"{\"a\":1}"), 100);
            assert!(
                matches!(refused, Err(DecodeError::Malformed(_))),
                "{coding:?}"
            );
            let cut = gzip(b"{\"a\":1}").slice(..12);
            assert!(decode(ContentEncoding::Gzip, cut, 100).is_err());
        }
        assert_eq!(ContentEncoding::parse("gzip, br"), None);
        assert_eq!(ContentEncoding::parse("GZIP"), Some(ContentEncoding::Gzip));
    }
}
