//! The body of a response that streams and is translated event by event.
//!
//! The events are those of an upstream's response, or the notifications of a subscription. Laws: whole events only; at
//! most one chunk and one event are buffered, within the memory budget; an upstream that breaks off, falls silent or
//! takes too long ends the stream with a failure of the call as the last event.
//!
//! Used by `upstream_stream`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use tokio::time::Sleep;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::ResponseTranslation;
use super::event_translation::{EventMemory, EventTranslation};
use super::subscription_events::{SourcePart, SubscriptionEvents};
use crate::telemetry::clock;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::response_stream::{StreamEnd, StreamStep};
use dualgauge_model::stream::EventResultKind;
use dualgauge_net::{BodyReadError, CountGuard, IncomingBody};

/// A response on its way to the client.
#[derive(Debug)]
pub(super) struct TranslatedStream {
    source: StreamSource,
    events: EventTranslation,
    time_limit: Option<(Pin<Box<Sleep>>, Duration)>,
    state: StreamState,
    /// Data arrived since the last check.
    has_progressed: bool,
    /// The one log line about events that were dropped is written.
    is_logged: bool,
    /// Counts the open stream.
    _open: CountGuard,
}

/// The source of the events.
#[derive(Debug)]
enum StreamSource {
    /// The body of an upstream's response.
    Body(IncomingBody),
    /// The notifications of a subscription.
    Subscription(Box<SubscriptionEvents>),
}

/// The progress of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    Open,
    /// The upstream sent its last byte.
    Complete,
    /// The last event is a failure of the proxy.
    Failed,
}

type Polled = Poll<Option<Result<Frame<Bytes>, BodyReadError>>>;

impl TranslatedStream {
    pub(super) fn new(
        incoming: IncomingBody,
        translation: ResponseTranslation,
        context: &CallContext,
    ) -> TranslatedStream {
        let ResponseTranslation {
            stream,
            route,
            time_limit,
            subscription,
        } = translation;
        let started = |limit| Box::pin(tokio::time::sleep_until(clock::now() + limit));
        TranslatedStream {
            source: match subscription {
                Some(subscription) => StreamSource::Subscription(subscription),
                None => StreamSource::Body(incoming),
            },
            events: EventTranslation::new(stream, route, EventMemory::new(context)),
            time_limit: time_limit.map(|limit| (started(limit), limit)),
            state: StreamState::Open,
            has_progressed: false,
            is_logged: false,
            _open: context.worker().count_response_stream(),
        }
    }

    /// Returns true when data has arrived since the last call, even if no frame resulted from it; also while an event is
    /// being translated.
    pub(super) fn take_progressed(&mut self) -> bool {
        std::mem::take(&mut self.has_progressed) || self.events.is_busy()
    }

    /// Returns true when the stream ended before the upstream's: its connection cannot be reused.
    pub(super) fn is_cut_short(&self) -> bool {
        self.events.is_over() && self.state != StreamState::Complete
    }

