//! A declared event: the patterns of both sides, and the forms of events. Used by `cli`, `model` and `gateway`.

use dualgauge_patterns::pattern::{HoleFacts, Pattern};

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
    pub(super) fn applies_to(&self, from: EventForm, to: EventForm) -> bool {
        self.pattern_for(from).is_some() && self.other(from).is_none_or(|other| other == to)
    }
}
