//! Comparing: what a second answer to the same call says beside the first.
//!
//! Both answers are brought into one form and walked side by side; each place where they differ is told by a JSON
//! pointer. Laws: an answer does not differ from itself; neither white space, the order of members nor a spelling
//! makes a difference; the control and the candidate may change places, and only `missing` and `extra` do so too; a
//! path that is ignored hides all that is in it; the cost grows as sorting does, and what is kept is bounded.

mod canonical_key;
mod control_repeat;
mod decimal;
mod diff;
mod diff_list;
mod failed;
mod mismatches;
mod noise;
mod parts;
mod path;
mod pointer;
mod redacted;
mod response;
mod rules;
mod verdict;

#[cfg(test)]
mod tests;

pub use control_repeat::{Confidence, ControlRepeats, RepeatLook};
pub use failed::{FailedCandidate, RunEnding};
pub use mismatches::{CallInfo, Failed, Field, MismatchSample, Mismatches, Tally};
pub use noise::{Judgement, Noise, NoiseCounts};
pub use parts::compare;
pub use path::{PLACES, Path, PathError, Token};
pub use redacted::{RedactedValue, Salt};
pub use response::ComparedResponse;
pub use rules::{RuleSource, Rules, Show, Tolerance};
pub use verdict::{Run, Skip, Verdict};

/// Differences of one comparison that are kept, each of another field or kind.
pub const DIFFERENCES: usize = 32;

/// What every comparison of this process goes by.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// How deep a body may nest; a deeper one is compared as a text.
    pub depth: u16,
    /// What hashes of values are salted with.
    pub salt: Salt,
}

/// What is different in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The control has it, the candidate has not.
    Missing,
    /// The candidate has it, the control has not.
    Extra,
    /// Values of two kinds.
    Type,
    /// Two values of one kind.
    Value,
    /// Lists of two lengths, whose elements are not looked at.
    Length,
    /// The same elements in another order.
    Order,
    /// Two HTTP statuses.
    Status,
    /// Two values of a header.
    Header,
    /// Two codes of an error.
    Code,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 9] = [
        Kind::Missing,
        Kind::Extra,
        Kind::Type,
        Kind::Value,
        Kind::Length,
        Kind::Order,
        Kind::Status,
        Kind::Header,
        Kind::Code,
    ];

    /// The word used in metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Missing => "missing",
            Kind::Extra => "extra",
            Kind::Type => "type",
            Kind::Value => "value",
            Kind::Length => "length",
            Kind::Order => "order",
            Kind::Status => "status",
            Kind::Header => "header",
            Kind::Code => "code",
        }
    }

    /// The kind of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The same difference seen from the other side.
    #[must_use]
    pub const fn other(self) -> Kind {
        match self {
            Kind::Missing => Kind::Extra,
            Kind::Extra => Kind::Missing,
            Kind::Type
            | Kind::Value
            | Kind::Length
            | Kind::Order
            | Kind::Status
            | Kind::Header
            | Kind::Code => self,
        }
    }
}

/// A place where the answers differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The place: a JSON pointer of at most 256 bytes into the control, or into the candidate where it has something
    /// extra; of a deeper place the nearest one above it that fits.
    pub pointer: String,
    /// The same with `*` for every index: what it is counted under, and a path that would ignore it.
    pub field: String,
    /// What is different.
    pub kind: Kind,
    /// The control's value, as far as it may be shown.
    pub control: RedactedValue,
    /// The candidate's.
    pub candidate: RedactedValue,
    /// How often this kind was met in this field; the pointer and the values are those of the first.
    pub times: usize,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The differences, at most [`DIFFERENCES`].
    pub differences: Vec<Difference>,
    /// Differences of further fields or kinds, which are only counted.
    pub more: usize,
    /// Places that differ and that a rule excuses: ignored, or within a tolerance.
    pub ignored: usize,
    /// Lists that were to be compared without order and were too large for it: they were compared in order.
    pub fallen_back: usize,
}

impl Comparison {
    /// Whether nothing differs that a rule does not excuse.
    #[must_use]
    pub fn is_match(&self) -> bool {
        self.differences.is_empty() && self.more == 0
    }
}
