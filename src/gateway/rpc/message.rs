//! One message, from its record to its reply: alone, or as a member of a batch.
//!
//! Used by `rpc` and its modules.

use http::{Response, StatusCode};

use super::call::{RpcCall, ServedMessage, answers_too_large};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::{
    FullResponse, acknowledgement, rpc_failure, rpc_message, status,
};
use crate::gateway::passthrough::InterimResponses;
use crate::gateway::response::{self, ResponseAnnotations};
use crate::gateway::response_body::ResponseBody;
use crate::gateway::response_observer::Observer;
use crate::gateway::rpc_request::{BatchContext, CallResult, ItemReply, RpcRequest};
use crate::gateway::serve::serve;
use crate::telemetry::metrics::McpCall;
use crate::upstream::Upstream;
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, Call, Invalid, MessageItem, RequestId};
use dualgauge_model::mcp::{self, CallEra, ClientInfo, Era, ResultType};
use dualgauge_model::rejections;
use dualgauge_model::routing;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

impl RpcRequest {
    pub(super) fn no_reply_response(&self) -> Response<ResponseBody> {
        self.add_cors_headers(response::respond(acknowledgement(self.no_reply_status())))
    }

    /// Adds the CORS headers to a response that the proxy wrote.
    pub(super) fn add_cors_headers(
        &self,
        mut response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        response::add_cors_headers(&self.runtime_plan.plan, &self.head.headers, &mut response);
        response
    }

    /// Responds, and keeps the records until the client has the response, if delivery can be observed.
    pub(super) fn respond(
        &self,
        full: FullResponse,
        observers: Vec<Observer>,
    ) -> Response<ResponseBody> {
        let response = response::respond_then(full, observers);
        self.add_cors_headers(response::hold_records(response, self.take_records()))
    }

    pub(super) fn respond_single(
        &self,
        reply: ItemReply,
        annotations: ResponseAnnotations,
    ) -> Response<ResponseBody> {
        let mut response = match reply {
            ItemReply::Message(full, observer) => {
                self.respond(*full, observer.into_iter().collect())
            }
            ItemReply::Forwarded(response) => response,
            ItemReply::Nothing => self.no_reply_response(),
        };
        annotations.write(&self.runtime_plan.plan, response.headers_mut());
        response
    }

    /// Serves one message; returns the reply and the annotations of its route.
    pub(super) async fn serve_message(
        &self,
        mut record: Box<AccessRecord>,
        item: MessageItem,
        batch: BatchContext<'_>,
    ) -> (ItemReply, ResponseAnnotations) {
        let (id, result) = match item {
            MessageItem::Call(call) => {
                record.set_rpc_method(&call.method);
                self.count_era(&record.context, &call);
                let mut call = RpcCall::new(self, &call, batch);
                return serve(record, self.client_request(), &mut call).await;
            }
            MessageItem::Invalid(Invalid { id, why, .. }) => {
                (id, Err(Failure::new(Reason::InvalidRequest, why)))
            }
            MessageItem::Response(message) => (
                RequestId::null(),
                self.forward_client_response(&mut record, message, batch)
                    .await,
            ),
        };
        let served = ServedMessage {
            id: Some(&id),
            result,
            observer: None,
            tool_error: None,
        };
        self.reply(record, served, batch)
    }

    /// Returns the reply to a message, and the annotations of its route.
    pub(super) fn reply(
        &self,
        mut record: Box<AccessRecord>,
        served: ServedMessage<'_>,
        batch: BatchContext<'_>,
    ) -> (ItemReply, ResponseAnnotations) {
        let ServedMessage {
            id,
            result,
            observer,
            tool_error,
        } = served;
        let annotations = ResponseAnnotations::new(&record.context);
        let reply = match (result, id) {
            (Ok(CallResult::Answer(full)), Some(_)) if batch.reserve_answer(full.body.len()) => {
                self.answered(record, full, batch, observer)
            }
            (Ok(CallResult::Answer(_)), Some(id)) => {
                if let Some(observer) = observer {
                    observer.skip(Skip::Large);
                }
                let failure = answers_too_large(&self.runtime_plan.plan);
                self.fail(record, failure, Some(id), None)
            }
            (Ok(CallResult::Answer(_) | CallResult::Nothing | CallResult::Cancelled), _) => {
                record.set_client_status(self.no_reply_status().as_u16());
                ItemReply::Nothing
            }
            (Ok(CallResult::Forwarded(answer)), _) => {
                ItemReply::Forwarded(response::render_response(record, answer, observer))
            }
            (Ok(CallResult::Streamed(answer)), _) => self.streamed(record, answer, observer),
            (Err(failure), _) if let Some(full) = tool_error => {
                self.reply_failed(record, &failure, full, observer)
            }
            (Err(failure), id) => {
                let is_reported = failure.reason.answers_notifications();
                let is_reported =
                    is_reported && matches!(batch, BatchContext::Single) && self.socket.is_none();
                let null = RequestId::null();
                let id = id.or_else(|| is_reported.then_some(&null));
                self.fail(record, failure, id, observer)
            }
        };
        (reply, annotations)
    }

