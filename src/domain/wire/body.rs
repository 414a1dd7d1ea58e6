//! Follows one body to its end: by counting, chunk by chunk, then through the trailers.

use super::chunk;
use super::head::{self, Framing, MAX_FIELDS};
use super::line::{Lines, Longest};
use super::violation::Violation;

/// The longest chunk-size line.
const CHUNK_LINE: Longest = Longest {
    bytes: 512,
    otherwise: Violation::ChunkExtensionTooLong,
};
/// All extensions of one body: chunks of one byte must not cost half a kilobyte each.
const MAX_EXTENSIONS: usize = 8 * 1024;
/// A whole trailer section.
const MAX_TRAILERS: usize = 8 * 1024;

/// How far a body came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The input is an incomplete line.
    Incomplete,
    /// These bytes of the input belong to the body, and more is to come.
    Passed(usize),
    /// These bytes of the input are the last of the body.
    Ended(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Data(u64),
    ChunkLine,
    ChunkData(u64),
    ChunkEnd,
    Trailers,
}

/// A body that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Body {
    part: Part,
    /// Bytes of chunk extensions so far.
    extensions: usize,
    /// Bytes of the trailer section so far.
    trailers: usize,
    fields: u8,
}

impl Body {
    /// The body that a head announces; `None` if it has none.
    pub(super) fn of(framing: Framing) -> Option<Body> {
        let part = match framing {
            Framing::Empty => return None,
            Framing::Sized(length) => Part::Data(length),
            Framing::Chunked => Part::ChunkLine,
        };
        Some(Body {
            part,
            extensions: 0,
            trailers: 0,
            fields: 0,
        })
    }

    /// Reads the next unit of the body from an input that is not empty.
    pub(super) fn advance(
        &mut self,
        lines: &mut Lines,
        input: &[u8],
    ) -> Result<Progress, Violation> {
        match self.part {
            Part::Data(left) => Ok(self.data(input, left)),
            Part::ChunkLine => self.chunk_line(lines, input),
            Part::ChunkData(left) => Ok(self.chunk_data(input, left)),
            Part::ChunkEnd => self.chunk_end(input),
            Part::Trailers => self.trailer(lines, input),
        }
    }

    fn data(&mut self, input: &[u8], left: u64) -> Progress {
        let (count, left) = count(input, left);
        self.part = Part::Data(left);
        if left == 0 {
            Progress::Ended(count)
        } else {
            Progress::Passed(count)
        }
    }

    fn chunk_line(&mut self, lines: &mut Lines, input: &[u8]) -> Result<Progress, Violation> {
        let Some(line) = lines.next(input, CHUNK_LINE)? else {
            return Ok(Progress::Incomplete);
        };
        let chunk = chunk::parse(line)?;
        self.extensions += chunk.extensions;
        if self.extensions > MAX_EXTENSIONS {
            return Err(Violation::ChunkExtensionTooLong);
        }
        self.part = match chunk.size {
            0 => Part::Trailers,
            size => Part::ChunkData(size),
        };
        Ok(Progress::Passed(line.len() + 2))
    }

    fn chunk_data(&mut self, input: &[u8], left: u64) -> Progress {
        let (count, left) = count(input, left);
        self.part = match left {
            0 => Part::ChunkEnd,
            left => Part::ChunkData(left),
        };
        Progress::Passed(count)
    }

    fn chunk_end(&mut self, input: &[u8]) -> Result<Progress, Violation> {
        match input {
            [b'\r', b'\n', ..] => {
                self.part = Part::ChunkLine;
                Ok(Progress::Passed(2))
            }
            [b'\r'] => Ok(Progress::Incomplete),
            _ => Err(Violation::ChunkEnd),
        }
    }

    fn trailer(&mut self, lines: &mut Lines, input: &[u8]) -> Result<Progress, Violation> {
        let longest = Longest {
            bytes: MAX_TRAILERS - self.trailers,
            otherwise: Violation::TrailersTooLarge,
        };
        let Some(line) = lines.next(input, longest)? else {
            return Ok(Progress::Incomplete);
        };
        let length = line.len() + 2;
        if line.is_empty() {
            return Ok(Progress::Ended(length));
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
        Ok(Progress::Passed(length))
    }
}

/// How much of the input is data, and how much of the data is still to come.
fn count(input: &[u8], left: u64) -> (usize, u64) {
    let count = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
    (count, left - count as u64)
}
