//! Frames of a legacy socket ↔ JSON-RPC: which of the two a message is, what it becomes, and whose answer it is.
//!
//! A command is the call of a route that has `frame` in place of `rest`; its answer is a frame by one of the route's
//! rows, or silence. [`translate`](self::command_to_rpc) needs no state. Before a server that speaks in frames,
//! [`FrameCorrelator`] knows who waits for what. Nothing here knows a socket or a clock: text comes in, and the time with it.

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
