//! Files of calls: recordings, HAR files and access logs, told apart by their contents. Used by `cli::learn`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::fault::LearnFault;
use super::observed::Observed;
use dualgauge_model::proposal::MismatchReport;
use dualgauge_recording::recording::{FORMAT, Reader, RecordedCall, Unread};
use dualgauge_recording::{access_log, har};

/// The maximum size of a file.
const MAX_FILE: usize = har::MAX_FILE;

/// The recorded calls that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All of them.
    All,
    /// Those without a route.
    Unrouted,
}

impl Which {
    fn add(self, call: &RecordedCall, observed: &mut Observed) {
        match self {
            Which::Unrouted if call.route.is_some() => {
                observed.leave_out("a route matched; `--all` uses such calls");
            }
            Which::Unrouted | Which::All => observed.add_recorded(call),
        }
    }
}

/// Reads a file.
pub(super) fn read(path: &Path, which: Which, observed: &mut Observed) -> Result<(), LearnFault> {
    let unreadable = |cause| LearnFault::Unreadable {
        path: path.to_path_buf(),
        cause,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let limit = MAX_FILE as u64 + 1;
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > MAX_FILE {
        return Err(LearnFault::TooLarge {
            path: path.to_path_buf(),
            limit: MAX_FILE,
        });
    }
    let (format, fault) = match format_of(&bytes) {
        FileFormat::Recording => ("a recording", recording(&bytes, which, observed)),
        FileFormat::Report => ("a report of mismatches", report(&bytes, observed)),
        FileFormat::Har => ("a HAR file", har_file(&bytes, which, observed)),
        FileFormat::Log => ("an access log", log(&bytes, observed)),
    };
    fault.map_or(Ok(()), |fault| {
        Err(LearnFault::NoCall {
            path: path.to_path_buf(),
            format,
            fault,
        })
    })
}

enum FileFormat {
    Recording,
    Har,
    /// Of a replay, or of `dualgauge mismatches`.
    Report,
    Log,
}

fn format_of(bytes: &[u8]) -> FileFormat {
    let bytes = bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(bytes)
        .trim_ascii_start();
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&line[..line.len().min(1024)]);
    if text.contains(FORMAT) {
        return FileFormat::Recording;
    }
    if bytes.first() == Some(&b'{') && MismatchReport::is_report(bytes) {
        return FileFormat::Report;
    }
    // A HAR file is one object; a line of a log is one object, too.
    let is_line = serde_json::from_slice::<serde_json::Value>(line);
    match bytes.first() {
        Some(b'{') if is_line.is_err() => FileFormat::Har,
        Some(b'{') if is_line.is_ok_and(|line| line["log"]["entries"].is_array()) => {
            FileFormat::Har
        }
        _ => FileFormat::Log,
    }
}

/// Reads a recording; returns its first fault if it has no call.
fn recording(bytes: &[u8], which: Which, observed: &mut Observed) -> Option<String> {
    let mut reader = Reader::new();
    reader.push(bytes);
    let (mut calls, mut fault) = (0_u64, None);
    loop {
        match reader.next_call() {
            Ok(Some(call)) => {
                calls += 1;
                which.add(&call, observed);
            }
            Ok(None) => break,
            Err(error) => {
                let is_last = !matches!(error.unread, Unread::Invalid(_));
                fault.get_or_insert_with(|| error.to_string());
                observed.leave_out("the line is not a recorded call");
                if is_last {
                    break;
                }
            }
        }
    }
    if let Err(error) = reader.finish() {
        fault.get_or_insert_with(|| error.to_string());
        observed.leave_out("the file ends inside it");
    }
    fault.filter(|_| calls == 0)
}

fn report(bytes: &[u8], observed: &mut Observed) -> Option<String> {
    match MismatchReport::read(bytes) {
        Ok(report) => {
            observed.mismatches.extend(report);
            None
        }
        Err(fault) => Some(fault.to_string()),
    }
}

fn har_file(bytes: &[u8], which: Which, observed: &mut Observed) -> Option<String> {
    let entries = match har::read(bytes) {
        Ok(entries) => entries,
        Err(fault) => return Some(fault.to_string()),
    };
    for entry in entries {
        match entry {
            Ok(found) => which.add(&found.call, observed),
            Err(_) => observed.leave_out("the entry is no call"),
        }
    }
    None
}

fn log(bytes: &[u8], observed: &mut Observed) -> Option<String> {
    let (mut calls, mut fault) = (0_u64, None);
    for line in bytes.split(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match access_log::parse_line(line) {
            Ok(call) => {
                calls += 1;
                observed.add_logged(&call);
            }
            Err(error) => {
                fault.get_or_insert_with(|| error.to_string());
                observed.leave_out("the line of the access log is no call");
            }
        }
    }
    let fault = fault.or_else(|| Some("the file is empty".to_owned()));
    fault.filter(|_| calls == 0)
}
