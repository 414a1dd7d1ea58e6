//! Events for the client of a streamed response, in its format.

use bytes::Bytes;

use super::input::InputEvent;
use crate::sse::{EventContent, MESSAGE, Unwritable};
use crate::stream_format::StreamFormat;
use dualgauge_patterns::json::Json;

/// The type of an event with the error of a call: that of the REST and the JSON-RPC binding of A2A 1.0.
pub(super) const ERROR: &str = "error";

/// The content of one event for the client.
#[derive(Debug)]
pub(super) struct Output<'a> {
    pub(super) event: &'a str,
    /// The new id, if it changes.
    pub(super) id: Option<&'a str>,
    pub(super) data: String,
}

/// The reason why an event cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum OutputError {
    #[error(transparent)]
    Event(#[from] Unwritable),
    #[error("a line of JSON cannot hold text that is not JSON")]
    NotJson,
}

impl Output<'_> {
    /// Writes the event in place of `source`, whose other fields and line ends stay.
    pub(super) fn write(
        self,
        source: &InputEvent,
        format: StreamFormat,
    ) -> Result<Bytes, OutputError> {
        match (source, format) {
            (InputEvent::Event { block, .. }, StreamFormat::EventStream) => {
                let content = EventContent {
                    event: self.event,
                    data: &self.data,
                    id: self.id,
                };
                Ok(block.rewritten(content)?.into())
            }
            (InputEvent::Event { .. } | InputEvent::Line(_), _) => self.write_alone(format),
        }
    }

    /// Writes the last event of the stream, with line ends of its own: what follows it at the upstream is unknown.
    pub(super) fn write_last(self, format: StreamFormat) -> Result<Bytes, OutputError> {
        self.write_alone(format)
    }

    fn write_alone(self, format: StreamFormat) -> Result<Bytes, OutputError> {
        match format {
            StreamFormat::EventStream => {
                let mut out = String::with_capacity(self.data.len() + 32);
                if let Some(id) = self.id {
                    out.push_str(&format!("id: {id}\n"));
                }
                if self.event != MESSAGE {
                    out.push_str(&format!("event: {}\n", self.event));
                }
                for line in self.data.split('\n') {
                    out.push_str("data: ");
                    out.push_str(line);
                    out.push('\n');
                }
                out.push('\n');
                Ok(out.into())
            }
            StreamFormat::JsonLines => {
                let mut line = one_line(self.data.as_bytes());
                if Json::read(Bytes::copy_from_slice(line.as_bytes()), u16::MAX).is_err() {
                    return Err(OutputError::NotJson);
                }
                line.push('\n');
                Ok(line.into())
            }
        }
    }
}

/// Returns a complete response, which is JSON, as an event.
#[must_use]
pub fn single_event(json: &[u8]) -> String {
    format!("data: {}\n\n", one_line(json))
}

/// Returns JSON as one line: line ends between its parts are white space, so they become spaces.
pub(super) fn one_line(json: &[u8]) -> String {
    String::from_utf8_lossy(json).replace(['\r', '\n'], " ")
}

/// Returns text with the line ends of data: readers treat each kind as a line feed (§9.2.6).
pub(super) fn text_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}
