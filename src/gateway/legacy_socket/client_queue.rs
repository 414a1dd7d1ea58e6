//! The outgoing queue from a socket's task to its client, in order of occurrence: server messages, and replies to
//! callers.
//!
//! A reply is sent after the server messages that precede it, and carries their number, so that the receiver of both
//! can keep the server's order. Law: every item is sent, the end last, unless the client is gone.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::pending;
use std::rc::Rc;

use tokio::sync::mpsc;

use super::connections::{
    SequencedSocketReply, ServerNews, SocketCallError, SocketReply, SocketReplySender,
};
use crate::upstream::link::Delivery;

/// The sender to one client.
#[derive(Debug, Default, Clone)]
pub(super) struct ClientSender {
    news: Option<mpsc::Sender<ServerNews>>,
    /// The number of server messages sent so far, over all sockets.
    sent: Rc<Cell<u64>>,
    /// True once a socket that uses this sender has closed.
    lost: Rc<Cell<bool>>,
}

impl ClientSender {
    /// Creates a sender to this receiver.
    pub(super) fn to(news: mpsc::Sender<ServerNews>) -> ClientSender {
        ClientSender {
            news: Some(news),
            sent: Rc::default(),
            lost: Rc::default(),
        }
    }

    /// Returns true if the client receives server messages.
    pub(super) fn has_receiver(&self) -> bool {
        self.news.is_some()
    }

