//! How a link is conducted.

use std::time::Duration;

use crate::domain::json::Json;

/// How a link is conducted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSettings {
    /// In which order the server answers.
    pub order: AnswerOrder,
    /// How long the link rests after what is not answered. Some servers that answer one after another read two lines at
    /// once, and then hear the second only with the third.
    pub pause: Duration,
    /// How many questions may wait for their turn; those of candidates take half of them at most.
    pub queue: usize,
    /// The params of the `initialize` that each link begins with, where it begins with one.
    pub greeting: Option<Json>,
    /// The revisions that a server may agree on in its answer to that; none where any will do.
    pub revisions: Vec<String>,
    /// Bounds the time until a link is open and the server has greeted.
    pub start_timeout: Duration,
    /// The waits between links.
    pub backoff: Backoff,
    /// After so many calls in a row without an answer in time a link is given up; 0: never.
    pub unanswered: usize,
    /// How a link is watched where nothing is said on it.
    pub heartbeat: Option<Heartbeat>,
    /// Who hears the log messages of the server that belong to no call.
    pub log_messages: LogMessages,
    /// The deepest nesting of what the server says.
    pub depth: u16,
}

/// Who hears a `notifications/message` that the server sends outside the response stream of any call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMessages {
    /// Nobody: it may be about the call of any client.
    Caller,
    /// Every client that listens to the link.
    Broadcast,
}

/// In which order a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOrder {
    /// One question after another: the next one is asked when the one before is answered.
    Serial,
    /// In any order; so many questions may be open at a time.
    Pipelined(usize),
}

impl AnswerOrder {
    /// How many questions may be open at a time.
    #[must_use]
    pub const fn in_flight(self) -> usize {
        match self {
            AnswerOrder::Serial => 1,
            AnswerOrder::Pipelined(most) => most,
        }
    }
}

/// The waits between links: each twice as long as the one before, less up to a half by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
    /// A link that was ready for so long begins the row anew.
    pub steady: Duration,
}

impl Backoff {
    /// The wait after so many others; `luck` says by how much it is shorter.
    #[must_use]
    pub fn wait(&self, after: u32, luck: u16) -> Duration {
        let doubled = self.least.saturating_mul(1 << after.min(20));
        let whole = doubled.min(self.most);
        whole - whole / 2 * u32::from(luck) / u32::from(u16::MAX)
    }
}

/// How a link is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// After so long without a word a sign of life is asked for.
    pub every: Duration,
    /// How long the sign may take.
    pub within: Duration,
}
