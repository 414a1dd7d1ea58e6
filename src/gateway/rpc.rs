//! JSON-RPC over HTTP and WebSocket: one function serves a call, alone or in a batch.

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

use crate::domain::compare::Skip;
use crate::domain::failure::{Failure, Reason};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{self, Call, Invalid, MessageItem, RequestId};
use crate::domain::plan::Plan;
use crate::domain::posted::{Handling, MessageFault};
use crate::domain::rejections;
use crate::domain::rollout::{Caller, Identity, Path};
use crate::domain::routing::{self, RequestHead};
use crate::domain::side::Side;
use crate::domain::websocket;
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

use batch::{BatchContext, full};
pub(in crate::gateway) use progress_stream::ProgressStream;
use reading::{RpcBody, read};
pub(in crate::gateway) use replay::ReplayableRpc;
use undelivered::UndeliveredRecords;

/// The maximum number of events from legacy sockets queued for one client; at the limit, the sockets are not read.
const NOTICES: usize = 64;

/// The context that all messages of one HTTP request share.
#[derive(Clone)]
struct RpcRequest {
    worker: Rc<Worker>,
    installed: Rc<RuntimePlan>,
    since: CallStart,
    head: Box<request::Parts>,
    /// The body as received.
    body: Bytes,
    arrival: RequestOrigin,
    author: Rc<RpcCaller>,
    /// The number of the client's WebSocket, if the message arrived over one.
    socket: Option<u64>,
    /// Ids under which HTTP upstreams know the call that this message cancels, if they were looked up on receipt.
    minted: Vec<u64>,
    /// Records of answered calls, if the client gets the answers later than they are made.
    kept: Option<Rc<UndeliveredRecords>>,
    /// The failure of a message that translation rejects: invalid JSON-RPC 2.0, or not sent as such.
    fault: Option<Rc<Failure>>,
}

/// The caller of a request.
struct RpcCaller {
    identity: Identity<'static>,
    /// The number of further calls of this request that may be shadowed.
    candidates: Cell<usize>,
}

impl RpcCaller {
    fn new(identity: Identity<'_>, plan: &Plan) -> Rc<RpcCaller> {
        Rc::new(RpcCaller {
            identity: identity.into_owned(),
            candidates: Cell::new(plan.candidates.per_request),
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
pub(super) async fn serve(delivery: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        record: mut reading,
        head,
        body,
        arrival,
    } = delivery;
    let installed = reading.installed().clone();
    if head.method != Method::POST {
        let asks = websocket::is_asked(&head.method, &head.headers);
        if let Some(sockets) = installed.plan.face.sockets.filter(|_| asks) {
            return websocket_session::accept(reading, head, (arrival, sockets));
        }
        return methods::pass(reading, (head, body), arrival).await;
    }
    let identity = identify(&mut reading, &head.headers, &arrival);
    let author = RpcCaller::new(identity, &installed.plan);
    let since = body.is_awaited().then(clock::now);
    let read = with_total_timeout(&mut reading, async |reading| {
        read(reading, &head.headers, body).await
    });
    let read = match read.await {
        Ok(read) => read,
        Err(failure) => {
            let mut response = response::failure(reading, failure);
            cors::mark(&installed.plan, &head.headers, &mut response);
            return response;
        }
    };
    reading.add_body_time(since);
    match read {
        RpcBody::Messages(body, incoming) => {
            let letter = RpcRequest::new(&reading, (head, body), arrival, author);
            letter.serve(reading, incoming).await
        }
        RpcBody::Other(content, body) => {
            let context = invalid::InvalidRequestContext {
                head,
                arrival,
                author,
            };
            pinned(|| invalid::serve(reading, context, (content, body))).await
        }
    }
}

/// Returns true if the client gets an answer later than it is made: in a batch, or over HTTP/2 once it reads.
fn holds_records(reading: &Record, incoming: &jsonrpc::Incoming) -> bool {
    matches!(incoming, jsonrpc::Incoming::Batch(_)) || reading.waits_for_its_client()
}

impl RpcRequest {
    /// Creates the context for the messages of one request.
    fn new(
        reading: &Record,
        (head, body): (Box<request::Parts>, Bytes),
        arrival: RequestOrigin,
        author: Rc<RpcCaller>,
    ) -> RpcRequest {
        RpcRequest {
            since: reading.beginning(),
            worker: reading.worker().clone(),
            installed: reading.installed().clone(),
            head,
            body,
            arrival,
            author,
            socket: None,
            minted: Vec::new(),
            kept: None,
            fault: None,
        }
    }

    /// Serves a valid message, or a batch with at least one.
    async fn serve(
        self,
        reading: Box<Record>,
        incoming: jsonrpc::Incoming,
    ) -> Response<ResponseBody> {
        let kept = holds_records(&reading, &incoming).then(Rc::default);
        let letter = RpcRequest { kept, ..self };
        match incoming {
            jsonrpc::Incoming::Single(item) if progress_stream::is_wanted(&letter, &item) => {
                progress_stream::serve(reading, letter, item).await
            }
            jsonrpc::Incoming::Single(item) => {
                // The record of the request becomes the record of its only message.
                let (said, marks) = letter.answer(reading, item, BatchContext::Single).await;
                let response = letter.alone(said, marks);
                letter.worker.header_maps().put(letter.head);
                response
            }
            jsonrpc::Incoming::Batch(items) => letter.batch(reading, items).await,
        }
    }

    /// Fails if translation rejects the messages of this request.
    fn check_valid(&self) -> Result<(), Failure> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(Failure::clone(fault)),
        }
    }

    fn no_reply(&self) -> Response<ResponseBody> {
        self.written(response::respond(response::acknowledged(
            self.silence_status(),
        )))
    }

    /// Returns the status of a reply without a body.
    fn silence_status(&self) -> StatusCode {
        routing::notification_status(&self.installed.plan, &self.head.headers)
    }

    /// Adds the CORS headers to a response that the proxy wrote.
    fn written(&self, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
        cors::mark(&self.installed.plan, &self.head.headers, &mut response);
        response
    }

    /// Responds, and keeps the records until the client has the response where delivery can be observed.
    fn respond(&self, whole: FullResponse, followed_by: Vec<Candidate>) -> Response<ResponseBody> {
        let response = response::respond_then(whole, followed_by);
        self.written(response::holding(response, self.given()))
    }

    /// Returns the records of calls whose delivery will be observed; writes the others.
    fn given(&self) -> Vec<Record> {
        self.kept.iter().flat_map(|kept| kept.given()).collect()
    }

    /// Writes the record of an answered call, now or when the client gets the answer.
    fn answered(&self, record: Box<Record>) {
        match &self.kept {
            None => drop(record),
            Some(kept) => kept.add(*record),
        }
    }

    fn alone(&self, said: ItemReply, marks: ResponseAnnotations) -> Response<ResponseBody> {
        let mut response = match said {
            ItemReply::Message(whole, candidate) => {
                let followed_by = candidate.into_iter().collect();
                self.respond(*whole, followed_by)
            }
            ItemReply::Forwarded(response) => response,
            ItemReply::Nothing => self.no_reply(),
        };
        marks.write(&self.installed.plan, response.headers_mut());
        response
    }

    /// Starts the record of one message.
    fn record(&self) -> Box<Record> {
        let line = RequestLine::within(&self.head, &self.arrival);
        let record = Record::begin(&self.worker, &self.installed, Side::Rpc, line);
        let mut record = record.since(self.since);
        record.received_from(&self.arrival);
        record.traces(&self.head.headers);
        record.names_client(self.caller());
        record
    }

    /// Checks that the messages may use what is not a plain passthrough.
    fn guard(&self) -> Result<(), Failure> {
        let head = RequestHead::new(&self.head);
        routing::guard(&self.installed.plan, head, self.arrival.entry())
    }

    fn caller(&self) -> Caller<'_> {
        self.author
            .identity
            .caller(&self.installed.plan.rollout.clients)
    }

