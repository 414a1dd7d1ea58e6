//! The translation of a stream for the other side, event by event. Used by `gateway`.

use bytes::Bytes;

use crate::event::{EventAction, EventForm, EventValue, Events};
use crate::sse::{EventContent, MESSAGE, RawEvent, SseReader, StreamPiece};
use crate::translate::TranslateContext;
use dualgauge_patterns::side::Side;

/// Rewrites one stream.
#[derive(Debug)]
pub struct Rewriter {
    reader: SseReader,
    /// The side that the stream comes from.
    from: Side,
    /// True if the previous event was dropped: a line feed that may belong to its end is dropped too.
    is_previous_dropped: bool,
}

/// A part of the stream for the client.
#[derive(Debug, Default)]
pub struct RewriteStep {
    /// The output; empty if the event is swallowed.
    pub out: Bytes,
    /// The result, if this was an event.
    pub result: Option<EventResult>,
    /// Members that no pattern named.
    pub dropped: usize,
}

/// The kind of an event's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventResultKind {
    /// The event was written for the other side.
    Rewritten,
    /// No definition matches: the event passed byte for byte.
    Untouched,
    /// Its definition has one side only: the event was dropped.
    Swallowed,
    /// A definition matches but cannot write the event, or the event is too large: it was dropped.
    Failed,
    /// A response of the call, translated.
    Response,
    /// The error of the call, translated: the last event.
    Error,
    /// A notification during a call that no definition matches: it was dropped.
    Unmatched,
    /// The stream ended within the event: it was dropped.
    Unfinished,
    /// A failure of the proxy in place of an event of the call: the last event.
    Refused,
    /// A complete response, as the only event.
    Complete,
    /// The event was translated, but is too large for a client on a WebSocket: it was dropped.
    Oversize,
}

impl EventResultKind {
    /// Every kind.
    pub const ALL: [EventResultKind; 11] = [
        EventResultKind::Rewritten,
        EventResultKind::Untouched,
        EventResultKind::Swallowed,
        EventResultKind::Failed,
        EventResultKind::Response,
        EventResultKind::Error,
        EventResultKind::Unmatched,
        EventResultKind::Unfinished,
        EventResultKind::Refused,
        EventResultKind::Complete,
        EventResultKind::Oversize,
    ];

    /// The word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventResultKind::Rewritten => "rewritten",
            EventResultKind::Untouched => "untouched",
            EventResultKind::Swallowed => "swallowed",
            EventResultKind::Failed => "failed",
            EventResultKind::Response => "response",
            EventResultKind::Error => "error",
            EventResultKind::Unmatched => "unmatched",
            EventResultKind::Unfinished => "unfinished",
            EventResultKind::Refused => "refused",
            EventResultKind::Complete => "complete",
            EventResultKind::Oversize => "oversize",
        }
    }
}

/// The result of an event, with the reason of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventResult {
    /// The kind of result.
    pub kind: EventResultKind,
    /// The key of the definition, and the reason of the failure.
    pub why: Option<String>,
}

impl EventResult {
    /// Returns a result without a failure.
    pub(crate) fn plain(kind: EventResultKind) -> Option<EventResult> {
        Some(EventResult { kind, why: None })
    }

    /// Returns the result of an event that was dropped because it could not be written.
    pub(crate) fn failed(why: String) -> Option<EventResult> {
        Some(EventResult {
            kind: EventResultKind::Failed,
            why: Some(why),
        })
    }
}

impl Rewriter {
    /// Returns a rewriter for the stream of a side's upstream; `limit` is the maximum size of an event in bytes.
    #[must_use]
    pub fn new(from: Side, limit: usize) -> Rewriter {
        Rewriter {
            reader: SseReader::new(limit),
            from,
            is_previous_dropped: false,
        }
    }

