//! Decisions about connections, as pure values and total functions: HTTP framing, load balancing, upload rates, the PROXY
//! protocol and TLS settings.
//!
//! This crate uses no clock, socket, file, lock or log; bytes and times are arguments. The crate `dualgauge-net` does the
//! I/O, and `dualgauge-model` puts the settings into plans. It knows no route.

pub mod load_balancing;
pub mod multiplexing;
pub mod proxy_protocol;
pub mod tls;
pub mod upload_rate;
pub mod wire;
