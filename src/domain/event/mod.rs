//! Events: what a server says unasked, on each side.
//!
//! An event is declared as a pair of patterns that share holes, as an outcome is: a JSON-RPC notification, and a
//! frame of a legacy socket or an event of a stream. Whatever its form, an event is looked at as one JSON value, so
//! that there is one language of patterns and one order of them. How streams and sockets are cut is not known here.
//! Laws: which pair an event gets does not depend on the order in which pairs are declared, unless two take the same
//! events; of those that fit, the most specific is taken; what no pair fits stays as it is.

mod draft;
mod table;
mod value;

use crate::domain::pattern::{HoleFacts, MatchError, Pattern};

pub use draft::{EventSource, OtherSide, RpcEventSource, SseSource};
pub use table::Events;
pub use value::{EventValue, SseFields};

/// What an event looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventForm {
    /// A JSON-RPC notification.
    Rpc,
    /// A frame of a legacy socket.
    Frame,
    /// An event of a stream.
    Sse,
}

impl EventForm {
    /// Every form.
    pub const ALL: [EventForm; 3] = [EventForm::Rpc, EventForm::Frame, EventForm::Sse];

    /// The key of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventForm::Rpc => "rpc",
            EventForm::Frame => "frame",
            EventForm::Sse => "sse",
        }
    }
}

/// One declared event.
#[derive(Debug, Clone)]
pub struct EventDefinition {
    /// The key of its table, for messages.
    pub key: String,
    /// The holes that both sides share.
    pub facts: HoleFacts,
    /// The notification.
    pub rpc: Option<Pattern>,
    /// The other side, in its form.
    pub shown: Option<(EventForm, Pattern)>,
    /// Why it may lose something.
    pub lossy: Option<String>,
}

/// What is to be done with an event.
#[derive(Debug)]
pub enum EventAction {
    /// No pair takes it: it stays as it is.
    Untouched,
    /// It has no other side, so nobody hears of it.
    Swallowed,
    /// This is it on the other side.
    Rewritten {
        /// The event.
        told: EventValue,
        /// Members that no pattern named.
        dropped: usize,
    },
    /// A pair takes it, and cannot write it.
    Failed {
        /// The key of the pair.
        key: String,
        /// Why not.
        why: MatchError,
    },
}

impl EventDefinition {
    /// What it looks like in a form.
    #[must_use]
    pub fn face(&self, form: EventForm) -> Option<&Pattern> {
        if form == EventForm::Rpc {
            return self.rpc.as_ref();
        }
        let (own, pattern) = self.shown.as_ref()?;
        (*own == form).then_some(pattern)
    }

    /// The form on the other side of a form; none where it has one side only.
    #[must_use]
    pub fn other(&self, from: EventForm) -> Option<EventForm> {
        match (from, &self.rpc, &self.shown) {
            (EventForm::Rpc, _, Some((form, _))) => Some(*form),
            (EventForm::Frame | EventForm::Sse, Some(_), _) => Some(EventForm::Rpc),
            (EventForm::Rpc, _, None) | (EventForm::Frame | EventForm::Sse, None, _) => None,
        }
    }

    /// Whether it says what becomes of events of one form for those who want another one.
    fn speaks_of(&self, from: EventForm, to: EventForm) -> bool {
        self.face(from).is_some() && self.other(from).is_none_or(|other| other == to)
    }
}

#[cfg(test)]
mod tests;
