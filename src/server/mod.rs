//! Listeners: accept, inspect, serve, drain. What a request means is the gateway's.

mod accept;
mod accepting;
pub mod admin;
mod client_certificate;
mod delivery;
mod flush_before_error;
mod h2_monitor;
mod http2;
pub mod inspected_socket;
pub mod listen;
mod proxy_protocol;
mod shared_timer;
mod unread_body;
pub mod write_timeout;
