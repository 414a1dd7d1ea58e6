//! The HTTP machinery of dualgauge: sockets, inspection of requests, HTTP/1.1 and HTTP/2 connections, pools, bodies and
//! budgets.
//!
//! This crate knows connections, messages and deadlines; it knows no route, no flag and no plan. Settings are plain
//! values. Laws: a call is sent twice only if nothing of the first attempt was processed, or if the caller allows it; a
//! connection returns to its pool only after a complete response to a complete request.
//!
//! The I/O layers of a connection to a server, from the HTTP library down to the kernel:
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
//! The layers of a client connection are `Inspected`, `FlushBeforeError` and `WriteTimeout`; the program puts them
//! together.

mod accept_backoff;
mod blocking;
mod body;
mod body_copy;
mod boxed;
mod channel;
pub mod clock;
mod coalescing_socket;
mod collect;
mod connect;
mod connection_driver;
mod connection_pool;
mod content_encoding;
mod count_guard;
#[cfg(test)]
mod counting_waker;
mod counts;
mod deferred_writes;
mod endpoints;
mod error;
mod flush_before_error;
mod header_case_overlay;
mod header_casing;
mod http1;
mod http2;
mod http2_pool;
mod incoming_body;
mod inline_body;
mod inspected_socket;
mod interims;
mod line_decoder;
pub mod listening_sockets;
mod memory_budget;
mod message_stream;
mod monitored_socket;
mod observed_socket;
mod open;
mod outgoing_request;
mod permits;
mod pool_settings;
pub mod proxy_protocol;
mod random;
mod readiness_gate;
mod response_reader;
mod retry;
mod reusable_timer;
mod send_error;
mod shared_timer;
#[cfg(test)]
mod short_writes;
mod socket;
mod tasks;
mod thread_bound;
pub mod tls_config;
mod unread_body;
mod upload_pace;
mod uploads;
mod wire_capture;
mod write_coalescer;
mod write_state;
mod write_timeout;

pub use accept_backoff::AcceptBackoff;
pub use blocking::run_blocking;
pub use body::{AbortedUpload, Body, Upload, UploadProgress};
pub use body_copy::{BodyCopy, CopyBudget, CopyUnavailable};
pub use boxed::{boxed, pinned};
pub use coalescing_socket::{CoalescingSocket, WriteControl};
pub use collect::{CollectError, UploadBreak, collect_accounted, collect_all, collect_budgeted};
pub use connect::{Connector, chain};
pub use connection_pool::{ConnectionPool, Exchange, Lease};
pub use content_encoding::{ContentEncoding, DecodeError};
pub use count_guard::CountGuard;
pub use counts::{AddressCounts, UpstreamCalls};
pub use endpoints::CallTracker;
pub use error::UpstreamError;
pub use flush_before_error::FlushBeforeError;
pub use header_case_overlay::HeaderCaseOverlay;
pub use header_casing::{HeaderCasing, PassedHead};
pub use incoming_body::{BodyReadError, FullyRead, IncomingBody};
pub use inline_body::InlineBody;
pub use inspected_socket::{AdmittedRequest, DisconnectWatch, Inspected, Inspection};
pub use interims::Interims;
pub use line_decoder::{DecodedLine, LineDecoder};
pub use memory_budget::{BudgetExhausted, MemoryBudget, Reservation};
pub use message_stream::{
    CloseReason, MessageEvent, MessageStream, ReadMode, WebSocketHandshake, accept_key,
};
pub use observed_socket::{ObservedSocket, SocketObserver};
pub use outgoing_request::OutgoingRequest;
pub use permits::Permit;
pub use pool_settings::PoolSettings;
pub use random::random_u64;
pub use readiness_gate::ReadinessGate;
pub use retry::{ConnectionNeed, RetryPolicy, SendOptions};
pub use reusable_timer::ReusableTimer;
pub use shared_timer::SharedTimer;
pub use socket::Socket;
pub use tasks::Tasks;
pub use thread_bound::ThreadBound;
pub use unread_body::UnreadBody;
pub use write_coalescer::WriteCoalescer;
pub use write_timeout::WriteTimeout;
