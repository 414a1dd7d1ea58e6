//! End-to-end tests over real sockets: the real program between a client and upstreams that are driven byte by
//! byte. A file per capability; `support` holds the ends.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "an end that does not behave as the test says fails the test"
)]

mod connections;
#[cfg(feature = "demo")]
mod demo;
mod expect;
mod flags_at_run_time;
mod harness;
mod lifecycle;
mod metrics_and_log;
mod rest_answers;
mod rest_requests;
mod rpc_passthrough;
mod streaming;
mod support;
mod timeouts;
mod two_servers;
mod upgrade;
