//! Dispatch of a message: unchanged to the RPC upstream, or translated to the REST upstream.

use std::pin::{Pin, pin};
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::timeout;

use super::{BatchContext, CallResult, RpcRequest};
use crate::domain::failure::{Blame, Failure, Reason};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{self, Call, LISTEN, RequestId};
use crate::domain::mcp::{self, ClientRevision};
use crate::domain::outcome::RpcAnswer;
use crate::domain::posted::{Handling, MessageFault, RewrittenCall, rewritten, takes_envelopes};
use crate::domain::rope::Rope;
use crate::domain::side::Side;
use crate::domain::{pending, rejections, routing};
use crate::gateway::cancellation::{
    CancelScope, CancellableCall, CancellationRegistry, MCP_SESSION,
};
use crate::gateway::exchange::{self, UpstreamResponse};
use crate::gateway::headers::{self, HasBody, IdentityFields};
use crate::gateway::link_call;
use crate::gateway::offloaded_parsing;
use crate::gateway::passthrough::{InterimResponses, PassthroughRequest, at_upstream, forward};
use crate::gateway::record::Record;
use crate::gateway::response::{self, CallResponse};
use crate::gateway::translate::{self, check_id, no_response};
use crate::upstream::link::LinkUpstream;
use crate::upstream::{
    Body, HttpUpstream, OutgoingRequest, RetryPolicy, Upstream, boxed, collect_accounted,
};

impl RpcRequest {
    pub(super) async fn translate(
        &self,
        record: &mut Record,
        index: usize,
        call: &Call,
    ) -> Result<CallResult, Failure> {
        self.check_valid()?;
        let context = (&*self.head, &self.arrival);
        let answered = translate::rpc_call(record, index, call, context).await?;
        let id = call.id.clone().unwrap_or(RequestId::null());
        let body = match answered.answer {
            RpcAnswer::Result(result) => {
                let result = (result, answered.result_type);
                let written = mcp::written(self.era(call), &call.method, result);
                let result = written.map_err(|_| rejections::input_required())?;
                jsonrpc::result(&id, result)
            }
            RpcAnswer::Error(error) => jsonrpc::error(&id, &error),
        };
        Ok(CallResult::Answer(boxed(|| {
            let mut whole = response::rpc_message_with_shadow(answered.headers, body);
            whole.status = answered.status;
            whole
        })))
    }

    /// Forwards a call unchanged, except for credentials that this upstream does not take in the envelope.
    pub(super) async fn pass_on(
        &self,
        record: &mut Record,
        upstream: &Upstream,
        call: &Call,
        company: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        if self.fault.is_some() {
            return self.forward_unchanged(record, upstream).await;
        }
        let rewritten = rewritten(&self.installed.plan, upstream.plan(), call)?;
        let rewritten = match rewritten {
            None => None,
            Some(rewritten) => Some((self.reread(&rewritten.body)?, rewritten)),
        };
        let upstream = match upstream {
            Upstream::Http(http) => http,
            Upstream::Link(link) => {
                let call = rewritten.as_ref().map_or(call, |(call, _)| call);
                return self.over_link(record, link, call).await;
            }
            // Legacy sockets belong to the REST side.
            Upstream::Frames(_) => return Err(rejections::no_upstream(Side::Rpc)),
        };
        match rewritten {
            None => {
                let call = (call, &HeaderMap::new());
                self.passthrough(record, upstream, call, company).await
            }
            Some((call, RewrittenCall { body, headers })) => {
                let mut letter = RpcRequest {
                    body,
                    ..self.clone()
                };
                letter.head.headers.extend(headers.clone());
                let call = (&call, &headers);
                letter.passthrough(record, upstream, call, company).await
            }
        }
    }

    /// Forwards a message that is not valid JSON-RPC 2.0 with its head and content coding; returns the response
    /// unchanged.
    async fn forward_unchanged(
        &self,
        record: &mut Record,
        upstream: &Upstream,
    ) -> Result<CallResult, Failure> {
        let http = upstream.http();
        let http = http.filter(|http| takes_envelopes(&self.installed.plan, http.plan()));
        let Some(http) = http else {
            self.check_valid()?;
            return Err(rejections::no_upstream(Side::Rpc));
        };
        record.set_fault(MessageFault::Invalid, Handling::Forwarded);
        let body = self.body.clone();
        let interims = InterimResponses::Forwarded;
        let answer = self.forward(record, http, body, interims).await?;
        Ok(CallResult::Stream(answer))
    }

