//! The body of a response that streams and is translated event by event.
//!
//! Laws: whole events only; at most one chunk and one event are buffered; an upstream that breaks off, falls silent or
//! takes too long ends the stream with a failure of the call as the last event.
//!
//! Used by `upstream_stream`.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use tokio::time::Sleep;

use super::access_record::AccessRecord;
use super::call_response::ResponseTranslation;
use super::rpc_reply::context;
use super::runtime_plan::RuntimePlan;
use crate::telemetry::clock;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::response_stream::{ResponseStream, StreamEnd, StreamScope, StreamStep};
use dualgauge_net::{BodyReadError, CountGuard, IncomingBody};

/// A response on its way to the client.
#[derive(Debug)]
pub(super) struct TranslatedStream {
    incoming: IncomingBody,
    stream: ResponseStream,
    route: usize,
    time_limit: Option<(Pin<Box<Sleep>>, Duration)>,
    state: StreamState,
    /// Data arrived since the last check.
    has_progressed: bool,
    /// The one log line about events that were dropped is written.
    is_logged: bool,
    /// Counts the open stream.
    _open: CountGuard,
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
        open: CountGuard,
    ) -> TranslatedStream {
        let started = |limit| Box::pin(tokio::time::sleep_until(clock::now() + limit));
        TranslatedStream {
            incoming,
            stream: translation.stream,
            route: translation.route,
            time_limit: translation.time_limit.map(|limit| (started(limit), limit)),
            state: StreamState::Open,
            has_progressed: false,
            is_logged: false,
            _open: open,
        }
    }

    /// Returns true when data has arrived since the last call, even if no frame resulted from it.
    pub(super) fn take_progressed(&mut self) -> bool {
        std::mem::take(&mut self.has_progressed)
    }

    /// Returns true when the stream ended before the upstream's: its connection cannot be reused.
    pub(super) fn is_cut_short(&self) -> bool {
        self.stream.is_over() && self.state != StreamState::Complete
    }

    /// Returns true when the last event is a failure of the proxy.
    pub(super) fn has_failed(&self) -> bool {
        self.state == StreamState::Failed
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>, record: &mut AccessRecord) -> Polled {
        let runtime_plan = record.context.runtime_plan().clone();
        let scope = scope(&runtime_plan, self.route);
        loop {
            while let Some(step) = self.stream.step(scope) {
                if let Some(frame) = self.count(step, record) {
                    return Poll::Ready(Some(Ok(frame)));
                }
            }
            if self.state != StreamState::Open || self.stream.is_over() {
                return Poll::Ready(None);
            }
            if let Some((timer, limit)) = &mut self.time_limit
                && timer.as_mut().poll(cx).is_ready()
            {
                let message = format!("the response streamed for longer than {limit:?}");
                let failure = Failure::new(Reason::UpstreamTimeout, message);
                return Poll::Ready(self.fail(failure, record).map(Ok));
            }
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    self.has_progressed = true;
                    // Trailers of the upstream's response do not apply to the translated one.
                    if let Ok(chunk) = frame.into_data() {
                        self.stream.feed(&chunk);
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    let message = "the server's response broke off";
                    let failure = Failure::new(Reason::UpstreamCut, message).because(error);
                    return Poll::Ready(self.fail(failure, record).map(Ok));
                }
                Poll::Ready(None) => {
                    let last = self.stream.finish(scope);
                    self.state = StreamState::Complete;
                    if let Some(frame) = last.and_then(|step| self.count(step, record)) {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
            }
        }
    }

    /// Ends the stream with a failure as the last event; returns nothing if it has ended.
    pub(super) fn fail(
        &mut self,
        failure: Failure,
        record: &mut AccessRecord,
    ) -> Option<Frame<Bytes>> {
        if self.stream.is_over() || self.state != StreamState::Open {
            return None;
        }
        let runtime_plan = record.context.runtime_plan().clone();
        let last = self.stream.fail(failure, scope(&runtime_plan, self.route));
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
                let route = plan.routes.route(self.route).name.as_str();
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

/// Returns the parts of a plan that translate the stream of a route.
fn scope(runtime_plan: &RuntimePlan, route: usize) -> StreamScope<'_> {
    let plan = &runtime_plan.plan;
    StreamScope {
        route: plan.routes.route(route),
        events: &plan.events,
        limits: plan.limits.reply(),
        codes: &plan.face.failure_codes,
        context: context(&plan.limits),
    }
}
