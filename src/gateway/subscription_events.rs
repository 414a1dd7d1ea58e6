//! The notifications of a subscription, as a stream of JSON-RPC responses to the call that opened it.
//!
//! The outcome rows of the route therefore translate them like the events of any response that streams. Laws: one event for
//! each notification, in order; the end of the link or a client that is too slow ends the stream with a failure; the
//! server is told when the stream is dropped.
//!
//! Used by `subscribed_call`, `streamed_call` and `translated_stream`.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Sleep;

use crate::telemetry::clock;
use crate::upstream::link::{LinkLost, LostBy, Notification, SubscriptionReceiver};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, RequestId};
use dualgauge_model::sse;
use dualgauge_model::subscription::SubscriptionRule;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

/// The silence after which the client is sent a comment, so that it and the intermediaries keep the connection (WHATWG
/// HTML §9.2.7).
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The comment.
const COMMENT: &[u8] = b":\n\n";

/// A part of a stream.
pub(super) enum SourcePart {
    /// Bytes of events.
    Chunk(Bytes),
    /// A message without an event.
    Unmatched,
}

/// The notifications of a subscription.
pub(super) struct SubscriptionEvents {
    notifications: SubscriptionReceiver,
    rule: Arc<SubscriptionRule>,
    /// The id of the call on the link.
    id: RequestId,
    depth: u16,
    keep_alive: Pin<Box<Sleep>>,
}

impl fmt::Debug for SubscriptionEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionEvents").finish_non_exhaustive()
    }
}

impl SubscriptionEvents {
    /// Creates the stream of the subscription that the call `id` has opened.
    pub(super) fn new(
        notifications: SubscriptionReceiver,
        rule: Arc<SubscriptionRule>,
        id: u64,
        depth: u16,
    ) -> SubscriptionEvents {
        SubscriptionEvents {
            notifications,
            rule,
            id: RequestId::from_number(id),
            depth,
            keep_alive: Box::pin(tokio::time::sleep_until(clock::now() + KEEP_ALIVE)),
        }
    }

    /// Returns the next part of the stream, or the failure that ends it.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<SourcePart, Failure>> {
        let part = match self.notifications.poll_next(cx) {
            Poll::Ready(Notification::Message(text, _)) => Ok(self.event(text)),
            Poll::Ready(Notification::Lost(loss)) => Err(failure(&loss)),
            Poll::Pending if self.keep_alive.as_mut().poll(cx).is_ready() => {
                Ok(SourcePart::Chunk(Bytes::from_static(COMMENT)))
            }
            Poll::Pending => return Poll::Pending,
        };
        self.keep_alive.as_mut().reset(clock::now() + KEEP_ALIVE);
        Poll::Ready(part)
    }

    /// Returns a notification as a response to the call.
    fn event(&self, notification: Bytes) -> SourcePart {
        let Some(event) = self.rule.event(notification, self.depth) else {
            return SourcePart::Unmatched;
        };
        let result = Rope::from(Json::into_bytes(event));
        let response = jsonrpc::result(&self.id, result).into_bytes();
        SourcePart::Chunk(sse::untyped(&response))
    }
}

/// Returns the failure that ends the stream of a client.
fn failure(loss: &LinkLost) -> Failure {
    let cause = |what: &str| format!("the link to the upstream `{}` {what}", loss.upstream);
    match loss.through {
        LostBy::Server => {
            let message = "the connection to the server broke, and the subscription with it; events may be missing until you subscribe again";
            Failure::new(Reason::UpstreamCut, message).because(cause("broke"))
        }
        LostBy::Plan => {
            let message = "the connection to the server was replaced, and the subscription ended; events may be missing until you subscribe again";
            Failure::new(Reason::UpstreamCut, message).because(cause("takes no more calls"))
        }
        LostBy::Client => {
            let message = "the client reads its events too slowly, and the subscription ended; events are missing";
            Failure::new(Reason::RequestTimeout, message)
        }
    }
}
