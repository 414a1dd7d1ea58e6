//! JSON-RPC over HTTP and WebSocket: one function serves a call, alone or in a batch.
//!
//! Used by `gateway`, `response_body` and `shadow`.

mod batch;
mod cancel;
mod dispatch;
mod in_flight;
mod invalid;
mod methods;
mod progress_stream;
mod reading;
mod replay;
mod server_messages;
mod undelivered;
mod websocket_session;

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http::{Method, Response, StatusCode, request};

use crate::gateway::exchange::with_total_timeout;
use crate::gateway::identity::identify;
use crate::gateway::passthrough::InterimResponses;
use crate::gateway::record::{CallStart, Record, RequestLine};
use crate::gateway::response::{self, CallResponse, FullResponse};
use crate::gateway::response_annotations::ResponseAnnotations;
use crate::gateway::rest::decide;
use crate::gateway::shadow::{self, Candidate, RecordedResponse};
use crate::gateway::{
    IncomingRequest, RequestOrigin, ResponseBody, RuntimePlan, Worker, cors, local_reply, sessions,
};
use crate::telemetry::clock;
use crate::upstream::{Upstream, pinned};
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, Call, Invalid, MessageItem, RequestId};
use dualgauge_model::plan::Plan;
use dualgauge_model::posted::{Handling, MessageFault};
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Caller, Identity, Requester, Way};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::websocket;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

use batch::{BatchContext, answers_too_large};
pub(in crate::gateway) use progress_stream::ProgressStream;
use reading::{RpcBody, read};
pub(in crate::gateway) use replay::ReplayableRpc;
use undelivered::UndeliveredRecords;

/// The maximum number of events from legacy sockets queued for one client; at the limit, the sockets are not read.
const EVENT_CAPACITY: usize = 64;

/// The context that all messages of one HTTP request share.
#[derive(Clone)]
struct RpcRequest {
    worker: Rc<Worker>,
    runtime_plan: Rc<RuntimePlan>,
    since: CallStart,
    head: Box<request::Parts>,
    /// The body as received.
    body: Bytes,
    origin: RequestOrigin,
    rpc_caller: Rc<RpcCaller>,
    /// The number of the client's WebSocket, if the message arrived over one.
    socket: Option<u64>,
    /// Ids under which HTTP upstreams know the call that this message cancels, if they were looked up on receipt.
    upstream_ids: Vec<u64>,
    /// Records of answered calls, if the client gets the answers later than they are made.
    undelivered: Option<Rc<UndeliveredRecords>>,
    /// The failure of a message that translation rejects: invalid JSON-RPC 2.0, or not sent as such.
    fault: Option<Rc<Failure>>,
}

/// The caller of a request.
struct RpcCaller {
    identity: Identity<'static>,
    /// The number of further calls of this request that may be shadowed.
    candidates_left: Cell<usize>,
}

impl RpcCaller {
    fn new(identity: Identity<'_>, plan: &Plan) -> Rc<RpcCaller> {
        Rc::new(RpcCaller {
            identity: identity.into_owned(),
            candidates_left: Cell::new(plan.candidates.per_request),
        })
    }
}

/// The reply to one message.
enum ItemReply {
    /// A response, and the candidate to run once the client has it.
    Message(Box<FullResponse>, Option<Candidate>),
    /// The upstream's HTTP response, forwarded unchanged; only for a message outside a batch.
    Forwarded(Response<ResponseBody>),
    /// No reply: the message was a notification or a response from the client.
    Nothing,
}

