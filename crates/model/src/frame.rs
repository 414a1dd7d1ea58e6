//! Frames of a legacy socket ↔ JSON-RPC: classification, translation and correlation of replies.
//!
//! A command is the call of a route that has `frame` in place of `rest`; its answer is a frame by one of the route's
//! rows, or silence. [`translate`](self::command_to_rpc) is stateless. [`FrameMachine`] keeps the pending calls of a
//! connection to a server that speaks in frames, and its frames to write. This module does no I/O and reads no clock:
//! text and the time are arguments.
//!
//! Used by `explain`, `local_reply`, `upstream`, `gateway` and `telemetry`.

mod classify;
mod context;
mod law;
mod machine;
mod pending_frame;
mod translate;
mod undelivered;

pub use classify::{SocketMessage, Unrecognized};
pub use context::{ClientFrame, FrameCommand, FrameContext};
pub use law::check_any_message;
pub use machine::{FrameCallError, FrameCounts, FrameMachine, FrameOutput};
pub use translate::{FrameReply, answer_to_frame, command_to_rpc};
pub use undelivered::Undelivered;

#[cfg(test)]
mod tests;
