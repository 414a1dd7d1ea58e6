//! Upstreams that are spoken to over one link for all callers of the process.
//!
//! Exactly one task owns a link, on a thread that serves no calls: [`own`] conducts it by
//! [`crate::domain::pending`], whatever its [`Transport`] is. Workers hold a [`LinkUpstream`] each: questions go to the
//! owner through a bounded channel, each with a door of its own for the answer. A caller that goes away closes its
//! door, which the owner sees.

mod balance;
mod cancel;
mod client_queue;
mod handle;
mod notifications;
mod per_client;
mod rotation;
mod state;
mod stats;
mod subscriber_set;
mod subscribers;
mod task;

pub use balance::spread;
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
pub use rotation::succeed;
pub use stats::{Delivery, LinkGauges, LinkStats, StatsHandle};
pub use task::own;

use bytes::Bytes;

use crate::domain::pending::RequestError;

/// Something that links can be opened to.
pub trait Transport: Clone + 'static {
    /// One of its links.
    type Link: Link + 'static;

    /// Opens a link. Dropped, it leaves nothing behind.
    fn open(&self) -> impl Future<Output = Result<Self::Link, String>>;
}

/// A link that carries messages both ways.
pub trait Link {
    /// The next thing that happens; cancel-safe.
    fn event(&mut self) -> impl Future<Output = Event>;

    /// The same while the server is not listened to, where the link can tell; cancel-safe.
    fn event_while_unread(&mut self) -> impl Future<Output = Event> {
        self.event()
    }

    /// Begins to write a message; [`Event::Written`] follows. Only one is written at a time.
    fn write(&mut self, message: Bytes);

    /// Asks for a sign of life; [`Event::Sign`] may follow.
    fn ping(&mut self);

    /// Ends the link in good order, within a time of its own.
    fn close(self) -> impl Future<Output = ()>;
}

/// What happens on a link.
#[derive(Debug)]
pub enum Event {
    /// The server said something.
    Message(Bytes),
    /// The server said something in the response stream of the question with this id.
    Aside(u64, Bytes),
    /// It said something that is longer than the limit.
    Overlong,
    /// The question with this id gets no answer, for a reason of its own.
    Failed(u64, RequestError),
    /// The server knows the link no longer, and has not taken this question.
    Forgotten(Option<u64>),
    /// What was to be written is written whole.
    Written,
    /// What was to be written reaches nobody.
    Unwritten(RequestError),
    /// A sign of life that is no message.
    Sign,
    /// Nothing more will come, for this reason.
    Lost(String),
}

#[cfg(test)]
mod tests;
