//! The result of a comparison: the places where two responses differ. Used throughout `compare`.

use super::redacted::{RedactedValue, Salt};
use super::replies::ReplyPair;

/// The maximum number of stored differences per comparison, each in another field or of another kind.
pub const DIFFERENCES: usize = 32;

/// The settings of every comparison in this process.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The maximum nesting depth of a body; a deeper one is compared as text.
    pub depth: u16,
    /// The salt for hashes of values.
    pub salt: Salt,
}

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Only the control has the value.
    Missing,
    /// Only the candidate has the value.
    Extra,
    /// The values have different types.
    Type,
    /// The values have one type and differ.
    Value,
    /// The lists have different lengths; their elements are not compared.
    Length,
    /// The lists have the same elements in another order.
    Order,
    /// The HTTP statuses differ.
    Status,
    /// The values of a header differ.
    Header,
    /// The error codes differ.
    Code,
}

impl Kind {
    /// All kinds.
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

    /// Returns the name used in metrics and reports.
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

    /// Parses the name of a kind.
    #[must_use]
    pub fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns the kind of the same difference with control and candidate swapped.
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

/// A place where the responses differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The place as a JSON pointer of at most 256 bytes into the control, or into the candidate if only it has the
    /// value. For a deeper place, the nearest ancestor that fits.
    pub pointer: String,
    /// The pointer with `*` for every index. Differences are counted under it, and as a path it would ignore them.
    pub field: String,
    /// The kind of the difference.
    pub kind: Kind,
    /// The value of the control, redacted.
    pub control: RedactedValue,
    /// The value of the candidate, redacted.
    pub candidate: RedactedValue,
    /// The number of occurrences of this kind in this field; the pointer and the values are those of the first.
    pub times: usize,
}

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The differences, at most [`DIFFERENCES`].
    pub differences: Vec<Difference>,
    /// The number of differences in further fields or of further kinds.
    pub more: usize,
    /// The number of differing places that a rule excuses: ignored, or within a tolerance.
    pub ignored: usize,
    /// The number of unordered lists that were too large and were compared in order.
    pub fallen_back: usize,
    /// Sketches of both responses. [`super::compare`] makes none.
    pub replies: Option<Box<ReplyPair>>,
}

impl Comparison {
    /// Returns true if every difference is excused by a rule.
    #[must_use]
    pub fn is_match(&self) -> bool {
        self.differences.is_empty() && self.more == 0
    }
}
