//! The servers behind the proxy: HTTP pools, links that calls share, and sockets of legacy protocols.
//!
//! An upstream knows its plan; it knows neither routes nor flags. The crate `dualgauge-net` has the connections and their
//! I/O layers.
//!
//! Used by `app`, `cli`, `gateway`, `server` and `upstream`.

mod callers;
mod client_queue;
mod http;
mod idle_timer;
mod legacy_socket;
pub mod link;
mod mcp;
mod stdio;
mod websocket;

pub use http::HttpUpstream;
pub use idle_timer::{Activity, IdleAction, IdleTimer};
pub use legacy_socket::{
    ClientConnections, LegacyServerMessage, LegacySocketUpstream, PendingReply, SocketCall,
    SocketCallError, SocketContext, SocketReply, SocketRequest,
};
pub use mcp::{Mcp, Session, SseServer, SseSession};
pub use stdio::{Child, Stdio};
pub use websocket::WebSocket;

use std::rc::Rc;

use link::LinkUpstream;

use dualgauge_model::plan::UpstreamPlan;

/// A server behind the proxy, within one worker.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// Each call has its own connection or stream.
    Http(Rc<HttpUpstream>),
    /// All calls of the process share one link.
    Link(Rc<LinkUpstream>),
    /// Each client connection has a socket, on which the server exchanges frames.
    Frames(Rc<LegacySocketUpstream>),
}

impl Upstream {
    /// Returns the plan of the upstream.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        match self {
            Upstream::Http(http) => http.plan(),
            Upstream::Link(link) => link.plan(),
            Upstream::Frames(frames) => frames.plan(),
        }
    }

    /// Returns the HTTP upstream, if it is one.
    #[must_use]
    pub fn http(&self) -> Option<&Rc<HttpUpstream>> {
        match self {
            Upstream::Http(http) => Some(http),
            Upstream::Link(_) | Upstream::Frames(_) => None,
        }
    }

    /// Returns the frame server, if it is one.
    #[must_use]
    pub fn frames(&self) -> Option<&Rc<LegacySocketUpstream>> {
        match self {
            Upstream::Frames(frames) => Some(frames),
            Upstream::Http(_) | Upstream::Link(_) => None,
        }
    }
}
