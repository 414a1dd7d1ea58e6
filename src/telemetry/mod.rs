//! What the operator sees: metric names and shards, the log, the clock.
//!
//! ```text
//! clock     the only owner of time calls, and how a time is written
//! metrics   plain counts in each worker, summed and rendered at scrape
//! log       the subscriber, and the one line of a call
//! spans     what a collector of traces is told of a call
//! ```
//!
//! Nothing here decides anything, and nothing that a caller sends becomes a metric label.

pub mod clock;
pub mod log;
pub mod metrics;
pub mod spans;
