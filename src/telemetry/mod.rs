//! What the operator sees: metric names and shards, the log, the clock.
//!
//! ```text
//! clock     the only owner of time calls, and how a time is written
//! ```
//!
//! Nothing here decides anything, and nothing that a caller sends becomes a metric label.

pub mod clock;
