//! The wire inspector: follows HTTP/1.1 request framing on one connection and refuses what two parsers
//! could read in two ways.
//!
//! It stands before an HTTP parser that is more lenient, and passes bytes on unchanged. It knows lines,
//! lengths and chunks (RFC 9112), never routes or bodies' content, and does no I/O: it is fed slices.
//!
//! Laws: what is passed on is a prefix of what came in; neither that prefix nor the verdict depends on how
//! the input was cut into pieces ([`check_any_cut`]); nothing that follows a refusal is passed on; a
//! request inside the grammar and the limits is never refused.

mod body;
mod chatter;
mod chunk;
mod class;
mod field;
mod follower;
mod head;
mod http2;
mod interim;
mod law;
mod line;
mod reading;
mod response;
mod spelling;
mod target;
mod violation;
mod websocket;
mod whole;

#[cfg(test)]
mod tests;

pub use chatter::{Cut, Flood};
pub use follower::{Follower, Found, Limits, Place, Step};
pub use head::Te;
pub use http2::{has_padded_value, settle};
pub use interim::interim;
pub use law::check_any_cut;
pub use reading::Reading;
pub use response::{Ending, InvalidFraming, Leading, is_ready, leading, settle_response, unfold};
pub use spelling::Spelling;
pub use target::{RawTarget, RefusedLine, SentTarget, encode_raw};
pub use violation::Violation;
pub use websocket::FrameFlood;
pub use whole::Whole;

/// The value of the `te` field that the inspector adds to a request that has none.
///
/// hyper sends trailers only to a request with `te: trailers`; RFC 9110 §6.5.1 lets a gateway pass them on
/// without. A recipient takes the value out again where it is spelled exactly so.
pub const ADDED_TE: &str = "TRAILERS";
