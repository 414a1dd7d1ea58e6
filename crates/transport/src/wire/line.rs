//! Splits input into lines: finds LF by vector search, then checks the CR before it.
//!
//! Used by `wire::body` and `wire::inspector`.

use memchr::memchr;

use super::violation::Violation;

/// The limit of a line's length, and the violation of a longer one.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineLimit {
    /// Bytes before LF.
    pub(super) bytes: usize,
    /// The violation.
    pub(super) otherwise: Violation,
}

/// A splitter whose inputs each begin with the unread rest of the one before.
#[derive(Debug, Default)]
pub(super) struct LineFinder {
    /// Bytes at the start of the next input that are known to contain no LF, so that a line in a thousand pieces is
    /// searched once.
    searched: usize,
}

impl LineFinder {
    /// Returns whether nothing of the next line was searched yet.
    pub(super) fn is_at_start(&self) -> bool {
        self.searched == 0
    }

    /// Returns the next line without its CR LF; `None` if it is incomplete.
    ///
    /// A line that is too long is rejected for that reason only: whether it is complete depends on how the input was
    /// split.
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [u8],
        longest: LineLimit,
    ) -> Result<Option<&'a [u8]>, Violation> {
        let searched = std::mem::take(&mut self.searched).min(input.len());
        let Some(found) = memchr(b'\n', &input[searched..]) else {
            if input.len() > longest.bytes {
                return Err(longest.otherwise);
            }
            self.searched = input.len();
            return Ok(None);
        };
        let end = searched + found;
        if end > longest.bytes {
            return Err(longest.otherwise);
        }
        match &input[..end] {
            [line @ .., b'\r'] => Ok(Some(line)),
            _ => Err(Violation::BareLf),
        }
    }
}