    /// Records a complete answer, and replies with it.
    fn answered(
        &self,
        mut record: Box<AccessRecord>,
        full: Box<FullResponse>,
        batch: BatchContext<'_>,
        mut observer: Option<Observer>,
    ) -> ItemReply {
        let is_sent = matches!(batch, BatchContext::Single) && self.socket.is_none();
        if is_sent && full.status != StatusCode::OK {
            record.set_client_status(full.status.as_u16());
        }
        if let Some(observer) = &mut observer {
            observer.on_full(&full, None);
        }
        self.finish_record(record);
        ItemReply::Message(full, observer)
    }

    /// Records a failure, and replies with it if the call has an id; a notification gets no reply.
    pub(super) fn fail(
        &self,
        mut record: Box<AccessRecord>,
        failure: Failure,
        id: Option<&RequestId>,
        observer: Option<Observer>,
    ) -> ItemReply {
        let Some(id) = id else {
            record.set_failure(self.no_reply_status().as_u16(), &failure);
            return ItemReply::Nothing;
        };
        let codes = &self.runtime_plan.plan.face.failure_codes;
        let mut full = Box::new(rpc_failure(&failure, codes, id));
        if self.socket.is_none() {
            let headers = &self.head.headers;
            let code = routing::rpc_face_status(&self.runtime_plan.plan, headers, failure.reason);
            full.status = status(code);
        }
        self.reply_failed(record, &failure, full, observer)
    }

    /// Records a failure, and replies with its response.
    fn reply_failed(
        &self,
        mut record: Box<AccessRecord>,
        failure: &Failure,
        full: Box<FullResponse>,
        mut observer: Option<Observer>,
    ) -> ItemReply {
        record.set_failure(full.status.as_u16(), failure);
        if let Some(observer) = &mut observer {
            observer.on_full(&full, Some(failure));
        }
        self.finish_record(record);
        ItemReply::Message(full, observer)
    }

    /// Returns the response to a call of a published tool that has invalid arguments, where the client's revision
    /// has it as a result.
    #[cold]
    pub(super) fn tool_error(
        &self,
        context: &CallContext,
        call: &Call,
        failure: &Failure,
    ) -> Option<Box<FullResponse>> {
        let id = call.id.as_ref()?;
        context.route()?;
        // Headers of a socket belong to its handshake, not to a message.
        let headers = self.socket.is_none().then_some(&self.head.headers);
        let locals = &self.runtime_plan.plan.locals;
        let result = mcp::invalid_arguments(locals, headers, call, failure)?;
        let revision = self.client_revision(call);
        let result = Rope::from(result.into_bytes());
        let result = mcp::render_for(revision, &call.method, result, ResultType::Absent).ok()?;
        Some(Box::new(rpc_message(jsonrpc::result(id, result))))
    }

    /// Sends a client's response to the server. Outside a batch, the server's HTTP response is the reply.
    async fn forward_client_response(
        &self,
        record: &mut AccessRecord,
        text: Json,
        batch: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        record.context.admit()?;
        if self.take_client_response(&text) {
            record.set_response(StatusCode::ACCEPTED.as_u16());
            return Ok(CallResult::Nothing);
        }
        // A link matches responses to its server's requests itself, so only an HTTP upstream takes one here.
        let upstream = self.runtime_plan.upstream(None, Side::Rpc);
        let upstream = upstream.and_then(Upstream::http);
        let upstream = upstream.ok_or_else(rejections::unexpected_response)?;
        let interims = match batch {
            BatchContext::Single => InterimResponses::Forwarded,
            BatchContext::Batch(_) => InterimResponses::Dropped,
        };
        let text = text.into_bytes();
        let answer = self.forward(record, upstream, text, interims).await?;
        match batch {
            BatchContext::Single => Ok(CallResult::Forwarded(answer)),
            BatchContext::Batch(_) => self.discard(record, upstream, answer).await,
        }
    }

    /// Counts the call of an MCP client by its era. Refused calls count as well: their client is still there.
    pub(super) fn count_era(&self, context: &CallContext, call: &Call) {
        // Headers of a socket belong to its handshake, not to a message.
        let headers = self.socket.is_none().then_some(&self.head.headers);
        if let Some(era) = CallEra::of_call(headers, call) {
            let program = match era.era() {
                Era::Stateless => ClientInfo::of_call(call),
                Era::Handshake => self.program_of_session(call),
            };
            let client = self.runtime_plan.client_label(context.client());
            let (call, at) = (McpCall { era, program }, context.wall_time());
            context
                .worker()
                .count(|shard| shard.mcp_call(client, call, at));
        }
    }

    /// Returns the program of a client of the era with a handshake: only `initialize` declares it, and the session keeps it.
    fn program_of_session(&self, call: &Call) -> Option<ClientInfo> {
        match self.socket {
            _ if *call.method == *"initialize" => ClientInfo::of_call(call),
            Some(_) => self.rpc_caller.program.as_deref().cloned(),
            None => ClientInfo::of_headers(&self.head.headers),
        }
    }
}
