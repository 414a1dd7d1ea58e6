//! Dispatch of a message: unchanged to the RPC upstream, or translated to the REST upstream.

use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::timeout;

use super::cancel::unless_cancelled;
use super::era_bridge::AnswerHead;
use super::rpc_request::{BatchContext, CallResult, RpcRequest};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::{CallResponse, UpstreamResponse, rpc_message_with_headers};
use crate::gateway::cancellation::{
    CancelScope, CancellableCall, CancellationRegistry, MCP_SESSION,
};
use crate::gateway::exchange;
use crate::gateway::headers::{HasBody, IdentityFields, translated_headers};
use crate::gateway::link_call;
use crate::gateway::offloaded_parsing;
use crate::gateway::passthrough::{InterimResponses, PassthroughRequest, forward};
use crate::gateway::request_target::upstream_uri;
use crate::gateway::rpc_reply::{RpcReply, no_response};
use crate::gateway::translate::{self, RpcServed};
use crate::upstream::link::LinkUpstream;
use crate::upstream::{HttpUpstream, Upstream};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, Call, LISTEN, RequestId};
use dualgauge_model::mcp::{
    self, BridgeAction, ClientInfo, ClientRevision, InputCapabilities, LogFilter, ServerEra,
};
use dualgauge_model::outcome::RpcAnswer;
use dualgauge_model::pending;
use dualgauge_model::posted::{Handling, MessageFault, RewrittenCall, rewritten, takes_envelopes};
use dualgauge_model::rejections;
use dualgauge_model::reply::check_id;
use dualgauge_model::routing;
use dualgauge_net::{Body, Lease, OutgoingRequest, RetryPolicy, boxed, collect_accounted};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// A call that passes through.
#[derive(Clone, Copy)]
struct PassedCall<'a> {
    call: &'a Call,
    /// Headers made from credentials in the envelope.
    credentials: &'a HeaderMap,
    batch: BatchContext<'a>,
}

/// A call and the link that it was sent over.
#[derive(Clone, Copy)]
pub(super) struct LinkedCall<'a> {
    pub(super) link: &'a LinkUpstream,
    pub(super) call: &'a Call,
}

impl RpcRequest {
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
        let served = translate::IncomingRpcCall {
            call,
            request: self.client_request(),
            revision,
            is_alone: self.socket.is_none() && matches!(batch, BatchContext::Single),
        };
        let translated = match translate::serve_rpc_call(record, index, served).await? {
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

    /// Forwards a message that is not valid JSON-RPC 2.0 with its head and content coding; returns the response
    /// unchanged.
    async fn forward_unchanged(
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
    async fn pass_through(
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
                self.restore_id(record, id, reply, None).await
            }
            None => Ok(CallResult::Cancelled),
        }
    }

    /// Sends a call over a link, under an id that is unique on that link.
    async fn send_over_link(
        &self,
        record: &mut AccessRecord,
        link: &Rc<LinkUpstream>,
        call: &Call,
    ) -> Result<CallResult, Failure> {
        // The server behind a link sees neither `Origin` nor `Host`, so the proxy checks them.
        self.check_origin()?;
        // Headers of a socket belong to its handshake, not to a message.
        let headers = self.socket.is_none().then_some(&self.head.headers);
        routing::check_call_over_link(&self.runtime_plan.plan, link.plan(), headers, call)?;
        if let Some(answer) = self.discover_old_server(record, link, call).await? {
            return Ok(answer);
        }
        if let Some(answer) = self.forget_session_resource(link, call) {
            record.set_response(StatusCode::OK.as_u16());
            return Ok(answer);
        }
        let described = self.with_session_metadata(record, link, call)?;
        let call = described.as_ref().unwrap_or(call);
        let (Some(id), Some(template)) = (&call.id, call.template()) else {
            let text = call.text.clone().into_bytes();
            let limit = link.plan().timeout;
            link_call::send_notification(record, link, &call.method, text, limit).await?;
            record.set_response(StatusCode::ACCEPTED.as_u16());
            return Ok(CallResult::Nothing);
        };
        let subscription = self.subscription(record, link, call)?;
        let cancellable = self.cancellable(&record.context, id, None);
        let linked = LinkedCall { link, call };
        let resource = self.add_session_resource(record, link, call).await;
        let request = link_call::LinkRequest {
            method: &call.method,
            call: template,
            retry_rule: pending::RetryRule::Never,
            cancel_signal: cancellable.as_ref().map(|call| call.cancel_signal.clone()),
            subscription,
            logs: LogFilter::of_call(self.client_revision(call), call),
            input: self.answered_requests(record, linked),
        };
        let call_future = self.send_with_input(record, linked, request);
        let reply = unless_cancelled(cancellable.as_ref(), pin!(call_future)).await?;
        let Some(reply) = reply else {
            return Ok(CallResult::Cancelled);
        };
        self.keep_session_level(link, call);
        if let Some(resource) = resource {
            self.keep_session_resource(resource, &reply.response.body);
        }
        let mut result = self.restore_id(record, id, reply, Some(linked)).await?;
        if let CallResult::Answer(full) = &mut result
            && self.socket.is_none()
            && *call.method == *"initialize"
            && let Some(name) = self.new_session_id(call)
        {
            // Later notifications of this client find their call by this session id.
            full.headers.insert(&MCP_SESSION, name);
        }
        Ok(result)
    }