    /// Adds input. Call [`Self::step`] until it returns `None` first.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.reader.feed(chunk);
    }

    /// Returns the next output, if any is ready.
    pub fn step(&mut self, events: &Events, context: TranslateContext) -> Option<RewriteStep> {
        let piece = self.reader.next()?;
        Some(self.piece(piece, events, context))
    }

    /// Ends the stream, and returns the rest of it.
    pub fn finish(&mut self, events: &Events, context: TranslateContext) -> Option<RewriteStep> {
        let piece = self.reader.finish()?;
        Some(self.piece(piece, events, context))
    }

    fn piece(
        &mut self,
        piece: StreamPiece,
        events: &Events,
        context: TranslateContext,
    ) -> RewriteStep {
        let step = match piece {
            StreamPiece::Between(out) => {
                return RewriteStep {
                    out,
                    ..RewriteStep::default()
                };
            }
            StreamPiece::Feed(_) if self.is_previous_dropped => {
                return RewriteStep::default();
            }
            StreamPiece::Feed(out) => {
                return RewriteStep {
                    out,
                    ..RewriteStep::default()
                };
            }
            StreamPiece::Oversize => RewriteStep {
                result: EventResult::failed("the event is larger than `limits.answer`".to_owned()),
                ..RewriteStep::default()
            },
            StreamPiece::Event(text) => self.event(text, events, context),
            // The client ignores it, but content to rewrite must not leave unchanged.
            StreamPiece::Unfinished(text) => RewriteStep {
                result: None,
                ..self.event(text, events, context)
            },
        };
        self.is_previous_dropped = step.out.is_empty();
        step
    }

    fn event(&self, text: Bytes, events: &Events, context: TranslateContext) -> RewriteStep {
        let Some(block) = RawEvent::read(&text) else {
            return untouched(text);
        };
        let Some(data) = block.data() else {
            // The event only sets an id or the retry time; it has no data.
            return RewriteStep {
                out: text,
                ..RewriteStep::default()
            };
        };
        let shown = || EventValue::sse(block.event(), block.id(), &data, context.depth);
        let call = || {
            let text = Bytes::copy_from_slice(data.as_bytes());
            let is_message = block.event() == MESSAGE;
            is_message
                .then(|| EventValue::rpc(&text, context.depth))
                .flatten()
        };
        let (own, other, to) = match self.from {
            Side::Rpc => (call(), Some(shown()), EventForm::Sse),
            Side::Rest => (Some(shown()), call(), EventForm::Rpc),
        };
        // An event in the form of the other side may also match a definition that drops it.
        for event in own.into_iter().chain(other) {
            match events.rewrite(&event, to, context) {
                EventAction::Untouched => {}
                EventAction::Swallowed => {
                    return RewriteStep {
                        out: block.emptied().into(),
                        result: EventResult::plain(EventResultKind::Swallowed),
                        dropped: 0,
                    };
                }
                EventAction::Failed { key, why } => return failed(&block, format!("{key}: {why}")),
                EventAction::Rewritten { event, dropped } => {
                    return rewritten(&block, &event, dropped);
                }
            }
        }
        untouched(text)
    }
}

fn untouched(out: Bytes) -> RewriteStep {
    RewriteStep {
        out,
        result: EventResult::plain(EventResultKind::Untouched),
        dropped: 0,
    }
}

fn failed(block: &RawEvent, why: String) -> RewriteStep {
    RewriteStep {
        out: block.emptied().into(),
        result: EventResult::failed(why),
        dropped: 0,
    }
}

fn rewritten(block: &RawEvent, event: &EventValue, dropped: usize) -> RewriteStep {
    let fields = event.fields();
    let message = event.message().map(|message| {
        // Line ends are interchangeable between the parts of a JSON value.
        String::from_utf8_lossy(message.as_bytes()).replace('\r', "\n")
    });
    let content = match (&fields, &message) {
        (Some(fields), _) => EventContent {
            event: &fields.event,
            data: &fields.data,
            id: fields.id.as_deref(),
        },
        (None, message) => EventContent {
            event: MESSAGE,
            data: message.as_deref().unwrap_or_default(),
            id: None,
        },
    };
    match block.rewritten(content) {
        Ok(out) => RewriteStep {
            out: out.into(),
            result: EventResult::plain(EventResultKind::Rewritten),
            dropped,
        },
        Err(why) => failed(block, why.to_string()),
    }
}
