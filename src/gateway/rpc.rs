//! JSON-RPC over HTTP and WebSocket: one function serves a call, alone or in a batch.
//!
//! Used by `gateway`.

mod batch;
mod call;
mod cancel;
mod client_channel;
mod dispatch;
mod event_session;
mod in_flight;
mod invalid;
mod message;
mod progress_stream;
mod reading;
mod recorded;
mod replay;
mod server_messages;
mod session_stream;
mod unread;
mod websocket_session;

use std::rc::Rc;

use http::{Method, Response, request};

use super::call_context::CallContext;
use super::response_body::ResponseBody;
use super::serve::IncomingRequest;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::exchange::with_total_timeout;
use crate::gateway::identity::{identify, identify_by_message};
use crate::gateway::request_body::RequestBody;
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::response;
use crate::gateway::rest;
use crate::telemetry::clock;
use dualgauge_model::jsonrpc;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::websocket;
use dualgauge_net::{IncomingBody, pinned};

pub(super) use recorded::prepare as prepare_recorded;

use crate::gateway::rpc_request::{BatchContext, RpcCaller, RpcRequest};
use reading::{RpcBody, read};

/// Serves one HTTP request to an RPC path.
pub(super) async fn serve_request(request: IncomingRequest) -> Response<ResponseBody> {
    let plan = &request.record.context.runtime_plan().plan;
    if routing::takes_event_stream(plan, RequestHead::new(&request.head)) {
        return pinned(|| event_session::serve(request)).await;
    }
    let IncomingRequest {
        record: mut request_record,
        head,
        body,
        origin,
    } = request;
    let runtime_plan = request_record.context.runtime_plan().clone();
    if head.method != Method::POST {
        return serve_other_method(request_record, head, body, origin).await;
    }
    let identity = identify(&mut request_record, &head.headers, &origin);
    let since = body.is_awaited().then(clock::now);
    let context = &request_record.context;
    let read = with_total_timeout(context.deadline(), async || {
        let read = read(context, &head.headers, body).await?;
        let old = read.old_message(context, RequestHead::new(&head)).await?;
        Ok((read, old))
    });
    let (read, old) = match read.await {
        Ok(read) => read,
        Err(failure) => {
            let mut response = response::render_failure(request_record, failure, None);
            response::add_cors_headers(&runtime_plan.plan, &head.headers, &mut response);
            return response;
        }
    };
    request_record.context.add_body_time(since);
    if let Some(body) = old {
        // A message of an old dialect is a call of the REST side.
        request_record.context.set_side_to_rest();
        let content = RequestBody::Read(body);
        return pinned(|| rest::serve_content(request_record, head, content, origin)).await;
    }
    let declared = || read.client_info();
    let by_message = identify_by_message(&mut request_record, &head.headers, &origin, declared);
    let rpc_caller = RpcCaller::new(by_message.unwrap_or(identity), &runtime_plan.plan);
    match read {
        RpcBody::Messages(body, incoming) => {
            let request = RpcRequest::new(&request_record, head, body, origin, rpc_caller);
            request.serve(request_record, incoming).await
        }
        RpcBody::Other(content, body) => {
            let context = invalid::InvalidRequestContext {
                head,
                origin,
                rpc_caller,
            };
            pinned(|| invalid::serve(request_record, context, content, body)).await
        }
    }
}

/// Serves a request with a method other than POST: a handshake, the stream or the end of a session, or a request that
/// passes.
async fn serve_other_method(
    record: Box<AccessRecord>,
    head: Box<request::Parts>,
    body: IncomingBody,
    origin: RequestOrigin,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let is_handshake = websocket::is_asked(&head.method, &head.headers);
    if let Some(sockets) = runtime_plan.plan.face.sockets.filter(|_| is_handshake) {
        return websocket_session::accept(record, head, origin, sockets);
    }
    if session_stream::is_about_session(&runtime_plan, &head) {
        return match head.method {
            Method::DELETE => session_stream::end(record, &head, &origin),
            _ => session_stream::serve(record, &head, &origin),
        };
    }
    let content = RequestBody::Streaming(body, None);
    unread::forward_other_method(record, head, content, &origin).await
}

/// Returns true if the client gets an answer later than it is made: in a batch, or over HTTP/2 once it reads.
fn holds_records(context: &CallContext, incoming: &jsonrpc::Incoming) -> bool {
    matches!(incoming, jsonrpc::Incoming::Batch(_)) || context.observes_delivery()
}

impl RpcRequest {
    /// Serves a valid message, or a batch with at least one.
    async fn serve(
        self,
        request_record: Box<AccessRecord>,
        incoming: jsonrpc::Incoming,
    ) -> Response<ResponseBody> {
        let undelivered = holds_records(&request_record.context, &incoming).then(Rc::default);
        let request = RpcRequest {
            undelivered,
            ..self
        };
        match incoming {
            jsonrpc::Incoming::Single(item) if progress_stream::is_wanted(&request, &item) => {
                progress_stream::serve(request_record, request, item).await
            }
            jsonrpc::Incoming::Single(item) => {
                // The record of the request becomes the record of its only message.
                let (reply, annotations) = request
                    .serve_message(request_record, item, BatchContext::Single)
                    .await;
                request.respond_single(reply, annotations)
            }
            jsonrpc::Incoming::Batch(items) => request.serve_batch(request_record, items).await,
        }
    }
}
