//! Content codings of MCP responses: messages are decoded; event streams with a coding are not read.
//!
//! Used by `mcp::get_stream` and `mcp::post`.

use bytes::Bytes;
use http::HeaderMap;

use dualgauge_net::{ContentEncoding, DecodeError, MemoryBudget};
use dualgauge_patterns::json::unmarked;

/// Returns true if the headers name a content coding other than `identity`.
pub(super) fn is_coded(headers: &HeaderMap) -> bool {
    ContentEncoding::from_headers(headers) != Ok(ContentEncoding::Identity)
}

/// Returns a body without its content coding and byte order mark. It counts towards `memory` while it is decoded; the
/// worker that receives it as a response accounts for it from then on.
pub(super) fn decode_body(
    memory: &MemoryBudget,
    headers: &HeaderMap,
    body: Bytes,
    most: usize,
) -> Result<Bytes, DecodeError> {
    let unknown = |name: String| DecodeError::Malformed(std::io::Error::other(name));
    let coding = ContentEncoding::from_headers(headers).map_err(unknown)?;
    let mut held = memory.new_reservation();
    let decoded = coding.decode(body, most, |bytes| held.grow(bytes).is_ok());
    decoded.map(unmarked)
}
