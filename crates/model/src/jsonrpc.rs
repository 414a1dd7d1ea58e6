//! JSON-RPC 2.0 messages: strict reading, and writing around values that keep their bytes.
//!
//! Reading distinguishes calls, notifications, responses and invalid messages, and keeps each id byte for byte. Laws:
//! an absent id and `"id": null` are different; an envelope member that is repeated, or in other letter case, is
//! rejected (two parsers must not read two methods); values nested deeper than the limit are rejected.
//!
//! Used by `config`, `model`, `gateway` and `upstream`.

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
pub use response::{
    ErrorObject, NoResult, Response, ResponseFault, ResponseReply, parse_response,
    parse_response_with,
};
pub use split_batch::split_batch;
pub(crate) use subscription::KEY as SUBSCRIPTION_KEY;
pub use subscription::{ACKNOWLEDGED, LISTEN, ended_subscription, subscription_of, with_client_id};
pub use template::RequestTemplate;
pub use write::{ExtraMembers, batch, error, notification, request, result};

#[cfg(test)]
mod tests;
