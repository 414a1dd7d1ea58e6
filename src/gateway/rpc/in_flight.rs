//! Work in flight on a client's socket: running calls, queued messages, and answers to be written.
//!
//! The client is read ahead of the running calls, so that its close, its pongs and its cancellations are seen
//! while the concurrency limit is reached. Laws: no more calls run than the limit; the queue is bounded by count and by
//! bytes.
//!
//! Used by `rpc::server_messages` and `rpc::websocket_session`.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;

use crate::gateway::legacy_socket::FrameEnd;
use crate::gateway::response_observer::{Observer, notify_sent};
use crate::upstream::link::QueuePermit;
use dualgauge_model::jsonrpc::{LISTEN, PeerMessage, cancelled_id};
use dualgauge_model::plan::CANCELLED;

/// A message to the client, and the observers of the answers in it.
pub(super) struct OutboundMessage {
    /// The message; `None` if the client has the answers by the messages before.
    pub(super) text: Option<Bytes>,
    pub(super) observers: Vec<Observer>,
    /// The queue slot of a server notification; `None` for an answer.
    pub(super) permit: Option<QueuePermit>,
}

impl OutboundMessage {
    /// Creates a message without observers.
    pub(super) fn new(text: Bytes) -> OutboundMessage {
        OutboundMessage {
            text: Some(text),
            observers: Vec::new(),
            permit: None,
        }
    }

    /// Creates the message at the end of the call of a frame; `None` if nothing is left to send or observe.
    pub(super) fn of_frame(end: FrameEnd) -> Option<OutboundMessage> {
        let FrameEnd { text, observer } = end;
        (text.is_some() || observer.is_some()).then(|| OutboundMessage {
            text,
            observers: observer.into_iter().collect(),
            permit: None,
        })
    }
}

/// The end of serving one message.
pub(super) enum ServeEnd {
    /// The message was served; holds its answer, if any.
    Replied(Option<OutboundMessage>),
    /// The message was forwarded unchanged. Its answer arrives separately; the future ends after that answer, and may
    /// return a further message.
    Forwarded(ForwardedFuture),
}

/// A forwarded message that waits for its answer.
type ForwardedFuture = Pin<Box<dyn Future<Output = Option<OutboundMessage>>>>;

/// A message being served.
pub(super) type ServeFuture = Pin<Box<dyn Future<Output = ServeEnd>>>;

/// A message being served; the output includes its number.
type NumberedServe = Pin<Box<dyn Future<Output = (u64, ServeEnd)>>>;

/// The limits of a client's socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionLimits {
    /// The maximum number of messages served concurrently.
    pub(super) concurrency: usize,
    /// The maximum number of queued messages.
    pub(super) ahead: usize,
    /// The maximum number of queued bytes.
    pub(super) bytes: usize,
    /// The maximum nesting depth of a message.
    pub(super) depth: u16,
}

/// A message from the client.
pub(super) struct InboundMessage {
    pub(super) text: Bytes,
    /// Ids under which HTTP upstreams know the call that this message cancels.
    pub(super) upstream_ids: Vec<u64>,
}

/// The kind of a call; a subscription is long-lived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Call,
    Subscription,
}

/// A queued message.
struct QueuedMessage {
    /// The id and kind, if the message is a single call.
    id: Option<(Bytes, CallKind)>,
    message: InboundMessage,
}

/// A running call.
struct RunningCall {
    number: u64,
    id: Bytes,
    kind: CallKind,
    end: AbortHandle,
}

/// The work in flight on one socket.
pub(super) struct InFlight {
    limits: SessionLimits,
    calls: FuturesUnordered<Abortable<NumberedServe>>,
    /// Forwarded messages; they do not count against the concurrency limit.
    forwarded: FuturesUnordered<ForwardedFuture>,
    /// The running calls that can be cancelled by id.
    running: Vec<RunningCall>,
    next: u64,
    queued: VecDeque<QueuedMessage>,
    queued_bytes: usize,
    /// Messages to be written.
    pub(super) replies: VecDeque<OutboundMessage>,
    /// The observers of the message being written.
    pub(super) observers: Vec<Observer>,
    /// The queue slot of the message being written.
    pub(super) permit: Option<QueuePermit>,
}

