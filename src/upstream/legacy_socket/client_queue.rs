//! The outgoing queue from a socket's task to its client, in order of occurrence: server messages, and replies to
//! callers.
//!
//! A reply is sent after the server messages that precede it, and carries their number, so that the receiver of both
//! can keep the server's order. Law: every item is sent, the end last, unless the client is gone.
//!
//! Used by `legacy_socket::connection` and `legacy_socket::connections`.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::mpsc;

use super::request::{
    LegacyServerMessage, SequencedSocketReply, SocketCallError, SocketReply, SocketReplySender,
};
use crate::upstream::client_queue::{ClientChannel, ClientQueue};
use crate::upstream::link::Delivery;

/// The sender to one client.
#[derive(Debug, Default, Clone)]
pub(super) struct ClientSender {
    messages: Option<mpsc::Sender<LegacyServerMessage>>,
    /// The number of server messages sent so far, over all sockets.
    sent: Rc<Cell<u64>>,
    /// True once a socket that uses this sender has closed.
    lost: Rc<Cell<bool>>,
}

impl ClientSender {
    /// Creates a sender to this receiver.
    pub(super) fn new(messages: mpsc::Sender<LegacyServerMessage>) -> ClientSender {
        ClientSender {
            messages: Some(messages),
            sent: Rc::default(),
            lost: Rc::default(),
        }
    }

    /// Returns true if the client receives server messages.
    pub(super) fn has_receiver(&self) -> bool {
        self.messages.is_some()
    }

    /// Returns true if a receiving client has lost a socket; such a client gets no new one.
    pub(super) fn has_lost(&self) -> bool {
        self.has_receiver() && self.lost.get()
    }
}

/// A reply to a caller.
#[derive(Debug)]
pub(super) struct QueuedReply {
    reply: SocketReplySender,
    result: Result<SocketReply, SocketCallError>,
}

impl ClientChannel for ClientSender {
    type Message = LegacyServerMessage;
    type Permit = mpsc::OwnedPermit<LegacyServerMessage>;
    type Reply = QueuedReply;

    fn try_reserve(&self, _: &LegacyServerMessage) -> Option<Self::Permit> {
        self.messages.clone()?.try_reserve_owned().ok()
    }

    async fn reserve(&self, _: &LegacyServerMessage) -> Option<Self::Permit> {
        self.messages.clone()?.reserve_owned().await.ok()
    }

    fn send(&mut self, permit: Self::Permit, message: LegacyServerMessage) {
        drop(permit.send(message));
        self.sent.set(self.sent.get() + 1);
    }

    fn discard(&mut self, _: LegacyServerMessage) {
        // The client is gone; only replies to callers remain.
        self.messages = None;
    }

