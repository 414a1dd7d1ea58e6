//! The types of a recorded call.

use serde::{Deserialize, Serialize};

use super::body::RecordedBody;
use super::time::RecordedTime;
use dualgauge_patterns::side::Side;

/// Names and values of headers, in their order.
pub type Headers = Vec<(String, String)>;

/// One call: the request, the decision, and the response that the client received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The time at which the call started.
    pub time: RecordedTime,
    /// The protocol of the request.
    #[serde(with = "side_word")]
    pub side: Side,
    /// The name of the route; `None` for unrouted calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The name of the client; `None` for unknown callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The stage of the call; `None` if the proxy itself responded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The reason of the decision, as in the access log.
    pub reason: String,
    /// The request of the client.
    pub request: RecordedRequest,
    /// The response to the client; `None` if it received none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<RecordedResponse>,
    /// The places whose values were replaced by placeholders, such as `request.headers.x-token` or
    /// `response.body/result/token`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// True if the client received a whole response, and all bodies that were to be recorded are whole.
    pub complete: bool,
}

/// The request of a recorded call, as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRequest {
    /// The HTTP method.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The recorded headers; names are in lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Headers,
    /// The body.
    #[serde(default, skip_serializing_if = "RecordedBody::is_empty")]
    pub body: RecordedBody,
}

/// The response of a recorded call, as the client received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The side of the migration that responded.
    pub from: Responder,
    /// The reason of the failure that the response reports, as in the access log; `None` for responses of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The recorded headers; names are in lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Headers,
    /// The body.
    #[serde(default, skip_serializing_if = "RecordedBody::is_empty")]
    pub body: RecordedBody,
    /// The microseconds from the start of the call to the last byte of the response.
    pub latency_us: u64,
}

/// The program that made a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Responder {
    /// The server of the caller's side.
    Old,
    /// The server of the other side; the response is translated.
    New,
    /// The proxy itself.
    Proxy,
}

impl Responder {
    /// Returns the word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Responder::Old => "old",
            Responder::New => "new",
            Responder::Proxy => "proxy",
        }
    }
}

/// The side as the word that configuration, metrics and logs use.
mod side_word {
    use dualgauge_patterns::side::Side;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(super) fn serialize<S: Serializer>(side: &Side, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(side.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Side, D::Error> {
        let word = String::deserialize(deserializer)?;
        let mut sides = Side::ALL.into_iter();
        sides
            .find(|side| side.as_str() == word)
            .ok_or_else(|| D::Error::custom(format!("`{word}` is no side: it is `rest` or `rpc`")))
    }
}
