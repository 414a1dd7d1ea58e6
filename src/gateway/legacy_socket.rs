//! Frames of legacy sockets: commands of frame clients, calls of RPC clients to a frame server, and events in the form
//! of each client.
//!
//! [`crate::domain::frame`] interprets frames. Like any other call, a command has one record, one route and one
//! decision.
//!
//! Used by `gateway`, `rpc` and `translate`.

mod call;
mod client_queue;
mod command;
mod connection;
mod connections;
mod events;

pub(super) use call::send_rpc_call;
pub(super) use command::{FrameClient, FrameOutcome, serve_frame};
pub(super) use connections::{ClientConnections, LegacyServerMessage};
pub(super) use events::format_event;
