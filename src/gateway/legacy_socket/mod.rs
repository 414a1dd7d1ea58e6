//! Frames of legacy sockets: a client's commands on their way to either kind of server, an RPC client's calls on their
//! way to a server that speaks in frames, and events in the form that each client wants.
//!
//! What a frame means is known to [`crate::domain::frame`]; a frame is one call, with a record, a route and a decision as
//! every other one.

mod call;
mod client_queue;
mod command;
mod connection;
mod connections;
mod events;

pub(super) use call::rpc_call;
pub(super) use command::{FrameClient, FrameOutcome, command};
pub(super) use connections::{ClientConnections, ServerNews};
pub(super) use events::format_event;