    /// Returns true if a receiving client has lost a socket; such a client gets no new one.
    pub(super) fn has_lost(&self) -> bool {
        self.has_receiver() && self.lost.get()
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct SocketClientQueue {
    sender: ClientSender,
    waiting: VecDeque<QueuedItem>,
}

#[derive(Debug)]
enum QueuedItem {
    News(ServerNews),
    Answer(SocketReplySender, Result<SocketReply, SocketCallError>),
}

impl SocketClientQueue {
    pub(super) fn new(sender: ClientSender) -> SocketClientQueue {
        SocketClientQueue {
            sender,
            waiting: VecDeque::new(),
        }
    }

    /// Returns the number of queued items.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Marks the socket as lost, before the client has taken the end from the queue.
    pub(super) fn lose(&self) {
        self.sender.lost.set(true);
    }

    /// Queues a server message; returns whether the client has a receiver.
    pub(super) fn notify(&mut self, news: ServerNews) -> Delivery {
        if self.sender.news.is_none() {
            return Delivery::NoSubscriber;
        }
        self.waiting.push_back(QueuedItem::News(news));
        Delivery::Delivered
    }

    /// Replies to a caller, immediately if no server message is queued before it.
    pub(super) fn answer(
        &mut self,
        reply: SocketReplySender,
        said: Result<SocketReply, SocketCallError>,
    ) {
        self.waiting.push_back(QueuedItem::Answer(reply, said));
        self.answer_first();
    }

    fn answer_first(&mut self) {
        while let Some(QueuedItem::Answer(..)) = self.waiting.front() {
            if let Some(QueuedItem::Answer(reply, said)) = self.waiting.pop_front() {
                let behind = self.sender.sent.get();
                // A send fails only if the caller no longer waits.
                drop(reply.send(SequencedSocketReply { said, behind }));
            }
        }
    }

    /// Waits for capacity, and sends the first item. Cancel-safe. Pends forever if the queue is empty.
    pub(super) async fn go_on(&mut self) {
        let (Some(news), false) = (&self.sender.news, self.waiting.is_empty()) else {
            return pending().await;
        };
        let room = news.clone().reserve_owned().await;
        match (room, self.waiting.pop_front()) {
            (Ok(room), Some(QueuedItem::News(first))) => {
                drop(room.send(first));
                self.sender.sent.set(self.sender.sent.get() + 1);
            }
            (Ok(_), Some(QueuedItem::Answer(reply, said))) => self.answer(reply, said),
            (Ok(_), None) => {}
            (Err(_), first) => {
                // The client is gone; only replies to callers remain.
                self.sender.news = None;
                let all = first.into_iter().chain(std::mem::take(&mut self.waiting));
                self.waiting = all
                    .filter(|outgoing| matches!(outgoing, QueuedItem::Answer(..)))
                    .collect();
            }
        }
        self.answer_first();
    }

    /// Sends all items and then the end; waits until the client has taken them or is gone.
    pub(super) async fn end(mut self) {
        self.notify(ServerNews::Gone);
        while !self.is_empty() {
            self.go_on().await;
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
        News,
        Answer,
        GoOn,
        Take,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::News),
            Just(Step::Answer),
            Just(Step::GoOn),
            Just(Step::Take)
        ];
        prop::collection::vec(step, 0..40)
    }

    /// The messages that the client has taken, and the replies to callers with their expected positions.
    struct Scene {
        ear: mpsc::Receiver<ServerNews>,
        told: u64,
        taken: u64,
        answers: Vec<(u64, oneshot::Receiver<SequencedSocketReply>)>,
    }

    impl Scene {
        /// Returns true if that was the end.
        fn take(&mut self) -> bool {
            match self.ear.try_recv() {
                Ok(ServerNews::Event(number)) => {
                    assert_eq!(number, self.taken.to_string());
                    self.taken += 1;
                    false
                }
                Ok(ServerNews::Gone) => {
                    assert_eq!(self.taken, self.told);
                    true
                }
                Ok(ServerNews::Answer(_)) | Err(_) => false,
            }
        }

        /// Checks that each delivered reply finds the preceding messages in the client's channel.
        fn look(&mut self) {
            let here = self.taken + self.ear.len() as u64;
            self.answers
                .retain_mut(|(before, door)| match door.try_recv() {
                    Ok(told) => {
                        assert_eq!(told.behind, *before);
                        assert!(here >= *before);
                        false
                    }
                    Err(_) => true,
                });
        }
    }

    proptest! {
        #[test]
        fn all_goes_out_in_its_order_and_an_answer_knows_what_was_before_it(steps in steps()) {
            let (news, ear) = mpsc::channel(2);
            let mut outlet = SocketClientQueue::new(ClientSender::to(news));
            let mut scene = Scene { ear, told: 0, taken: 0, answers: Vec::new() };
            for step in steps {
                match step {
                    Step::News => {
                        outlet.notify(ServerNews::Event(scene.told.to_string().into()));
                        scene.told += 1;
                    }
                    Step::Answer => {
                        let (reply, door) = oneshot::channel();
                        scene.answers.push((scene.told, door));
                        outlet.answer(reply, Ok(SocketReply::Told));
                    }
                    Step::GoOn => {
                        outlet.go_on().now_or_never();
                    }
                    Step::Take => {
                        scene.take();
                    }
                }
                scene.look();
            }
            let mut end = Box::pin(outlet.end());
            let mut is_over = false;
            for _ in 0..200 {
                if !is_over {
                    is_over = (&mut end).now_or_never().is_some();
                }
                scene.look();
                if scene.take() {
                    break;
                }
            }
            prop_assert!(is_over && scene.answers.is_empty());
            prop_assert_eq!(scene.taken, scene.told);
        }

        #[test]
        fn of_a_client_that_is_gone_only_callers_are_told(steps in steps()) {
            let (news, ear) = mpsc::channel(2);
            let mut outlet = SocketClientQueue::new(ClientSender::to(news));
            drop(ear);
            let mut doors = Vec::new();
            for step in steps {
                if matches!(step, Step::News) {
                    outlet.notify(ServerNews::Event(Default::default()));
                } else {
                    let (reply, door) = oneshot::channel();
                    outlet.answer(reply, Ok(SocketReply::Told));
                    doors.push(door);
                }
            }
            prop_assert!(outlet.end().now_or_never().is_some());
            prop_assert!(doors.iter_mut().all(|door| door.try_recv().is_ok()));
        }
    }
}