    /// Returns true when the last event is a failure of the proxy.
    pub(super) fn has_failed(&self) -> bool {
        self.state == StreamState::Failed
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>, record: &mut AccessRecord) -> Polled {
        let runtime_plan = record.context.runtime_plan().clone();
        loop {
            let offload = record.context.worker().offload();
            match self.events.poll_step(cx, &runtime_plan.plan, offload) {
                Poll::Ready(Some(Ok(step))) => {
                    if let Some(frame) = self.count(step, record) {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    continue;
                }
                Poll::Ready(Some(Err(failure))) => {
                    return Poll::Ready(self.fail(failure, record).map(Ok));
                }
                Poll::Ready(None) if self.state != StreamState::Open || self.events.is_over() => {
                    return Poll::Ready(None);
                }
                Poll::Ready(None) | Poll::Pending => {}
            }
            if let Some((timer, limit)) = &mut self.time_limit
                && timer.as_mut().poll(cx).is_ready()
            {
                let message = format!("the response streamed for longer than {limit:?}");
                let failure = Failure::new(Reason::UpstreamTimeout, message);
                return Poll::Ready(self.fail(failure, record).map(Ok));
            }
            if self.events.is_busy() {
                return Poll::Pending;
            }
            let Poll::Ready(read) = self.poll_input(cx, &record.context) else {
                return Poll::Pending;
            };
            if let Err(failure) = read {
                return Poll::Ready(self.fail(failure, record).map(Ok));
            }
        }
    }

    /// Reads from the source.
    fn poll_input(
        &mut self,
        cx: &mut Context<'_>,
        context: &CallContext,
    ) -> Poll<Result<(), Failure>> {
        let part = ready!(self.source.poll_part(cx));
        Poll::Ready(match part {
            Some(Ok(SourcePart::Chunk(chunk))) => {
                self.has_progressed = true;
                self.events.feed(&chunk)
            }
            Some(Ok(SourcePart::Unmatched)) => {
                self.has_progressed = true;
                let (label, side) = (context.label(), context.side());
                let worker = context.worker();
                worker.count(|shard| shard.event(label, side, EventResultKind::Unmatched));
                Ok(())
            }
            Some(Err(failure)) => Err(failure),
            None => {
                self.state = StreamState::Complete;
                self.events.end_input();
                Ok(())
            }
        })
    }

    /// Ends the stream with a failure as the last event; returns nothing if it has ended.
    pub(super) fn fail(
        &mut self,
        failure: Failure,
        record: &mut AccessRecord,
    ) -> Option<Frame<Bytes>> {
        if self.events.is_over() {
            return None;
        }
        let runtime_plan = record.context.runtime_plan().clone();
        let last = self.events.fail(failure, &runtime_plan.plan);
        self.count(last, record)
    }

    /// Counts an event, records the end of the response, and returns the frame to send, if any.
    fn count(&mut self, step: StreamStep, record: &mut AccessRecord) -> Option<Frame<Bytes>> {
        if let Some(result) = step.result {
            let (label, side) = (record.context.label(), record.context.side());
            // No client gets the events of a second run.
            if record.context.second_run_budget().is_none() {
                let worker = record.context.worker();
                worker.count(|shard| shard.event(label, side, result.kind));
            }
            record.add_dropped(step.dropped);
            record.add_event();
            if let Some(why) = result.why.filter(|_| !self.is_logged) {
                self.is_logged = true;
                let plan = &record.context.runtime_plan().plan;
                let route = plan.routes.route(self.events.route()).name.as_str();
                tracing::warn!(
                    route,
                    why,
                    "event of a response dropped: it cannot be translated; further ones of this response are only counted"
                );
            }
        }
        match step.end {
            None => {}
            Some(StreamEnd::Error { code, blame }) => record.set_error(200, code, blame),
            Some(StreamEnd::ToolError) => record.set_tool_error(200),
            Some(StreamEnd::Failed(failure)) => {
                self.state = StreamState::Failed;
                let cause = failure.cause.as_deref().unwrap_or(&failure.message);
                record.cut_because(failure.reason, cause);
            }
        }
        (!step.out.is_empty()).then(|| Frame::data(step.out))
    }
}

impl StreamSource {
    /// Returns the next part of the stream; `None` after the last.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SourcePart, Failure>>> {
        let incoming = match self {
            StreamSource::Body(incoming) => incoming,
            StreamSource::Subscription(events) => return events.poll_next(cx).map(Some),
        };
        let frame = ready!(Pin::new(incoming).poll_frame(cx));
        Poll::Ready(frame.map(|frame| match frame {
            // Trailers of the upstream's response do not apply to the translated one.
            Ok(frame) => {
                let chunk = frame.into_data().unwrap_or_default();
                Ok(SourcePart::Chunk(chunk))
            }
            Err(error) => {
                let message = "the server's response broke off";
                Err(Failure::new(Reason::UpstreamCut, message).because(error))
            }
        }))
    }
}