impl InFlight {
    pub(super) fn new(limits: SessionLimits) -> InFlight {
        InFlight {
            limits,
            calls: FuturesUnordered::new(),
            forwarded: FuturesUnordered::new(),
            running: Vec::new(),
            next: 0,
            queued: VecDeque::new(),
            queued_bytes: 0,
            replies: VecDeque::new(),
            observers: Vec::new(),
            permit: None,
        }
    }

    /// Queues a message. A cancellation ends the call that it names, running or queued, and is then served like any
    /// other message. `on_cancel` runs before the call ends, and returns the ids under which upstreams know the call.
    pub(super) fn receive(&mut self, message: Bytes, on_cancel: impl FnOnce(&Bytes) -> Vec<u64>) {
        let mut target_id = None;
        let id = match PeerMessage::new(&message, self.limits.depth) {
            PeerMessage::Request { id, method } => {
                let kind = match method == LISTEN {
                    true => CallKind::Subscription,
                    false => CallKind::Call,
                };
                Some((Bytes::copy_from_slice(id.as_bytes()), kind))
            }
            PeerMessage::Notification { method } if method == CANCELLED => {
                target_id = cancelled_id(&message, self.limits.depth);
                None
            }
            PeerMessage::Notification { .. }
            | PeerMessage::Answer(_)
            | PeerMessage::Unaddressed
            | PeerMessage::Misnumbered(_)
            | PeerMessage::NotAMessage => None,
        };
        let upstream_ids = target_id.as_ref().map_or_else(Vec::new, on_cancel);
        if let Some(target_id) = &target_id {
            self.cancel(target_id);
        }
        self.queued_bytes += message.len();
        let message = InboundMessage {
            text: message,
            upstream_ids,
        };
        self.queued.push_back(QueuedMessage { id, message });
    }

    fn cancel(&mut self, target_id: &Bytes) {
        for running in &self.running {
            if running.id == *target_id {
                running.end.abort();
            }
        }
        let bytes = &mut self.queued_bytes;
        self.queued.retain(|queued| {
            let is_kept = queued.id.as_ref().map(|(id, _)| id) != Some(target_id);
            if !is_kept {
                *bytes -= queued.message.text.len();
            }
            is_kept
        });
    }

    /// Starts queued messages up to the concurrency limit.
    pub(super) fn start_queued(&mut self, mut serve: impl FnMut(InboundMessage) -> ServeFuture) {
        while self.active() < self.limits.concurrency {
            let Some(QueuedMessage { id, message }) = self.queued.pop_front() else {
                return;
            };
            self.queued_bytes -= message.text.len();
            let number = self.next;
            self.next += 1;
            let serving = serve(message);
            let (end, registration) = AbortHandle::new_pair();
            if let Some((id, kind)) = id {
                self.running.push(RunningCall {
                    number,
                    id,
                    kind,
                    end,
                });
            }
            let serving: NumberedServe = Box::pin(async move { (number, serving.await) });
            self.calls.push(Abortable::new(serving, registration));
        }
    }

    /// Waits for a message to be served, and returns its answer, if any. Cancel-safe. Pends forever if no message is
    /// served.
    pub(super) async fn next_served(&mut self) -> Option<OutboundMessage> {
        let served = tokio::select! {
            biased;
            Some(served) = self.calls.next() => served,
            Some(reply) = self.forwarded.next() => return reply,
            else => return std::future::pending().await,
        };
        let Ok((number, end)) = served else {
            self.running.retain(|running| !running.end.is_aborted());
            return None;
        };
        self.running.retain(|running| running.number != number);
        match end {
            ServeEnd::Replied(reply) => reply,
            ServeEnd::Forwarded(forwarded) => {
                self.forwarded.push(forwarded);
                None
            }
        }
    }

    /// Marks the current message as written: notifies its observers and frees its queue slot.
    pub(super) fn on_written(&mut self) {
        notify_sent(self.observers.drain(..));
        self.permit = None;
    }

    /// Returns the number of messages that count against the concurrency limit: calls being served and unwritten
    /// answers. Subscriptions are free, up to as many as the limit.
    fn active(&self) -> usize {
        let running = self.running.iter();
        let subscriptions = running.filter(|running| running.kind == CallKind::Subscription);
        let free = subscriptions.count().min(self.limits.concurrency);
        self.calls.len() - free + self.replies.len()
    }

    /// Returns the number of unfinished messages.
    pub(super) fn count(&self) -> usize {
        self.calls.len() + self.replies.len() + self.queued.len() + self.forwarded.len()
    }

