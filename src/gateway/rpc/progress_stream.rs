//! Calls whose response becomes an event stream once the server sends a notification about them.
//!
//! The stream starts with the first notification; without one, the response is an ordinary one.
//!
//! Used by `rpc`.

use std::pin::Pin;
use std::rc::Rc;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::progress_stream::{ProgressReply, ProgressStream};
use crate::gateway::response::ResponseAnnotations;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::rpc_request::{BatchContext, ItemReply, RpcRequest};
use crate::gateway::stream_headers;
use crate::upstream::link::channel;
use dualgauge_model::jsonrpc::{Call, LISTEN, MessageItem};
use dualgauge_model::mcp::LogLevel;
use dualgauge_model::sse;
use http::{Response, header};

/// A call being served, up to its reply.
type CallFuture = Pin<Box<dyn Future<Output = (ItemReply, ResponseAnnotations)>>>;

/// Returns true if the client accepts event streams and notifications about the call are possible: the call has a
/// progress token or a log level, an upstream is an MCP server, or the call is a subscription.
pub(super) fn is_wanted(request: &RpcRequest, item: &MessageItem) -> bool {
    let MessageItem::Call(call) = item else {
        return false;
    };
    let accept = request.head.headers.get_all(header::ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    call.id.is_some()
        && accept.any(sse::is_accepted)
        && (request.runtime_plan.sends_during_calls()
            || has_token(call)
            || has_log_level(call)
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

/// Returns true if the call asks for log messages.
fn has_log_level(call: &Call) -> bool {
    let params = call.params.as_ref();
    params.is_some_and(|params| {
        memchr::memmem::find(params.as_bytes(), b"logLevel").is_some()
            && LogLevel::of_request(Some(params)).is_some()
    })
}

/// Serves a call whose client accepts a stream.
pub(super) async fn serve(
    mut record: Box<AccessRecord>,
    request: RpcRequest,
    item: MessageItem,
) -> Response<ResponseBody> {
    let (sender, mut notifications) = channel();
    record.context.set_notifications(sender);
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
        first = notifications.next() => {
            let serving = Box::pin(async move { progress_reply(serving.await.0) });
            let undelivered = response_context.undelivered.clone();
            let progress = ProgressStream::starting_with(first, notifications, serving, undelivered);
            return start_stream(progress, &response_context);
        }
    };
    match notifications.pending_before() {
        None => response_context.respond_single(reply, annotations),
        Some(first) => {
            let served = Box::pin(std::future::ready(progress_reply(reply)));
            let undelivered = response_context.undelivered.clone();
            let progress = ProgressStream::starting_with(first, notifications, served, undelivered);
            start_stream(progress, &response_context)
        }
    }
}

/// Starts the event stream. The head carries no annotations: it is sent before the route is known.
fn start_stream(progress: ProgressStream, request: &RpcRequest) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::with_progress(progress));
    *response.headers_mut() = stream_headers::own_events();
    request.add_cors_headers(response)
}

/// Returns the reply that ends a stream.
fn progress_reply(reply: ItemReply) -> ProgressReply {
    match reply {
        ItemReply::Message(full, observer) => ProgressReply {
            text: Some(full.body.into_bytes()),
            observer,
        },
        // A call that its client cancelled has no answer, and only links send notifications.
        ItemReply::Nothing | ItemReply::Forwarded(_) => ProgressReply::default(),
    }
}
