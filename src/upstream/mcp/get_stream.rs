//! The GET stream of a server with sessions, which carries messages that respond to no call (MCP 2025-11-25, "Listening
//! for Messages from the Server").
//!
//! A server may have none; it is not asked again, and its session stays valid. A stream that ends is resumed from its
//! last event, after a delay that grows while nothing arrives. A silent stream is resumed as well, because a lost
//! connection may go unnoticed. Laws: an oversize event is not requested twice; no response to a GET ends a session.
//!
//! Used by `mcp::session`.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};

use super::coded::is_coded;
use super::post::{LAST_EVENT, OTHER, PostClient, SESSION, parts};
use super::stream_cursor::{LONGEST_REST, REST, StreamCursor};
use dualgauge_model::mcp::{FormerStream, NoStream, ResponseKind, kind_of, no_stream};
use dualgauge_model::pending::RequestError;
use dualgauge_model::sse::StreamPiece;
use dualgauge_net::{Body, IncomingBody, Lease, collect_all};

/// The reason why the GET stream is no longer followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The server has no GET stream and never will.
    Never,
    /// The server refuses the stream now.
    Refused,
    /// The server had a stream before, so it must be asked if it still knows the session.
    Doubtful,
}

/// The result of a request for the stream.
enum OpenResult {
    Stream(IncomingBody, Lease),
    Later,
    End(StreamEnd),
}

/// The reason why reading a stream stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadEnd {
    /// The stream ended.
    Over,
    /// Nothing arrived within the idle timeout.
    Silent,
}

impl PostClient {
    /// Follows the GET stream and forwards its messages, as long as the server has one. Dropping the future closes the
    /// stream.
    pub(super) async fn follow(&self, headers: HeaderMap) -> StreamEnd {
        let mut cursor = StreamCursor::new(self.limit());
        let mut fruitless: u32 = 0;
        let mut former = FormerStream::None;
        loop {
            let before = cursor.received;
            match self.open_stream(headers.clone(), &cursor, former).await {
                OpenResult::End(why) => return why,
                OpenResult::Later => {}
                OpenResult::Stream(mut body, mut lease) => {
                    former = FormerStream::Opened;
                    cursor.begin(self.limit());
                    let ended = self.read_events(&mut body, &mut cursor).await;
                    lease.mark_unusable();
                    if ended == ReadEnd::Silent {
                        // It is resumed without a delay: the server may just have had nothing to send.
                        continue;
                    }
                }
            }
            fruitless = match cursor.received == before {
                true => fruitless.saturating_add(1),
                false => 0,
            };
            sleep(wait_to_retry(cursor.rest, fruitless)).await;
        }
    }

    /// Reads a stream to its end. The id of the last event is forgotten after an oversize event.
    async fn read_events(&self, body: &mut IncomingBody, cursor: &mut StreamCursor) -> ReadEnd {
        let mut is_last_lost = false;
        let ended = loop {
            while let Some(piece) = cursor.reader.next() {
                match piece {
                    StreamPiece::Event(event) => {
                        let before = cursor.last.clone();
                        self.event(&event, cursor, None).await;
                        if cursor.last != before {
                            is_last_lost = false;
                        }
                    }
                    StreamPiece::Oversize => is_last_lost = true,
                    StreamPiece::Between(_) | StreamPiece::Feed(_) | StreamPiece::Unfinished(_) => {
                    }
                }
            }
            match timeout(self.plan().idle_timeout, body.frame()).await {
                Err(_) => break ReadEnd::Silent,
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        cursor.reader.feed(&data);
                    }
                }
                Ok(Some(Err(_)) | None) => break ReadEnd::Over,
            }
        };
        if is_last_lost || cursor.reader.is_losing() {
            self.skip_oversize_event(cursor);
        }
        ended
    }

    /// Forgets the last event id: resuming from it would bring the oversize event again.
    fn skip_oversize_event(&self, cursor: &mut StreamCursor) {
        let (upstream, limit) = (&self.plan().name, self.limit());
        tracing::warn!(
            upstream,
            limit,
            "an event on the server's GET stream is too large; later events may be lost"
        );
        cursor.last = None;
    }

    async fn open_stream(
        &self,
        mut headers: HeaderMap,
        cursor: &StreamCursor,
        former: FormerStream,
    ) -> OpenResult {
        let former = match headers.contains_key(SESSION) {
            true => former,
            false => FormerStream::None,
        };
        if let Some(last) = cursor.last.clone() {
            headers.insert(LAST_EVENT, last);
        }
        let request = self.request(Method::GET, headers, Body::empty());
        let answered = match self.send(request).await {
            Ok(answered) => answered,
            Err(RequestError::Unusable(_)) => return OpenResult::End(StreamEnd::Refused),
            Err(_) => return OpenResult::Later,
        };
        let (head, body, lease) = parts(answered);
        let content_type = head.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        if kind_of(head.status.as_u16(), content_type) == ResponseKind::Events {
            if is_coded(&head.headers) {
                let upstream = &self.plan().name;
                tracing::warn!(
                    upstream,
                    "the server's GET stream has a content coding; it is ignored"
                );
                return OpenResult::End(StreamEnd::Refused);
            }
            return OpenResult::Stream(body, lease);
        }
        if collect_all(body, OTHER).await.is_ok() {
            lease.release();
        }
        let status = head.status.as_u16();
        let followed = match no_stream(status, former) {
            NoStream::Later => return OpenResult::Later,
            NoStream::Never => StreamEnd::Never,
            NoStream::Refused => StreamEnd::Refused,
            NoStream::Doubtful => StreamEnd::Doubtful,
        };
        let upstream = &self.plan().name;
        tracing::info!(upstream, status, "the server offers no GET stream");
        OpenResult::End(followed)
    }
}

/// Returns the delay before the next request: the one the server asks for, growing while nothing arrives.
fn wait_to_retry(said: Duration, fruitless: u32) -> Duration {
    let least = if fruitless > 1 { said.max(REST) } else { said };
    let longer = least.saturating_mul(1 << fruitless.saturating_sub(1).min(10));
    longer.min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_grows_while_no_event_arrives() {
        let millis = Duration::from_millis;
        assert_eq!(wait_to_retry(millis(10), 0), millis(10));
        assert_eq!(wait_to_retry(millis(10), 1), millis(10));
        let all: Vec<_> = (2..9)
            .map(|fruitless| wait_to_retry(millis(10), fruitless))
            .collect();
        let seconds = [2, 4, 8, 16, 30, 30, 30].map(Duration::from_secs);
        assert_eq!(all, seconds);
        assert_eq!(wait_to_retry(LONGEST_REST, u32::MAX), LONGEST_REST);
    }
}
