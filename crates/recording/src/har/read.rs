//! Reads a HAR file.

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::entry::{self, EntryFault, HarCall};

/// The maximum size of a file in bytes.
pub const MAX_FILE: usize = 256 * 1024 * 1024;

/// The maximum number of entries of a file.
pub const MAX_ENTRIES: usize = 100_000;

/// A fault of a whole file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HarError {
    /// The file is too large.
    #[error("the file is longer than {MAX_FILE} bytes; export fewer requests at a time")]
    TooLarge,
    /// The file has too many entries.
    #[error("the file has more than {MAX_ENTRIES} entries; export fewer requests at a time")]
    TooMany,
    /// The file ends early.
    #[error(
        "the file ends in line {line}, inside a value: it was truncated; export or copy it again"
    )]
    Truncated {
        /// The number of the last line, from 1.
        line: usize,
    },
    /// The file is not JSON.
    #[error("the file is not JSON: {0}")]
    NotJson(String),
    /// The file is JSON, and not HAR.
    #[error("this is no HAR file: {0}; a HAR file is an object with `log.entries`")]
    Foreign(String),
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `log`")]
struct Document<'a> {
    #[serde(borrow)]
    log: Log<'a>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `entries`")]
struct Log<'a> {
    #[serde(borrow)]
    entries: Vec<&'a RawValue>,
}

/// Reads the entries of a file, in their order; an entry that is no call has its fault.
///
/// # Errors
/// [`HarError`] if the file as a whole cannot be read.
pub fn read(file: &[u8]) -> Result<Vec<Result<HarCall, EntryFault>>, HarError> {
    /// A byte order mark, which HAR 1.2 allows.
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if file.len() > MAX_FILE {
        return Err(HarError::TooLarge);
    }
    let text = file.strip_prefix(MARK).unwrap_or(file);
    let document: Document<'_> =
        serde_json::from_slice(text).map_err(|fault| file_fault(&fault))?;
    let entries = document.log.entries;
    if entries.len() > MAX_ENTRIES {
        return Err(HarError::TooMany);
    }
    Ok(entries
        .into_iter()
        .map(|raw| entry::read(raw.get()))
        .collect())
}

fn file_fault(fault: &serde_json::Error) -> HarError {
    match fault.classify() {
        Category::Eof => HarError::Truncated { line: fault.line() },
        Category::Data => HarError::Foreign(fault.to_string()),
        Category::Syntax | Category::Io => HarError::NotJson(fault.to_string()),
    }
}
