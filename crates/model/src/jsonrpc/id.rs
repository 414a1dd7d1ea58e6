//! Request ids, kept in the text that the client sent. Used by `model` and `gateway`.

use dualgauge_patterns::json::{Json, JsonKind, is_integer};

/// A request id: a string, a number or null (JSON-RPC 2.0 §4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Json);

impl RequestId {
    /// The largest integer that every parser represents exactly: 2^53.
    const EXACT: u64 = 1 << 53;

    /// Returns the id, if the value is of a valid kind.
    #[must_use]
    pub fn new(value: Json) -> Option<RequestId> {
        match value.kind() {
            JsonKind::String | JsonKind::Number | JsonKind::Null => Some(RequestId(value)),
            JsonKind::Object | JsonKind::Array | JsonKind::Boolean => None,
        }
    }

    /// Returns the id of a number.
    #[must_use]
    pub fn from_number(number: u64) -> RequestId {
        RequestId(Json::written(number.to_string()))
    }

    /// Returns the id of an error response to a request whose id could not be read.
    #[must_use]
    pub const fn null() -> RequestId {
        RequestId(Json::literal("null"))
    }

    /// Returns the text of the id, byte for byte.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns whether real servers return this id unchanged: a string, or an integer within ±2^53.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        match self.0.kind() {
            JsonKind::String => true,
            JsonKind::Number => {
                let text = self.as_bytes();
                let digits = text.strip_prefix(b"-").unwrap_or(text);
                let value = std::str::from_utf8(digits)
                    .ok()
                    .and_then(|digits| digits.parse::<u64>().ok());
                is_integer(text) && value.is_some_and(|value| value <= Self::EXACT)
            }
            JsonKind::Object | JsonKind::Array | JsonKind::Boolean | JsonKind::Null => false,
        }
    }
}
