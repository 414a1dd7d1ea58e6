//! Listeners: accepting, inspecting, serving and draining connections. The gateway interprets requests.

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
