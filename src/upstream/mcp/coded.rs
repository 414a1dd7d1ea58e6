//! Content codings of what an MCP server answers: messages are decoded, event streams with a coding are not read.

use bytes::Bytes;
use http::HeaderMap;

use super::post::Door;
use crate::domain::json::unmarked;
use crate::upstream::{Coding, CodingError};

/// Whether a content coding is named that changes the bytes.
pub(super) fn is_coded(headers: &HeaderMap) -> bool {
    Coding::of(headers) != Ok(Coding::Identity)
}

impl Door {
    /// Returns a body without its content coding and without a byte order mark. It takes its room in `limits.memory` while
    /// it is decoded; the worker that gets it as an answer takes room for it from then on.
    pub(super) fn plain(
        &self,
        headers: &HeaderMap,
        body: Bytes,
        most: usize,
    ) -> Result<Bytes, CodingError> {
        let unknown = |name: String| CodingError::Malformed(std::io::Error::other(name));
        let coding = Coding::of(headers).map_err(unknown)?;
        let mut held = self.memory.part();
        let decoded = coding.decode(body, most, |bytes| held.grow(bytes).is_ok());
        decoded.map(unmarked)
    }
}
