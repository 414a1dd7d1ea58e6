//! How a message goes on: to the RPC upstream as it came, or to the REST upstream translated.

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

    /// Sends a call on as it came, but for credentials that are not for this server.
    pub(super) async fn pass_on(
        &self,
        record: &mut Record,
        upstream: &Upstream,
        call: &Call,
        company: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        if self.fault.is_some() {
            return self.unchanged(record, upstream).await;
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
            // It is of the other side.
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

    /// Sends a message that is not valid JSON-RPC 2.0 on, with its head and content coding: the answer comes as it is.
    async fn unchanged(
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
        record.is_invalid(MessageFault::Invalid, Handling::Forwarded);
        let body = self.body.clone();
        let interims = InterimResponses::Forwarded;
        let answer = self.forward(record, http, body, interims).await?;
        Ok(CallResult::Stream(answer))
    }

    /// Alone and with an id that servers give back, a call goes and returns as the same bytes. Else it goes
    /// with an id of the proxy's own, and the client's is put back into the answer. The headers are those of credentials that
    /// the message has borne.
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

    /// Sends a call over a link, where it has an id that no other call has.
    async fn over_link(
        &self,
        record: &mut Record,
        link: &LinkUpstream,
        call: &Call,
    ) -> Result<CallResult, Failure> {
        // The server behind a link sees neither `Origin` nor `HostField`.
        self.guard()?;
        // The headers of a socket are those of its handshake, and of no message.
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
        // On a socket, only the messages of a batch are kept together.
        let is_batched = self.socket.is_some() && self.kept.is_some();
        if subscription.is_some() && (is_batched || record.notifications().is_none()) {
            let message = "the notifications of a subscription are a stream: post it alone, with an `Accept` that names `text/event-stream`";
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
            // By it a notification of this client finds the call that it names.
            whole.headers.insert(&MCP_SESSION, name);
        }
        Ok(spoken)
    }

    /// How the client recalls a call, if it can: a second run is nobody's to recall. `minted` is the id that its server knows
    /// it by, where that has to be told by who passes the notification on.
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

    /// The session of the client, by which it recalls its calls.
    pub(super) fn scope(&self) -> Option<CancelScope<'_>> {
        if let Some(socket) = self.socket {
            return Some(CancelScope::Socket(socket));
        }
        let name = self.head.headers.get(&MCP_SESSION)?;
        let caller = self.caller();
        Some(CancelScope::session(caller, name))
    }

    /// The answer to a call that went with an id of the proxy's own. That of `link_call`, which went over a link, is put in
    /// the form of the client's revision: its server does not know which client asks.
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
                // A message of a socket has no status.
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

    /// The result of a call in the form of the client's revision of MCP, where it has another one.
    fn fitted(&self, call: &Call, result: &Json) -> Result<Option<Rope>, Failure> {
        let fitted = mcp::fitted(self.era(call), &call.method, result);
        fitted.map_err(|_| rejections::input_required())
    }

    /// The kind of revision of MCP that the client of a call speaks.
    pub(super) fn era(&self, call: &Call) -> ClientRevision {
        match self.socket {
            None => ClientRevision::of_headers(&self.head.headers),
            // The headers of a socket are those of its handshake, and of no message.
            Some(_) => ClientRevision::of_message(call),
        }
    }

    /// The call without the credentials that its envelope bears and an upstream does not take there.
    fn reread(&self, body: &Bytes) -> Result<Call, Failure> {
        match jsonrpc::parse(body, self.installed.plan.limits.message()) {
            Ok(jsonrpc::Incoming::Single(jsonrpc::MessageItem::Call(call))) => Ok(call),
            // What was a call without these members still is one.
            Ok(_) | Err(_) => Err(Failure::new(
                Reason::Internal,
                "the credentials in the envelope cannot be taken out of the message",
            )),
        }
    }

    /// Sends a message on with the headers that it came with.
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

    /// Reads what the server says to a message that is not answered (JSON-RPC 2.0 §4.1), so that the
    /// connection can serve again; what is too long or too late closes it.
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

/// Asks, unless the client says that it does not want the answer any more.
///
/// What is asked is pinned where it is made: given away, a future would have its room twice in the one that it is given to.
async fn unless_cancelled<T>(
    call: Option<&CancellableCall>,
    asked: Pin<&mut impl Future<Output = Result<T, Failure>>>,
) -> Result<Option<T>, Failure> {
    let Some(call) = call else {
        return asked.await.map(Some);
    };
    // Either may be dropped: a question is taken back then, and the connection of an exchange is closed.
    tokio::select! {
        biased;
        () = call.recall.cancelled() => Ok(None),
        answered = asked => answered.map(Some),
    }
}
