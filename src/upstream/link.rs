//! Upstreams that all callers of the process reach over one persistent link.
//!
//! Exactly one task owns a link, on a thread that serves no calls. [`run_link`] runs the state machine of
//! [`dualgauge_model::pending`] over any [`Transport`]. Each worker holds a [`LinkUpstream`], which sends requests to the
//! task through a bounded channel; every request carries a reply channel. A caller that goes away closes its reply
//! channel, which the task notices.

mod balance;
mod cancel;
mod client_queue;
mod handle;
mod notifications;
mod pending_caller;
mod per_client;
mod reply_slot;
mod rotation;
mod routes;
mod state;
mod stats;
mod subscriber_set;
mod subscribers;
mod task;
mod transport;
mod upstream;

pub use balance::balance;
pub use cancel::CancelSignal;
pub use handle::{LinkHandle, LinkRequest, RequestReceiver, WeakLinkHandle, open};
pub use notifications::{
    LinkLost, LinkReply, LostBy, Notification, NotificationReceiver, NotificationSender,
    QueuePermit, channel,
};
pub use per_client::{
    AuthorizedLinks, ClientLinks, LinkLaunch, LinkLimits, LinkOpener, LinkPermit, LinkSharing,
    LinkSlots, WeakLinkOpener, opener,
};
pub use reply_slot::{CallListener, ServerRequest, SuspendedCall};
pub use rotation::rotate;
pub use routes::{LinkRoute, Links};
pub use stats::{Delivery, LinkGauges, LinkLoss, LinkStats, StatsHandle};
pub use task::run_link;
pub use transport::{Event, Link, Transport};
pub use upstream::{LinkIdentity, LinkUpstream, Requester, SubscriptionReceiver};

#[cfg(test)]
mod tests;
