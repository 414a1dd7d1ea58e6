//! Progress of a posted call: the response becomes a stream of events once the server sends a notification (MCP
//! 2025-11-25, "Sending Messages to the Server").
//!
//! The stream starts with the first notification; without one, the response is an ordinary one. Laws: a notification
//! that was sent before the answer is delivered before it; a slow client misses notifications beyond the capacity of
//! its receiver; a client that leaves cancels its call.
//!
//! Used by `response_body` and `rpc`.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{BatchContext, ItemReply, RpcRequest, UndeliveredRecords};
use crate::gateway::ResponseBody;
use crate::gateway::record::Record;
use crate::gateway::response_annotations::ResponseAnnotations;
use crate::gateway::shadow::Candidate;
use crate::upstream::link::{Notification, NotificationReceiver, channel};
use bytes::Bytes;
use dualgauge_model::jsonrpc::{Call, LISTEN, MessageItem};
use dualgauge_model::sse;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, header};

/// A call being served, up to its reply.
type CallFuture = Pin<Box<dyn Future<Output = (ItemReply, ResponseAnnotations)>>>;

/// Returns true if the client accepts event streams and notifications about the call are possible: the call has a
/// progress token, an upstream sends response streams, or the call is a subscription.
pub(super) fn is_wanted(request: &RpcRequest, item: &MessageItem) -> bool {
    let MessageItem::Call(call) = item else {
        return false;
    };
    let accept = request.head.headers.get_all(header::ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    call.id.is_some()
        && accept.any(sse::is_accepted)
        && (request.runtime_plan.has_response_streams()
            || has_token(call)
            || *call.method == *LISTEN)
}

fn has_token(call: &Call) -> bool {
    let params = call.params.as_ref();
    params.is_some_and(|params| {
        // A quick scan; most calls have no token.
        memchr::memmem::find(params.as_bytes(), b"progressToken").is_some()
            && params
                .member("_meta")
                .is_some_and(|meta| meta.has("progressToken"))
    })
}

/// Serves a call whose client accepts a stream.
pub(super) async fn serve(
    mut record: Box<Record>,
    request: RpcRequest,
    item: MessageItem,
) -> Response<ResponseBody> {
    let (sender, mut notifications) = channel();
    record.set_notifications(sender);
    // Notifications sent before the answer are delivered first over every protocol, so the record is kept until then.
    let undelivered = Some(Rc::default());
    let request = RpcRequest {
        undelivered,
        ..request
    };
    let response_context = request.clone();
    let mut serving: CallFuture = Box::pin(async move {
        request
            .serve_message(record, item, BatchContext::Single)
            .await
    });
    // Both branches are cancel-safe: neither loses an item when dropped.
    let (reply, annotations) = tokio::select! {
        biased;
        result = &mut serving => result,
        first = notifications.next() => return start_stream(ProgressStream::starting_with(first, notifications, serving), response_context),
    };
    match notifications.pending_before() {
        None => response_context.respond_single(reply, annotations),
        Some(first) => {
            let result = std::future::ready((reply, annotations));
            start_stream(
                ProgressStream::starting_with(first, notifications, Box::pin(result)),
                response_context,
            )
        }
    }
}

/// Starts the event stream. The head carries no annotations: it is sent before the route is known.
fn start_stream(progress: ProgressStream, request: RpcRequest) -> Response<ResponseBody> {
    const BUFFERING: &str = "x-accel-buffering";
    let undelivered = request.undelivered.clone();
    let mut response = Response::new(ResponseBody::with_progress(ProgressStream {
        undelivered,
        ..progress
    }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(sse::EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    request.add_cors_headers(response)
}

/// The notifications of a call, followed by its answer.
pub(in crate::gateway) struct ProgressStream {
    /// The notification that started the stream.
    first: Option<Notification>,
    notifications: NotificationReceiver,
    state: ProgressState,
    /// The record of the call, once it is answered.
    undelivered: Option<Rc<UndeliveredRecords>>,
    /// The record after the answer was handed out, if its delivery is observed.
    delivered: Vec<Record>,
}

/// The progress of the stream.
enum ProgressState {
    Serving(CallFuture),
    /// The call is answered; the answer follows the notifications sent before it.
    Answer(Option<Bytes>, Vec<Candidate>),
    Over,
}

impl fmt::Debug for ProgressStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressStream").finish_non_exhaustive()
    }
}

impl ProgressStream {
    fn starting_with(
        first: Notification,
        notifications: NotificationReceiver,
        serving: CallFuture,
    ) -> ProgressStream {
        ProgressStream {
            first: Some(first),
            notifications,
            state: ProgressState::Serving(serving),
            undelivered: None,
            delivered: Vec::new(),
        }
    }

    /// Records that the client did not take the whole stream.
    pub(in crate::gateway) fn mark_undelivered(&mut self, cause: Option<&str>) {
        self.undelivered
            .iter()
            .for_each(|undelivered| undelivered.mark_undelivered(cause));
        for record in &mut self.delivered {
            record.mark_undelivered(cause);
        }
    }

    /// Returns true if nothing more follows.
    pub(in crate::gateway) fn is_over(&self) -> bool {
        matches!(self.state, ProgressState::Over)
    }

    /// Polls for the next event.
    pub(in crate::gateway) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(first) = self.first.take() {
                return Poll::Ready(format_event(first));
            }
            match &mut self.state {
                ProgressState::Serving(serving) => {
                    // Polls the call first: its answer determines which notifications precede it, and later ones wait.
                    let Poll::Ready((reply, _)) = serving.as_mut().poll(cx) else {
                        return self.notifications.poll_next(cx).map(format_event);
                    };
                    self.state = match reply {
                        ItemReply::Message(full, candidate) => {
                            let text = full.body.into_bytes();
                            ProgressState::Answer(Some(text), candidate.into_iter().collect())
                        }
                        // A call that its client cancelled has no answer, and only links send notifications.
                        ItemReply::Nothing | ItemReply::Forwarded(_) => {
                            ProgressState::Answer(None, Vec::new())
                        }
                    };
                }
                ProgressState::Answer(answer, candidates) => {
                    if let Some(notification) = self.notifications.pending_before() {
                        return Poll::Ready(format_event(notification));
                    }
                    let answer = answer.take();
                    self.delivered = self
                        .undelivered
                        .iter()
                        .flat_map(|undelivered| undelivered.take_records())
                        .collect();
                    candidates.drain(..).for_each(Candidate::start);
                    self.state = ProgressState::Over;
                    return Poll::Ready(answer.map(|text| sse::message(&text)));
                }
                ProgressState::Over => return Poll::Ready(None),
            }
        }
    }
}

/// Formats a notification as an event. The loss of a link is not reported: the call itself gets an answer.
fn format_event(notification: Notification) -> Option<Bytes> {
    match notification {
        Notification::Message(text, _) => Some(sse::message(&text)),
        Notification::Lost(_) => None,
    }
}
