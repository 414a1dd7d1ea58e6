//! Events: messages that a server sends without a request, in the form of each side.
//!
//! An event is declared, like an outcome, as a pair of patterns that share holes: a JSON-RPC notification, and a frame
//! of a legacy socket or an event of a stream. Every event is treated as one JSON value, so that there is one pattern
//! language and one order of patterns. This module does not split streams or sockets into events. Laws: the chosen pair
//! does not depend on the order of declaration, unless two pairs match the same events; the most specific matching pair
//! is chosen; an event that no pair matches stays unchanged.

mod draft;
mod table;
mod value;

use crate::domain::pattern::{HoleFacts, MatchError, Pattern};

pub use draft::{EventSource, OtherSide, RpcEventSource, SseSource};
pub use table::Events;
pub use value::{EventValue, SseFields};

/// The form of an event.
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

    /// Returns the configuration key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventForm::Rpc => "rpc",
            EventForm::Frame => "frame",
            EventForm::Sse => "sse",
        }
    }
}

/// A declared event.
#[derive(Debug, Clone)]
pub struct EventDefinition {
    /// The key of its table, for messages.
    pub key: String,
    /// The holes that both sides share.
    pub facts: HoleFacts,
    /// The notification.
    pub rpc: Option<Pattern>,
    /// The pattern of the other side, with its form.
    pub shown: Option<(EventForm, Pattern)>,
    /// The declared reason why translation may lose content.
    pub lossy: Option<String>,
}

/// The action for an event.
#[derive(Debug)]
pub enum EventAction {
    /// No definition matches: the event stays unchanged.
    Untouched,
    /// The definition has no other side: the event is dropped.
    Swallowed,
    /// The event is rewritten for the other side.
    Rewritten {
        /// The rewritten event.
        event: EventValue,
        /// Members that no pattern named.
        dropped: usize,
    },
    /// A definition matches but cannot write the event.
    Failed {
        /// The key of the definition.
        key: String,
        /// The reason.
        why: MatchError,
    },
}

impl EventDefinition {
    /// Returns the pattern for a form.
    #[must_use]
    pub fn pattern_for(&self, form: EventForm) -> Option<&Pattern> {
        if form == EventForm::Rpc {
            return self.rpc.as_ref();
        }
        let (own, pattern) = self.shown.as_ref()?;
        (*own == form).then_some(pattern)
    }

    /// Returns the form on the other side; `None` if there is none.
    #[must_use]
    pub fn other(&self, from: EventForm) -> Option<EventForm> {
        match (from, &self.rpc, &self.shown) {
            (EventForm::Rpc, _, Some((form, _))) => Some(*form),
            (EventForm::Frame | EventForm::Sse, Some(_), _) => Some(EventForm::Rpc),
            (EventForm::Rpc, _, None) | (EventForm::Frame | EventForm::Sse, None, _) => None,
        }
    }

    /// Returns whether the definition applies to events of one form for clients that expect another.
    fn applies_to(&self, from: EventForm, to: EventForm) -> bool {
        self.pattern_for(from).is_some() && self.other(from).is_none_or(|other| other == to)
    }
}

#[cfg(test)]
mod tests;
