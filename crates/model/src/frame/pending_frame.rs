//! A pending call of a connection with frames: its id, its answer and its silence. Used by `frame::machine`.

use std::time::Duration;

use super::context::FrameContext;
use crate::correlator::PendingCall;
use crate::outcome::{Correlation, RpcAnswer, TranslatedReply};
use crate::route::RouteTable;
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::{Bindings, BoundValue};

/// The protocol of the client on the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// JSON-RPC: the proxy writes the frames.
    Rpc,
    /// Frames: the client has written some itself.
    Frames,
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct PendingFrame {
    pub(super) deadline: Duration,
    pub(super) call: FrameCall,
}

/// The call of a frame.
#[derive(Debug)]
pub(super) enum FrameCall {
    /// The call of a route, which tells what its answer looks like.
    Routed(RoutedCall),
    /// A frame of the client that no route reads, with its id. The next frame with the same id counts as the answer.
    Unrouted(String),
}

/// The call of a route.
#[derive(Debug)]
pub(super) struct RoutedCall {
    /// The route, by its index in the table.
    pub(super) route: usize,
    /// The values of the holes.
    pub(super) call: Bindings,
    /// The number of members that the route has no place for.
    pub(super) dropped: usize,
    pub(super) requester: Client,
    /// The time from which silence counts as the answer; `None` until the frame is written.
    pub(super) silent: Option<Duration>,
}

impl PendingCall for PendingFrame {
    fn ends(&self) -> Option<Duration> {
        let silent = match &self.call {
            FrameCall::Routed(call) => call.silent,
            FrameCall::Unrouted(_) => None,
        };
        Some(silent.unwrap_or(self.deadline).min(self.deadline))
    }
}

impl FrameCall {
    /// Returns true when the call has this id.
    pub(super) fn has_id(&self, routes: &RouteTable, id: &str) -> bool {
        match self {
            FrameCall::Routed(call) => call.id(routes).as_deref() == Some(id),
            FrameCall::Unrouted(own) => own == id,
        }
    }

    /// Returns the protocol in which the caller waits for the answer.
    pub(super) fn requester(&self) -> Client {
        match self {
            FrameCall::Routed(call) => call.requester,
            FrameCall::Unrouted(_) => Client::Frames,
        }
    }

    /// Starts to measure silence, because the frame is written.
    pub(super) fn start_silence(&mut self, routes: &RouteTable, now: Duration) {
        if let FrameCall::Routed(call) = self {
            let silence = routes.route(call.route).silence;
            call.silent = silence.map(|silence| now + silence);
        }
    }
}

impl RoutedCall {
    /// Returns the id as text, whether the frame has it as a text or a number.
    pub(super) fn id(&self, routes: &RouteTable) -> Option<String> {
        match self.call.get(routes.route(self.route).id?) {
            BoundValue::Value(id) => Some(spelled(id)),
            BoundValue::Unbound
            | BoundValue::Absent
            | BoundValue::Members(_)
            | BoundValue::Each(_) => None,
        }
    }

    /// Returns the answer if `frame` is one to this call.
    pub(super) fn answer(
        &self,
        context: FrameContext<'_>,
        frame: &Json,
    ) -> Option<(TranslatedReply<RpcAnswer>, Correlation)> {
        let route = context.routes.route(self.route);
        let outcomes = &route.outcomes;
        let found = outcomes.correlate(frame, &self.call, route.id, context.translate);
        found.map(|(answer, correlation)| (self.complete(answer), correlation))
    }

    /// Returns the answer that silence is, once the call has ended without a frame.
    pub(super) fn silence(
        &self,
        deadline: Duration,
        context: FrameContext<'_>,
    ) -> Option<TranslatedReply<RpcAnswer>> {
        // The earlier of silence and deadline counts, even if the tick is late.
        self.silent.filter(|silent| *silent < deadline)?;
        let outcomes = &context.routes.route(self.route).outcomes;
        let answer = outcomes.correlate_silence(&self.call, context.translate)?;
        Some(self.complete(answer))
    }

    /// Adds the dropped members of the call to those of its answer.
    fn complete(&self, answer: TranslatedReply<RpcAnswer>) -> TranslatedReply<RpcAnswer> {
        let dropped = answer.dropped + self.dropped;
        TranslatedReply { dropped, ..answer }
    }
}

/// Returns the id of a frame, at the place where any command of the table has one.
pub(super) fn frame_id(routes: &RouteTable, frame: &Json) -> Option<String> {
    let mut routes = routes.routes().iter();
    let id = routes.find_map(
        |route| match route.bindings_with_id_only(frame).get(route.id?) {
            BoundValue::Value(id) => Some(id.clone()),
            BoundValue::Unbound
            | BoundValue::Absent
            | BoundValue::Members(_)
            | BoundValue::Each(_) => None,
        },
    )?;
    matches!(id.kind(), JsonKind::String | JsonKind::Number).then(|| spelled(&id))
}

/// Returns an id as text.
pub(super) fn spelled(id: &Json) -> String {
    match id.text() {
        Some(Ok(text)) => text,
        Some(Err(_)) | None => String::from_utf8_lossy(id.as_bytes()).into_owned(),
    }
}