    /// Serves one message; returns the reply and the annotations of its route.
    async fn answer(
        &self,
        mut record: Box<Record>,
        item: MessageItem,
        company: BatchContext<'_>,
    ) -> (ItemReply, ResponseAnnotations) {
        let (id, spoken) = match item {
            MessageItem::Invalid(Invalid { id, why, .. }) => {
                (Some(id), Err(Failure::new(Reason::InvalidRequest, why)))
            }
            MessageItem::Response(text) => (
                Some(RequestId::null()),
                self.client_response(&mut record, text, company).await,
            ),
            MessageItem::Call(call) => {
                record.names_method(&call.method);
                let spoken = self
                    .call(&mut record, &call, (self.caller(), company))
                    .await;
                (call.id, spoken)
            }
        };
        let marks = ResponseAnnotations::new(&record);
        let said = match (spoken, id) {
            (Ok(CallResult::Answer(whole)), Some(_))
                if company.reserve_answer(whole.body.len()) =>
            {
                let is_sent = matches!(company, BatchContext::Single) && self.socket.is_none();
                if is_sent && whole.status != StatusCode::OK {
                    record.sent(whole.status.as_u16());
                }
                let candidate =
                    response::attach_shadow(&mut record, || RecordedResponse::whole(&whole));
                self.answered(record);
                ItemReply::Message(whole, candidate)
            }
            (Ok(CallResult::Answer(_)), Some(id)) => {
                if let Some(candidate) = record.take_candidate() {
                    candidate.skip(Skip::Large);
                }
                self.fail(record, full(&self.installed.plan), Some(&id))
            }
            (Ok(CallResult::Answer(_) | CallResult::Nothing), _) => {
                record.sent(self.silence_status().as_u16());
                ItemReply::Nothing
            }
            (Ok(CallResult::Cancelled), _) => {
                record.sent(self.silence_status().as_u16());
                ItemReply::Nothing
            }
            (Ok(CallResult::Stream(answer)), _) => {
                ItemReply::Forwarded(response::answer(record, answer))
            }
            (Err(failure), id) => {
                let is_told = failure.reason.is_told_to_notifications();
                let is_told =
                    is_told && matches!(company, BatchContext::Single) && self.socket.is_none();
                let id = id.or_else(|| is_told.then(RequestId::null));
                self.fail(record, failure, id.as_ref())
            }
        };
        (said, marks)
    }

