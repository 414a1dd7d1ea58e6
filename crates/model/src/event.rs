//! Events: messages that a server sends without a request, in the form of each side.
//!
//! An event is declared, like an outcome, as a pair of patterns that share holes: a JSON-RPC notification, and a frame
//! of a legacy socket or an event of a stream. Every event is treated as one JSON value, so that there is one pattern
//! language and one order of patterns. This module does not split streams or sockets into events. Laws: the chosen pair
//! does not depend on the order of declaration, unless two pairs match the same events; the most specific matching pair
//! is chosen; an event that no pair matches stays unchanged.

mod definition;
mod draft;
mod table;
mod value;

pub use definition::{EventDefinition, EventForm};
pub use draft::{EventSource, OtherSide, RpcEventSource, SseSource};
pub use table::{EventAction, Events};
pub use value::{EventValue, SseFields};

#[cfg(test)]
mod tests;
