//! What has been found out about each route, for people and programs to read.

use super::examples::ExampleReport;
use super::mapped::Replies;
use super::message::Message;
use super::rules::CheckRule;
use crate::domain::side::Side;

/// What has been found out about one route.
#[derive(Debug)]
pub struct RouteReport {
    /// The route, by its place in the table.
    pub route: usize,
    /// Calls first, then the rows in order, each from REST and from RPC, then the built-in table.
    pub directions: Vec<Direction>,
    /// Which of its replies are mapped.
    pub replies: Replies,
    /// What its examples showed.
    pub examples: ExampleReport,
}

/// What messages a verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// Calls of clients of the side.
    Request,
    /// Answers of servers of the side that fit a row, by its place in the outcomes of the route.
    Outcome(usize),
    /// Answers of servers of the side that fit no row. It is told, and need not be accepted: the route
    /// says nothing of them.
    BuiltIn,
}

/// What has been found out about messages that come from one side.
#[derive(Debug)]
pub struct Direction {
    /// The side that they come from.
    pub from: Side,
    /// What they are.
    pub kind: FindingKind,
    /// Why there are none, if that is so.
    pub never: Option<Never>,
    /// What comes back in another form that means the same.
    pub norms: Vec<Finding>,
    /// What does not come back.
    pub losses: Vec<Finding>,
    /// What happens to members that no pattern names.
    pub strange: Strange,
    /// How many made-up messages went there and back.
    pub tried: usize,
}

/// Why no message ever takes a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {
    /// The route is entered from the other side only.
    NotEntered,
    /// Another row, by its place, takes whatever this one fits.
    Hidden(usize),
}

/// What happens to members that no pattern names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strange {
    /// They are dropped, and counted.
    Dropped,
    /// They are the caller's error.
    Refused,
    /// They go along.
    Carried,
}

impl Strange {
    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Strange::Dropped => "dropped",
            Strange::Refused => "refused",
            Strange::Carried => "carried",
        }
    }
}

/// What is to be said of a direction, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossVerdict {
    /// Every message comes back as it was.
    Lossless,
    /// Every message comes back as one that means the same.
    NormalForm,
    /// Some message does not come back.
    Lossy,
    /// There are no messages.
    Never,
}

impl LossVerdict {
    /// The words used in reports.
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

/// How much a difference matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The message comes back as one that means the same, and that one comes back as it is.
    Norm,
    /// Something is gone.
    Loss,
}

/// One reason for which a message does not come back as it was.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The reason.
    pub rule: CheckRule,
    /// Where: `query limit`, `result/content/0/text`, the name of another route, the key of another row.
    pub at: String,
    /// A message of which it is so.
    pub witness: Witness,
}

/// A message that was sent there and back, and seen to differ.
#[derive(Debug, Clone)]
pub struct Witness {
    /// What was sent.
    pub sent: Message,
    /// What the other side gets.
    pub there: Message,
    /// What comes back, or why nothing does.
    pub back: Result<Message, String>,
}

impl Direction {
    /// Whether none of the made-up messages passed, although some should.
    #[must_use]
    pub fn is_untried(&self) -> bool {
        let seen = self.tried > 0 || !self.norms.is_empty() || !self.losses.is_empty();
        self.never.is_none() && !seen && self.kind != FindingKind::BuiltIn
    }

    /// What is to be said of it.
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
    /// The losses that are to be accepted by a word of the route, or of the row.
    pub fn losses(&self, kind: FindingKind) -> impl Iterator<Item = &Direction> {
        let lossy = move |direction: &&Direction| {
            direction.kind == kind && direction.verdict() == LossVerdict::Lossy
        };
        self.directions.iter().filter(lossy)
    }
}