    /// Records a failure, and replies with it if the call has an id; a notification gets no reply.
    fn fail(&self, mut record: Box<Record>, failure: Failure, id: Option<&RequestId>) -> ItemReply {
        let Some(id) = id else {
            record.failed(self.silence_status().as_u16(), &failure);
            return ItemReply::Nothing;
        };
        let mut whole =
            response::rpc_failure(&failure, &self.installed.plan.face.failure_codes, id);
        if self.socket.is_none() {
            let headers = &self.head.headers;
            let status = routing::rpc_face_status(&self.installed.plan, headers, failure.reason);
            whole.status = response::status(status);
        }
        record.failed(whole.status.as_u16(), &failure);
        let candidate =
            response::attach_shadow(&mut record, || RecordedResponse::failure(&whole, &failure));
        self.answered(record);
        ItemReply::Message(Box::new(whole), candidate)
    }

    /// Sends a client's response to the server. Outside a batch, the server's HTTP response is the reply.
    async fn client_response(
        &self,
        record: &mut Record,
        text: Json,
        company: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        record.admit()?;
        // A link matches responses to its server's requests itself, so only an HTTP upstream takes one here.
        let upstream = self.installed.upstream(None, Side::Rpc);
        let upstream = upstream.and_then(Upstream::http);
        let upstream = upstream.ok_or_else(rejections::unexpected_response)?;
        let interims = match company {
            BatchContext::Single => InterimResponses::Forwarded,
            BatchContext::Batch(_) => InterimResponses::Dropped,
        };
        let text = text.into_bytes();
        let answer = self.forward(record, upstream, text, interims).await?;
        match company {
            BatchContext::Single => Ok(CallResult::Stream(answer)),
            BatchContext::Batch(_) => self.discard(record, upstream, answer).await,
        }
    }

    /// Fails if translation rejects the message and its method has a local answer.
    fn check_for_local(&self, record: &mut Record, call: &Call) -> Result<(), Failure> {
        let Some(fault) = &self.fault else {
            return Ok(());
        };
        record.set_fault(MessageFault::Invalid, Handling::Refused);
        let local = self.installed.plan.locals.rpc(&call.method);
        local.map_or(Ok(()), |_| Err(Failure::clone(fault)))
    }

    async fn call(
        &self,
        record: &mut Record,
        call: &Call,
        (caller, company): (Caller<'_>, BatchContext<'_>),
    ) -> Result<CallResult, Failure> {
        record.admit()?;
        let plan = &self.installed.plan;
        if company.is_full() {
            // A call whose answer would not fit is not sent.
            return Err(full(plan));
        }
        rejections::ambiguous_credentials(plan, call)?;
        if self.socket.is_none() {
            // Headers of a socket belong to its handshake, not to a message.
            routing::mcp(plan, &self.head.headers, call)?;
        }
        let cancels = self.cancels(call);
        self.check_for_local(record, call)?;
        if let Some(own) = local_reply::rpc(
            record,
            plan,
            (&*self.head, &self.arrival),
            (call, self.era(call)),
        )? {
            return Ok(CallResult::Answer(Box::new(own)));
        }
        let selected = plan.select_rpc(&call.method, call.params.as_ref());
        let headers = &self.head.headers;
        let context = (&*record, &*self.installed);
        let session = sessions::of_rpc(context, (caller, headers), call, selected)
            .or_else(|| sessions::of_socket(context, caller, self.socket?));
        let stage = decide(record, plan, (caller, headers, session), selected);
        if stage.control() != Some(Path::Old) {
            self.guard()?;
        }
        let repeated = || self.replayable(call, company);
        let is_strict = stage.control() == Some(Path::New);
        let may_repeat = match is_strict && self.fault.is_some() {
            true => Err(Skip::Unread),
            false => self.may_repeat(call),
        };
        shadow::attach_rpc(record, stage, may_repeat, repeated);
        match (stage.control(), selected) {
            (None, Some(index)) => {
                self.check_valid()?;
                Err(record.unserved_failure(plan, index))
            }
            (Some(Path::New), Some(index)) => self.translate(record, index, call).await,
            (Some(Path::Old), _) | (_, None) => {
                let Some(upstream) = self.installed.upstream(selected, Side::Rpc) else {
                    self.check_valid()?;
                    return Err(rejections::unknown_method(plan, call));
                };
                match cancels.filter(|_| upstream.http().is_some()) {
                    None => self.pass_on(record, upstream, call, company).await,
                    Some(cancelled) => {
                        let told = (call, cancelled);
                        self.pass_cancelled(record, upstream, told, company).await
                    }
                }
            }
        }
    }
}

/// The result of a call, before the checks that decide whether it is sent to the client.
enum CallResult {
    Answer(Box<FullResponse>),
    Stream(CallResponse),
    Nothing,
    /// No answer: the client cancelled the call.
    Cancelled,
}
