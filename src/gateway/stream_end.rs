//! Graceful ends of event streams, at their maximum age or while the process drains. No event is cut.
//!
//! The client reconnects with the id of the last event (WHATWG HTML Living Standard §9.2.3), to any instance that
//! accepts calls. During a drain, streams get half of the drain time to end on their own.
//!
//! Used by `passthrough`, `response` and `response_body`.

use std::fmt;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::Frame;
use tokio::time::sleep_until;

use super::call_context::CallContext;
use crate::telemetry::clock;
use dualgauge_model::sse::EventBoundary;
use dualgauge_model::stream_format::{StreamFormat, StreamHead};

/// The state that decides when a stream ends.
pub(super) struct GracefulStreamEnd {
    timer: Pin<Box<dyn Future<Output = ()>>>,
    state: State,
    /// Position in the stream; `None` for encoded bodies and for bodies that are not event streams.
    boundary: Option<EventBoundary>,
}

/// Progress towards the end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Early,
    Due,
    /// The stream is at an event boundary and ends.
    Over,
}

impl fmt::Debug for GracefulStreamEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("GracefulStreamEnd");
        shown.field("state", &self.state).finish_non_exhaustive()
    }
}

impl GracefulStreamEnd {
    /// Returns the end of a response with this head, if it needs one.
    pub(super) fn new(
        headers: &HeaderMap,
        max_age: Option<Duration>,
        context: &CallContext,
    ) -> Option<GracefulStreamEnd> {
        let is_stream = is_event_stream(headers);
        if !is_stream && max_age.is_none() {
            return None;
        }
        let end = max_age.map(|age| clock::now() + age);
        // A response to another method belongs to a call, and the client would not fetch the rest of it after a
        // reconnect. A subscription may end early too: its client subscribes again.
        let is_endless =
            is_stream && (*context.method() == Method::GET || context.opens_subscription());
        let drain = context.runtime_plan().plan.limits.drain;
        let drain_signal = is_endless.then(|| context.worker().drain_signal());
        let max_age_reached = async move {
            match end {
                Some(end) => sleep_until(end).await,
                None => pending().await,
            }
        };
        let drain_over = async move {
            match drain_signal {
                Some(mut drain_signal) => {
                    // An error means that the worker is gone, but a worker outlives its streams.
                    let _ = drain_signal.wait_for(|is_draining| *is_draining).await;
                    sleep_until(clock::now() + drain / 2).await;
                }
                None => pending().await,
            }
        };
        let timer = async move {
            tokio::select! {
                () = max_age_reached => {}
                () = drain_over => {}
            }
        };
        Some(GracefulStreamEnd {
            timer: Box::pin(timer),
            state: State::Early,
            boundary: is_stream.then(EventBoundary::default),
        })
    }

    /// Returns `Ready` when the stream must end now.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.state == State::Early {
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.state = match self.boundary {
                Some(boundary) if !boundary.is_here() => State::Due,
                Some(_) | None => State::Over,
            };
        }
        match self.state {
            State::Early | State::Due => Poll::Pending,
            State::Over => Poll::Ready(()),
        }
    }

    /// Passes a frame on. The last frame is truncated at the end of an event.
    pub(super) fn pass(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let (Some(boundary), Some(bytes)) = (&mut self.boundary, frame.data_ref()) else {
            return frame;
        };
        match (boundary.pass(bytes), self.state) {
            (Some(at), State::Due) => {
                self.state = State::Over;
                Frame::data(bytes.slice(..at))
            }
            (Some(_), State::Early | State::Over) | (None, _) => frame,
        }
    }
}

/// Returns true when the response is an event stream without content coding.
pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    StreamFormat::of_head(headers).is_some_and(StreamHead::is_plain_event_stream)
}
