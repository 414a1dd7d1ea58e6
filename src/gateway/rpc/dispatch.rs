//! Sends a message as the pipeline decided: unchanged to an HTTP upstream, over a link, or translated to the REST upstream.
//! Also attaches the recorder to messages, and renders responses that stream. Used by `rpc`.

use bytes::Bytes;
use http::HeaderMap;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::{CallResponse, rpc_message_with_headers};
use crate::gateway::passthrough::PassedCall;
use crate::gateway::recording::{self, RequestContent, RequestKind, SampledRequest};
use crate::gateway::response;
use crate::gateway::response_observer::Observer;
use crate::gateway::rpc_request::{BatchContext, CallResult, ItemReply, RpcRequest};
use crate::gateway::translate::to_rest::{self, RpcServed};
use crate::upstream::Upstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{self, Call, RequestId};
use dualgauge_model::mcp;
use dualgauge_model::outcome::RpcAnswer;
use dualgauge_model::posted::{RewrittenCall, rewritten};
use dualgauge_model::rejections;
use dualgauge_net::boxed;
use dualgauge_patterns::side::Side;

impl RpcRequest {
    /// Replies with a response that streams, whose head the proxy wrote.
    pub(super) fn streamed(
        &self,
        record: Box<AccessRecord>,
        answer: CallResponse,
        observer: Option<Observer>,
    ) -> ItemReply {
        let response = response::render_response(record, answer, observer);
        ItemReply::Forwarded(self.add_cors_headers(response))
    }

    /// Records the call, if it is in the sample: puts an observer in front of `observer`. A batch that passes as one
    /// message is recorded whole, with the decision of one item.
    pub(super) fn attach_recorder(
        &self,
        record: &AccessRecord,
        text: impl FnOnce() -> Bytes,
        observer: &mut Option<Observer>,
    ) {
        if let Some(recording) = record.context.worker().call_recorder().sample() {
            let request = SampledRequest {
                head: &self.head,
                kind: RequestKind::Http,
                content: RequestContent::Read(&text()),
                recording,
            };
            *observer = recording::observer(record, &request, &mut None, observer.take());
        }
    }

    /// Translates a call for the REST upstream.
    pub(super) async fn translate(
        &self,
        record: &mut AccessRecord,
        index: usize,
        call: &Call,
        batch: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        self.check_valid()?;
        if let Some(candidate) = record.context.paired_upstream().cloned() {
            // Both servers speak MCP: the new way is the same call over the other link.
            self.note_candidate();
            return self
                .forward_call(record, &candidate, call, BatchContext::Single)
                .await;
        }
        let revision = self.client_revision(call);
        let served = to_rest::IncomingRpcCall {
            call,
            request: self.client_request(),
            revision,
            is_alone: self.socket.is_none() && matches!(batch, BatchContext::Single),
        };
        let translated = match to_rest::serve_rpc_call(record, index, served).await? {
            RpcServed::Answer(translated) => translated,
            RpcServed::Passed(full) => return Ok(CallResult::Answer(full)),
            RpcServed::Stream(stream) => {
                let stream = CallResponse::Streaming(stream);
                return Ok(CallResult::Streamed(stream));
            }
        };
        let id = call.id.clone().unwrap_or(RequestId::null());
        let body = match translated.answer {
            RpcAnswer::Result(result) => {
                let result_type = translated.result_type;
                let written = mcp::render_for(revision, &call.method, result, result_type);
                let result = written.map_err(|_| rejections::input_required())?;
                jsonrpc::result(&id, result)
            }
            RpcAnswer::Error(error) => jsonrpc::error(&id, &error),
        };
        Ok(CallResult::Answer(boxed(|| {
            let mut full = rpc_message_with_headers(translated.headers, body);
            full.status = translated.status;
            full
        })))
    }

    /// Forwards a call unchanged, except for credentials that this upstream does not take in the envelope.
    pub(super) async fn forward_call(
        &self,
        record: &mut AccessRecord,
        upstream: &Upstream,
        call: &Call,
        batch: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        if self.fault.is_some() {
            return self.forward_unchanged(record, upstream).await;
        }
        let rewritten = rewritten(&self.runtime_plan.plan, upstream.plan(), call)?;
        let rewritten = match rewritten {
            None => None,
            Some(rewritten) => Some((self.parse_again(&rewritten.body)?, rewritten)),
        };
        let upstream = match upstream {
            Upstream::Http(http) => http,
            Upstream::Link(link) => {
                let call = rewritten.as_ref().map_or(call, |(call, _)| call);
                return self.send_over_link(record, link, call).await;
            }
            // Legacy sockets belong to the REST side.
            Upstream::Frames(_) => return Err(rejections::no_upstream(Side::Rpc)),
        };
        match rewritten {
            None => {
                let passed = PassedCall {
                    call,
                    credentials: &HeaderMap::new(),
                    batch,
                };
                self.pass_through(record, upstream, passed).await
            }
            Some((call, RewrittenCall { body, headers })) => {
                let mut request = RpcRequest {
                    body,
                    ..self.clone()
                };
                request.head.headers.extend(headers.clone());
                let passed = PassedCall {
                    call: &call,
                    credentials: &headers,
                    batch,
                };
                request.pass_through(record, upstream, passed).await
            }
        }
    }
}
