//! The laws of the reader, for tests and fuzz targets.

use super::call::RecordedCall;
use super::reader::{ReadError, Reader};
use super::time::RecordedTime;
use super::writer::{header_line, write_call};

/// Returns all calls and faults of a file that arrives in chunks of this size.
pub(super) fn read(data: &[u8], chunk: usize) -> Vec<Result<RecordedCall, ReadError>> {
    let mut reader = Reader::new();
    let mut found = Vec::new();
    for chunk in data.chunks(chunk.max(1)) {
        reader.push(chunk);
        while let Some(next) = reader.next_call().transpose() {
            found.push(next);
        }
    }
    found.extend(reader.finish().err().map(Err));
    found
}

/// Checks any bytes: the result does not depend on the chunks, and the calls that were read are written and read alike.
///
/// # Panics
///
/// Panics if a law does not hold.
pub fn check_any_cut(data: &[u8]) {
    let whole = read(data, data.len());
    for chunk in [1, 7] {
        assert_eq!(read(data, chunk), whole, "cut into pieces of {chunk}");
    }
    let mut written = header_line(RecordedTime::default(), "law");
    let calls: Vec<_> = whole.into_iter().filter_map(Result::ok).collect();
    for call in &calls {
        written.extend(write_call(call).unwrap_or_default());
    }
    let again: Result<Vec<_>, _> = read(&written, written.len()).into_iter().collect();
    assert_eq!(again, Ok(calls), "written and read again");
}
