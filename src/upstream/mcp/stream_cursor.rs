//! The position in an event stream of a server, for resuming it. Used by `mcp::get_stream` and `mcp::post`.

use std::time::Duration;

use http::HeaderValue;

use super::post_outcome::PostOutcome;
use dualgauge_model::pending::RequestError;
use dualgauge_model::sse::{RawEvent, SseReader};

/// The default delay before a broken stream is resumed, and the maximum.
pub(super) const REST: Duration = Duration::from_secs(1);
pub(super) const LONGEST_REST: Duration = Duration::from_secs(30);

/// The position in a stream.
#[derive(Debug)]
pub(super) struct StreamCursor {
    /// The id of the last event, if it has one.
    pub(super) last: Option<HeaderValue>,
    /// The delay before the stream is resumed.
    pub(super) rest: Duration,
    /// The number of events received.
    pub(super) received: u64,
    /// True if the server has ended the stream, rather than a broken connection.
    pub(super) is_complete: bool,
    pub(super) reader: SseReader,
}

impl StreamCursor {
    /// Creates the start position of a stream whose events have at most `limit` bytes.
    pub(super) fn new(limit: usize) -> StreamCursor {
        StreamCursor {
            last: None,
            rest: REST,
            received: 0,
            is_complete: false,
            reader: SseReader::new(limit),
        }
    }

    /// Starts to read the stream again.
    pub(super) fn begin(&mut self, limit: usize) {
        self.is_complete = false;
        self.reader = SseReader::new(limit);
    }

    /// Returns the outcome of a request whose stream ended without a response and is not resumed.
    pub(super) fn outcome(&self) -> PostOutcome {
        match self.is_complete && self.last.is_none() {
            true => PostOutcome::Ended,
            // The server may still work on the request: it let the client resume the stream, or it may not know that
            // the connection is broken.
            false => PostOutcome::Failed(RequestError::Cut),
        }
    }

    /// Moves behind an event; `text` is its text.
    pub(super) fn advance(&mut self, event: &RawEvent, text: &[u8]) {
        self.received += 1;
        if let Some(last) = event.id() {
            self.last = HeaderValue::from_str(last)
                .ok()
                .filter(|last| !last.is_empty());
        }
        if let Some(rest) = retry(text) {
            self.rest = rest.min(LONGEST_REST);
        }
    }
}

/// Returns the delay that the server asks for before a broken stream is resumed (WHATWG HTML §9.2.6).
fn retry(event: &[u8]) -> Option<Duration> {
    let lines = event.split(|byte| matches!(byte, b'\r' | b'\n'));
    let value = lines
        .filter_map(|line| line.strip_prefix(b"retry:"))
        .next_back()?;
    let value = std::str::from_utf8(value).ok()?;
    let value = value.strip_prefix(' ').unwrap_or(value);
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let millis = digits.then(|| value.parse().unwrap_or(u64::MAX))?;
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_set_the_retry_delay_of_a_stream() {
        assert_eq!(
            retry(b"id: 1\r\nretry: 250\r\ndata:\r\n\r\n"),
            Some(Duration::from_millis(250))
        );
        for text in [
            "data: retry: 1\n\n",
            "retry: x\n\n",
            "retry:\n\n",
            "retry: -1\n\n",
        ] {
            assert_eq!(retry(text.as_bytes()), None, "{text}");
        }
    }
}