    fn reply(&mut self, queued: QueuedReply) {
        let sequence = self.sent.get();
        let result = queued.result;
        // A send fails only if the caller no longer waits.
        drop(queued.reply.send(SequencedSocketReply { result, sequence }));
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct SocketClientQueue(ClientQueue<ClientSender>);

impl SocketClientQueue {
    pub(super) fn new(sender: ClientSender) -> SocketClientQueue {
        SocketClientQueue(ClientQueue::new(sender))
    }

    /// Returns the number of queued items.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Marks the socket as lost, before the client has received [`LegacyServerMessage::Gone`].
    pub(super) fn mark_lost(&self) {
        self.0.channel().lost.set(true);
    }

    /// Queues a server message; returns whether the client has a receiver.
    pub(super) fn notify(&mut self, message: LegacyServerMessage) -> Delivery {
        if !self.0.channel().has_receiver() {
            return Delivery::NoSubscriber;
        }
        self.0.notify(message);
        Delivery::Delivered
    }

    /// Replies to a caller, immediately if no server message is queued before it.
    pub(super) fn answer(
        &mut self,
        reply: SocketReplySender,
        result: Result<SocketReply, SocketCallError>,
    ) {
        self.0.answer(QueuedReply { reply, result });
    }

    /// Waits for capacity, and sends the first item. Cancel-safe. Pends forever if the queue is empty.
    pub(super) async fn send_next(&mut self) {
        self.0.send_next().await;
    }

    /// Sends all items and then the end; waits until the client has received them or is gone.
    pub(super) async fn end(mut self) {
        self.notify(LegacyServerMessage::Gone);
        while !self.is_empty() {
            self.send_next().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::sync::oneshot;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Message,
        Answer,
        SendNext,
        Take,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::Message),
            Just(Step::Answer),
            Just(Step::SendNext),
            Just(Step::Take)
        ];
        prop::collection::vec(step, 0..40)
    }

    /// The messages that the client has received, and the replies to callers with their expected positions.
    struct Client {
        receiver: mpsc::Receiver<LegacyServerMessage>,
        notified: u64,
        received: u64,
        answers: Vec<(u64, oneshot::Receiver<SequencedSocketReply>)>,
    }

    impl Client {
        /// Returns true if that was the end.
        fn take(&mut self) -> bool {
            match self.receiver.try_recv() {
                Ok(LegacyServerMessage::Event(number)) => {
                    assert_eq!(number, self.received.to_string());
                    self.received += 1;
                    false
                }
                Ok(LegacyServerMessage::Gone) => {
                    assert_eq!(self.received, self.notified);
                    true
                }
                Ok(LegacyServerMessage::Answer(_)) | Err(_) => false,
            }
        }

        /// Checks that each delivered reply finds the preceding messages in the client's channel.
        fn check_replies(&mut self) {
            let available = self.received + self.receiver.len() as u64;
            self.answers.retain_mut(
                |(sequence, reply_receiver)| match reply_receiver.try_recv() {
                    Ok(reply) => {
                        assert_eq!(reply.sequence, *sequence);
                        assert!(available >= *sequence);
                        false
                    }
                    Err(_) => true,
                },
            );
        }
    }

    proptest! {
        #[test]
        fn messages_and_replies_keep_their_order(steps in steps()) {
            let (messages, receiver) = mpsc::channel(2);
            let mut queue = SocketClientQueue::new(ClientSender::new(messages));
            let mut client = Client { receiver, notified: 0, received: 0, answers: Vec::new() };
            for step in steps {
                match step {
                    Step::Message => {
                        queue.notify(LegacyServerMessage::Event(client.notified.to_string().into()));
                        client.notified += 1;
                    }
                    Step::Answer => {
                        let (reply, reply_receiver) = oneshot::channel();
                        client.answers.push((client.notified, reply_receiver));
                        queue.answer(reply, Ok(SocketReply::Sent));
                    }
                    Step::SendNext => {
                        queue.send_next().now_or_never();
                    }
                    Step::Take => {
                        client.take();
                    }
                }
                client.check_replies();
            }
            let mut end = Box::pin(queue.end());
            let mut is_over = false;
            for _ in 0..200 {
                if !is_over {
                    is_over = (&mut end).now_or_never().is_some();
                }
                client.check_replies();
                if client.take() {
                    break;
                }
            }
            prop_assert!(is_over && client.answers.is_empty());
            prop_assert_eq!(client.received, client.notified);
        }

        #[test]
        fn a_client_that_left_gets_no_messages_but_callers_get_replies(steps in steps()) {
            let (messages, receiver) = mpsc::channel(2);
            let mut queue = SocketClientQueue::new(ClientSender::new(messages));
            drop(receiver);
            let mut reply_receivers = Vec::new();
            for step in steps {
                if matches!(step, Step::Message) {
                    queue.notify(LegacyServerMessage::Event(Default::default()));
                } else {
                    let (reply, reply_receiver) = oneshot::channel();
                    queue.answer(reply, Ok(SocketReply::Sent));
                    reply_receivers.push(reply_receiver);
                }
            }
            prop_assert!(queue.end().now_or_never().is_some());
            prop_assert!(reply_receivers.iter_mut().all(|reply_receiver| reply_receiver.try_recv().is_ok()));
        }
    }
}
