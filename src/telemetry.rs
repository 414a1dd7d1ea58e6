//! Metrics, logs, trace spans and the clock.
//!
//! ```text
//! clock     the only reader of the time, and time formatting
//! metrics   plain counts in each worker, summed and rendered on each scrape
//! log       the subscriber, and the access log line of a call
//! recorder  the queue and the files of recorded calls
//! spans     the trace span of a call
//! ```
//!
//! Nothing here makes decisions, and no text from a caller becomes a metric label.

pub mod clock;
pub mod log;
pub mod metrics;
pub mod recorder;
pub mod spans;
