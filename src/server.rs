//! Listeners: accepting, inspecting, serving and draining connections. The gateway interprets requests.
//!
//! The I/O layers of a client connection, from hyper down to the kernel:
//!
//! ```text
//! HTTP/1.1 (`listen`)
//!   hyper             polled by the connection's task
//!   DisconnectWatch   reads while a call is served, to notice a client that disconnects
//!   ReadinessGate     skips reads while the socket has no data
//!   TokioIo           adapts tokio's traits to hyper's
//!   Inspected         passes on unambiguous requests only; writes interim responses and the header case
//!   WriteTimeout      limits the time in which the client takes nothing
//!   Socket            CoalescingSocket over TCP, or TLS over TCP
//!
//! HTTP/2 (`http2`)
//!   hyper             polled by the connection's task
//!   TokioIo           adapts tokio's traits to hyper's
//!   WriteTimeout      limits the time in which the client takes nothing
//!   ObservedSocket    counts frames to detect floods, and notices writes that wait for the client
//!   Socket            TLS over TCP
//! ```
//!
//! Used by `app`.

pub mod admin;
mod client_certificate;
mod drain;
mod http2;
mod http2_delivery;
pub mod listen;
mod tls_handshake;
pub mod worker_command;
