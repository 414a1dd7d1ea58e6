//! A posted call whose client hears what its server tells of it: its answer is a stream of events then (MCP 2025-11-25,
//! "Sending Messages to the Server").
//!
//! The stream begins with the first thing that the server tells; where it tells nothing before it answers, the answer is
//! what it would be anyhow. Laws: what was told before the answer stands before it; of what is told to a client that does
//! not keep up so much waits as its ear has room for, and it misses the rest; a client that goes away cancels its call.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{BatchContext, ItemReply, RpcRequest, UndeliveredRecords};
use crate::domain::jsonrpc::{Call, LISTEN, MessageItem};
use crate::domain::sse;
use crate::gateway::ResponseBody;
use crate::gateway::record::Record;
use crate::gateway::response_annotations::ResponseAnnotations;
use crate::gateway::shadow::Candidate;
use crate::upstream::link::{Notification, NotificationReceiver, channel};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, header};

/// A call that is served, up to what it is answered with.
type CallFuture = Pin<Box<dyn Future<Output = (ItemReply, ResponseAnnotations)>>>;

/// Whether the client of a call reads streams, and something may be told of the call: how far it is, where it has a token,
/// whatever its server says in the response stream of it, or what it subscribes to.
pub(super) fn is_wanted(letter: &RpcRequest, item: &MessageItem) -> bool {
    let MessageItem::Call(call) = item else {
        return false;
    };
    let accept = letter.head.headers.get_all(header::ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    call.id.is_some()
        && accept.any(sse::is_accepted)
        && (letter.installed.has_response_streams() || has_token(call) || *call.method == *LISTEN)
}

fn has_token(call: &Call) -> bool {
    let params = call.params.as_ref();
    params.is_some_and(|params| {
        // Most calls have none, and need no closer look.
        memchr::memmem::find(params.as_bytes(), b"progressToken").is_some()
            && params
                .member("_meta")
                .is_some_and(|meta| meta.has("progressToken"))
    })
}

/// Serves such a call, whose record has begun.
pub(super) async fn serve(
    mut record: Box<Record>,
    letter: RpcRequest,
    item: MessageItem,
) -> Response<ResponseBody> {
    let (tell, mut told) = channel();
    record.set_notifications(tell);
    // What was told before the answer goes first, whatever the protocol.
    let kept = Some(Rc::default());
    let letter = RpcRequest { kept, ..letter };
    let own = letter.clone();
    let mut serving: CallFuture =
        Box::pin(async move { letter.answer(record, item, BatchContext::Single).await });
    // Both are cancel-safe: what is not taken stays where it is.
    let (said, marks) = tokio::select! {
        biased;
        ended = &mut serving => ended,
        first = told.next() => return stream(ProgressStream::begun(first, told, serving), own),
    };
    match told.pending_before() {
        None => own.alone(said, marks),
        Some(first) => {
            let ended = std::future::ready((said, marks));
            stream(ProgressStream::begun(first, told, Box::pin(ended)), own)
        }
    }
}

/// The head says nothing of the route: it leaves before that is known.
fn stream(telling: ProgressStream, letter: RpcRequest) -> Response<ResponseBody> {
    const BUFFERING: &str = "x-accel-buffering";
    let kept = letter.kept.clone();
    let mut response = Response::new(ResponseBody::with_progress(ProgressStream {
        undelivered: kept,
        ..telling
    }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(sse::EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    letter.written(response)
}

/// What is told of a call, and its answer at the end.
pub(in crate::gateway) struct ProgressStream {
    /// What was told first.
    first: Option<Notification>,
    notifications: NotificationReceiver,
    part: ProgressState,
    /// The record of the call, once it is answered.
    undelivered: Option<Rc<UndeliveredRecords>>,
    /// The same, once the answer is handed out, where it will be known whether the client takes it.
    delivered: Vec<Record>,
}

/// How far it is.
enum ProgressState {
    Serving(CallFuture),
    /// The answer, which stands behind what was told before it.
    Answer(Option<Bytes>, Vec<Candidate>),
    Over,
}

impl fmt::Debug for ProgressStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling").finish_non_exhaustive()
    }
}

impl ProgressStream {
    fn begun(
        first: Notification,
        notifications: NotificationReceiver,
        serving: CallFuture,
    ) -> ProgressStream {
        ProgressStream {
            first: Some(first),
            notifications,
            part: ProgressState::Serving(serving),
            undelivered: None,
            delivered: Vec::new(),
        }
    }

    /// The client has not taken all of it.
    pub(in crate::gateway) fn not_delivered(&mut self, cause: Option<&str>) {
        self.undelivered
            .iter()
            .for_each(|kept| kept.not_delivered(cause));
        for record in &mut self.delivered {
            record.not_delivered(cause);
        }
    }

    /// Whether nothing more comes.
    pub(in crate::gateway) fn is_over(&self) -> bool {
        matches!(self.part, ProgressState::Over)
    }

    /// The next event.
    pub(in crate::gateway) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(first) = self.first.take() {
                return Poll::Ready(event(first));
            }
            match &mut self.part {
                ProgressState::Serving(serving) => {
                    // The answer first: what was told before it is found by it, and what was told behind it waits.
                    let Poll::Ready((said, _)) = serving.as_mut().poll(cx) else {
                        return self.notifications.poll_next(cx).map(event);
                    };
                    self.part = match said {
                        ItemReply::Message(whole, candidate) => {
                            let text = whole.body.into_bytes();
                            ProgressState::Answer(Some(text), candidate.into_iter().collect())
                        }
                        // A call that its client has cancelled is not answered, and no server but one over a link tells.
                        ItemReply::Nothing | ItemReply::Forwarded(_) => {
                            ProgressState::Answer(None, Vec::new())
                        }
                    };
                }
                ProgressState::Answer(answer, candidates) => {
                    if let Some(told) = self.notifications.pending_before() {
                        return Poll::Ready(event(told));
                    }
                    let answer = answer.take();
                    self.delivered = self
                        .undelivered
                        .iter()
                        .flat_map(|kept| kept.given())
                        .collect();
                    candidates.drain(..).for_each(Candidate::start);
                    self.part = ProgressState::Over;
                    return Poll::Ready(answer.map(|text| sse::message(&text)));
                }
                ProgressState::Over => return Poll::Ready(None),
            }
        }
    }
}

/// What is told, as an event. Of a link of its own who posts hears no end: its call is answered.
fn event(told: Notification) -> Option<Bytes> {
    match told {
        Notification::Message(text, _) => Some(sse::message(&text)),
        Notification::Lost(_) => None,
    }
}
