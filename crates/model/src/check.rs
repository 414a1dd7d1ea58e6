//! The proof of translations: each direction is lossless, lossless up to a normal form, or lossy with a witness.
//!
//! It covers the calls of both sides of each route, and the replies of both sides of each row. A rule knows one reason
//! why a message may not come back unchanged, and generates messages that show it. They are sent there and back through
//! the code that serves calls. So a finding is never a guess: its witness was executed and differed. Everything that no
//! rule names survives by construction of the patterns. As a cross-check, further generated messages are sent there and
//! back, and a difference that no rule explains is reported as such.
//!
//! Members that no pattern names are not part of the proof: they are dropped and counted, refused, or carried when
//! calls are served. Each direction reports which.
//!
//! Used by `cli` and `server`.

mod bypass;
mod events;
mod examples;
mod exposed_unsubscribe;
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
mod undeclared_stream;
mod upgrade;
mod verify;

pub use bypass::{Bypass, bypasses};
pub use events::{EventFinding, EventReport, check_events};
pub use examples::{ExampleFault, ExampleReport};
pub use exposed_unsubscribe::exposed_unsubscribe;
pub use flag_warnings::{FlagWarning, MissingEffect, idle};
pub use mapped::{Replies, lacks_tool_failures};
pub use message::Message;
pub use report::{
    Direction, Finding, FindingKind, LossVerdict, Never, RefusalCause, RefusedMessage, RouteReport,
    UnnamedMembers, Witness,
};
pub use rules::{CheckRule, Weight};
pub use undeclared_stream::undeclared_stream;
pub use upgrade::{Change, GeneralChange, WrittenKeys, changes, general_changes};
pub use verify::{check, check_route};

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