    /// Forwards a call to an HTTP upstream. A single call whose id survives a round trip passes as the same bytes both
    /// ways. Any other call is sent under an id of the proxy, and its answer gets the client's id back. `credentials`
    /// are the headers made from credentials in the envelope.
    async fn passthrough(
        &self,
        record: &mut Record,
        upstream: &Rc<HttpUpstream>,
        (call, credentials): (&Call, &HeaderMap),
        company: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        let Some(id) = &call.id else {
            let body = match company {
                BatchContext::Single => self.body.clone(),
                BatchContext::Batch(_) => call.text.clone().into_bytes(),
            };
            let interims = InterimResponses::Dropped;
            let answer = self.forward(record, upstream, body, interims).await?;
            return self.discard(record, upstream, answer).await;
        };
        if id.travels() && matches!(company, BatchContext::Single) {
            let body = self.body.clone();
            let interims = InterimResponses::Forwarded;
            let answer = self.forward(record, upstream, body, interims).await?;
            return Ok(CallResult::Stream(answer));
        }
        let minted = self.worker.next_request_id();
        let recallable = self.cancellable(record, id, Some(minted));
        let exchange = self.exchange(record, upstream, (call.with_id(minted), credentials));
        let answered = unless_cancelled(recallable.as_ref(), pin!(exchange)).await?;
        match answered {
            Some(reply) => self.renumbered(record, id, (reply, minted), None).await,
            None => Ok(CallResult::Cancelled),
        }
    }

    /// Sends a call over a link, under an id that is unique on that link.
    async fn over_link(
        &self,
        record: &mut Record,
        link: &LinkUpstream,
        call: &Call,
    ) -> Result<CallResult, Failure> {
        // The server behind a link sees neither `Origin` nor `Host`, so the proxy checks them.
        self.guard()?;
        // Headers of a socket belong to its handshake, not to a message.
        let headers = self.socket.is_none().then_some(&self.head.headers);
        routing::linked(&self.installed.plan, link.plan(), headers, call)?;
        let limit = link.plan().timeout;
        let (Some(id), Some(unnumbered)) = (&call.id, call.template()) else {
            let text = call.text.clone().into_bytes();
            link_call::send_notification(record, link, (&call.method, text), limit).await?;
            record.answered(StatusCode::ACCEPTED.as_u16());
            return Ok(CallResult::Nothing);
        };
        let subscription = (*call.method == *LISTEN).then(|| id.clone());
        // On a socket, `kept` is set only for a batch.
        let is_batched = self.socket.is_some() && self.kept.is_some();
        if subscription.is_some() && (is_batched || record.notifications().is_none()) {
            let message = "a subscription is answered with an event stream: post it alone, with `text/event-stream` in `Accept`";
            return Err(Failure::new(Reason::InvalidRequest, message));
        }
        let recallable = self.cancellable(record, id, None);
        let question = link_call::LinkRequest {
            method: &call.method,
            call: unnumbered,
            repeat: pending::RetryRule::Never,
            recall: recallable.as_ref().map(|call| call.recall.clone()),
            subscription,
        };
        let asked = link_call::send(record, link, question, limit);
        let answered = unless_cancelled(recallable.as_ref(), pin!(asked)).await?;
        let Some(answered) = answered else {
            return Ok(CallResult::Cancelled);
        };
        let mut spoken = self.renumbered(record, id, answered, Some(call)).await?;
        if let CallResult::Answer(whole) = &mut spoken
            && self.socket.is_none()
            && *call.method == *"initialize"
            && let Some(name) = CancellationRegistry::name()
        {
            // Later notifications of this client find their call by this session id.
            whole.headers.insert(&MCP_SESSION, name);
        }
        Ok(spoken)
    }

    /// Registers a call so that the client can cancel it; a replayed call cannot be cancelled. `minted` is the id that
    /// the upstream knows the call by, if a forwarded cancellation must name it.
    fn cancellable(
        &self,
        record: &Record,
        id: &RequestId,
        minted: Option<u64>,
    ) -> Option<CancellableCall> {
        let scope = self.scope().filter(|_| record.budget().is_none())?;
        Some(
            self.worker
                .cancellations()
                .begin(scope, id.as_bytes(), minted),
        )
    }

