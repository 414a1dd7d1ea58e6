//! Writes the lines of a recording.

use serde::Serialize;

use super::call::RecordedCall;
use super::format::{FORMAT, MAX_LINE, VERSION};
use super::time::RecordedTime;

/// The header line.
#[derive(Serialize)]
struct HeaderLine<'a> {
    format: &'a str,
    version: u64,
    created: RecordedTime,
    program: &'a str,
}

/// Returns the header line of a file, with the time of its creation and the program that writes it.
#[must_use]
pub fn header_line(created: RecordedTime, program: &str) -> Vec<u8> {
    let header = HeaderLine {
        format: FORMAT,
        version: VERSION,
        created,
        program,
    };
    line(&header).unwrap_or_default()
}

/// Returns the line of a call; `None` if it is longer than [`MAX_LINE`].
#[must_use]
pub fn write_call(call: &RecordedCall) -> Option<Vec<u8>> {
    line(call).filter(|line| line.len() <= MAX_LINE)
}

fn line(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(value).ok()?;
    line.push(b'\n');
    Some(line)
}
