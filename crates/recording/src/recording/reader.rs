//! Reads the lines of a recording.

use std::fmt;

use serde::Deserialize;

use super::call::RecordedCall;
use super::format::{FORMAT, MAX_LINE, VERSION};

/// A fault of a file, with the number of its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {unread}")]
pub struct ReadError {
    /// The number of the line, from 1.
    pub line: u64,
    /// The kind of fault.
    pub unread: Unread,
}

/// The kind of fault of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// The file has no line.
    #[error("the file is empty; a recording begins with a line that has `\"format\":\"{FORMAT}\"`")]
    Empty,
    /// The first line is not the header of a recording.
    #[error("this is no recording: the first line has no `\"format\":\"{FORMAT}\"`{0}")]
    Foreign(Resemblance),
    /// A newer program wrote the file.
    #[error(
        "the recording has version {found}, and this program reads versions up to {VERSION}; use a newer dualgauge"
    )]
    Newer {
        /// The version in the header.
        found: u64,
    },
    /// The file ends inside a line: its writer was stopped, or it was copied while it was written.
    #[error("the file ends inside this line; the calls before it are whole")]
    Truncated,
    /// A line is longer than [`MAX_LINE`].
    #[error("the line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// A line is not a recorded call.
    #[error("this is no recorded call: {0}")]
    Invalid(String),
}

/// The format that a file resembles, as a hint in [`Unread::Foreign`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resemblance {
    /// HTTP Archive (HAR).
    Har,
    /// No known format.
    Unknown,
}

impl fmt::Display for Resemblance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resemblance::Har => "; it looks like a HAR file",
            Resemblance::Unknown => "",
        })
    }
}

/// A reader of a recording that receives the file in chunks.
///
/// Call [`Reader::next_call`] until it returns `None` after each [`Reader::push`], and [`Reader::finish`] at the end of
/// the file. After an invalid line, [`Reader::next_call`] continues with the next; after the other faults it returns
/// `None`.
#[derive(Debug, Default)]
pub struct Reader {
    pending: Vec<u8>,
    /// The length of the part of `pending` that has been read.
    read: usize,
    /// The length of the part of `pending` that is known to have no line feed after `read`.
    searched: usize,
    line: u64,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    BeforeHeader,
    InCalls,
    Failed,
}

/// A line that has no member `format` is a call.
#[derive(Deserialize)]
struct HeaderLine {
    format: Option<String>,
    version: Option<u64>,
}

impl Reader {
    /// Creates a reader at the start of a file.
    #[must_use]
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.state == State::Failed {
            return;
        }
        self.pending.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        self.pending.extend_from_slice(bytes);
    }

    /// Returns the number of the last line that was read, from 1; 0 at the start.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Returns the number of bytes that were added and not read yet.
    #[must_use]
    pub const fn unread(&self) -> usize {
        self.pending.len() - self.read
    }

    /// Returns the next call; `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn next_call(&mut self) -> Result<Option<RecordedCall>, ReadError> {
        while let Some(line) = self.next_line()? {
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let state = self.state;
            match read_line(text, state) {
                Ok(None) => self.state = State::InCalls,
                Ok(Some(call)) => return Ok(Some(*call)),
                Err(unread) => {
                    if !matches!(unread, Unread::Invalid(_)) {
                        self.state = State::Failed;
                    }
                    return Err(self.error(unread));
                }
            }
        }
        Ok(None)
    }

    /// Ends the file, after the last call.
    ///
    /// # Errors
    /// [`ReadError`] if the file is empty or truncated.
    pub fn finish(&mut self) -> Result<(), ReadError> {
        if self.state == State::Failed {
            return Ok(());
        }
        let rest = self.pending.get(self.read..).unwrap_or_default();
        let rest = rest.trim_ascii();
        if self.state == State::BeforeHeader {
            self.line += u64::from(!rest.is_empty() || self.line == 0);
            let unread = match read_line(rest, self.state) {
                _ if rest.is_empty() => Unread::Empty,
                Err(unread @ (Unread::Foreign(_) | Unread::Newer { .. })) => unread,
                Ok(_) | Err(_) => Unread::Truncated,
            };
            self.state = State::Failed;
            return Err(self.error(unread));
        }
        if rest.is_empty() {
            return Ok(());
        }
        self.line += 1;
        self.state = State::Failed;
        Err(self.error(Unread::Truncated))
    }

    /// Returns the next line with its line feed.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        if self.state == State::Failed {
            return Ok(None);
        }
        let unsearched = self.pending.get(self.searched..).unwrap_or_default();
        let found = unsearched.iter().position(|byte| *byte == b'\n');
        let end = found.map(|at| self.searched + at + 1);
        let length = end.unwrap_or(self.pending.len()) - self.read;
        if length > MAX_LINE {
            self.line += 1;
            self.state = State::Failed;
            return Err(self.error(Unread::TooLong));
        }
        self.searched = end.unwrap_or(self.pending.len());
        let Some(end) = end else { return Ok(None) };
        let line = self.pending.get(self.read..end).unwrap_or_default();
        let line = line.to_vec();
        self.read = end;
        self.line += 1;
        Ok(Some(line))
    }

    const fn error(&self, unread: Unread) -> ReadError {
        ReadError {
            line: self.line,
            unread,
        }
    }
}

/// Reads a line; returns `None` for a header. Files may be concatenated, so headers may follow calls.
fn read_line(text: &[u8], state: State) -> Result<Option<Box<RecordedCall>>, Unread> {
    let header = serde_json::from_slice::<HeaderLine>(text).ok();
    let is_ours = |header: &HeaderLine| header.format.as_deref() == Some(FORMAT);
    match header {
        Some(header) if is_ours(&header) => match header.version {
            Some(1..=VERSION) => Ok(None),
            Some(found) if found > VERSION => Err(Unread::Newer { found }),
            Some(_) | None => Err(Unread::Invalid("the header has no `version`".into())),
        },
        Some(_) | None if state == State::BeforeHeader => Err(Unread::Foreign(resemblance(text))),
        Some(_) | None => match serde_json::from_slice(text) {
            Ok(call) => Ok(Some(call)),
            Err(fault) => Err(Unread::Invalid(described(&fault))),
        },
    }
}

/// Returns the fault with its column only: the line of the file is known.
fn described(fault: &serde_json::Error) -> String {
    let (column, text) = (fault.column(), fault.to_string());
    match text.strip_suffix(&format!(" at line 1 column {column}")) {
        Some(text) => format!("column {column}: {text}"),
        None => text,
    }
}

fn resemblance(line: &[u8]) -> Resemblance {
    let mut text = line.iter().filter(|byte| !byte.is_ascii_whitespace());
    let mut start = br#"{"log":"#.iter();
    // A file with line breaks has only `{` in its first line.
    let is_har = start.all(|byte| text.next().is_none_or(|found| found == byte));
    match is_har && !line.is_empty() {
        true => Resemblance::Har,
        false => Resemblance::Unknown,
    }
}
