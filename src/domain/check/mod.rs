//! What survives a translation: lossless, lossless up to normal form, or lossy with a witness.
//!
//! Calls of both sides of each route, and replies of both sides of each row, are looked at by a few rules.
//! A rule knows one reason for which a message may not come back as it was, and makes up messages that
//! show it; they are sent there and back through the same code that serves calls. So a finding is never a
//! guess: its witness was executed and seen to differ. What no rule names survives, by construction of the
//! patterns; made-up messages are sent there and back besides, and a difference that no rule explains is
//! reported as such.
//!
//! Members that no pattern names are no part of the proof: they are dropped and counted, refused or carried
//! while calls are served, and each direction says which.

mod bypass;
mod events;
mod examples;
mod flag_warnings;
mod locations;
mod mapped;
mod message;
mod mutation;
mod overlap;
mod report;
mod rivals;
mod round_trip;
mod rules;
mod samples;
mod subject;
mod upgrade;
mod verify;

pub use bypass::{Bypass, bypasses};
pub use events::{EventFinding, EventReport, check_events};
pub use examples::{ExampleFault, ExampleReport};
pub use flag_warnings::{FlagWarning, Never as FlagNever, Ramps, idle};
pub use mapped::{Replies, lacks_tool_failures};
pub use message::Message;
pub use report::{
    Direction, Finding, FindingKind, LossVerdict, Never, RouteReport, Strange, Weight, Witness,
};
pub use rules::CheckRule;
pub use upgrade::{Change, GeneralChange, WrittenKeys, changes, general_changes};
pub use verify::check;

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
