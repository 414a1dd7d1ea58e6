//! The recording format: a header line, then one JSON line for each call.
//!
//! ```text
//! format   the constants of the format
//! call     the types of a recorded call
//! time     its time
//! body     its bodies
//! reader   lines to calls
//! writer   calls to lines
//! law      properties for tests and fuzz targets
//! ```
//!
//! Laws: the reader returns the calls that the writer wrote; the calls do not depend on how the file was split into
//! chunks. At most one line, up to [`MAX_LINE`], is buffered beyond the last chunk.

mod body;
mod call;
mod format;
mod law;
mod reader;
#[cfg(test)]
mod tests;
mod time;
mod writer;

pub use body::{MAX_DEPTH, RecordedBody};
pub use call::{Headers, RecordedCall, RecordedRequest, RecordedResponse, Responder};
pub use format::{FORMAT, MAX_LINE, VERSION};
pub use law::check_any_cut;
pub use reader::{ReadError, Reader, Unread};
pub use time::RecordedTime;
pub use writer::{header_line, write_call};