    /// Returns the client's id of a call that opens a subscription; `None` if it does not.
    fn subscription(
        &self,
        record: &AccessRecord,
        link: &LinkUpstream,
        call: &Call,
    ) -> Result<Option<RequestId>, Failure> {
        let id = call.id.as_ref().filter(|_| *call.method == *LISTEN);
        let Some(id) = id else {
            return Ok(None);
        };
        // On a socket, `undelivered` is set only for a batch.
        let is_batched = self.socket.is_some() && self.undelivered.is_some();
        if is_batched || record.context.notifications().is_none() {
            let message = "a subscription is answered with an event stream: post it alone, with `text/event-stream` in `Accept`";
            return Err(Failure::new(Reason::InvalidRequest, message));
        }
        if link.server_era() == ServerEra::Sessions {
            self.count_conversion(record, BridgeAction::Subscription);
        }
        Ok(Some(id.clone()))
    }

    /// Returns the id of the session that an `initialize` opens. It keeps the capabilities to give input, and the
    /// declared program.
    pub(super) fn new_session_id(&self, call: &Call) -> Option<HeaderValue> {
        let declared = ClientInfo::of_call(call);
        let mut suffix = InputCapabilities::of_initialize(call.params.as_ref()).to_suffix();
        suffix.extend(declared.map(|client| client.session_suffix()));
        CancellationRegistry::new_session_id(&suffix)
    }

    /// Registers a call so that the client can cancel it; a replayed call cannot be cancelled. `upstream_id` is the id
    /// of the call at its upstream, if a forwarded cancellation must name it.
    fn cancellable(
        &self,
        context: &CallContext,
        id: &RequestId,
        upstream_id: Option<u64>,
    ) -> Option<CancellableCall> {
        let scope = self
            .scope()
            .filter(|_| context.second_run_budget().is_none())?;
        Some(
            self.worker
                .cancellations()
                .register(scope, id.as_bytes(), upstream_id),
        )
    }

    /// Returns the scope of ids in which the client cancels its calls.
    pub(super) fn scope(&self) -> Option<CancelScope<'_>> {
        if let Some(socket) = self.socket {
            return Some(CancelScope::Socket(socket.number));
        }
        let name = self.head.headers.get(&MCP_SESSION)?;
        let caller = self.caller();
        Some(CancelScope::session(caller, name))
    }

    /// Builds the answer to a call that was sent under an id of the proxy. `linked` is set for a call over a link: its
    /// result or error is converted to the client's MCP revision, which the server does not know.
    async fn restore_id(
        &self,
        record: &mut AccessRecord,
        id: &RequestId,
        reply: RpcReply,
        linked: Option<LinkedCall<'_>>,
    ) -> Result<CallResult, Failure> {
        let limits = &self.runtime_plan.plan.limits;
        let response = offloaded_parsing::parse_response(
            record.context.worker(),
            &reply.response.body,
            limits.depth,
        )
        .await?;
        let response =
            response.map_err(|fault| no_response(&reply.response, fault, limits.error_text))?;
        check_id(&response, reply.id)?;
        let (converted, head) = match &response.reply {
            jsonrpc::ResponseReply::Result(result) => {
                let converted = linked
                    .map(|linked| self.convert_result(record, linked.call, result))
                    .transpose()?;
                record.set_result(result);
                (converted.flatten(), AnswerHead::with_status(200))
            }
            jsonrpc::ResponseReply::Error(error) => {
                let converted =
                    linked.and_then(|linked| self.convert_server_error(record, linked, id, error));
                if let Some(full) = converted {
                    return Ok(CallResult::Answer(Box::new(full)));
                }
                (None, self.error_head(record, linked, error))
            }
        };
        let body = match converted {
            None => response.with_id(&reply.response.body, id),
            Some(result) => response.with_result(&reply.response.body, id, result),
        };
        let mut full = rpc_message_with_headers(head.headers, body);
        full.status = head.status;
        Ok(CallResult::Answer(Box::new(full)))
    }

    /// Converts a result to the client's MCP revision, if that differs.
    fn convert_result(
        &self,
        record: &AccessRecord,
        call: &Call,
        result: &Json,
    ) -> Result<Option<Rope>, Failure> {
        let converted = mcp::missing_members_for(self.client_revision(call), &call.method, result);
        converted.map_err(|_| {
            let required = InputCapabilities::required_by_result(result);
            self.without_input(record, call, required)
        })
    }

    /// Returns the kind of MCP revision that the client of a call uses.
    pub(super) fn client_revision(&self, call: &Call) -> ClientRevision {
        match self.socket {
            None => ClientRevision::of_headers(&self.head.headers),
            // Headers of a socket belong to its handshake, not to a message.
            Some(_) => ClientRevision::of_message(call),
        }
    }

    /// Parses a call again after the proxy changed members of it.
    pub(super) fn parse_again(&self, body: &Bytes) -> Result<Call, Failure> {
        match jsonrpc::parse(body, self.runtime_plan.plan.limits.message()) {
            Ok(jsonrpc::Incoming::Single(jsonrpc::MessageItem::Call(call))) => Ok(call),
            // Removing members cannot turn a call into something else.
            Ok(_) | Err(_) => Err(Failure::new(
                Reason::Internal,
                "the message cannot be changed",
            )),
        }
    }

    /// Forwards a body under the head of the request.
    pub(super) async fn forward(
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
    pub(super) async fn discard(
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
}
