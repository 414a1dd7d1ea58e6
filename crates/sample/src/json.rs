//! JSON as Python's `json` module reads and writes it.
//!
//! A text of its own and not `serde_json`, because this server is a peer that the proxy is tested against:
//! it keeps whole numbers of any length and the order of members, lets the last of two equal names win,
//! and says in Python's words where a text breaks. A test holds it against `serde_json`.
//!
//! Used throughout `sample`.

mod parse;
mod write;

pub(super) use parse::{Fault, parse};
pub(super) use write::{Spacing, write};

#[cfg(test)]
mod tests;
