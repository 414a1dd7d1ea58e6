//! JSON-RPC 2.0 messages: read strictly, written around values that stay the bytes they were.
//!
//! Reading tells apart a call, a notification, a response and what is none of them, and keeps each id byte
//! for byte. Laws: an absent id and `"id": null` are different; a member of the envelope given twice, or in
//! other letter case, is refused (two parsers must not read two methods); nothing nested deeper than the
//! limit is looked at.

mod classify;
mod id;
mod loose;
mod message;
mod progress;
mod response;
mod split_batch;
mod subscription;
mod template;
mod write;

pub use classify::{PeerMessage, cancelled_id, with_cancelled_id};
pub use id::RequestId;
pub use loose::{Loose, LooseCall, read_loosely};
pub use message::{Call, Incoming, Invalid, MessageError, MessageItem, MessageLimits, parse};
pub use progress::{PROGRESS, progress_token, with_progress_token};
pub use response::{ErrorObject, Response, ResponseFault, ResponseReply, parse_response};
pub use split_batch::parts;
pub use subscription::{LISTEN, ended_subscription, of_subscription, subscription_of};
pub use template::RequestTemplate;
pub use write::{ExtraMembers, batch, error, notification, request, result};

#[cfg(test)]
mod tests;
