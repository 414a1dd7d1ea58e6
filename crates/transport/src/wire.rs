//! The wire inspector: follows the HTTP/1.1 request framing of one connection, and rejects requests that two parsers
//! could read differently.
//!
//! It precedes an HTTP parser that is more lenient, and passes bytes on unchanged. It handles lines, lengths and chunks
//! (RFC 9112), never routes or the content of bodies. It does no I/O: its caller feeds it slices.
//!
//! Laws: the passed bytes are a prefix of the input; neither that prefix nor the verdict depends on how the input was
//! split into pieces ([`check_any_cut`]); nothing after a violation passes; a request within the grammar and the limits
//! is never rejected.

mod body;
mod chunk;
mod class;
mod complete_message;
mod field;
mod h2_flood;
mod head;
mod header_case;
mod http2;
mod inspector;
mod interim;
mod law;
mod line;
mod response;
mod response_case;
mod target;
mod violation;
mod websocket;

#[cfg(test)]
mod tests;

pub use complete_message::CompleteMessage;
pub use h2_flood::{FloodReason, FrameCounter};
pub use head::Te;
pub use header_case::HeaderCase;
pub use http2::{has_padded_value, settle};
pub use inspector::{Finding, HeadLimits, InspectorStep, MessagePosition, RequestInspector};
pub use interim::interim;
pub use law::check_any_cut;
pub use response::{
    BodyEnd, InvalidFraming, ResponseHead, is_ready, leading, settle_response, unfold,
};
pub use response_case::ResponseCaseReader;
pub use target::{RawTarget, RefusedLine, SentTarget, encode_raw};
pub use violation::Violation;
pub use websocket::FrameFlood;

/// The value of the `te` field that the inspector adds to a request that has none.
///
/// hyper sends trailers only for a request with `te: trailers`; RFC 9110 §6.5.1 lets a gateway forward them without it.
/// A later step removes the value if it has exactly this spelling.
pub const ADDED_TE: &str = "TRAILERS";
