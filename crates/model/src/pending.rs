//! Requests on a link: one connection that carries the messages of many callers, each under an id of the proxy's own.
//!
//! [`LinkMachine`] is a sans-io state machine for such a link, with any transport. It decides when to write, which
//! caller gets which reply, when to close the link and when to open the next. [`LinkInput`]s are events, with the
//! current time; [`LinkOutput`]s are actions for the owner. Times are durations since an instant chosen by the owner.
//!
//! Laws, checked by a seeded simulation:
//!
//! - Each caller gets exactly one result, by its deadline, unless it cancels. The deadline is extended while it answers
//!   requests of the server.
//! - A reply reaches only the caller that sent the request.
//! - A request is sent again at most once, and only if it may be repeated or the server did not accept it. It is sent
//!   on a new link, or after the transport reported its failure.
//! - Every list is bounded, and empty when no request is pending.
//!
//! Used in most modules.

mod events;
mod expected_result;
mod id_subscription_table;
mod id_subscriptions;
mod inbound;
mod link_machine;
mod listen_table;
mod listeners;
mod logging_in;
mod login;
mod outbound;
mod queue;
mod recipients;
mod requests;
mod server_requests;
mod settings;
mod state;
mod subscriptions;
mod ticket;
mod unattributed;

pub use events::{
    LinkFault, LinkInput, LinkOutput, Outbound, Priority, Request, RequestError, RetryRule,
};
pub use expected_result::ExpectedResult;
pub use id_subscription_table::SubscriptionCounts;
pub use link_machine::{LinkCounts, LinkMachine};
pub use login::{CallerCredential, LoginCall, LoginCounts, LoginOwner, LoginPart, LoginTemplate};
pub use recipients::{MessageOrigin, Recipients};
pub use server_requests::INPUT_TIMEOUT;
pub use settings::{
    AnswerOrder, Backoff, Heartbeat, LinkClients, LinkSettings, LogMessages, SUBSCRIPTIONS,
    ServerRequests,
};
pub use ticket::Ticket;

#[cfg(test)]
mod tests;
