//! Requests to an RPC path whose body is not valid JSON-RPC 2.0, or not sent as such.
//!
//! The model (`posted::classify`) decides how each is handled. Law: a forwarded request keeps its head and its bytes.
//!
//! Used by `rpc`.

use std::rc::Rc;

use http::{Response, request};

use super::unread::forward_unread;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::{CallResponse, rpc_failure};
use crate::gateway::request_body::RequestBody;
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::rest;
use crate::gateway::rpc_request::{BatchContext, RpcCaller, RpcRequest};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{MessageItem, RequestId};
use dualgauge_model::posted::{self, Handling, Posted, Poster, classify};
use dualgauge_model::routing::{self, RequestHead};

/// The caller and the head of such a request.
pub(super) struct InvalidRequestContext {
    pub(super) head: Box<request::Parts>,
    pub(super) origin: RequestOrigin,
    pub(super) rpc_caller: Rc<RpcCaller>,
}

/// Serves a request that is not valid JSON-RPC 2.0.
pub(super) async fn serve(
    mut record: Box<AccessRecord>,
    context: InvalidRequestContext,
    content: RequestBody,
    body: posted::PostedBody,
) -> Response<ResponseBody> {
    let InvalidRequestContext {
        head,
        origin,
        rpc_caller,
    } = context;
    let runtime_plan = record.context.runtime_plan().clone();
    let (plan, now) = (&runtime_plan.plan, record.context.worker().sessions().now());
    let poster = Poster {
        caller: rpc_caller.identity.caller(&plan.rollout.clients),
        head: RequestHead::new(&head),
        at: record.context.wall_time(),
        past: Some((runtime_plan.flag_history(), now)),
    };
    let posted = classify(plan, poster, body);
    match (posted, content) {
        (Posted::Rest, content) => {
            record.context.set_side_to_rest();
            rest::serve_content(record, head, content, origin).await
        }
        (Posted::Unread(fault, upstream_index), content) => {
            record.set_fault(fault, Handling::Forwarded);
            let origin = &origin;
            let request = ClientRequest { head, origin };
            forward_unread(record, request, content, &rpc_caller, upstream_index).await
        }
        (Posted::Refused(fault, id, failure), _) => {
            record.set_fault(fault, Handling::Refused);
            respond_with_error(record, &head, &failure, &id)
        }
        (Posted::Messages(incoming), RequestBody::Read(body)) => {
            let request = RpcRequest::new(&record, head, body, origin, rpc_caller);
            request.serve(record, incoming).await
        }
        (Posted::Call(call, fault), RequestBody::Read(body)) => {
            let call = MessageItem::Call(*call);
            let request = RpcRequest::new(&record, head, body, origin, rpc_caller);
            request.serve_invalid_call(record, call, fault).await
        }
        (Posted::Batch(items, fault), RequestBody::Read(body)) => {
            if let Err(failure) = routing::check_batch_allowed(plan, &head.headers) {
                return respond_with_error(record, &head, &failure, &RequestId::null());
            }
            let request = RpcRequest::new(&record, head, body, origin, rpc_caller);
            let request = RpcRequest {
                undelivered: Some(Rc::default()),
                fault: Some(Rc::new(fault)),
                ..request
            };
            request.serve_batch(record, items).await
        }
        // Unreachable: the model finds messages only in a body that was read.
        (
            Posted::Messages(_) | Posted::Call(..) | Posted::Batch(..),
            RequestBody::Streaming(..),
        ) => {
            let failure = Failure::new(Reason::Internal, "the body was not read");
            respond_with_error(record, &head, &failure, &RequestId::null())
        }
    }
}

/// Responds with an error that carries CORS headers.
fn respond_with_error(
    mut record: Box<AccessRecord>,
    head: &request::Parts,
    failure: &Failure,
    id: &RequestId,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let full = rpc_failure(failure, &runtime_plan.plan.face.failure_codes, id);
    record.set_failure(full.status.as_u16(), failure);
    let mut response = response::render_response(record, CallResponse::Full(Box::new(full)), None);
    response::add_cors_headers(&runtime_plan.plan, &head.headers, &mut response);
    response
}

impl RpcRequest {
    /// Serves a call that is not valid JSON-RPC 2.0.
    async fn serve_invalid_call(
        self,
        record: Box<AccessRecord>,
        item: MessageItem,
        fault: Failure,
    ) -> Response<ResponseBody> {
        let request = RpcRequest {
            undelivered: record.context.observes_delivery().then(Rc::default),
            fault: Some(Rc::new(fault)),
            ..self
        };
        let (reply, annotations) = request
            .serve_message(record, item, BatchContext::Single)
            .await;
        request.respond_single(reply, annotations)
    }
}
