//! The JSON of a hole's default. It knows no types and no codecs.

use crate::json::Json;

/// The nesting limit of a default in JSON.
const DEPTH: u16 = 16;

/// Returns a default that is spelled as JSON; `None` for any other text.
pub(super) fn default_json(spelled: &str) -> Option<Json> {
    Json::parse(bytes::Bytes::copy_from_slice(spelled.as_bytes()), DEPTH).ok()
}
