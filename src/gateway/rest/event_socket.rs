//! The events of a subscription for a REST client that asks for a WebSocket: each event is a message.
//!
//! The call is served as one for an event stream, whose body the task of the socket reads. Laws: one message for each event
//! with data, in order; at most one chunk of the body is buffered; a client that leaves drops the body, and the
//! subscription with it; messages of the client are read and ignored.
//!
//! Used by `rest`.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Response, StatusCode, request};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep_until;

use crate::gateway::call_context::CallContext;
use crate::gateway::headers::strip_websocket_handshake;
use crate::gateway::peers::Peer;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::stream_end::is_event_stream;
use crate::gateway::worker::Worker;
use crate::telemetry::metrics::LabelId;
use crate::upstream::{Activity, IdleAction, IdleTimer};
use dualgauge_model::failure::Failure;
use dualgauge_model::pending::Heartbeat;
use dualgauge_model::route::Route;
use dualgauge_model::sse::{EVENT_STREAM, RawEvent, SseReader, StreamPiece};
use dualgauge_model::stream::EventResultKind;
use dualgauge_model::websocket::{self, EventSocketStep};
use dualgauge_net::{CloseReason, MessageEvent, MessageStream, ReadMode, accept_key};
use dualgauge_patterns::side::Side;

/// The type of the event that is a failure (`response_stream`).
const ERROR: &str = "error";

/// The status code for a stream that ends with a failure (RFC 6455 §7.4.1).
const INTERNAL: u16 = 1011;

/// The reasons for closing the client's connection.
const ENDED: &str = "the events have ended";
const FAILED: &str = "the last event is a failure";

/// A client's request for the events of a subscription on a WebSocket.
pub(super) struct EventSocket {
    upgrade: OnUpgrade,
    accept: HeaderValue,
    route: SubscriptionRoute,
}

/// The route of a subscription, for metrics and the log.
struct SubscriptionRoute {
    label: LabelId,
    name: String,
}

/// The events that are too long for the client, which are not sent.
struct OversizeEvents<'a> {
    worker: &'a Worker,
    route: SubscriptionRoute,
    /// True if the log has the first one.
    is_logged: bool,
}

impl EventSocket {
    /// Turns the request for a WebSocket on `route` into one for an event stream; returns `None` for any other request.
    ///
    /// # Errors
    ///
    /// Fails if the handshake is invalid.
    pub(super) fn take(
        head: &mut request::Parts,
        context: &CallContext,
        route: &Route,
    ) -> Result<Option<EventSocket>, Failure> {
        if !websocket::is_asked(&head.method, &head.headers) {
            return Ok(None);
        }
        let accept = accept_key(websocket::handshake(&head.headers)?.key);
        let Ok(accept) = HeaderValue::try_from(accept) else {
            return Ok(None);
        };
        let upgrade = head.extensions.remove::<OnUpgrade>();
        strip_websocket_handshake(&mut head.headers);
        head.headers
            .insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        Ok(upgrade.map(|upgrade| EventSocket {
            upgrade,
            accept,
            route: SubscriptionRoute {
                label: context.label(),
                name: route.name.clone(),
            },
        }))
    }

    /// Opens the socket if the response is an event stream; else returns the response. The socket counts as a connection
    /// of `peer`.
    pub(super) fn open(
        self,
        response: Response<ResponseBody>,
        worker: &Rc<Worker>,
        peer: Option<Rc<Peer>>,
    ) -> Response<ResponseBody> {
        let (head, mut body) = response.into_parts();
        if head.status != StatusCode::OK || !is_event_stream(&head.headers) {
            return Response::from_parts(head, body);
        }
        let response = response::switch_to_websocket(Some(self.accept));
        body.set_client_status(response.status());
        let connection_guard = worker.count_connection(peer);
        let (task_worker, upgrade, route) = (worker.clone(), self.upgrade, self.route);
        worker.tasks().start(async move {
            let worker = task_worker;
            let limits = &worker.runtime_plan().plan.limits;
            // A failed upgrade means that the client has already left.
            if let Ok(upgraded) = upgrade.await {
                worker.count(|shard| shard.event_socket(EventSocketStep::Opened));
                let messages = MessageStream::server(TokioIo::new(upgraded), limits.body).await;
                let events = SseReader::new(limits.answer);
                let oversize = OversizeEvents {
                    worker: &worker,
                    route,
                    is_logged: false,
                };
                let end = Box::pin(pass_events(messages, body, events, oversize)).await;
                worker.count(|shard| shard.event_socket(end));
            }
            // The connection counts against the limits of connections until here.
            drop(connection_guard);
        });
        response
    }
}

