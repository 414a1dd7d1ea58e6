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
use super::post::{Door, LAST_EVENT, LONGEST_REST, OTHER, Place, REST, SESSION, parts};
use crate::domain::mcp::{FormerStream, Looks, NoStream, looks, no_stream};
use crate::domain::pending::Unanswered;
use crate::domain::sse::Piece;
use crate::upstream::{Body, Inflow, Lease, read_whole};

/// Why a stream of the server's own is not followed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followed {
    /// The server has none, and never will.
    Never,
    /// It gives none now.
    Refused,
    /// It gave one before. Whether it still knows the session has to be asked.
    Doubtful,
}

/// What a request for the stream came to.
enum Opened {
    Stream(Inflow, Lease),
    Later,
    End(Followed),
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Nothing more comes.
    Over,
    /// Nothing came for too long.
    Silent,
}

/// Whether the last event was one that nobody has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Heard,
    Lost,
}

impl Door {
    /// Hears what the server says by itself, for as long as it has a stream for that. Dropped, it closes the stream.
    pub(super) async fn follow(&self, headers: HeaderMap) -> Followed {
        let mut place = Place::new(self.limit());
        let mut fruitless: u32 = 0;
        let mut former = FormerStream::None;
        loop {
            let before = place.heard;
            match self.open_own(headers.clone(), &place, former).await {
                Opened::End(why) => return why,
                Opened::Later => {}
                Opened::Stream(mut body, mut lease) => {
                    former = FormerStream::Opened;
                    place.begin(self.limit());
                    let (ended, last) = self.overhear(&mut body, &mut place).await;
                    lease.spoil();
                    if last == Last::Lost {
                        self.pass_over(&mut place);
                    }
                    if ended == Ended::Silent {
                        // It is asked for at once, since a server may have nothing to say.
                        continue;
                    }
                }
            }
            fruitless = match place.heard == before {
                true => fruitless.saturating_add(1),
                false => 0,
            };
            sleep(rest(place.rest, fruitless)).await;
        }
    }

    /// Hears a stream up to its end.
    async fn overhear(&self, body: &mut Inflow, place: &mut Place) -> (Ended, Last) {
        let mut last = Last::Heard;
        let ended = loop {
            while let Some(piece) = place.reader.next() {
                match piece {
                    Piece::Event(event) => {
                        let before = place.last.clone();
                        self.event(&event, place, None).await;
                        if place.last != before {
                            last = Last::Heard;
                        }
                    }
                    Piece::Oversize => last = Last::Lost,
                    Piece::Between(_) | Piece::Feed(_) | Piece::Unfinished(_) => {}
                }
            }
            match timeout(self.plan().idle_timeout, body.frame()).await {
                Err(_) => break Ended::Silent,
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        place.reader.feed(&data);
                    }
                }
                Ok(Some(Err(_)) | None) => break Ended::Over,
            }
        };
        if place.reader.is_losing() {
            last = Last::Lost;
        }
        (ended, last)
    }

    /// What was too large would come again behind the event before it.
    fn pass_over(&self, place: &mut Place) {
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
        place: &Place,
        former: FormerStream,
    ) -> Opened {
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
            Err(Unanswered::Unusable(_)) => return Opened::End(Followed::Refused),
            Err(_) => return Opened::Later,
        };
        let (head, body, lease) = parts(answered);
        let content_type = head.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        if looks(head.status.as_u16(), content_type) == Looks::Events {
            if is_coded(&head.headers) {
                let upstream = &self.plan().name;
                tracing::warn!(
                    upstream,
                    "the server's own stream has a content coding; such a stream is not read"
                );
                return Opened::End(Followed::Refused);
            }
            return Opened::Stream(body, lease);
        }
        if read_whole(body, OTHER).await.is_ok() {
            lease.release();
        }
        let status = head.status.as_u16();
        let followed = match no_stream(status, former) {
            NoStream::Later => return Opened::Later,
            NoStream::Never => Followed::Never,
            NoStream::Refused => Followed::Refused,
            NoStream::Doubtful => Followed::Doubtful,
        };
        let upstream = &self.plan().name;
        tracing::info!(upstream, status, "the server has no stream of its own");
        Opened::End(followed)
    }
}

/// How long to wait before the stream is asked for again: as the server wants, and longer while nothing comes.
fn rest(said: Duration, fruitless: u32) -> Duration {
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
        assert_eq!(rest(millis(10), 0), millis(10));
        assert_eq!(rest(millis(10), 1), millis(10));
        let all: Vec<_> = (2..9)
            .map(|fruitless| rest(millis(10), fruitless))
            .collect();
        let seconds = [2, 4, 8, 16, 30, 30, 30].map(Duration::from_secs);
        assert_eq!(all, seconds);
        assert_eq!(rest(LONGEST_REST, u32::MAX), LONGEST_REST);
    }
}
