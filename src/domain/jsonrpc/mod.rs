//! JSON-RPC 2.0 messages: read strictly, written around values that stay the bytes they were.
//!
//! Reading tells apart a call, a notification, a response and what is none of them, and keeps each id byte
//! for byte. Laws: an absent id and `"id": null` are different; a member of the envelope given twice, or in
//! other letter case, is refused (two parsers must not read two methods); nothing nested deeper than the
//! limit is looked at.

mod heard;
mod id;
mod loose;
mod message;
mod parts;
mod progress;
mod response;
mod subscription;
mod unnumbered;
mod write;

pub use heard::{Heard, recalled, recalling};
pub use id::RequestId;
pub use loose::{Loose, Reading, read_loosely};
pub use message::{Call, Incoming, Invalid, Item, MessageError, MessageLimits, parse};
pub use parts::parts;
pub use progress::{PROGRESS, retold, told_token};
pub use response::{ErrorObject, Reply, Response, ResponseFault, parse_response};
pub use subscription::{LISTEN, ended_subscription, of_subscription, told_subscription};
pub use unnumbered::Unnumbered;
pub use write::{Members, batch, error, notification, request, result};

#[cfg(test)]
mod tests;
