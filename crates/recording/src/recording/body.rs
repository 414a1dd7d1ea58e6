//! The bodies of recorded calls.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use dualgauge_patterns::json::Json;

/// The maximum depth of a body that is kept as JSON; a deeper one is kept as text.
pub const MAX_DEPTH: u16 = 512;

/// The body of a recorded request or response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RecordedBody {
    /// The message had no body.
    #[default]
    Empty,
    /// The message had a body of this many bytes, which was not recorded.
    Omitted(u64),
    /// A JSON text without white space outside of strings, at most [`MAX_DEPTH`] deep. Its numbers, escapes, and the
    /// order of its members are those of the message.
    Json(Json),
    /// Another text.
    Text(String),
    /// Other bytes.
    Bytes(Bytes),
}

impl RecordedBody {
    /// Returns the body with this content.
    #[must_use]
    pub fn new(content: &Bytes) -> RecordedBody {
        if content.is_empty() {
            return RecordedBody::Empty;
        }
        if let Ok(json) = Json::parse(content.clone(), MAX_DEPTH) {
            return RecordedBody::Json(json.compact());
        }
        match std::str::from_utf8(content) {
            Ok(text) => RecordedBody::Text(text.to_owned()),
            Err(_) => RecordedBody::Bytes(content.clone()),
        }
    }

    /// Returns true if the message had no body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == RecordedBody::Empty
    }

    /// Returns the content; `None` if it was not recorded.
    #[must_use]
    pub fn content(&self) -> Option<Bytes> {
        match self {
            RecordedBody::Empty => Some(Bytes::new()),
            RecordedBody::Omitted(_) => None,
            RecordedBody::Json(json) => Some(json.clone().into_bytes()),
            RecordedBody::Text(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
            RecordedBody::Bytes(content) => Some(content.clone()),
        }
    }
}

/// The body in the file: an object with one member.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BodyLine {
    Omitted(u64),
    Json(Box<RawValue>),
    Text(String),
    Base64(String),
}

impl Serialize for RecordedBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = match self {
            RecordedBody::Empty => return serializer.serialize_none(),
            RecordedBody::Omitted(length) => BodyLine::Omitted(*length),
            RecordedBody::Json(json) => {
                let text = String::from_utf8_lossy(json.as_bytes()).into_owned();
                BodyLine::Json(RawValue::from_string(text).map_err(serde::ser::Error::custom)?)
            }
            RecordedBody::Text(text) => BodyLine::Text(text.clone()),
            RecordedBody::Bytes(content) => BodyLine::Base64(STANDARD.encode(content)),
        };
        line.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RecordedBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RecordedBody, D::Error> {
        let Some(line) = Option::<BodyLine>::deserialize(deserializer)? else {
            return Ok(RecordedBody::Empty);
        };
        Ok(match line {
            BodyLine::Omitted(length) => RecordedBody::Omitted(length),
            BodyLine::Json(raw) => {
                let text = Bytes::from(Box::<str>::from(raw).into_string());
                let json = Json::parse(text, MAX_DEPTH);
                let json = json.map_err(|fault| D::Error::custom(format!("the body: {fault}")))?;
                RecordedBody::Json(json.compact())
            }
            BodyLine::Text(text) => RecordedBody::Text(text),
            BodyLine::Base64(text) => {
                let content = STANDARD.decode(text);
                let content =
                    content.map_err(|fault| D::Error::custom(format!("the body: {fault}")))?;
                RecordedBody::Bytes(content.into())
            }
        })
    }
}
