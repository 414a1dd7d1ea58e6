//! JSON-RPC messages that pass to an HTTP upstream. Used by `rpc`.

use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::time::timeout;

use super::{InterimResponses, PassthroughRequest, forward};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::{CallResponse, UpstreamResponse, rpc_message};
use crate::gateway::cancellation::unless_cancelled;
use crate::gateway::exchange;
use crate::gateway::headers::{HasBody, IdentityFields, translated_headers};
use crate::gateway::offloaded_parsing;
use crate::gateway::request_target::upstream_uri;
use crate::gateway::rpc_reply::RpcReply;
use crate::gateway::rpc_request::{BatchContext, CallResult, RpcRequest};
use crate::upstream::{HttpUpstream, Upstream};
use dualgauge_model::failure::{Blame, Failure};
use dualgauge_model::jsonrpc::{self, Call, RequestId};
use dualgauge_model::posted::{Handling, MessageFault, takes_envelopes};
use dualgauge_model::rejections;
use dualgauge_net::{Body, Lease, OutgoingRequest, RetryPolicy, collect_accounted};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// A call that passes through.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct PassedCall<'a> {
    pub(in crate::gateway) call: &'a Call,
    /// Headers made from credentials in the envelope.
    pub(in crate::gateway) credentials: &'a HeaderMap,
    pub(in crate::gateway) batch: BatchContext<'a>,
}

impl RpcRequest {
    /// Forwards a message that is not valid JSON-RPC 2.0 with its head and content coding; returns the response
    /// unchanged.
    pub(in crate::gateway) async fn forward_unchanged(
        &self,
        record: &mut AccessRecord,
        upstream: &Upstream,
    ) -> Result<CallResult, Failure> {
        let http = upstream.http();
        let http = http.filter(|http| takes_envelopes(&self.runtime_plan.plan, http.plan()));
        let Some(http) = http else {
            self.check_valid()?;
            return Err(rejections::no_upstream(Side::Rpc));
        };
        record.set_fault(MessageFault::Invalid, Handling::Forwarded);
        let body = self.body.clone();
        let interims = InterimResponses::Forwarded;
        let answer = self.forward(record, http, body, interims).await?;
        Ok(CallResult::Forwarded(answer))
    }

    /// Forwards a call to an HTTP upstream. A single call whose id survives a round trip passes as the same bytes both
    /// ways. Any other call is sent under an id of the proxy, and its answer gets the client's id back.
    pub(in crate::gateway) async fn pass_through(
        &self,
        record: &mut AccessRecord,
        upstream: &Rc<HttpUpstream>,
        passed: PassedCall<'_>,
    ) -> Result<CallResult, Failure> {
        let PassedCall {
            call,
            credentials,
            batch,
        } = passed;
        let Some(id) = &call.id else {
            let body = match batch {
                BatchContext::Single => self.body.clone(),
                BatchContext::Batch(_) => call.text.clone().into_bytes(),
            };
            let interims = InterimResponses::Dropped;
            let answer = self.forward(record, upstream, body, interims).await?;
            return self.discard(record, upstream, answer).await;
        };
        if id.is_portable() && matches!(batch, BatchContext::Single) {
            let body = self.body.clone();
            let interims = InterimResponses::Forwarded;
            let answer = self.forward(record, upstream, body, interims).await?;
            return Ok(CallResult::Forwarded(answer));
        }
        let upstream_id = self.worker.next_request_id();
        let cancellable = self.cancellable(&record.context, id, Some(upstream_id));
        let exchange =
            self.send_and_collect(record, upstream, call.with_id(upstream_id), credentials);
        let reply = unless_cancelled(cancellable.as_ref(), pin!(exchange)).await?;
        match reply {
            Some(response) => {
                let reply = RpcReply::plain(response, upstream_id);
                self.with_client_id(record, id, &reply).await
            }
            None => Ok(CallResult::Cancelled),
        }
    }

    /// Forwards a body under the head of the request.
    pub(in crate::gateway) async fn forward(
        &self,
        record: &mut AccessRecord,
        upstream: &Rc<HttpUpstream>,
        body: Bytes,
        interims: InterimResponses,
    ) -> Result<CallResponse, Failure> {
        let mut head = self.head.clone();
        head.uri = upstream_uri(&upstream.plan().path, self.head.uri.query())?;
        let interims = match self.socket {
            None => interims,
            Some(_) => InterimResponses::Dropped,
        };
        let passthrough = PassthroughRequest {
            interims,
            ..PassthroughRequest::from_bytes(head, body)
        };
        forward(record, upstream, passthrough, &self.origin).await
    }

    /// Reads and drops the response to a message that gets no reply (JSON-RPC 2.0 §4.1), so that the connection can be
    /// reused. A response that is too long or too late closes the connection.
    pub(in crate::gateway) async fn discard(
        &self,
        record: &mut AccessRecord,
        upstream: &Rc<HttpUpstream>,
        answer: CallResponse,
    ) -> Result<CallResult, Failure> {
        if let CallResponse::Streaming(stream) = answer {
            record.set_response(stream.response.status().as_u16());
            let limit = self.runtime_plan.plan.limits.answer;
            let read = collect_accounted(stream.response.into_body(), limit, self.worker.memory());
            match timeout(upstream.plan().timeout, read).await {
                Ok(Ok(_)) => stream.lease.into_iter().for_each(Lease::release),
                Ok(Err(_)) => {}
                Err(_) => stream.lease.iter().for_each(Lease::record_timeout),
            }
        }
        Ok(CallResult::Nothing)
    }

    async fn send_and_collect(
        &self,
        record: &mut AccessRecord,
        upstream: &Rc<HttpUpstream>,
        body: Bytes,
        credentials: &HeaderMap,
    ) -> Result<UpstreamResponse, Failure> {
        let request = self.client_request();
        let mut headers =
            translated_headers(&record.context, request, upstream.plan(), HasBody::Yes);
        headers.extend(credentials.clone());
        if let Some(identity_fields) =
            IdentityFields::new(&record.context, &self.head.headers, &self.origin)
        {
            identity_fields.write(&mut headers);
        }
        let target = upstream_uri(&upstream.plan().path, self.head.uri.query())?;
        let body = Body::from(Rope::from(body));
        exchange::send_and_collect(
            record,
            upstream,
            OutgoingRequest::new(Method::POST, target, headers, body),
            RetryPolicy::Unprocessed,
            upstream.plan().timeout,
        )
        .await
    }

    /// Builds the answer to a call that was sent under an id of the proxy.
    async fn with_client_id(
        &self,
        record: &mut AccessRecord,
        id: &RequestId,
        reply: &RpcReply,
    ) -> Result<CallResult, Failure> {
        let limits = &self.runtime_plan.plan.limits;
        let response =
            offloaded_parsing::parse_reply(record.context.worker(), reply, limits).await?;
        match &response.reply {
            jsonrpc::ResponseReply::Result(result) => record.set_result(result),
            jsonrpc::ResponseReply::Error(error) => {
                record.set_error(200, error.code, Blame::of_code(error.code));
            }
        }
        let body = response.with_id(&reply.response.body, id);
        Ok(CallResult::Answer(Box::new(rpc_message(body))))
    }
}
