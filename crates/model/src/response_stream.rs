//! Responses that stream: the events of an upstream's response to one call, translated as they arrive.
//!
//! Each event is a response of the other side, or a notification. This module has no clock and no socket: it is fed with
//! chunks and returns whole events. Laws: the output does not depend on how the stream was split into chunks; an event
//! is translated exactly as a complete response with its content ([`crate::reply`]); each event for an RPC client has
//! the id of its call; an error is the last event; the output consists of whole events; an event translated by a copy of
//! the translator is translated as in place. At most one event, up to a limit, is buffered.
//!
//! Used by `gateway`.

mod answer;
mod call;
mod input;
mod law;
mod lines;
mod output;
mod terms;

use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;

use crate::event::{EventAction, EventForm, EventValue};
use crate::failure::{Failure, Reason};
use crate::jsonrpc;
use crate::outcome::{error_object, problem};
use crate::sse::MESSAGE;
use crate::stream::{EventResult, EventResultKind};
use crate::stream_format::{StreamFormat, StreamFormats};
use dualgauge_patterns::side::Side;

use answer::Translated;
use call::unreadable;
use input::{InputEvent, InputPiece, InputReader, RawPiece};
use output::{ERROR, Output};

pub use call::{StreamClient, StreamEnd, StreamScope, StreamedCall};
pub use law::{check_any_complete, check_any_stream};
pub use output::single_event;
pub use terms::{StreamTerms, becomes_event, reads_only_events};

/// A streamed response on its way to the client.
#[derive(Debug)]
pub struct ResponseStream {
    input: InputReader,
    /// True after the upstream's last byte.
    is_input_over: bool,
    translator: EventTranslator,
}

/// A piece of a response that is not translated yet: an event, or bytes between events.
#[derive(Debug)]
pub struct StreamInput(RawPiece);

/// The translation of one piece, apart from its response: it may run on another thread.
#[derive(Debug)]
pub struct TranslationJob {
    translator: EventTranslator,
    input: StreamInput,
}

/// A piece that was translated apart from its response.
#[derive(Debug)]
pub struct TranslatedInput {
    translator: EventTranslator,
    step: StreamStep,
}

/// The translator of the events of one response. A copy has the same state.
#[derive(Debug, Clone)]
struct EventTranslator {
    call: Arc<StreamedCall>,
    output: StreamFormat,
    /// True after the last event: everything that follows is ignored.
    is_over: bool,
    /// True if the previous event was dropped: a line feed that may belong to its end is dropped too.
    is_previous_dropped: bool,
    /// True if the output ends within a comment that is too large to buffer.
    is_in_comment: bool,
}

/// A part of the response for the client.
#[derive(Debug, Default)]
pub struct StreamStep {
    /// The output; empty if there is none.
    pub out: Bytes,
    /// The result, if this was an event.
    pub result: Option<EventResult>,
    /// Members that no pattern named.
    pub dropped: usize,
    /// The end of the response, if this was the last event.
    pub end: Option<StreamEnd>,
}

impl ResponseStream {
    /// Returns the stream of a call's response; `limit` is the maximum size of an event in bytes.
    #[must_use]
    pub fn new(call: StreamedCall, formats: StreamFormats, limit: usize) -> ResponseStream {
        ResponseStream {
            input: InputReader::new(formats.upstream, limit),
            is_input_over: false,
            translator: EventTranslator {
                call: Arc::new(call),
                output: formats.client,
                is_over: false,
                is_previous_dropped: false,
                is_in_comment: false,
            },
        }
    }