/// Serves one HTTP request to an RPC path.
pub(super) async fn serve(request: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        record: mut request_record,
        head,
        body,
        origin,
    } = request;
    let runtime_plan = request_record.runtime_plan().clone();
    if head.method != Method::POST {
        let is_handshake = websocket::is_asked(&head.method, &head.headers);
        if let Some(sockets) = runtime_plan.plan.face.sockets.filter(|_| is_handshake) {
            return websocket_session::accept(request_record, head, (origin, sockets));
        }
        return methods::forward_other_method(request_record, (head, body), origin).await;
    }
    let identity = identify(&mut request_record, &head.headers, &origin);
    let rpc_caller = RpcCaller::new(identity, &runtime_plan.plan);
    let since = body.is_awaited().then(clock::now);
    let read = with_total_timeout(&mut request_record, async |request_record| {
        read(request_record, &head.headers, body).await
    });
    let read = match read.await {
        Ok(read) => read,
        Err(failure) => {
            let mut response = response::render_failure(request_record, failure);
            cors::add_headers(&runtime_plan.plan, &head.headers, &mut response);
            return response;
        }
    };
    request_record.add_body_time(since);
    match read {
        RpcBody::Messages(body, incoming) => {
            let request = RpcRequest::new(&request_record, (head, body), origin, rpc_caller);
            request.serve(request_record, incoming).await
        }
        RpcBody::Other(content, body) => {
            let context = invalid::InvalidRequestContext {
                head,
                origin,
                rpc_caller,
            };
            pinned(|| invalid::serve(request_record, context, (content, body))).await
        }
    }
}

/// Returns true if the client gets an answer later than it is made: in a batch, or over HTTP/2 once it reads.
fn holds_records(request_record: &Record, incoming: &jsonrpc::Incoming) -> bool {
    matches!(incoming, jsonrpc::Incoming::Batch(_)) || request_record.observes_delivery()
}

impl RpcRequest {
    /// Creates the context for the messages of one request.
    fn new(
        request_record: &Record,
        (head, body): (Box<request::Parts>, Bytes),
        origin: RequestOrigin,
        rpc_caller: Rc<RpcCaller>,
    ) -> RpcRequest {
        RpcRequest {
            since: request_record.call_start(),
            worker: request_record.worker().clone(),
            runtime_plan: request_record.runtime_plan().clone(),
            head,
            body,
            origin,
            rpc_caller,
            socket: None,
            upstream_ids: Vec::new(),
            undelivered: None,
            fault: None,
        }
    }

