//! The event stream of a posted call: the notifications of the server, then the reply (MCP 2025-11-25, "Sending
//! Messages to the Server").
//!
//! Laws: a notification that was sent before the reply is delivered before it; a slow client misses notifications
//! beyond the capacity of its receiver; a client that leaves cancels its call.
//!
//! Used by `response_body` and `rpc`.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::access_record::AccessRecord;
use super::response_observer::{Observer, notify_sent};
use super::undelivered::UndeliveredRecords;
use crate::upstream::link::{Notification, NotificationReceiver};
use dualgauge_model::sse;

/// A call being served, up to its reply.
pub(super) type ReplyFuture = Pin<Box<dyn Future<Output = ProgressReply>>>;

/// The reply that ends the stream.
#[derive(Debug, Default)]
pub(super) struct ProgressReply {
    /// The text of the reply; `None` for a call that its client cancelled.
    pub(super) text: Option<Bytes>,
    pub(super) observer: Option<Observer>,
}

/// The notifications of a call, followed by its answer.
pub(super) struct ProgressStream {
    /// The notification that started the stream.
    first: Option<Notification>,
    notifications: NotificationReceiver,
    state: ProgressState,
    /// The record of the call, once it is answered.
    undelivered: Option<Rc<UndeliveredRecords>>,
    /// The record after the answer was handed out, if its delivery is observed.
    delivered: Vec<AccessRecord>,
}

/// The progress of the stream.
enum ProgressState {
    Serving(ReplyFuture),
    /// The call is answered; the answer follows the notifications sent before it.
    Answer(ProgressReply),
    Over,
}

impl fmt::Debug for ProgressStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressStream").finish_non_exhaustive()
    }
}

impl ProgressStream {
    /// Creates the stream that `first` starts, for a call that `serving` serves.
    pub(super) fn starting_with(
        first: Notification,
        notifications: NotificationReceiver,
        serving: ReplyFuture,
        undelivered: Option<Rc<UndeliveredRecords>>,
    ) -> ProgressStream {
        ProgressStream {
            first: Some(first),
            notifications,
            state: ProgressState::Serving(serving),
            undelivered,
            delivered: Vec::new(),
        }
    }

    /// Creates a stream that begins without a notification.
    pub(super) fn new(notifications: NotificationReceiver, serving: ReplyFuture) -> ProgressStream {
        ProgressStream {
            first: None,
            notifications,
            state: ProgressState::Serving(serving),
            undelivered: None,
            delivered: Vec::new(),
        }
    }

    /// Records that the client did not take the whole stream.
    pub(super) fn mark_undelivered(&mut self, cause: Option<&str>) {
        self.undelivered
            .iter()
            .for_each(|undelivered| undelivered.mark_undelivered(cause));
        for record in &mut self.delivered {
            record.mark_undelivered(cause);
        }
    }

    /// Returns true if nothing more follows.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, ProgressState::Over)
    }

    /// Polls for the next event.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(first) = self.first.take() {
                return Poll::Ready(format_event(first));
            }
            match &mut self.state {
                ProgressState::Serving(serving) => {
                    // Polls the call first: its answer determines which notifications precede it, and later ones wait.
                    let Poll::Ready(reply) = serving.as_mut().poll(cx) else {
                        return self.notifications.poll_next(cx).map(format_event);
                    };
                    self.state = ProgressState::Answer(reply);
                }
                ProgressState::Answer(reply) => {
                    if let Some(notification) = self.notifications.pending_before() {
                        return Poll::Ready(format_event(notification));
                    }
                    let ProgressReply { text, observer } = std::mem::take(reply);
                    self.delivered = self
                        .undelivered
                        .iter()
                        .flat_map(|undelivered| undelivered.take_records())
                        .collect();
                    notify_sent(observer);
                    self.state = ProgressState::Over;
                    return Poll::Ready(text.map(|text| sse::message(&text)));
                }
                ProgressState::Over => return Poll::Ready(None),
            }
        }
    }
}

/// Formats a notification as an event. The loss of a link is not reported: the call itself gets an answer.
fn format_event(notification: Notification) -> Option<Bytes> {
    match notification {
        Notification::Message(text, _) => Some(sse::message(&text)),
        Notification::Lost(_) => None,
    }
}