    /// Returns true if more may be read from the client.
    pub(super) fn has_capacity(&self) -> bool {
        self.queued.len() < self.limits.ahead && self.queued_bytes < self.limits.bytes
    }

    /// Returns true if more may be read from a client that has not yet responded to a request for input: up to twice the
    /// usual limits.
    pub(super) fn has_capacity_for_response(&self) -> bool {
        let SessionLimits { ahead, bytes, .. } = self.limits;
        self.queued.len() < 2 * ahead && self.queued_bytes < 2 * bytes
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use futures_util::FutureExt;

    use super::*;

    const BOUNDS: SessionLimits = SessionLimits {
        concurrency: 2,
        ahead: 2,
        bytes: 100,
        depth: 8,
    };

    fn call(id: &str) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#).into()
    }

    fn cancelled(id: &str) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","method":"{CANCELLED}","params":{{"requestId":{id}}}}}"#)
            .into()
    }

    /// Starts queued messages, and never answers a call; returns the started messages.
    fn start_queued(in_flight: &mut InFlight) -> Vec<Bytes> {
        let started = Rc::<RefCell<Vec<Bytes>>>::default();
        in_flight.start_queued(|message| {
            started.borrow_mut().push(message.text.clone());
            if matches!(
                PeerMessage::new(&message.text, 8),
                PeerMessage::Request { .. }
            ) {
                return Box::pin(std::future::pending());
            }
            Box::pin(std::future::ready(ServeEnd::Replied(None)))
        });
        Rc::try_unwrap(started).unwrap().into_inner()
    }

    #[test]
    fn queued_messages_are_bounded_and_start_in_order() {
        let mut in_flight = InFlight::new(BOUNDS);
        for id in ["1", "2", "3", "4"] {
            assert!(in_flight.has_capacity());
            in_flight.receive(call(id), |_| Vec::new());
            start_queued(&mut in_flight);
        }
        assert!(!in_flight.has_capacity());
        assert_eq!(in_flight.count(), 4);
        in_flight.receive(cancelled("1"), |_| Vec::new());
        assert!(in_flight.next_served().now_or_never().is_some());
        assert_eq!(start_queued(&mut in_flight), [call("3")]);
        let mut in_flight = InFlight::new(BOUNDS);
        in_flight.receive(format!("[{}]", "1,".repeat(60)).into(), |_| Vec::new());
        assert!(!in_flight.has_capacity());
    }

    #[test]
    fn subscriptions_do_not_block_calls_and_are_bounded() {
        let listen = |id: u64| -> Bytes {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{LISTEN}"}}"#).into()
        };
        let mut in_flight = InFlight::new(BOUNDS);
        for message in [listen(1), listen(2), listen(3), call("4")] {
            in_flight.receive(message, |_| Vec::new());
            assert_eq!(start_queued(&mut in_flight).len(), 1);
        }
        // The third of them counts as the call does.
        in_flight.receive(call("5"), |_| Vec::new());
        assert_eq!(start_queued(&mut in_flight), Vec::<Bytes>::new());
        assert_eq!(in_flight.count(), 5);
        in_flight.receive(cancelled("1"), |_| Vec::new());
        assert!(in_flight.next_served().now_or_never().is_some());
        assert_eq!(start_queued(&mut in_flight), [call("5")]);
    }

    #[test]
    fn a_running_or_queued_call_is_cancelled_by_its_id() {
        let mut in_flight = InFlight::new(BOUNDS);
        for id in ["1", "\"1\"", "3"] {
            in_flight.receive(call(id), |_| Vec::new());
            start_queued(&mut in_flight);
        }
        in_flight.receive(cancelled("7"), |_| Vec::new());
        assert!(in_flight.next_served().now_or_never().is_none());
        in_flight.receive(cancelled("3"), |_| Vec::new());
        in_flight.receive(cancelled("\"1\""), |_| Vec::new());
        assert!(in_flight.next_served().now_or_never().is_some());
        // The notifications themselves are served as well.
        let started = start_queued(&mut in_flight);
        assert_eq!(started, [cancelled("7")]);
        assert!(in_flight.next_served().now_or_never().is_some());
        assert_eq!(start_queued(&mut in_flight), [cancelled("3")]);
        assert_eq!(in_flight.running.len(), 1);
        assert_eq!(in_flight.running[0].id, "1");
    }
}
