//! Frames of legacy sockets: a client's commands on their way to either kind of server, an RPC client's calls on their
//! way to a server that speaks in frames, and events in the form that each client wants.
//!
//! What a frame means is known to [`crate::domain::frame`]; a frame is one call, with a record, a route and a decision as
//! every other one.

mod asked;
mod command;
mod outlet;
mod owner;
mod server;
mod told;

pub(super) use asked::rpc_call;
pub(super) use command::{Commander, Served, command};
pub(super) use server::{News, OwnSockets};
pub(super) use told::told;
