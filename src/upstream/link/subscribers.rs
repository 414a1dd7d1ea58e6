//! Who hears what a server tells on a link.
//!
//! Over a link of one client everything is that client's. Over one that all share, [`Recipients`] say who hears it: one
//! caller, everybody who has asked something there and can be told, or nobody. Laws: the one client of a link is waited
//! for, and loses nothing; of those who share one nobody is waited for; whatever is not passed on is counted.

use bytes::Bytes;

use super::client_queue::LinkClientQueue;
use super::handle::ProgressSink;
use super::notifications::{self, LinkLost, NotificationSender, ReplySender};
use super::stats::Delivery;
use super::subscriber_set::{JoinResult, Subscriber, SubscriberSet};
use super::{LinkReply, LinkStats};
use crate::domain::jsonrpc::{progress_token, with_progress_token};
use crate::domain::pending::{Recipients, RequestError};

/// Those who hear.
#[derive(Debug)]
pub(super) struct Subscribers<'a> {
    /// The way to the one client whose link it is, if it is one's.
    pub(super) only: Option<LinkClientQueue<'a>>,
    all: SubscriberSet,
    upstream: &'a str,
    standing: &'a LinkStats,
}

impl<'a> Subscribers<'a> {
    pub(super) fn new(
        (only, all): (Option<NotificationSender>, SubscriberSet),
        (upstream, standing): (&'a str, &'a LinkStats),
    ) -> Subscribers<'a> {
        Subscribers {
            only: only.map(|ear| LinkClientQueue::new(ear, standing)),
            all,
            upstream,
            standing,
        }
    }

    /// One more hears what is everybody's.
    pub(super) fn join(&self, listener: Subscriber) {
        match self.all.join(listener) {
            JoinResult::Subscribed => {}
            JoinResult::First(most) => {
                let upstream = self.upstream;
                tracing::warn!(
                    upstream,
                    most,
                    "more clients than may listen to a link do, and those miss what the server tells to all"
                );
                self.standing.on_delivery(Delivery::QueueFull);
            }
            JoinResult::Not => self.standing.on_delivery(Delivery::QueueFull),
        }
    }

    /// Passes something on that the server tells: to the one caller who hears it, or by the calls that are open.
    pub(super) fn deliver<'p>(
        &mut self,
        (hearers, message): (Recipients, Bytes),
        (caller, mut open, depth): (
            Option<&NotificationSender>,
            impl Iterator<Item = &'p ProgressSink>,
            u16,
        ),
    ) {
        if let Some(only) = &mut self.only {
            return only.notify(message);
        }
        match hearers {
            Recipients::Token => {
                let token = progress_token(&message, depth);
                let of_call = open.find(|progress| Some(&progress.token) == token.as_ref());
                let told = of_call.and_then(|progress| {
                    let message = with_progress_token(&message, &progress.said, depth)?;
                    Some(self.notify(&progress.to, message))
                });
                self.count(told);
            }
            Recipients::Caller(_) => self.count(caller.map(|ear| self.notify(ear, message))),
            // They have it from another link, and would have it twice.
            Recipients::All if self.all.add() => {}
            Recipients::All => {
                let tell = |listener: &NotificationSender| self.notify(listener, message.clone());
                self.count(self.all.each(tell));
            }
            Recipients::Nobody => self.count([]),
        }
    }

    /// Whether all is one client's.
    pub(super) fn is_of_one(&self) -> bool {
        self.only.is_some()
    }

    /// Passes on what is no message of JSON-RPC, to the one client whose link it is: it may know what that means.
    pub(super) fn deliver_raw(&mut self, message: Bytes) {
        if let Some(only) = &mut self.only {
            only.notify(message);
        }
    }

    /// Answers a caller, behind what its client was told before.
    pub(super) fn answer(
        &mut self,
        (reply, ear): (ReplySender, Option<NotificationSender>),
        said: Result<LinkReply, RequestError>,
    ) {
        match &mut self.only {
            Some(only) => only.answer((reply, ear), said),
            None => notifications::answer(reply, ear.as_ref(), said),
        }
    }

    /// Nothing more is told; the one client whose link it is hears of its loss.
    pub(super) async fn end(self, loss: Option<LinkLost>) {
        if let Some(only) = self.only {
            only.end(loss).await;
        }
    }

    /// A link that others share is not held up by one that does not keep up: it misses some.
    fn notify(&self, listener: &NotificationSender, message: Bytes) -> Delivery {
        let fate = listener.notify(message);
        if fate == Delivery::QueueFull && listener.start_missing() {
            let upstream = self.upstream;
            tracing::warn!(
                upstream,
                "a client is too slow for what the server tells, and misses some"
            );
        }
        fate
    }

    fn count(&self, fates: impl IntoIterator<Item = Delivery>) {
        let mut fates = fates.into_iter().peekable();
        if fates.peek().is_none() {
            self.standing.on_delivery(Delivery::NoSubscriber);
        }
        fates.for_each(|fate| self.standing.on_delivery(fate));
    }
}