    /// Returns true after the last event.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.translator.is_over
    }

    /// Returns the number of buffered bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.input.held()
    }

    /// Adds input. Call [`Self::next_input`] until it returns `None` first.
    pub fn feed(&mut self, chunk: &[u8]) {
        if !self.is_over() {
            self.input.feed(chunk);
        }
    }

    /// Ends the input after the upstream's last byte. [`Self::next_input`] returns the rest of it.
    pub fn end_input(&mut self) {
        self.is_input_over = true;
    }

    /// Returns the next piece of the input, if it is complete. Translate it before the next one.
    pub fn next_input(&mut self) -> Option<StreamInput> {
        if self.is_over() {
            return None;
        }
        let next = self.input.next();
        let next = next.or_else(|| match self.is_input_over {
            true => self.input.finish(),
            false => None,
        });
        next.map(StreamInput)
    }

    /// Translates a piece.
    pub fn translate(&mut self, input: StreamInput, scope: StreamScope<'_>) -> StreamStep {
        let step = self.translator.piece(input.0.read(), scope);
        self.clear_after_end();
        step
    }

    /// Returns the translation of a piece as a job; [`Self::accept`] takes its result.
    #[must_use]
    pub fn job(&self, input: StreamInput) -> TranslationJob {
        TranslationJob {
            translator: self.translator.clone(),
            input,
        }
    }

    /// Continues after a piece that a job translated.
    pub fn accept(&mut self, translated: TranslatedInput) -> StreamStep {
        let TranslatedInput { translator, step } = translated;
        self.translator = translator;
        self.clear_after_end();
        step
    }

    /// Ends the stream with a failure of the proxy as the last event.
    pub fn fail(&mut self, failure: Failure, scope: StreamScope<'_>) -> StreamStep {
        let step = self.translator.fail(failure, scope);
        self.clear_after_end();
        step
    }

    /// Drops the rest of the upstream's stream.
    fn clear_after_end(&mut self) {
        if self.is_over() {
            self.input.clear();
        }
    }
}

impl StreamInput {
    /// Returns its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TranslationJob {
    /// Translates the piece.
    #[must_use]
    pub fn run(mut self, scope: StreamScope<'_>) -> TranslatedInput {
        let step = self.translator.piece(self.input.0.read(), scope);
        TranslatedInput {
            translator: self.translator,
            step,
        }
    }
}

impl EventTranslator {
    /// Ends the stream with a failure of the proxy as the last event.
    fn fail(&mut self, failure: Failure, scope: StreamScope<'_>) -> StreamStep {
        self.is_over = true;
        let old = self.call.old_failure(&failure, scope);
        let event = if old.is_some() { MESSAGE } else { ERROR };
        let data = old.unwrap_or_else(|| {
            let data = match &self.call.client {
                StreamClient::Rest { .. } => problem(&failure, scope.codes).body,
                StreamClient::Rpc { id, .. } => {
                    jsonrpc::error(id, &error_object(&failure, scope.codes))
                }
            };
            output::one_line(&data.into_bytes())
        });
        let output = Output {
            event,
            id: None,
            data,
        };
        let out = output.write_last(self.output).unwrap_or_default();
        StreamStep {
            out: self.behind_comment(out),
            result: EventResult::plain(EventResultKind::Refused),
            dropped: 0,
            end: Some(StreamEnd::Failed(Box::new(failure))),
        }
    }

    fn piece(&mut self, piece: InputPiece, scope: StreamScope<'_>) -> StreamStep {
        let step = match piece {
            InputPiece::Between(out) => {
                return StreamStep {
                    out: self.between(out),
                    ..StreamStep::default()
                };
            }
            InputPiece::Feed(_) if self.is_previous_dropped => return StreamStep::default(),
            InputPiece::Feed(out) => {
                return StreamStep {
                    out: self.between(out),
                    ..StreamStep::default()
                };
            }
            InputPiece::Oversize => self.fail(oversize(), scope),
            InputPiece::Unreadable => self.fail(unreadable("its text is not UTF-8"), scope),
            InputPiece::Unfinished => StreamStep {
                result: EventResult::plain(EventResultKind::Unfinished),
                ..StreamStep::default()
            },
            InputPiece::Event(event) => self.event(&event, scope),
        };
        self.is_previous_dropped = step.out.is_empty();
        step
    }

    /// Returns the output for bytes outside of events: comments and blank lines are only known to event streams.
    fn between(&mut self, bytes: Bytes) -> Bytes {
        match self.output {
            StreamFormat::EventStream => {
                self.is_in_comment = !matches!(bytes.last(), None | Some(b'\r' | b'\n'));
                bytes
            }
            StreamFormat::JsonLines => Bytes::new(),
        }
    }

    /// Ends an unfinished comment before an event of the proxy.
    fn behind_comment(&mut self, out: Bytes) -> Bytes {
        match std::mem::take(&mut self.is_in_comment) {
            true => [b"\n", out.as_ref()].concat().into(),
            false => out,
        }
    }

    fn event(&mut self, event: &InputEvent, scope: StreamScope<'_>) -> StreamStep {
        let Some(data) = event.data() else {
            // Clients dispatch no event with empty data (§9.2.6); it sets an id or the retry time, or keeps the
            // connection alive.
            return StreamStep {
                out: event.unchanged(self.output),
                ..StreamStep::default()
            };
        };
        if let Some(step) = self.declared(event, &data, scope) {
            return step;
        }
        match self.call.translate(event.event(), data, scope) {
            Ok(translated) => self.write(event, translated, scope),
            Err(failure) => self.fail(failure, scope),
        }
    }

