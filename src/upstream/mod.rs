//! Connections to the servers behind the proxy, the bodies that go there, and the tasks that serve them.
//!
//! A transport knows connections, frames and deadlines; it knows no route and no flag. Laws: a call is sent
//! twice only when nothing of the first one was sent, or when its effect allows it; a connection goes back
//! to the pool only after a whole answer to a whole request.

mod again;
mod alarm;
mod answering;
mod bell;
mod body;
mod coding;
mod connect;
mod connection;
mod deferring;
mod driven;
mod error;
mod framed;
mod frames;
mod heard;
mod http;
mod inflow;
mod interims;
mod late;
mod line;
mod lines;
pub mod link;
mod local;
mod mcp;
mod memory;
#[cfg(test)]
mod narrow;
mod opening;
mod outbox;
mod outgoing;
mod overlay;
mod permits;
mod placed;
mod places;
mod read;
mod socket;
mod stdio;
mod tap;
mod tape;
mod tasks;
mod trunk;
mod trunks;
mod upload_pace;
mod uploads;
mod watched;
mod websocket;
mod whole;
#[cfg(test)]
mod woken;

pub use again::{Heads, Manner, Passed, Repeat, Wants};
pub use alarm::Alarm;
pub use bell::{Bell, Ringer};
pub use body::{Body, BodyFault, Progress, Upload};
pub use coding::{Coding, CodingError};
pub use connect::{Connector, chain};
pub use deferring::{Deferring, Reins};
pub use error::UpstreamError;
pub use framed::{FramesPlace, FramesUpstream};
pub use frames::{Closing, Frames, Intake, accept_key};
pub use http::{Exchange, HttpUpstream, Lease};
pub use inflow::{Inflow, ReadWhole, Torn};
pub use interims::Interims;
pub use local::Local;
pub use mcp::{Mcp, Session};
pub use memory::{Full, Held, Memory};
pub use outbox::Outbox;
pub use outgoing::Outgoing;
pub use overlay::Overlay;
pub use permits::Permit;
pub use placed::{pinned, placed};
pub use places::Attempt;
pub use read::{Break, ReadFault, read_charged, read_kept, read_whole};
pub use socket::Socket;
pub use stdio::{Child, Stdio};
pub use tap::{Budget, Missing, Tap};
pub use tasks::Tasks;
pub use watched::Watched;
pub use websocket::WebSocket;
pub use whole::WholeBody;

use std::rc::Rc;

use link::LinkUpstream;

use crate::domain::plan::UpstreamPlan;

/// A server behind the proxy, as one worker sees it.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// Each call has a connection, as long as it lasts.
    Http(Rc<HttpUpstream>),
    /// All calls of the process share one link.
    Link(Rc<LinkUpstream>),
    /// Each connection of a client has a socket, on which the server speaks in frames.
    Frames(Rc<FramesUpstream>),
}

impl Upstream {
    /// What the plan says of it.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        match self {
            Upstream::Http(http) => http.plan(),
            Upstream::Link(link) => link.plan(),
            Upstream::Frames(frames) => frames.plan(),
        }
    }

    /// The same, where it speaks HTTP.
    #[must_use]
    pub fn http(&self) -> Option<&Rc<HttpUpstream>> {
        match self {
            Upstream::Http(http) => Some(http),
            Upstream::Link(_) | Upstream::Frames(_) => None,
        }
    }

    /// The same, where it speaks in frames.
    #[must_use]
    pub fn frames(&self) -> Option<&Rc<FramesUpstream>> {
        match self {
            Upstream::Frames(frames) => Some(frames),
            Upstream::Http(_) | Upstream::Link(_) => None,
        }
    }
}
