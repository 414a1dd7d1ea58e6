//! The format of log lines, as the configuration chooses it and the log writes it.
//!
//! Used by `app`, `config` and `telemetry`.

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: `time level target key=value ...`.
    Text,
    /// For machines: one flat JSON object.
    Json,
}
