//! A JSON-RPC call in the pipeline: its steps, and its result before the reply. Used by `rpc::message`.

use http::request;

use super::cancel::CancelRequest;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::FullResponse;
use crate::gateway::cancellation::MCP_SESSION;
use crate::gateway::request_origin::ClientRequest;
use crate::gateway::response::ResponseAnnotations;
use crate::gateway::response_observer::Observer;
use crate::gateway::rpc_request::{BatchContext, CallResult, ItemReply, RpcRequest};
use crate::gateway::serve::{IdentifiedRequest, ProtocolCall, TwoWayCall};
use crate::gateway::{local_reply, shadow};
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{Call, RequestId};
use dualgauge_model::plan::Plan;
use dualgauge_model::posted::{Handling, MessageFault};
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Identity, Requester, Stage, Way};
use dualgauge_model::routing;
use dualgauge_patterns::side::Side;

/// A message before it is replied to.
pub(super) struct ServedMessage<'a> {
    pub(super) id: Option<&'a RequestId>,
    pub(super) result: Result<CallResult, Failure>,
    pub(super) observer: Option<Observer>,
    /// The response to a call of a published tool that has invalid arguments.
    pub(super) tool_error: Option<Box<FullResponse>>,
}

/// A JSON-RPC call in the pipeline.
pub(super) struct RpcCall<'a> {
    request: &'a RpcRequest,
    call: &'a Call,
    batch: BatchContext<'a>,
    /// The call that this one cancels, if it is a cancellation.
    cancelled: Option<CancelRequest<'a>>,
    /// The receiver of the control's response, if the call has a candidate.
    observer: Option<Observer>,
}

impl<'a> RpcCall<'a> {
    /// Creates a call of a request.
    pub(super) fn new(
        request: &'a RpcRequest,
        call: &'a Call,
        batch: BatchContext<'a>,
    ) -> RpcCall<'a> {
        RpcCall {
            request,
            call,
            batch,
            cancelled: None,
            observer: None,
        }
    }

    fn plan(&self) -> &Plan {
        &self.request.runtime_plan.plan
    }

    /// Fails if translation rejects the message and its method has a local answer.
    fn check_for_local(&self, record: &mut AccessRecord) -> Result<(), Failure> {
        let Some(fault) = &self.request.fault else {
            return Ok(());
        };
        record.set_fault(MessageFault::Invalid, Handling::Refused);
        let local = self.plan().locals.rpc(&self.call.method);
        local.map_or(Ok(()), |_| Err(Failure::clone(fault)))
    }
}

impl<'a> TwoWayCall for RpcCall<'a> {
    type Head = &'a request::Parts;
    type Answer = CallResult;

    // Returns the inner future itself: awaited in another one, each call would poll both.
    fn translate(
        &mut self,
        record: &mut AccessRecord,
        _: ClientRequest<'_, &'a request::Parts>,
        index: usize,
    ) -> impl Future<Output = Result<CallResult, Failure>> {
        let request = self.request;
        request.translate(record, index, self.call, self.batch)
    }

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        _: ClientRequest<'_, &'a request::Parts>,
        index: Option<usize>,
    ) -> Result<CallResult, Failure> {
        let (request, call, batch) = (self.request, self.call, self.batch);
        let Some(upstream) = request.runtime_plan.upstream(index, Side::Rpc) else {
            request.check_valid()?;
            return Err(rejections::unknown_method(self.plan(), call));
        };
        let cancelled = self.cancelled.take();
        match cancelled.filter(|_| upstream.http().is_some()) {
            None => request.forward_call(record, upstream, call, batch).await,
            Some(cancelled) => {
                request
                    .forward_cancellation(record, upstream, cancelled, batch)
                    .await
            }
        }
    }
}