    /// Returns the output for an event that a definition matches, and for any other notification.
    fn declared(
        &self,
        event: &InputEvent,
        data: &Bytes,
        scope: StreamScope<'_>,
    ) -> Option<StreamStep> {
        let depth = scope.context.depth;
        let has_events = !scope.events.all().is_empty();
        let shown = || {
            let text = std::str::from_utf8(data).unwrap_or_default();
            EventValue::sse(event.event(), event.id(), text, depth)
        };
        let (notification, to) = match self.call.client.side() {
            Side::Rest if may_have_method(data) => (EventValue::rpc(data, depth), EventForm::Sse),
            Side::Rest => (None, EventForm::Sse),
            Side::Rpc => (None, EventForm::Rpc),
        };
        let is_notification = notification.is_some();
        // An event in the form of streams may also match a definition that drops it.
        let values = notification.into_iter().chain(has_events.then(shown));
        for value in values {
            match scope.events.rewrite(&value, to, scope.context) {
                EventAction::Untouched => {}
                EventAction::Swallowed => {
                    return Some(self.drop_event(event, EventResultKind::Swallowed));
                }
                EventAction::Failed { key, why } => {
                    return Some(self.failed(event, format!("{key}: {why}")));
                }
                EventAction::Rewritten {
                    event: value,
                    dropped,
                } => {
                    return Some(self.rewritten(event, &value, dropped));
                }
            }
        }
        is_notification.then(|| self.drop_event(event, EventResultKind::Unmatched))
    }

    fn drop_event(&self, event: &InputEvent, kind: EventResultKind) -> StreamStep {
        StreamStep {
            out: event.emptied(self.output),
            result: EventResult::plain(kind),
            ..StreamStep::default()
        }
    }

    fn failed(&self, event: &InputEvent, why: String) -> StreamStep {
        StreamStep {
            out: event.emptied(self.output),
            result: EventResult::failed(why),
            ..StreamStep::default()
        }
    }

    /// Writes a notification in the form of the client's side.
    fn rewritten(&self, event: &InputEvent, value: &EventValue, dropped: usize) -> StreamStep {
        let fields = value.fields();
        let output = match (&fields, value.message()) {
            (Some(fields), _) => Output {
                event: &fields.event,
                id: fields.id.as_deref(),
                data: fields.data.clone(),
            },
            (None, message) => Output {
                event: MESSAGE,
                id: None,
                data: message
                    .map_or_else(String::new, |message| output::one_line(message.as_bytes())),
            },
        };
        match output.write(event, self.output) {
            Ok(out) => StreamStep {
                out,
                result: EventResult::plain(EventResultKind::Rewritten),
                dropped,
                end: None,
            },
            Err(why) => self.failed(event, why.to_string()),
        }
    }

    /// Writes a response of the call.
    fn write(
        &mut self,
        event: &InputEvent,
        translated: Translated,
        scope: StreamScope<'_>,
    ) -> StreamStep {
        let Translated { data, dropped, end } = translated;
        let out = match end {
            None => Output {
                event: event.event(),
                id: None,
                data,
            }
            .write(event, self.output),
            Some(_) => Output {
                event: match self.call.is_in_old_dialect(scope.route) {
                    true => event.event(),
                    false => ERROR,
                },
                id: event.id(),
                data,
            }
            .write_last(self.output),
        };
        let out = match out {
            Ok(out) => out,
            Err(why) => return self.fail(unreadable(&why.to_string()), scope),
        };
        self.is_over = end.is_some();
        StreamStep {
            out,
            result: EventResult::plain(match &end {
                None => EventResultKind::Response,
                Some(_) => EventResultKind::Error,
            }),
            dropped,
            end,
        }
    }
}

/// Returns false if a text has no member `method`, without parsing it. The name of a member may be written with escapes.
fn may_have_method(text: &[u8]) -> bool {
    memmem::find(text, b"\"method\"").is_some() || memmem::find(text, b"\\u").is_some()
}

fn oversize() -> Failure {
    let message = "an event of the server's response is larger than `limits.answer`";
    Failure::new(Reason::UpstreamTooLarge, message)
}

#[cfg(test)]
mod tests;
