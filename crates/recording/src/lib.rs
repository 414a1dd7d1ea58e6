//! Files of recorded calls, as pure values and total functions.
//!
//! ```text
//! access_log  lines of access logs, read
//! recording   the recording format: its types, reader and writer
//! har         HTTP Archive (HAR) 1.2, read and written
//! redact      the replacement of sensitive values
//! ```
//!
//! This crate uses no clock, socket, file, lock or log: files come and go as bytes, times are arguments. It knows no
//! route and no plan.

pub mod access_log;
pub mod har;
pub mod recording;
pub mod redact;
