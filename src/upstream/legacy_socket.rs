//! Servers that exchange frames over WebSockets, one for each client connection, since they keep state per socket.
//!
//! One task owns a socket, and reads and writes it. [`dualgauge_model::frame`] interprets the frames.
//!
//! Used by `gateway`.

mod client_queue;
mod connection;
mod connections;
mod request;
mod server;

pub use connection::SocketContext;
pub use connections::{ClientConnections, PendingReply};
pub use request::{LegacyServerMessage, SocketCall, SocketCallError, SocketReply, SocketRequest};
pub use server::LegacySocketUpstream;
