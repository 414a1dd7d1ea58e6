//! `[record]` Used by `decode`.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;

use super::log::key_pattern;
use crate::config::key::{Key, List, key, list, section};
use crate::config::kind::{FILE, HEADER, PERCENT, SOME_TEXT, TIMEOUT, boolean, other, size, whole};
use crate::config::raw::RawRecord;
use crate::config::table_reader::Table;
use dualgauge_model::record::RecordedBodies;
use dualgauge_model::redact::KeyPattern;

/// A smaller file would hold few calls.
const LEAST_FILE: usize = 64 * 1024;
/// More files than an operator looks through.
const MOST_FILES: i64 = 10_000;

/// Headers that decide about a response, or describe one, and name no one.
const HEADERS: &[&str] = &[
    "accept",
    "accept-language",
    "allow",
    "cache-control",
    "content-language",
    "content-type",
    "deprecation",
    "etag",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "prefer",
    "range",
    "retry-after",
    "sunset",
    "user-agent",
    "vary",
];

section! {
    /// `[record]`
    pub(super) RECORD {
        /// Folder of the recordings; created with mode 0700 if missing
        DIRECTORY: Key<PathBuf> = key("directory", FILE).required();
        /// Percent of calls recorded without a command
        SAMPLE: Key<u32> = key("sample", PERCENT).or("0");
        /// Record bodies that are JSON or forms
        BODIES: Key<RecordedBodies> =
            key("bodies", boolean(&[RecordedBodies::Omitted, RecordedBodies::Redacted])).or("false");
        /// Headers that are recorded; credentials are refused
        ALLOWED: List<HeaderName> = list("headers", HEADER).or(HEADERS);
        /// Further members and query parameters that are replaced by placeholders; `*` matches any text
        REDACT: List<KeyPattern> = list("redact", other("string", SOME_TEXT, key_pattern));
        /// Size at which the next file begins
        FILE_SIZE: Key<usize> = key("file_size", size(LEAST_FILE)).or("64MiB");
        /// Files kept in the folder; the oldest is deleted
        FILES: Key<usize> = key("files", whole(1, MOST_FILES)).or("16");
        /// Bytes after which a recording stops
        TOTAL_SIZE: Key<usize> = key("total_size", size(LEAST_FILE)).or("1GiB");
        /// Time after which a recording stops
        TIME_LIMIT: Key<Duration> = key("time_limit", TIMEOUT);
    }
}

pub(super) fn record(table: &mut Table<'_>) -> Option<RawRecord> {
    let directory = table.get(&DIRECTORY);
    let sample = table.get(&SAMPLE);
    let bodies = table.get(&BODIES);
    let headers = table.list(&ALLOWED);
    let redact = table.list(&REDACT);
    let file_size = table.get(&FILE_SIZE);
    let files = table.get(&FILES);
    let total_size = table.get(&TOTAL_SIZE);
    let time_limit = table.get(&TIME_LIMIT);
    Some(RawRecord {
        directory: directory?,
        sample: sample?,
        bodies: bodies?,
        headers: headers?,
        redact: redact?,
        file_size: file_size?,
        files: files?,
        total_size: total_size?,
        time_limit,
    })
}
