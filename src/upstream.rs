//! Connections to the servers behind the proxy, the bodies sent there, and the tasks that serve them.
//!
//! A transport knows connections, frames and deadlines; it knows neither routes nor flags. Laws: a call is sent twice
//! only if nothing of the first attempt was processed, or if its effect allows it; a connection returns to the pool
//! only after a complete response to a complete request.
//!
//! The I/O layers of a connection, from the HTTP library down to the kernel:
//!
//! ```text
//! HTTP/1.1 (`http1`)
//!   hyper             polled by the call or by a task: `ConnectionDriver`
//!   ReadinessGate     skips reads while the socket has no data
//!   TokioIo           adapts tokio's traits to hyper's
//!   ResponseReader    bounds and fixes response heads; `WireCapture` records or replaces requests
//!   Socket            CoalescingSocket over TCP, or TLS over TCP
//!
//! HTTP/2 (`http2`)
//!   hyper             polled by a task
//!   TokioIo           adapts tokio's traits to hyper's
//!   MonitoredSocket   counts frames to detect floods, and notifies of reads
//!   Socket            TCP, or TLS over TCP
//!
//! WebSocket (`message_stream`)
//!   tungstenite       polled by the owner of the stream
//!   FloodGuard        not active towards a server
//!   Socket            TCP, or TLS over TCP
//! ```
//!
//! Used by `app`, `cli`, `gateway`, `server` and `upstream`.

mod body;
mod body_copy;
mod boxed;
mod callers;
mod channel;
mod client_queue;
mod coalescing_socket;
mod collect;
mod connect;
mod connection_driver;
mod content_encoding;
mod count_guard;
#[cfg(test)]
mod counting_waker;
mod deferred_writes;
mod endpoints;
mod error;
mod header_case_overlay;
mod header_casing;
mod http;
mod http1;
mod http2;
mod http2_pool;
mod idle_timer;
mod incoming_body;
mod inline_body;
mod interims;
mod legacy_socket;
mod line_decoder;
pub mod link;
mod mcp;
mod memory_budget;
mod message_stream;
mod monitored_socket;
mod open;
mod outgoing_request;
mod permits;
mod readiness_gate;
mod response_reader;
mod retry;
mod reusable_timer;
mod send_error;
#[cfg(test)]
mod short_writes;
mod socket;
mod stdio;
mod tasks;
mod thread_bound;
mod upload_pace;
mod uploads;
mod websocket;
mod wire_capture;
mod write_coalescer;
mod write_state;

pub use body::{AbortedUpload, Body, Upload, UploadProgress};
pub use body_copy::{BodyCopy, CopyBudget, CopyUnavailable};
pub use boxed::{boxed, pinned};
pub use coalescing_socket::{CoalescingSocket, WriteControl};
pub use collect::{CollectError, UploadBreak, collect_accounted, collect_all, collect_budgeted};
pub use connect::{Connector, chain};
pub use content_encoding::{ContentEncoding, DecodeError};
pub use count_guard::CountGuard;
pub use endpoints::CallTracker;
pub use error::UpstreamError;
pub use header_case_overlay::HeaderCaseOverlay;
pub use header_casing::{HeaderCasing, PassedHead};
pub use http::{Exchange, HttpUpstream, Lease};
pub use idle_timer::{Activity, IdleAction, IdleTimer};
pub use incoming_body::{BodyReadError, FullyRead, IncomingBody};
pub use inline_body::InlineBody;
pub use interims::Interims;
pub use legacy_socket::{
    ClientConnections, LegacyServerMessage, LegacySocketUpstream, PendingReply, SocketCallError,
    SocketContext, SocketReply, SocketRequest,
};
pub use mcp::{Mcp, Session};
pub use memory_budget::{BudgetExhausted, MemoryBudget, Reservation};
pub use message_stream::{CloseReason, MessageStream, ReadMode, accept_key};
pub use outgoing_request::OutgoingRequest;
pub use permits::Permit;
pub use readiness_gate::ReadinessGate;
pub use retry::{ConnectionNeed, RetryPolicy, SendOptions};
pub use reusable_timer::ReusableTimer;
pub use socket::Socket;
pub use stdio::{Child, Stdio};
pub use tasks::Tasks;
pub use thread_bound::ThreadBound;
pub use websocket::WebSocket;
pub use write_coalescer::WriteCoalescer;

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
