//! Frames of legacy sockets: commands of frame clients, calls of RPC clients to a frame server, and events in the form
//! of each client.
//!
//! [`dualgauge_model::frame`] interprets frames, and `upstream` owns the sockets. Like any other call, a command has
//! one record, one route and one decision.
//!
//! Used by `rpc` and `translate`.

mod call;
mod command;
mod events;

pub(super) use call::{send_rpc_call, socket_context};
pub(super) use command::{FrameClient, FrameOutcome, serve_frame};
pub(super) use events::format_event;
