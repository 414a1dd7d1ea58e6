//! Work in flight on a client's socket: running calls, queued messages, and answers to be written.
//!
//! The client is read ahead of the running calls, so that its close, its pongs and its cancellations are seen while
//! the
//! concurrency limit is reached. Laws: no more calls run than the limit; the queue is bounded by count and by bytes.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;

use crate::domain::jsonrpc::{LISTEN, PeerMessage, cancelled_id};
use crate::domain::plan::CANCELLED;
use crate::gateway::shadow::Candidate;
use crate::upstream::link::QueuePermit;

/// A message to the client, and the candidates to run once the client has it.
pub(super) struct OutboundMessage {
    pub(super) text: Bytes,
    pub(super) followed_by: Vec<Candidate>,
    /// The queue slot of a server notification; `None` for an answer.
    pub(super) permit: Option<QueuePermit>,
}

impl OutboundMessage {
    /// Creates a message without candidates.
    pub(super) fn alone(text: Bytes) -> OutboundMessage {
        OutboundMessage {
            text,
            followed_by: Vec::new(),
            permit: None,
        }
    }
}

/// The end of serving one message.
pub(super) enum ServeEnd {
    /// The message was served; holds its answer, if any.
    Replied(Option<OutboundMessage>),
    /// The message was forwarded unchanged. Its answer arrives separately; the future ends after that answer, and may
    /// return a further message.
    Forwarded(Pin<Box<dyn Future<Output = Option<Bytes>>>>),
}

/// A message being served.
pub(super) type ServeFuture = Pin<Box<dyn Future<Output = ServeEnd>>>;

/// The same, with its number.
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
    bounds: SessionLimits,
    calls: FuturesUnordered<Abortable<NumberedServe>>,
    /// Forwarded messages; they do not count against the concurrency limit.
    passing: FuturesUnordered<Pin<Box<dyn Future<Output = Option<Bytes>>>>>,
    /// The running calls that can be cancelled by id.
    running: Vec<RunningCall>,
    next: u64,
    waiting: VecDeque<QueuedMessage>,
    waiting_bytes: usize,
    /// Messages to be written.
    pub(super) replies: VecDeque<OutboundMessage>,
    /// The candidates to run after the message being written.
    pub(super) followed_by: Vec<Candidate>,
    /// The queue slot of the message being written.
    pub(super) room: Option<QueuePermit>,
}

impl InFlight {
    pub(super) fn new(bounds: SessionLimits) -> InFlight {
        InFlight {
            bounds,
            calls: FuturesUnordered::new(),
            passing: FuturesUnordered::new(),
            running: Vec::new(),
            next: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            replies: VecDeque::new(),
            followed_by: Vec::new(),
            room: None,
        }
    }

    /// Queues a message. A cancellation ends the call that it names, running or queued, and is then served like any
    /// other message. `recall` runs before the call ends, and returns the ids that upstreams know it by.
    pub(super) fn receive(&mut self, message: Bytes, recall: impl FnOnce(&Bytes) -> Vec<u64>) {
        let mut wanted = None;
        let id = match PeerMessage::new(&message, self.bounds.depth) {
            PeerMessage::Request { id, method } => {
                let kind = match method == LISTEN {
                    true => CallKind::Subscription,
                    false => CallKind::Call,
                };
                Some((Bytes::copy_from_slice(id.as_bytes()), kind))
            }
            PeerMessage::Notification { method } if method == CANCELLED => {
                wanted = cancelled_id(&message, self.bounds.depth);
                None
            }
            PeerMessage::Notification { .. }
            | PeerMessage::Answer(_)
            | PeerMessage::Unaddressed
            | PeerMessage::Misnumbered(_)
            | PeerMessage::Noise => None,
        };
        let minted = wanted.as_ref().map_or_else(Vec::new, recall);
        if let Some(wanted) = &wanted {
            self.cancel(wanted);
        }
        self.waiting_bytes += message.len();
        let message = InboundMessage {
            text: message,
            upstream_ids: minted,
        };
        self.waiting.push_back(QueuedMessage { id, message });
    }

    fn cancel(&mut self, wanted: &Bytes) {
        for running in &self.running {
            if running.id == *wanted {
                running.end.abort();
            }
        }
        let bytes = &mut self.waiting_bytes;
        self.waiting.retain(|waiting| {
            let stays = waiting.id.as_ref().map(|(id, _)| id) != Some(wanted);
            if !stays {
                *bytes -= waiting.message.text.len();
            }
            stays
        });
    }