    /// Serves a valid message, or a batch with at least one.
    async fn serve(
        self,
        request_record: Box<Record>,
        incoming: jsonrpc::Incoming,
    ) -> Response<ResponseBody> {
        let undelivered = holds_records(&request_record, &incoming).then(Rc::default);
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
                let response = request.respond_single(reply, annotations);
                request.worker.header_maps().put(request.head);
                response
            }
            jsonrpc::Incoming::Batch(items) => request.serve_batch(request_record, items).await,
        }
    }

    /// Fails if translation rejects the messages of this request.
    fn check_valid(&self) -> Result<(), Failure> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(Failure::clone(fault)),
        }
    }

    fn no_reply_response(&self) -> Response<ResponseBody> {
        self.add_cors_headers(response::respond(response::acknowledgement(
            self.no_reply_status(),
        )))
    }

    /// Returns the status of a reply without a body.
    fn no_reply_status(&self) -> StatusCode {
        routing::notification_status(&self.runtime_plan.plan, &self.head.headers)
    }

    /// Adds the CORS headers to a response that the proxy wrote.
    fn add_cors_headers(&self, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
        cors::add_headers(&self.runtime_plan.plan, &self.head.headers, &mut response);
        response
    }

    /// Responds, and keeps the records until the client has the response, if delivery can be observed.
    fn respond(&self, full: FullResponse, candidates: Vec<Candidate>) -> Response<ResponseBody> {
        let response = response::respond_then(full, candidates);
        self.add_cors_headers(response::hold_records(response, self.take_records()))
    }

    /// Returns the records of calls whose delivery will be observed; writes the others.
    fn take_records(&self) -> Vec<Record> {
        self.undelivered
            .iter()
            .flat_map(|undelivered| undelivered.take_records())
            .collect()
    }

    /// Writes the record of an answered call, now or when the client gets the answer.
    fn finish_record(&self, record: Box<Record>) {
        match &self.undelivered {
            None => drop(record),
            Some(undelivered) => undelivered.add(*record),
        }
    }

    fn respond_single(
        &self,
        reply: ItemReply,
        annotations: ResponseAnnotations,
    ) -> Response<ResponseBody> {
        let mut response = match reply {
            ItemReply::Message(full, candidate) => {
                let candidates = candidate.into_iter().collect();
                self.respond(*full, candidates)
            }
            ItemReply::Forwarded(response) => response,
            ItemReply::Nothing => self.no_reply_response(),
        };
        annotations.write(&self.runtime_plan.plan, response.headers_mut());
        response
    }

    /// Starts the record of one message.
    fn begin_record(&self) -> Box<Record> {
        let line = RequestLine::for_call(&self.head, &self.origin);
        let record = Record::begin(&self.worker, &self.runtime_plan, Side::Rpc, line);
        let mut record = record.with_start(self.since);
        record.set_origin(&self.origin);
        record.start_trace(&self.head.headers);
        record.set_client(self.caller());
        record
    }

    /// Checks that the `Origin` of the client allows calls that the proxy does not pass through unchanged.
    fn check_origin(&self) -> Result<(), Failure> {
        let head = RequestHead::new(&self.head);
        routing::check_origin(&self.runtime_plan.plan, head, self.origin.entry())
    }

    fn caller(&self) -> Caller<'_> {
        self.rpc_caller
            .identity
            .caller(&self.runtime_plan.plan.rollout.clients)
    }

    /// Serves one message; returns the reply and the annotations of its route.
    async fn serve_message(
        &self,
        mut record: Box<Record>,
        item: MessageItem,
        batch: BatchContext<'_>,
    ) -> (ItemReply, ResponseAnnotations) {
        let (id, result) = match item {
            MessageItem::Invalid(Invalid { id, why, .. }) => {
                (Some(id), Err(Failure::new(Reason::InvalidRequest, why)))
            }
            MessageItem::Response(message) => (
                Some(RequestId::null()),
                self.forward_client_response(&mut record, message, batch)
                    .await,
            ),
            MessageItem::Call(call) => {
                record.set_rpc_method(&call.method);
                let result = self
                    .serve_call(&mut record, &call, (self.caller(), batch))
                    .await;
                (call.id, result)
            }
        };
        let annotations = ResponseAnnotations::new(&record);
        let reply = match (result, id) {
            (Ok(CallResult::Answer(full)), Some(_)) if batch.reserve_answer(full.body.len()) => {
                let is_sent = matches!(batch, BatchContext::Single) && self.socket.is_none();
                if is_sent && full.status != StatusCode::OK {
                    record.set_client_status(full.status.as_u16());
                }
                let candidate =
                    response::attach_shadow(&mut record, || RecordedResponse::from_full(&full));
                self.finish_record(record);
                ItemReply::Message(full, candidate)
            }
            (Ok(CallResult::Answer(_)), Some(id)) => {
                if let Some(candidate) = record.take_candidate() {
                    candidate.skip(Skip::Large);
                }
                let failure = answers_too_large(&self.runtime_plan.plan);
                self.fail(record, failure, Some(&id))
            }
            (Ok(CallResult::Answer(_) | CallResult::Nothing), _) => {
                record.set_client_status(self.no_reply_status().as_u16());
                ItemReply::Nothing
            }
            (Ok(CallResult::Cancelled), _) => {
                record.set_client_status(self.no_reply_status().as_u16());
                ItemReply::Nothing
            }
            (Ok(CallResult::Forwarded(answer)), _) => {
                ItemReply::Forwarded(response::render_response(record, answer))
            }
            (Err(failure), id) => {
                let is_reported = failure.reason.answers_notifications();
                let is_reported =
                    is_reported && matches!(batch, BatchContext::Single) && self.socket.is_none();
                let id = id.or_else(|| is_reported.then(RequestId::null));
                self.fail(record, failure, id.as_ref())
            }
        };
        (reply, annotations)
    }

    /// Records a failure, and replies with it if the call has an id; a notification gets no reply.
    fn fail(&self, mut record: Box<Record>, failure: Failure, id: Option<&RequestId>) -> ItemReply {
        let Some(id) = id else {
            record.set_failure(self.no_reply_status().as_u16(), &failure);
            return ItemReply::Nothing;
        };
        let mut full =
            response::rpc_failure(&failure, &self.runtime_plan.plan.face.failure_codes, id);
        if self.socket.is_none() {
            let headers = &self.head.headers;
            let status = routing::rpc_face_status(&self.runtime_plan.plan, headers, failure.reason);
            full.status = response::status(status);
        }
        record.set_failure(full.status.as_u16(), &failure);
        let candidate =
            response::attach_shadow(&mut record, || RecordedResponse::failure(&full, &failure));
        self.finish_record(record);
        ItemReply::Message(Box::new(full), candidate)
    }

    /// Sends a client's response to the server. Outside a batch, the server's HTTP response is the reply.
    async fn forward_client_response(
        &self,
        record: &mut Record,
        text: Json,
        batch: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        record.admit()?;
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

    /// Fails if translation rejects the message and its method has a local answer.
    fn check_for_local(&self, record: &mut Record, call: &Call) -> Result<(), Failure> {
        let Some(fault) = &self.fault else {
            return Ok(());
        };
        record.set_fault(MessageFault::Invalid, Handling::Refused);
        let local = self.runtime_plan.plan.locals.rpc(&call.method);
        local.map_or(Ok(()), |_| Err(Failure::clone(fault)))
    }

    async fn serve_call(
        &self,
        record: &mut Record,
        call: &Call,
        (caller, batch): (Caller<'_>, BatchContext<'_>),
    ) -> Result<CallResult, Failure> {
        record.admit()?;
        let plan = &self.runtime_plan.plan;
        if batch.is_full() {
            // A call whose answer would not fit is not sent.
            return Err(answers_too_large(plan));
        }
        rejections::ambiguous_credentials(plan, call)?;
        if self.socket.is_none() {
            // Headers of a socket belong to its handshake, not to a message.
            routing::check_mcp_headers(plan, &self.head.headers, call)?;
        }
        let cancelled = self.cancel_named_call(call);
        self.check_for_local(record, call)?;
        if let Some(local) = local_reply::answer_rpc(
            record,
            plan,
            (&*self.head, &self.origin),
            (call, self.client_revision(call)),
        )? {
            return Ok(CallResult::Answer(Box::new(local)));
        }
        let selected = plan.select_rpc(&call.method, call.params.as_ref());
        let headers = &self.head.headers;
        let context = (&*record, &*self.runtime_plan);
        let session = sessions::for_rpc(context, (caller, headers), call, selected)
            .or_else(|| sessions::for_socket(context, caller, self.socket?));
        let requester = Requester::new(caller, headers).with_session(session);
        let stage = decide(record, plan, requester, selected);
        if stage.control() != Some(Way::Old) {
            self.check_origin()?;
        }
        let replayable = || self.replayable(call, batch);
        let takes_new_path = stage.control() == Some(Way::New);
        let may_repeat = match takes_new_path && self.fault.is_some() {
            true => Err(Skip::Unread),
            false => self.may_repeat(call),
        };
        shadow::attach_rpc(record, stage, may_repeat, replayable);
        match (stage.control(), selected) {
            (None, Some(index)) => {
                self.check_valid()?;
                Err(record.unserved_failure(plan, index))
            }
            (Some(Way::New), Some(index)) => self.translate(record, index, call).await,
            (Some(Way::Old), _) | (_, None) => {
                let Some(upstream) = self.runtime_plan.upstream(selected, Side::Rpc) else {
                    self.check_valid()?;
                    return Err(rejections::unknown_method(plan, call));
                };
                match cancelled.filter(|_| upstream.http().is_some()) {
                    None => self.forward_call(record, upstream, call, batch).await,
                    Some(cancelled) => {
                        let cancellation = (call, cancelled);
                        self.forward_cancellation(record, upstream, cancellation, batch)
                            .await
                    }
                }
            }
        }
    }
}

/// The result of a call, before the checks that decide whether it is sent to the client.
enum CallResult {
    Answer(Box<FullResponse>),
    Forwarded(CallResponse),
    Nothing,
    /// No answer: the client cancelled the call.
    Cancelled,
}
