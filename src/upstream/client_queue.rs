//! The outgoing queue of a connection that belongs to one client: messages of the server and replies to callers, in
//! order of occurrence.
//!
//! A message waits until the channel to the client has capacity for it; a reply waits only for the messages before it.
//! Law: everything is sent in order, the end last, unless the client is gone or the owner drops the messages. The
//! owner bounds the queue: it does not read the server while too much waits.
//!
//! Used by `legacy_socket::client_queue` and `link::client_queue`.

use std::collections::VecDeque;
use std::future::pending;

/// The channel to one client.
pub(super) trait ClientChannel {
    /// A message of the server.
    type Message;
    /// A permit for the capacity that a message takes.
    type Permit;
    /// A reply to a caller.
    type Reply;

    /// Returns a permit if there is capacity.
    fn try_reserve(&self, message: &Self::Message) -> Option<Self::Permit>;

    /// Waits for a permit; cancel-safe. Returns `None` if the client is gone.
    async fn reserve(&self, message: &Self::Message) -> Option<Self::Permit>;

    /// Sends a message.
    fn send(&mut self, permit: Self::Permit, message: Self::Message);

    /// Drops a message that the client does not get.
    fn discard(&mut self, message: Self::Message);

    /// Sends a reply.
    fn reply(&mut self, reply: Self::Reply);
}

/// The queue.
#[derive(Debug)]
pub(super) struct ClientQueue<C: ClientChannel> {
    channel: C,
    waiting: VecDeque<QueuedItem<C::Message, C::Reply>>,
}

#[derive(Debug)]
enum QueuedItem<M, R> {
    Message(M),
    Reply(R),
}

impl<C: ClientChannel> ClientQueue<C> {
    pub(super) fn new(channel: C) -> ClientQueue<C> {
        ClientQueue {
            channel,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn channel(&self) -> &C {
        &self.channel
    }

    pub(super) fn channel_mut(&mut self) -> &mut C {
        &mut self.channel
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of messages and replies that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Queues a message.
    pub(super) fn notify(&mut self, message: C::Message) {
        self.waiting.push_back(QueuedItem::Message(message));
        self.advance();
    }

    /// Queues a reply.
    pub(super) fn answer(&mut self, reply: C::Reply) {
        self.waiting.push_back(QueuedItem::Reply(reply));
        self.advance();
    }

    /// Sends everything that the channel has capacity for.
    fn advance(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            match first {
                QueuedItem::Message(message) => match self.channel.try_reserve(&message) {
                    Some(permit) => self.channel.send(permit, message),
                    None => return self.waiting.push_front(QueuedItem::Message(message)),
                },
                QueuedItem::Reply(reply) => self.channel.reply(reply),
            }
        }
    }

    /// Waits for capacity for the first message and sends it; cancel-safe. Pends forever while nothing waits.
    pub(super) async fn send_next(&mut self) {
        // Replies leave the queue at once, so the first item is a message.
        let Some(QueuedItem::Message(message)) = self.waiting.front() else {
            return pending().await;
        };
        match self.channel.reserve(message).await {
            Some(permit) => {
                if let Some(QueuedItem::Message(message)) = self.waiting.pop_front() {
                    self.channel.send(permit, message);
                }
                self.advance();
            }
            None => self.drop_messages(),
        }
    }

    /// Drops the queued messages; replies are still sent.
    pub(super) fn drop_messages(&mut self) {
        for item in std::mem::take(&mut self.waiting) {
            match item {
                QueuedItem::Message(message) => self.channel.discard(message),
                QueuedItem::Reply(reply) => self.channel.reply(reply),
            }
        }
    }
}