    /// Starts queued messages up to the concurrency limit.
    pub(super) fn begin(&mut self, mut serve: impl FnMut(InboundMessage) -> ServeFuture) {
        while self.open() < self.bounds.concurrency {
            let Some(QueuedMessage { id, message }) = self.waiting.pop_front() else {
                return;
            };
            self.waiting_bytes -= message.text.len();
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
    pub(super) async fn served(&mut self) -> Option<OutboundMessage> {
        let served = tokio::select! {
            biased;
            Some(served) = self.calls.next() => served,
            Some(said) = self.passing.next() => return said.map(OutboundMessage::alone),
            else => return std::future::pending().await,
        };
        let Ok((number, ended)) = served else {
            self.running.retain(|running| !running.end.is_aborted());
            return None;
        };
        self.running.retain(|running| running.number != number);
        match ended {
            ServeEnd::Replied(reply) => reply,
            ServeEnd::Forwarded(passing) => {
                self.passing.push(passing);
                None
            }
        }
    }

    /// Marks the current message as written: runs its candidates and frees its queue slot.
    pub(super) fn written(&mut self) {
        self.followed_by.drain(..).for_each(Candidate::start);
        self.room = None;
    }

    /// Returns the number of messages that count against the concurrency limit: calls being served and unwritten
    /// answers. Subscriptions are free, up to as many as the limit.
    fn open(&self) -> usize {
        let running = self.running.iter();
        let subscriptions = running.filter(|running| running.kind == CallKind::Subscription);
        let free = subscriptions.count().min(self.bounds.concurrency);
        self.calls.len() - free + self.replies.len()
    }

    /// Returns the number of unfinished messages.
    pub(super) fn count(&self) -> usize {
        self.calls.len() + self.replies.len() + self.waiting.len() + self.passing.len()
    }

    /// Returns true if more may be read from the client.
    pub(super) fn has_capacity(&self) -> bool {
        self.waiting.len() < self.bounds.ahead && self.waiting_bytes < self.bounds.bytes
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
    fn begin(underway: &mut InFlight) -> Vec<Bytes> {
        let begun = Rc::<RefCell<Vec<Bytes>>>::default();
        underway.begin(|message| {
            begun.borrow_mut().push(message.text.clone());
            if matches!(
                PeerMessage::new(&message.text, 8),
                PeerMessage::Request { .. }
            ) {
                return Box::pin(std::future::pending());
            }
            Box::pin(std::future::ready(ServeEnd::Replied(None)))
        });
        Rc::try_unwrap(begun).unwrap().into_inner()
    }

    #[test]
    fn what_waits_is_bounded_and_begins_in_its_turn() {
        let mut underway = InFlight::new(BOUNDS);
        for id in ["1", "2", "3", "4"] {
            assert!(underway.has_capacity());
            underway.receive(call(id), |_| Vec::new());
            begin(&mut underway);
        }
        assert!(!underway.has_capacity());
        assert_eq!(underway.count(), 4);
        underway.receive(cancelled("1"), |_| Vec::new());
        assert!(underway.served().now_or_never().is_some());
        assert_eq!(begin(&mut underway), [call("3")]);
        let mut underway = InFlight::new(BOUNDS);
        underway.receive(format!("[{}]", "1,".repeat(60)).into(), |_| Vec::new());
        assert!(!underway.has_capacity());
    }

    #[test]
    fn subscriptions_keep_no_call_from_being_served_and_are_bounded() {
        let listen = |id: u64| -> Bytes {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{LISTEN}"}}"#).into()
        };
        let mut underway = InFlight::new(BOUNDS);
        for message in [listen(1), listen(2), listen(3), call("4")] {
            underway.receive(message, |_| Vec::new());
            assert_eq!(begin(&mut underway).len(), 1);
        }
        // The third of them counts as the call does.
        underway.receive(call("5"), |_| Vec::new());
        assert_eq!(begin(&mut underway), Vec::<Bytes>::new());
        assert_eq!(underway.count(), 5);
        underway.receive(cancelled("1"), |_| Vec::new());
        assert!(underway.served().now_or_never().is_some());
        assert_eq!(begin(&mut underway), [call("5")]);
    }

    #[test]
    fn a_call_is_cancelled_by_its_own_id_while_it_runs_and_while_it_waits() {
        let mut underway = InFlight::new(BOUNDS);
        for id in ["1", "\"1\"", "3"] {
            underway.receive(call(id), |_| Vec::new());
            begin(&mut underway);
        }
        underway.receive(cancelled("7"), |_| Vec::new());
        assert!(underway.served().now_or_never().is_none());
        underway.receive(cancelled("3"), |_| Vec::new());
        underway.receive(cancelled("\"1\""), |_| Vec::new());
        assert!(underway.served().now_or_never().is_some());
        // The notifications themselves are served as well.
        let begun = begin(&mut underway);
        assert_eq!(begun, [cancelled("7")]);
        assert!(underway.served().now_or_never().is_some());
        assert_eq!(begin(&mut underway), [cancelled("3")]);
        assert_eq!(underway.running.len(), 1);
        assert_eq!(underway.running[0].id, "1");
    }
}