    /// Returns the scope of ids in which the client cancels its calls.
    pub(super) fn scope(&self) -> Option<CancelScope<'_>> {
        if let Some(socket) = self.socket {
            return Some(CancelScope::Socket(socket));
        }
        let name = self.head.headers.get(&MCP_SESSION)?;
        let caller = self.caller();
        Some(CancelScope::session(caller, name))
    }

    /// Builds the answer to a call that was sent under an id of the proxy. `linked` is set for a call over a link: its
    /// result is converted to the client's MCP revision, which the server does not know.
    async fn renumbered(
        &self,
        record: &mut Record,
        id: &RequestId,
        (reply, minted): (UpstreamResponse, u64),
        linked: Option<&Call>,
    ) -> Result<CallResult, Failure> {
        let limits = &self.installed.plan.limits;
        let response =
            offloaded_parsing::response(record.worker(), &reply.body, limits.depth).await?;
        let response = response.map_err(|fault| no_response(&reply, fault, limits.error_text))?;
        check_id(&response, minted)?;
        let (fitted, status) = match &response.reply {
            jsonrpc::ResponseReply::Result(result) => {
                let fitted = linked.map(|call| self.fitted(call, result)).transpose()?;
                record.answered_result(result);
                (fitted.flatten(), 200)
            }
            jsonrpc::ResponseReply::Error(error) => {
                record.answered_error(200, error.code, Blame::of_code(error.code));
                // A message on a socket has no status.
                let posted = linked.filter(|_| self.socket.is_none());
                let status = posted.map_or(200, |call| self.era(call).status(error.code));
                (None, status)
            }
        };
        let mut whole = response::rpc_message(match fitted {
            None => response.with_id(&reply.body, id),
            Some(result) => response.with_result(&reply.body, id, result),
        });
        whole.status = response::status(status);
        Ok(CallResult::Answer(Box::new(whole)))
    }

    /// Converts a result to the client's MCP revision, if that differs.
    fn fitted(&self, call: &Call, result: &Json) -> Result<Option<Rope>, Failure> {
        let fitted = mcp::fitted(self.era(call), &call.method, result);
        fitted.map_err(|_| rejections::input_required())
    }

    /// Returns the kind of MCP revision that the client of a call uses.
    pub(super) fn era(&self, call: &Call) -> ClientRevision {
        match self.socket {
            None => ClientRevision::of_headers(&self.head.headers),
            // Headers of a socket belong to its handshake, not to a message.
            Some(_) => ClientRevision::of_message(call),
        }
    }

    /// Parses a call again after its credentials were removed from the envelope.
    fn reread(&self, body: &Bytes) -> Result<Call, Failure> {
        match jsonrpc::parse(body, self.installed.plan.limits.message()) {
            Ok(jsonrpc::Incoming::Single(jsonrpc::MessageItem::Call(call))) => Ok(call),
            // Removing members cannot turn a call into something else.
            Ok(_) | Err(_) => Err(Failure::new(
                Reason::Internal,
                "the credentials cannot be removed from the message",
            )),
        }
    }

    /// Forwards a body under the head of the request.
    pub(super) async fn forward(
        &self,
        record: &mut Record,
        upstream: &Rc<HttpUpstream>,
        body: Bytes,
        interims: InterimResponses,
    ) -> Result<CallResponse, Failure> {
        let mut head = self.head.clone();
        head.uri = at_upstream(&upstream.plan().path, self.head.uri.query())?;
        let interims = match self.socket {
            None => interims,
            Some(_) => InterimResponses::Dropped,
        };
        let forwarded = PassthroughRequest {
            interims,
            ..PassthroughRequest::read(head, body)
        };
        forward(record, upstream, forwarded, &self.arrival).await
    }

    /// Reads and drops the response to a message that gets no reply (JSON-RPC 2.0 §4.1), so that the connection can be
    /// reused. A response that is too long or too late closes the connection.
    pub(super) async fn discard(
        &self,
        record: &mut Record,
        upstream: &Rc<HttpUpstream>,
        answer: CallResponse,
    ) -> Result<CallResult, Failure> {
        if let CallResponse::Streaming(stream) = answer {
            record.answered(stream.response.status().as_u16());
            let limit = self.installed.plan.limits.answer;
            let read = collect_accounted(stream.response.into_body(), limit, self.worker.memory());
            match timeout(upstream.plan().timeout, read).await {
                Ok(Ok(_)) => stream.lease.release(),
                Ok(Err(_)) => {}
                Err(_) => stream.lease.late(),
            }
        }
        Ok(CallResult::Nothing)
    }

    async fn exchange(
        &self,
        record: &mut Record,
        upstream: &Rc<HttpUpstream>,
        (body, credentials): (Bytes, &HeaderMap),
    ) -> Result<UpstreamResponse, Failure> {
        let context = (&*self.head, &self.arrival);
        let mut headers = headers::translated(record, context, upstream.plan(), HasBody::Yes);
        headers.extend(credentials.clone());
        if let Some(known) = IdentityFields::new(record, (&self.head.headers, &self.arrival)) {
            known.write(&mut headers);
        }
        let target = at_upstream(&upstream.plan().path, self.head.uri.query())?;
        let body = Body::from(Rope::from(body));
        exchange::send_and_collect(
            record,
            upstream,
            OutgoingRequest::new(Method::POST, target, headers, body),
            RetryPolicy::Unsent,
            upstream.plan().timeout,
        )
        .await
    }
}

/// Awaits a call; returns `None` if the client cancels it first.
///
/// The caller pins the future: passing it by value would store it twice in the caller's own future.
async fn unless_cancelled<T>(
    call: Option<&CancellableCall>,
    asked: Pin<&mut impl Future<Output = Result<T, Failure>>>,
) -> Result<Option<T>, Failure> {
    let Some(call) = call else {
        return asked.await.map(Some);
    };
    // Both branches may be dropped: a link request is then withdrawn, and the connection of an HTTP exchange is
    // closed.
    tokio::select! {
        biased;
        () = call.recall.cancelled() => Ok(None),
        answered = asked => answered.map(Some),
    }
}
