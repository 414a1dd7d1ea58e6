//! The findings for each route, for people and programs. Used by `cli` and `check`.

use super::examples::ExampleReport;
use super::mapped::Replies;
use super::message::Message;
use super::rules::CheckRule;
use dualgauge_patterns::side::Side;

/// The findings for one route.
#[derive(Debug)]
pub struct RouteReport {
    /// The route, by its index in the table.
    pub route: usize,
    /// Calls first, followed by the rows in order, each from REST and from RPC, and by the built-in table.
    pub directions: Vec<Direction>,
    /// The replies of the route that are mapped.
    pub replies: Replies,
    /// The results of its examples.
    pub examples: ExampleReport,
}

/// The kind of messages that a verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// Calls of clients of the side.
    Request,
    /// Answers of servers of the side that match a row, given by its index in the outcomes of the route.
    Outcome(usize),
    /// Answers of servers of the side that match no row. Their losses are reported but need no acceptance, because the
    /// route does not declare them.
    BuiltIn,
}

/// The findings for the messages of one side.
#[derive(Debug)]
pub struct Direction {
    /// The side that sends the messages.
    pub from: Side,
    /// The kind of the messages.
    pub kind: FindingKind,
    /// The reason why there are no messages, if there are none.
    pub never: Option<Never>,
    /// Differences after which the message still means the same.
    pub norms: Vec<Finding>,
    /// Differences that lose data.
    pub losses: Vec<Finding>,
    /// Messages that are refused, because they would not come back or another route would take them.
    pub refusals: Vec<RefusedMessage>,
    /// The treatment of members that no pattern names.
    pub unnamed: UnnamedMembers,
    /// The number of generated messages that went there and back.
    pub tried: usize,
}

/// The reason why no message takes a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {
    /// Only the other side can call the route.
    NotEntered,
    /// Another row, given by its index, takes every message that this one matches.
    Hidden(usize),
}

/// The treatment of members that no pattern names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnnamedMembers {
    /// Dropped and counted.
    Dropped,
    /// Refused as an error of the caller.
    Refused,
    /// Carried to the other side.
    Carried,
}

impl UnnamedMembers {
    /// Returns the word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            UnnamedMembers::Dropped => "dropped",
            UnnamedMembers::Refused => "refused",
            UnnamedMembers::Carried => "carried",
        }
    }
}

/// The verdict on a direction, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossVerdict {
    /// Every message comes back unchanged.
    Lossless,
    /// Every message comes back as one that means the same.
    NormalForm,
    /// Some message loses data or does not come back.
    Lossy,
    /// There are no messages.
    Never,
}

impl LossVerdict {
    /// Returns the words used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LossVerdict::Lossless => "lossless",
            LossVerdict::NormalForm => "normal form",
            LossVerdict::Lossy => "lossy",
            LossVerdict::Never => "never",
        }
    }
}

/// One reason why a message does not come back unchanged.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The reason.
    pub rule: CheckRule,
    /// The location: `query limit`, `result/content/0/text`, the name of another route, the key of another row.
    pub at: String,
    /// A message that shows it.
    pub witness: Witness,
}

/// The reason why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalCause {
    /// The written call belongs to the route of this name, which `after` puts in front.
    RouteInFront(String),
    /// A value would not come back.
    Value {
        /// The rule.
        rule: CheckRule,
        /// The location, as in a finding.
        at: String,
    },
}

impl RefusalCause {
    /// Describes the cause, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            RefusalCause::RouteInFront(by) => format!("`{by}` comes first"),
            RefusalCause::Value { rule, at } => rule.describe(at),
        }
    }
}

/// A message that is refused.
#[derive(Debug, Clone)]
pub struct RefusedMessage {
    /// The reason.
    pub cause: RefusalCause,
    /// The message.
    pub sent: Message,
    /// The error that its sender gets.
    pub why: String,
}

/// A message that was sent there and back, and differed.
#[derive(Debug, Clone)]
pub struct Witness {
    /// The message as sent.
    pub sent: Message,
    /// The message that the other side gets.
    pub there: Message,
    /// The message that comes back, or the reason why none does.
    pub back: Result<Message, String>,
}

impl Direction {
    /// Returns true when none of the generated messages went there and back, although some should.
    #[must_use]
    pub fn is_untried(&self) -> bool {
        let seen = self.tried > 0 || !self.norms.is_empty() || !self.losses.is_empty();
        self.never.is_none() && !seen && self.kind != FindingKind::BuiltIn
    }

    /// Returns the verdict.
    #[must_use]
    pub fn verdict(&self) -> LossVerdict {
        if self.never.is_some() {
            LossVerdict::Never
        } else if !self.losses.is_empty() {
            LossVerdict::Lossy
        } else if !self.norms.is_empty() {
            LossVerdict::NormalForm
        } else {
            LossVerdict::Lossless
        }
    }
}

impl RouteReport {
    /// Returns the lossy directions that the route or the row must accept with `lossy`.
    pub fn losses(&self, kind: FindingKind) -> impl Iterator<Item = &Direction> {
        let lossy = move |direction: &&Direction| {
            direction.kind == kind && direction.verdict() == LossVerdict::Lossy
        };
        self.directions.iter().filter(lossy)
    }
}