/// Sends the events to the client until they end or the client leaves.
async fn pass_events<S: AsyncRead + AsyncWrite + Unpin>(
    mut messages: MessageStream<S>,
    mut body: ResponseBody,
    events: SseReader,
    mut oversize: OversizeEvents<'_>,
) -> EventSocketStep {
    let mut queue = EventQueue {
        events,
        waiting: VecDeque::new(),
        has_failed: false,
        end: None,
    };
    // A subscription may be silent, so only the heartbeat closes the connection.
    let activity = Activity::new(1);
    let mut idle_timer = IdleTimer::new(Heartbeat::OF_CLIENTS.every, Some(Heartbeat::OF_CLIENTS));
    let end = loop {
        if !messages.is_writing() {
            match (queue.waiting.pop_front(), queue.end) {
                (Some(message), _) => messages.send(message),
                (None, Some(end)) => break end,
                (None, None) => {}
            }
        }
        let is_reading = !messages.is_writing() && queue.end.is_none();
        let deadline = idle_timer.next_deadline();
        // Each branch is cancel-safe.
        tokio::select! {
            event = messages.next(ReadMode::Open) => match event {
                MessageEvent::Message(_) | MessageEvent::SignOfLife => idle_timer.on_received(),
                MessageEvent::Written => idle_timer.on_activity(),
                // `MessageEvent::Lost` follows.
                MessageEvent::Overlong => {}
                MessageEvent::Lost(_) => break EventSocketStep::Closed,
            },
            frame = body.frame(), if is_reading => {
                let chunk = frame.map(|frame| frame.ok().and_then(|frame| frame.into_data().ok()));
                oversize.count(queue.take(chunk));
            }
            () = sleep_until(deadline) => match idle_timer.action_when_paused(ReadMode::Open, activity) {
                IdleAction::Ping => messages.ping(),
                IdleAction::Wait => {}
                IdleAction::Close => break EventSocketStep::Closed,
            },
        }
    };
    // Ends the subscription before the closing handshake.
    drop(body);
    let reason = |code, text: &str| CloseReason {
        code,
        reason: text.to_owned(),
    };
    messages.set_close(match end {
        EventSocketStep::Failed => Some(reason(Some(INTERNAL), FAILED)),
        EventSocketStep::Ended => Some(reason(None, ENDED)),
        EventSocketStep::Closed | EventSocketStep::Opened => None,
    });
    messages.set_close(response::flood_reason(
        oversize.worker,
        messages.is_flooded(),
    ));
    messages.end().await;
    end
}

/// The events that were read and not yet sent.
struct EventQueue {
    events: SseReader,
    waiting: VecDeque<Bytes>,
    /// True if an event was a failure.
    has_failed: bool,
    /// The end of the stream, which follows the waiting events.
    end: Option<EventSocketStep>,
}

impl EventQueue {
    /// Takes a chunk of the stream: `None` at its end, and `Some(None)` if it broke off. Returns the number of events
    /// that are too long.
    fn take(&mut self, chunk: Option<Option<Bytes>>) -> u64 {
        let Some(chunk) = chunk else {
            self.end = Some(match self.has_failed {
                true => EventSocketStep::Failed,
                false => EventSocketStep::Ended,
            });
            return 0;
        };
        let Some(chunk) = chunk else {
            self.end = Some(EventSocketStep::Failed);
            return 0;
        };
        let mut oversize = 0;
        self.events.feed(&chunk);
        while let Some(piece) = self.events.next() {
            let text = match piece {
                StreamPiece::Event(text) => text,
                StreamPiece::Oversize => {
                    oversize += 1;
                    continue;
                }
                StreamPiece::Between(_) | StreamPiece::Feed(_) | StreamPiece::Unfinished(_) => {
                    continue;
                }
            };
            let Some(event) = RawEvent::read(&text) else {
                continue;
            };
            self.waiting.extend(event.dispatched_data());
            // The end of the stream follows, at which the call is reported.
            self.has_failed |= event.event() == ERROR;
        }
        oversize
    }
}

impl OversizeEvents<'_> {
    /// Counts events; the log has the first one of a socket.
    fn count(&mut self, events: u64) {
        for _ in 0..events {
            let kind = EventResultKind::Oversize;
            let route = self.route.label;
            self.worker
                .count(|shard| shard.event(route, Side::Rest, kind));
        }
        if events > 0 && !self.is_logged {
            self.is_logged = true;
            tracing::warn!(
                route = self.route.name,
                "an event longer than `limits.answer` was not sent to a client on a WebSocket; further ones are only counted"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oversize_event_is_counted_and_the_next_one_is_sent() {
        let mut queue = EventQueue {
            events: SseReader::new(64),
            waiting: VecDeque::new(),
            has_failed: false,
            end: None,
        };
        let oversize = ["x".repeat(100), "1".to_owned(), "y".repeat(100)]
            .map(|text| queue.take(Some(Some(format!("data: {text}\n\n").into()))));
        assert_eq!(oversize, [1, 0, 1]);
        assert_eq!(queue.waiting, [Bytes::from_static(b"1")]);
        assert_eq!(queue.end, None);
    }
}
