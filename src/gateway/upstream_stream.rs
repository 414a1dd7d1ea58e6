//! Response bodies from an upstream, unchanged or rewritten event by event for the other side.
//!
//! Reading stops while a frame waits for the client. A slow client therefore holds back only its own stream, and at
//! most one chunk and one event are buffered.
//!
//! Used by `response` and `response_body`.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body as _, Frame, SizeHint};

use bytes::Bytes;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::BodyTranslation;
use super::translated_stream::TranslatedStream;
use crate::telemetry::clock;
use dualgauge_model::failure::Failure;
use dualgauge_model::stream::{RewriteStep, Rewriter};
use dualgauge_model::translate::TranslateContext;
use dualgauge_net::{BodyReadError, IncomingBody};

/// A response body from an upstream.
#[derive(Debug)]
pub(super) enum StreamBody {
    /// Forwarded unchanged.
    Plain(IncomingBody),
    /// Rewritten event by event.
    Events(Box<RewrittenStream>),
    /// The response to a call, translated event by event.
    Response(Box<TranslatedStream>),
}

/// An event stream that is rewritten.
#[derive(Debug)]
pub(super) struct RewrittenStream {
    incoming: IncomingBody,
    rewriter: Rewriter,
    /// The upstream sent its last event.
    is_over: bool,
    /// Data arrived since the last check.
    has_progressed: bool,
    /// The one log line about events that could not be rewritten is written.
    is_logged: bool,
}

type Polled = Poll<Option<Result<Frame<Bytes>, BodyReadError>>>;

impl StreamBody {
    pub(super) fn new(
        incoming: IncomingBody,
        translation: BodyTranslation,
        context: &CallContext,
    ) -> StreamBody {
        match translation {
            BodyTranslation::None => StreamBody::Plain(incoming),
            BodyTranslation::Response(translation) => {
                let translated = TranslatedStream::new(incoming, *translation, context);
                StreamBody::Response(Box::new(translated))
            }
            BodyTranslation::Events(rewriter) => StreamBody::Events(Box::new(RewrittenStream {
                incoming,
                rewriter: *rewriter,
                is_over: false,
                has_progressed: false,
                is_logged: false,
            })),
        }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>, record: &mut AccessRecord) -> Polled {
        match self {
            StreamBody::Plain(incoming) => Pin::new(incoming).poll_frame(cx),
            StreamBody::Events(rewritten) => rewritten.poll_frame(cx, &record.context),
            StreamBody::Response(translated) => translated.poll_frame(cx, record),
        }
    }

    /// Ends the response to a call with a failure as its last event; `None` if the body cannot hold one.
    pub(super) fn fail(
        &mut self,
        failure: impl FnOnce() -> Failure,
        record: &mut AccessRecord,
    ) -> Option<Frame<Bytes>> {
        match self {
            StreamBody::Plain(_) | StreamBody::Events(_) => None,
            StreamBody::Response(translated) => translated.fail(failure(), record),
        }
    }

    /// Returns true when the last event of a response is a failure of the proxy.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            StreamBody::Plain(_) | StreamBody::Events(_) => false,
            StreamBody::Response(translated) => translated.has_failed(),
        }
    }

    /// Returns true when the body ended before that of the upstream.
    pub(super) fn is_cut_short(&self) -> bool {
        match self {
            StreamBody::Plain(_) | StreamBody::Events(_) => false,
            StreamBody::Response(translated) => translated.is_cut_short(),
        }
    }

    /// Returns true when data has arrived since the last call, even if no frame resulted from it.
    pub(super) fn take_progressed(&mut self) -> bool {
        match self {
            StreamBody::Plain(_) => false,
            StreamBody::Events(rewritten) => std::mem::take(&mut rewritten.has_progressed),
            StreamBody::Response(translated) => translated.take_progressed(),
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            StreamBody::Plain(incoming) => incoming.is_end_stream(),
            StreamBody::Events(_) | StreamBody::Response(_) => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            StreamBody::Plain(incoming) => incoming.size_hint(),
            StreamBody::Events(_) | StreamBody::Response(_) => SizeHint::default(),
        }
    }
}

impl RewrittenStream {
    fn poll_frame(&mut self, cx: &mut Context<'_>, context: &CallContext) -> Polled {
        let plan = &context.runtime_plan().plan;
        let translate_context = TranslateContext {
            depth: plan.limits.depth,
            now: clock::rfc3339,
        };
        loop {
            while let Some(step) = self.rewriter.step(&plan.events, translate_context) {
                if let Some(frame) = self.count_event(step, context) {
                    return Poll::Ready(Some(Ok(frame)));
                }
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    self.has_progressed = true;
                    // Trailers of the upstream's stream do not apply to the rewritten one.
                    if let Ok(chunk) = frame.into_data() {
                        self.rewriter.feed(&chunk);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    self.is_over = true;
                    let last = self.rewriter.finish(&plan.events, translate_context);
                    if let Some(frame) = last.and_then(|step| self.count_event(step, context)) {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
            }
        }
    }

    /// Counts a rewritten event and returns the frame to send, if any. Logs the first event that could not be
    /// rewritten.
    fn count_event(&mut self, step: RewriteStep, context: &CallContext) -> Option<Frame<Bytes>> {
        if let Some(result) = step.result {
            let (label, side) = (context.label(), context.side());
            context.worker().count(|shard| {
                shard.event(label, side, result.kind);
                shard.dropped(label, step.dropped as u64);
            });
            if let Some(why) = result.why.filter(|_| !self.is_logged) {
                self.is_logged = true;
                let streams = &context.runtime_plan().plan.streams;
                let stream = context
                    .stream()
                    .and_then(|stream| streams.all().get(stream));
                let stream = stream.map_or("", |stream| stream.name.as_str());
                tracing::warn!(
                    stream,
                    why,
                    "event dropped: it cannot be rewritten; further ones of this stream are only counted"
                );
            }
        }
        (!step.out.is_empty()).then(|| Frame::data(step.out))
    }
}