impl ProtocolCall for RpcCall<'_> {
    type Response = (ItemReply, ResponseAnnotations);

    /// The caller was identified for all messages of the request.
    fn identify<'h>(&mut self, _: &mut AccessRecord, _: ClientRequest<'h>) -> Identity<'h>
    where
        Self: 'h,
    {
        self.request.rpc_caller.identity.borrowed()
    }

    fn answer_locally(
        &mut self,
        record: &mut AccessRecord,
        _: &IdentifiedRequest<'_>,
    ) -> Result<Option<CallResult>, Failure> {
        let (request, call) = (self.request, self.call);
        let plan = &request.runtime_plan.plan;
        if self.batch.is_full() {
            // A call whose answer would not fit is not sent.
            return Err(answers_too_large(plan));
        }
        rejections::ambiguous_credentials(plan, call)?;
        if request.socket.is_none() {
            // Headers of a socket belong to its handshake, not to a message.
            routing::check_mcp_headers(plan, &request.head.headers, call)?;
        }
        self.cancelled = request.cancel_named_call(call);
        self.check_for_local(record)?;
        let revision = request.client_revision(call);
        let client_request = request.client_request();
        let mut local = local_reply::answer_rpc(record, plan, client_request, call, revision)?;
        let opens_session = plan.rollout.clients.reads_mcp_clients()
            && request.socket.is_none()
            && *call.method == *"initialize";
        if let Some(full) = local.as_mut().filter(|_| opens_session)
            && let Some(session) = request.new_session_id(call)
        {
            full.headers.insert(&MCP_SESSION, session);
        }
        Ok(local.map(|full| CallResult::Answer(Box::new(full))))
    }

    async fn select_route(
        &mut self,
        _: &mut CallContext,
        _: &IdentifiedRequest<'_>,
    ) -> Result<Option<usize>, Failure> {
        let call = self.call;
        Ok(self.plan().select_rpc(&call.method, call.params.as_ref()))
    }

    fn decide(
        &mut self,
        record: &mut AccessRecord,
        identified: &IdentifiedRequest<'_>,
        route: Option<usize>,
    ) -> Stage {
        let request = self.request;
        let headers = &request.head.headers;
        let sessions = request.sessions();
        let session = sessions
            .for_rpc(headers, self.call, route)
            .or_else(|| Some(sessions.for_socket(request.socket?.number)));
        let requester = Requester::new(identified.caller, headers).with_session(session);
        record.decide(&request.runtime_plan.plan, requester, route)
    }

    fn attach_shadow(&mut self, record: &AccessRecord, _: &IdentifiedRequest<'_>, stage: Stage) {
        // Most calls have no candidate.
        if stage.candidate().is_none() {
            return;
        }
        let request = self.request;
        let takes_new_path = stage.control() == Some(Way::New);
        let may_repeat = match takes_new_path && request.fault.is_some() {
            true => Err(Skip::Unread),
            false => request.may_repeat(self.call),
        };
        if shadow::may_attach(&record.context, stage, may_repeat) {
            let call = request.replayable(self.call, self.batch);
            self.observer = shadow::candidate(record, Box::new(call));
        }
    }

    fn attach_recorder(&mut self, record: &AccessRecord, _: &IdentifiedRequest<'_>) {
        let text = || self.call.text.clone().into_bytes();
        self.request
            .attach_recorder(record, text, &mut self.observer);
    }

    fn unserved(&self, context: &CallContext, _: &IdentifiedRequest<'_>, route: usize) -> Failure {
        match self.request.check_valid() {
            Ok(()) => context.unserved_failure(self.plan(), route),
            Err(fault) => fault,
        }
    }

    async fn respond(
        &mut self,
        record: Box<AccessRecord>,
        result: Result<CallResult, Failure>,
    ) -> (ItemReply, ResponseAnnotations) {
        let (request, call) = (self.request, self.call);
        let failure = result.as_ref().err();
        let tool_error = failure.and_then(|one| request.tool_error(&record.context, call, one));
        let served = ServedMessage {
            id: call.id.as_ref(),
            result,
            observer: self.observer.take(),
            tool_error,
        };
        request.reply(record, served, self.batch)
    }
}

/// Returns the failure for a batch whose answers exceed `limits.answer` together.
pub(super) fn answers_too_large(plan: &Plan) -> Failure {
    let limit = plan.limits.answer;
    let message = format!(
        "the answers of this batch exceed {limit} bytes in total; send fewer calls per batch"
    );
    Failure::new(Reason::BatchTooLarge, message)
}
