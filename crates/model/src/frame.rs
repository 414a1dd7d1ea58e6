//! Frames of a legacy socket ↔ JSON-RPC: classification, translation and correlation of replies.
//!
//! A command is the call of a route that has `frame` in place of `rest`; its answer is a frame by one of the route's
//! rows, or silence. [`translate`](self::command_to_rpc) is stateless. [`FrameCorrelator`] keeps the pending calls of a
//! connection to a server that speaks in frames. This module does no I/O and reads no clock: text and the time are
//! arguments.
//!
//! Used by `explain`, `local_reply`, `gateway` and `telemetry`.

mod classify;
mod correlator;
mod translate;
mod undelivered;
mod unrouted;

pub use classify::{SocketMessage, Unrecognized};
pub use correlator::{
    CorrelatorOutput, FrameCallError, FrameCommand, FrameCorrelator, FrameCounts, ObservedRequest,
};
pub use translate::{
    FrameReply, Framed, answer_to_frame, command_to_rpc, failure_to_frame, rpc_to_command,
};
pub use undelivered::Undelivered;

#[cfg(test)]
mod tests;
