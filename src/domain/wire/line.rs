//! Finds lines: LF first, by vector search, then the CR before it.

use memchr::memchr;

use super::violation::Violation;

/// How long a line may be, and what a longer one is.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineLimit {
    /// Bytes before LF.
    pub(super) bytes: usize,
    /// What a longer line violates.
    pub(super) otherwise: Violation,
}

/// Finds the lines of inputs of which each begins with what is left of the one before.
#[derive(Debug, Default)]
pub(super) struct LineFinder {
    /// Bytes at the start of the next input that are known to hold no LF, so that a line in a thousand
    /// pieces is searched once.
    searched: usize,
}

impl LineFinder {
    /// Whether nothing of the next line has been searched yet.
    pub(super) fn is_at_start(&self) -> bool {
        self.searched == 0
    }

    /// The next line without its CR LF; `None` if it is not complete.
    ///
    /// A line that is too long is refused for that, whatever else is wrong with it: whether it is complete
    /// depends on how the input was cut.
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
