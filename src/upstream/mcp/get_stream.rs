//! The stream that a server with sessions has for itself, asked for by GET: what it says there answers no call
//! (MCP 2025-11-25, "Listening for Messages from the Server").
//!
//! A server may have none, and is not asked again then; its session is as it was. One that ends is asked for again, from
//! the event where it stood, after a rest that grows while nothing comes. One that is silent for too long is asked for
//! again as well: nobody would tell that the connection is gone. Laws: an event that is too large is not asked for twice;
//! no answer to a GET ends a session.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};

use super::coded::is_coded;
use super::post::{
    LAST_EVENT, LONGEST_REST, OTHER, PostClient, REST, SESSION, StreamCursor, parts,
};
use crate::domain::mcp::{FormerStream, NoStream, ResponseKind, kind_of, no_stream};
use crate::domain::pending::RequestError;
use crate::domain::sse::StreamPiece;
use crate::upstream::{Body, IncomingBody, Lease, collect_all};

/// Why a stream of the server's own is not followed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The server has none, and never will.
    Never,
    /// It gives none now.
    Refused,
    /// It gave one before. Whether it still knows the session has to be asked.
    Doubtful,
}

/// What a request for the stream came to.
enum OpenResult {
    Stream(IncomingBody, Lease),
    Later,
    End(StreamEnd),
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadEnd {
    /// Nothing more comes.
    Over,
    /// Nothing came for too long.
    Silent,
}

/// Whether the last event was one that nobody has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastEvent {
    Read,
    Lost,
}

impl PostClient {
    /// Hears what the server says by itself, for as long as it has a stream for that. Dropped, it closes the stream.
    pub(super) async fn follow(&self, headers: HeaderMap) -> StreamEnd {
        let mut place = StreamCursor::new(self.limit());
        let mut fruitless: u32 = 0;
        let mut former = FormerStream::None;
        loop {
            let before = place.heard;
            match self.open_own(headers.clone(), &place, former).await {
                OpenResult::End(why) => return why,
                OpenResult::Later => {}
                OpenResult::Stream(mut body, mut lease) => {
                    former = FormerStream::Opened;
                    place.begin(self.limit());
                    let (ended, last) = self.read_events(&mut body, &mut place).await;
                    lease.mark_unusable();
                    if last == LastEvent::Lost {
                        self.pass_over(&mut place);
                    }
                    if ended == ReadEnd::Silent {
                        // It is asked for at once, since a server may have nothing to say.
                        continue;
                    }
                }
            }
            fruitless = match place.heard == before {
                true => fruitless.saturating_add(1),
                false => 0,
            };
            sleep(wait_to_retry(place.rest, fruitless)).await;
        }
    }

    /// Hears a stream up to its end.
    async fn read_events(
        &self,
        body: &mut IncomingBody,
        place: &mut StreamCursor,
    ) -> (ReadEnd, LastEvent) {
        let mut last = LastEvent::Read;
        let ended = loop {
            while let Some(piece) = place.reader.next() {
                match piece {
                    StreamPiece::Event(event) => {
                        let before = place.last.clone();
                        self.event(&event, place, None).await;
                        if place.last != before {
                            last = LastEvent::Read;
                        }
                    }
                    StreamPiece::Oversize => last = LastEvent::Lost,
                    StreamPiece::Between(_) | StreamPiece::Feed(_) | StreamPiece::Unfinished(_) => {
                    }
                }
            }
            match timeout(self.plan().idle_timeout, body.frame()).await {
                Err(_) => break ReadEnd::Silent,
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        place.reader.feed(&data);
                    }
                }
                Ok(Some(Err(_)) | None) => break ReadEnd::Over,
            }
        };
        if place.reader.is_losing() {
            last = LastEvent::Lost;
        }
        (ended, last)
    }

    /// What was too large would come again behind the event before it.
    fn pass_over(&self, place: &mut StreamCursor) {
        let (upstream, limit) = (&self.plan().name, self.limit());
        tracing::warn!(
            upstream,
            limit,
            "an event on the server's own stream is too large; what followed it may be missed"
        );
        place.last = None;
    }

    async fn open_own(
        &self,
        mut headers: HeaderMap,
        place: &StreamCursor,
        former: FormerStream,
    ) -> OpenResult {
        let former = match headers.contains_key(SESSION) {
            true => former,
            false => FormerStream::None,
        };
        if let Some(last) = place.last.clone() {
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
                    "the server's own stream has a content coding; such a stream is not read"
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
        tracing::info!(upstream, status, "the server has no stream of its own");
        OpenResult::End(followed)
    }
}

/// How long to wait before the stream is asked for again: as the server wants, and longer while nothing comes.
fn wait_to_retry(said: Duration, fruitless: u32) -> Duration {
    let least = if fruitless > 1 { said.max(REST) } else { said };
    let longer = least.saturating_mul(1 << fruitless.saturating_sub(1).min(10));
    longer.min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_rests_longer_while_nothing_comes() {
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
