//! Follows one body to its end: by length or chunk by chunk, then through the trailers. Used by `wire::inspector`.

use super::chunk;
use super::head::{self, MAX_FIELDS, MessageFraming};
use super::line::{LineFinder, LineLimit};
use super::violation::Violation;

/// The maximum length of a chunk-size line.
const CHUNK_LINE: LineLimit = LineLimit {
    bytes: 512,
    otherwise: Violation::ChunkExtensionTooLong,
};
/// The maximum of all extensions of one body: one-byte chunks must not cost half a kilobyte each.
const MAX_EXTENSIONS: usize = 8 * 1024;
/// The maximum size of a trailer section.
const MAX_TRAILERS: usize = 8 * 1024;

/// The progress of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyProgress {
    /// The input is an incomplete line.
    Incomplete,
    /// These bytes of the input belong to the body, and more is to come.
    Passed(usize),
    /// These bytes of the input are the last of the body.
    Ended(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyPart {
    Data(u64),
    ChunkLine,
    ChunkData(u64),
    ChunkEnd,
    Trailers,
}

/// The state of an incomplete body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyFollower {
    part: BodyPart,
    /// Bytes of chunk extensions so far.
    extensions: usize,
    /// Bytes of the trailer section so far.
    trailers: usize,
    fields: u8,
}

impl BodyFollower {
    /// Returns the body that a head announces; `None` if it has none.
    pub(super) fn new(framing: MessageFraming) -> Option<BodyFollower> {
        let part = match framing {
            MessageFraming::Empty => return None,
            MessageFraming::Sized(length) => BodyPart::Data(length),
            MessageFraming::Chunked => BodyPart::ChunkLine,
        };
        Some(BodyFollower {
            part,
            extensions: 0,
            trailers: 0,
            fields: 0,
        })
    }

    /// Reads the next unit of the body from a non-empty input.
    pub(super) fn advance(
        &mut self,
        lines: &mut LineFinder,
        input: &[u8],
    ) -> Result<BodyProgress, Violation> {
        match self.part {
            BodyPart::Data(left) => Ok(self.data(input, left)),
            BodyPart::ChunkLine => self.chunk_line(lines, input),
            BodyPart::ChunkData(left) => Ok(self.chunk_data(input, left)),
            BodyPart::ChunkEnd => self.chunk_end(input),
            BodyPart::Trailers => self.trailer(lines, input),
        }
    }

    fn data(&mut self, input: &[u8], left: u64) -> BodyProgress {
        let (count, left) = count(input, left);
        self.part = BodyPart::Data(left);
        if left == 0 {
            BodyProgress::Ended(count)
        } else {
            BodyProgress::Passed(count)
        }
    }

    fn chunk_line(
        &mut self,
        lines: &mut LineFinder,
        input: &[u8],
    ) -> Result<BodyProgress, Violation> {
        let Some(line) = lines.next(input, CHUNK_LINE)? else {
            return Ok(BodyProgress::Incomplete);
        };
        let chunk = chunk::parse(line)?;
        self.extensions += chunk.extensions;
        if self.extensions > MAX_EXTENSIONS {
            return Err(Violation::ChunkExtensionTooLong);
        }
        self.part = match chunk.size {
            0 => BodyPart::Trailers,
            size => BodyPart::ChunkData(size),
        };
        Ok(BodyProgress::Passed(line.len() + 2))
    }

    fn chunk_data(&mut self, input: &[u8], left: u64) -> BodyProgress {
        let (count, left) = count(input, left);
        self.part = match left {
            0 => BodyPart::ChunkEnd,
            left => BodyPart::ChunkData(left),
        };
        BodyProgress::Passed(count)
    }

    fn chunk_end(&mut self, input: &[u8]) -> Result<BodyProgress, Violation> {
        match input {
            [b'\r', b'\n', ..] => {
                self.part = BodyPart::ChunkLine;
                Ok(BodyProgress::Passed(2))
            }
            [b'\r'] => Ok(BodyProgress::Incomplete),
            _ => Err(Violation::ChunkEnd),
        }
    }

    fn trailer(&mut self, lines: &mut LineFinder, input: &[u8]) -> Result<BodyProgress, Violation> {
        let longest = LineLimit {
            bytes: MAX_TRAILERS - self.trailers,
            otherwise: Violation::TrailersTooLarge,
        };
        let Some(line) = lines.next(input, longest)? else {
            return Ok(BodyProgress::Incomplete);
        };
        let length = line.len() + 2;
        if line.is_empty() {
            return Ok(BodyProgress::Ended(length));
        }
        self.trailers = MAX_TRAILERS.min(self.trailers + length);
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            return Err(Violation::TrailersTooLarge);
        }
        let (name, _) = head::split_field(line)?;
        if ["content-length", "transfer-encoding", "host"]
            .iter()
            .any(|framing| name.eq_ignore_ascii_case(framing.as_bytes()))
        {
            return Err(Violation::TrailerForbidden);
        }
        Ok(BodyProgress::Passed(length))
    }
}

/// Returns the number of input bytes that are data, and the number of data bytes still missing.
fn count(input: &[u8], left: u64) -> (usize, u64) {
    let count = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
    (count, left - count as u64)
}
