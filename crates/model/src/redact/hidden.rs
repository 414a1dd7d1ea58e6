//! The replacement of redacted values. Used throughout `redact`.

/// The replacement of a redacted value.
pub const HIDDEN: &str = "***";
