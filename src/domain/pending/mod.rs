//! Questions on a link: one connection that carries the messages of many callers, each with an id of the proxy's own.
//!
//! [`LinkMachine`] is the whole conduct of such a link, whatever it is made of: what is said when, who is told which
//! answer, when to give a link up and when to open the next. It does no I/O: [`LinkInput`]s come in with the time, and
//! [`LinkOutput`]s say what to do. Times are durations since a moment of the owner's choice.
//!
//! Laws (held by a seeded simulation): a caller is told exactly one thing, by its deadline, unless it went away; no
//! answer reaches another caller than the one who asked; what was sent is sent again only on a new link, or where the
//! link itself says what became of it, once, and only where the call may be repeated or was not taken; every list is
//! bounded, and empty when nobody asks.

mod inbound;
mod link_machine;
mod outbound;
mod queue;
mod recipients;
mod requests;
mod settings;
mod state;
mod subscriptions;
mod unattributed;

use std::time::Duration;

use bytes::Bytes;

use super::jsonrpc::{RequestId, RequestTemplate};

pub use link_machine::{LinkCounts, LinkMachine};
pub use recipients::{MessageOrigin, Recipients};
pub use settings::{AnswerOrder, Backoff, Heartbeat, LinkSettings, LogMessages};
pub use subscriptions::SUBSCRIPTIONS;

/// Names one thing that a caller has asked; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What a caller asks.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its name.
    pub ticket: Ticket,
    /// What is to be said.
    pub say: Outbound,
    /// When it is given up where nothing of it was written by then.
    pub start_by: Duration,
    /// When it is given up in any case.
    pub deadline: Duration,
    /// Whether it may be said again.
    pub repeat: RetryRule,
    /// Who comes first.
    pub rank: Priority,
}

/// What is to be said.
#[derive(Debug, Clone)]
pub enum Outbound {
    /// A request, which is answered.
    Call(RequestTemplate),
    /// A request whose server tells of changes until it ends, with the id that its client gave it. The deadline holds
    /// until the first of them.
    Subscription(RequestTemplate, RequestId),
    /// A notification, which is not.
    Notice(Bytes),
    /// Nothing: the caller wants the answer that the link itself has got to its `initialize`.
    Greeting,
}

/// Whether something may be said again on a new link, after it was written to one that broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryRule {
    /// It might do something twice.
    Never,
    /// Its effect allows it.
    Once,
}

/// Who comes first where several wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Somebody waits for the answer.
    Client,
    /// It is made only to compare.
    Candidate,
}

/// What happens to a link.
#[derive(Debug, Clone)]
pub enum LinkInput {
    /// A caller asks.
    Ask(Request),
    /// A caller has gone away.
    Cancel(Ticket),
    /// A caller has said that it does not want the answer: a server whose callers say so hears it, greeted or not.
    Recall(Ticket),
    /// The link is open, as [`LinkOutput::Open`] has asked for.
    Opened,
    /// What [`LinkOutput::Write`] gave is written whole.
    Written,
    /// The server said something.
    Message(Bytes),
    /// The server said something in the response stream of the question with this id.
    Beside(u64, Bytes),
    /// The server said something that is longer than the limit.
    Overlong,
    /// The question with this id gets no answer, for a reason of its own.
    Failed(u64, RequestError),
    /// The server knows the link no longer. The question that it said so to, if it was one, it has not taken.
    Forgotten(Option<u64>),
    /// What [`LinkOutput::Write`] gave reaches nobody; in place of [`LinkInput::Written`].
    Unwritten(RequestError),
    /// A sign of life that is no message.
    Sign,
    /// The link is gone, or could not be opened.
    Lost {
        /// Random: where in its range the next wait lies.
        luck: u16,
    },
    /// No other link follows the one that is gone.
    Over,
    /// Nothing more is asked over the link: its subscriptions end.
    Unsubscribe,
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkOutput {
    /// Open a link.
    Open,
    /// Give the link up, or the opening of it; [`LinkInput::Lost`] is expected.
    Close(LinkFault),
    /// Write one message; [`LinkInput::Written`] is expected before the next.
    Write(Bytes),
    /// Ask for a sign of life.
    Ping,
    /// The server has greeted, so that calls go out from now on.
    Ready,
    /// A caller has its answer.
    Answer {
        /// Whose.
        ticket: Ticket,
        /// The id that the request had.
        id: u64,
        /// The answer as it came. It bears this id, or it is an error without one.
        message: Bytes,
    },
    /// What a caller had to tell is written.
    Told(Ticket),
    /// A subscription has ended in good order, without a response of its server.
    Ended(Ticket),
    /// A caller gets no answer.
    Failed(Ticket, RequestError),
    /// The server told something that nobody has asked.
    Notified {
        /// What it tells of.
        method: String,
        /// The notification as it came.
        message: Bytes,
        /// Who hears it, where several share the link.
        hearers: Recipients,
    },
}

/// Why a caller gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// Too many wait, or it had to wait for too long; nothing of it was written.
    Busy,
    /// There is no link; nothing of it was written.
    Unreachable,
    /// The link broke after it was written.
    Cut,
    /// No answer came in time.
    Late,
    /// The answer is longer than the limit; it has this status of HTTP, or 0 where it was no HTTP.
    TooLarge(u16),
    /// The answer is coded, and the process has no room for it as it was before.
    NoRoom,
    /// The answer is an event stream with a content coding.
    CodedStream,
    /// The answer has an id of another type than the question.
    Misnumbered,
    /// The server said something else than an answer, with this status of HTTP; 0 where it was no HTTP.
    Unusable(u16),
}

/// Why a link is given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// It was not ready in time.
    #[error("it was not ready in time")]
    Slow,
    /// The server has refused the greeting.
    #[error("it did not take the handshake")]
    Refused,
    /// It has agreed on something that is not spoken here, as this says.
    #[error("{0}")]
    Foreign(String),
    /// So many calls in a row had no answer in time that none is expected.
    #[error("it answered no call in time, so many in a row that none is expected")]
    Stalled,
    /// It showed no sign of life.
    #[error("it showed no sign of life")]
    Silent,
    /// The server does not know it any more.
    #[error("the server does not know it any more")]
    Forgotten,
}

#[cfg(test)]
mod tests;
