//! Upstreams that all callers of the process reach over one persistent link.
//!
//! Exactly one task owns a link, on a thread that serves no calls. [`run_link`] runs the state machine of
//! [`crate::domain::pending`] over any [`Transport`]. Each worker holds a [`LinkUpstream`], which sends requests to the
//! task through a bounded channel; every request carries a reply channel. A caller that goes away closes its reply
//! channel, which the task notices.

mod balance;
mod cancel;
mod client_queue;
mod handle;
mod notifications;
mod per_client;
mod reply_slot;
mod rotation;
mod state;
mod stats;
mod subscriber_set;
mod subscribers;
mod task;

pub use balance::balance;
pub use cancel::CancelSignal;
pub use handle::{
    LinkHandle, LinkReply, LinkRequest, LinkRoute, LinkUpstream, Links, RequestReceiver, Requester,
    WeakLinkHandle, open,
};
pub use notifications::{
    LinkLost, LostBy, Notification, NotificationReceiver, NotificationSender, QueuePermit, channel,
};
pub use per_client::{
    ClientLinks, LinkLaunch, LinkLimits, LinkOpener, LinkPermit, LinkSharing, LinkSlots,
    WeakLinkOpener, opener,
};
pub use rotation::rotate;
pub use stats::{Delivery, LinkGauges, LinkStats, StatsHandle};
pub use task::run_link;

use bytes::Bytes;

use crate::domain::pending::RequestError;

/// A transport on which links can be opened.
pub trait Transport: Clone + 'static {
    /// The type of its links.
    type Link: Link + 'static;

    /// Opens a link. Dropping the future leaves nothing behind.
    fn open(&self) -> impl Future<Output = Result<Self::Link, String>>;
}

/// A link that carries messages both ways.
pub trait Link {
    /// Waits for the next event; cancel-safe.
    fn event(&mut self) -> impl Future<Output = Event>;

    /// Waits for the next event without reading messages, if the link can tell them apart; cancel-safe.
    fn event_while_unread(&mut self) -> impl Future<Output = Event> {
        self.event()
    }

    /// Starts to write a message; [`Event::Written`] follows. Only one message is written at a time.
    fn write(&mut self, message: Bytes);

    /// Asks the server for a sign of life; [`Event::Sign`] may follow.
    fn ping(&mut self);

    /// Closes the link in good order, within a time limit of its own.
    fn close(self) -> impl Future<Output = ()>;
}

/// An event on a link.
#[derive(Debug)]
pub enum Event {
    /// The server sent a message.
    Message(Bytes),
    /// The server sent a message in the response stream of the request with this id.
    Aside(u64, Bytes),
    /// The server sent a message that exceeds the size limit.
    Overlong,
    /// The request with this id failed, and the link stays up.
    Failed(u64, RequestError),
    /// The server has forgotten the session, and did not accept the request with this id, if any.
    Forgotten(Option<u64>),
    /// The message was written completely.
    Written,
    /// The message could not be delivered.
    Unwritten(RequestError),
    /// A sign of life that is not a message.
    Sign,
    /// The link is lost for this reason; no more events follow.
    Lost(String),
}

#[cfg(test)]
mod tests;
