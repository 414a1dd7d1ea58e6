//! Requests to an RPC path whose body is not valid JSON-RPC 2.0, or not sent as such.
//!
//! The domain (`posted::classify`) decides how each is handled. Law: a forwarded request keeps its head and its bytes.

use std::rc::Rc;

use http::{Response, request};

use super::{BatchContext, RpcCaller, RpcRequest};
use crate::domain::failure::{Failure, Reason};
use crate::domain::jsonrpc::{MessageItem, RequestId};
use crate::domain::posted::{self, Handling, Posted, Poster, classify};
use crate::domain::rejections;
use crate::domain::routing::{self, RequestHead};
use crate::domain::side::Side;
use crate::gateway::passthrough::{PassthroughRequest, at_upstream, forward};
use crate::gateway::record::Record;
use crate::gateway::request_body::RequestBody;
use crate::gateway::response::{self, CallResponse};
use crate::gateway::{RequestOrigin, ResponseBody, cors, rest};
use crate::upstream::Upstream;

/// The caller and the head of such a request.
pub(super) struct InvalidRequestContext {
    pub(super) head: Box<request::Parts>,
    pub(super) arrival: RequestOrigin,
    pub(super) author: Rc<RpcCaller>,
}

/// Serves a request that is not valid JSON-RPC 2.0.
pub(super) async fn serve(
    mut reading: Box<Record>,
    context: InvalidRequestContext,
    (content, body): (RequestBody, posted::PostedBody),
) -> Response<ResponseBody> {
    let InvalidRequestContext {
        head,
        arrival,
        author,
    } = context;
    let installed = reading.installed().clone();
    let poster = Poster {
        caller: author.identity.caller(&installed.plan.rollout.clients),
        head: RequestHead::new(&head),
        at: reading.at(),
        past: Some((installed.flag_history(), reading.worker().sessions().now())),
    };
    let posted = classify(&installed.plan, poster, body);
    match (posted, content) {
        (Posted::Rest, content) => {
            reading.become_rest();
            rest::serve_content(reading, (head, content), arrival).await
        }
        (Posted::Unread(fault, place), content) => {
            reading.set_fault(fault, Handling::Forwarded);
            unread(reading, (head, content), (&arrival, place)).await
        }
        (Posted::Refused(fault, id, failure), _) => {
            reading.set_fault(fault, Handling::Refused);
            refused(reading, &head, (failure, id))
        }
        (Posted::Messages(incoming), RequestBody::Read(body)) => {
            let letter = RpcRequest::new(&reading, (head, body), arrival, author);
            letter.serve(reading, incoming).await
        }
        (Posted::Call(call, fault), RequestBody::Read(body)) => {
            let letter = RpcRequest::new(&reading, (head, body), arrival, author);
            letter
                .invalid_call(reading, MessageItem::Call(*call), fault)
                .await
        }
        (Posted::Batch(items, fault), RequestBody::Read(body)) => {
            if let Err(failure) = routing::batch(&installed.plan, &head.headers) {
                return refused(reading, &head, (failure, RequestId::null()));
            }
            let letter = RpcRequest::new(&reading, (head, body), arrival, author);
            let letter = RpcRequest {
                kept: Some(Rc::default()),
                fault: Some(Rc::new(fault)),
                ..letter
            };
            letter.batch(reading, items).await
        }
        // Unreachable: the domain finds messages only in a body that was read.
        (Posted::Messages(_) | Posted::Call(..) | Posted::Batch(..), RequestBody::Coming(..)) => {
            let failure = Failure::new(Reason::Internal, "the body was not read");
            refused(reading, &head, (failure, RequestId::null()))
        }
    }
}

/// Responds with an error that carries CORS headers.
fn refused(
    mut record: Box<Record>,
    head: &request::Parts,
    (failure, id): (Failure, RequestId),
) -> Response<ResponseBody> {
    let installed = record.installed().clone();
    let whole = response::rpc_failure(&failure, &installed.plan.face.failure_codes, &id);
    record.failed(whole.status.as_u16(), &failure);
    let mut response = response::answer(record, CallResponse::Full(Box::new(whole)));
    cors::mark(&installed.plan, &head.headers, &mut response);
    response
}

/// Forwards a request whose method was not read.
async fn unread(
    mut record: Box<Record>,
    (mut head, content): (Box<request::Parts>, RequestBody),
    (arrival, place): (&RequestOrigin, usize),
) -> Response<ResponseBody> {
    let installed = record.installed().clone();
    let origin = cors::origin(&installed.plan, &head.headers);
    let upstream = installed.upstream_at(place).and_then(Upstream::http);
    let passed = async {
        let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rpc))?;
        head.uri = at_upstream(&upstream.plan().path, head.uri.query())?;
        let forwarded = match content {
            RequestBody::Coming(body, tap) => PassthroughRequest::streamed(head, body, tap),
            RequestBody::Read(body) => PassthroughRequest::read(head, body),
        };
        forward(&mut record, upstream, forwarded, arrival).await
    };
    let answer = passed.await;
    let failed = answer.is_err();
    let mut response = response::render(record, answer);
    if let Some(cors) = installed.plan.cors.as_ref().filter(|_| failed) {
        cors.mark(origin.as_ref(), response.headers_mut());
    }
    response
}

impl RpcRequest {
    /// Serves a call that is not valid JSON-RPC 2.0.
    async fn invalid_call(
        self,
        reading: Box<Record>,
        item: MessageItem,
        fault: Failure,
    ) -> Response<ResponseBody> {
        let letter = RpcRequest {
            kept: reading.waits_for_its_client().then(Rc::default),
            fault: Some(Rc::new(fault)),
            ..self
        };
        let (said, marks) = letter.answer(reading, item, BatchContext::Single).await;
        letter.alone(said, marks)
    }
}
