//! The constants of the format. Used by `reader` and `writer`.

/// The value of the member `format` of the header line.
pub const FORMAT: &str = "dualgauge-recording";

/// The version that this crate writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// The maximum length of a line in bytes, including its line feed.
pub const MAX_LINE: usize = 16 * 1024 * 1024;
