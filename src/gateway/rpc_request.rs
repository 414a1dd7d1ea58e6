//! The context of the messages of one request, and the results of serving one.
//!
//! Used by `link_call`, `passthrough` and `rpc`.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, request};

use super::access_record::AccessRecord;
use super::call_context::{CallContext, CallStart};
use super::call_response::{CallResponse, FullResponse};
use super::cancellation::{CancelScope, CancellableCall, CancellationRegistry, MCP_SESSION};
use super::request_line::RequestLine;
use super::request_origin::{ClientRequest, RequestOrigin};
use super::response_body::ResponseBody;
use super::response_observer::Observer;
use super::runtime_plan::RuntimePlan;
use super::sessions::SessionLookup;
use super::undelivered::UndeliveredRecords;
use super::worker::Worker;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, Call, RequestId};
use dualgauge_model::mcp::{ClientInfo, ClientRevision, InputCapabilities};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Caller, Identity};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_patterns::side::Side;

/// The context that all messages of one HTTP request share.
#[derive(Clone)]
pub(super) struct RpcRequest {
    pub(super) worker: Rc<Worker>,
    pub(super) runtime_plan: Rc<RuntimePlan>,
    pub(super) since: CallStart,
    pub(super) head: Box<request::Parts>,
    /// The body as received.
    pub(super) body: Bytes,
    pub(super) origin: RequestOrigin,
    pub(super) rpc_caller: Rc<RpcCaller>,
    /// The client's WebSocket, if the message arrived over one.
    pub(super) socket: Option<ClientSocket>,
    /// Ids under which HTTP upstreams know the call that this message cancels, if they were looked up on receipt.
    pub(super) upstream_ids: Vec<u64>,
    /// Records of answered calls, if the client gets the answers later than they are made.
    pub(super) undelivered: Option<Rc<UndeliveredRecords>>,
    /// The failure of a message that translation rejects: invalid JSON-RPC 2.0, or not sent as such.
    pub(super) fault: Option<Rc<Failure>>,
}

/// The WebSocket of a client, or its session over HTTP with SSE.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientSocket {
    /// Its number, unique in the process.
    pub(super) number: u64,
    /// The capabilities to give input that the client declared at `initialize`.
    pub(super) input: InputCapabilities,
}

/// The caller of a request.
pub(super) struct RpcCaller {
    pub(super) identity: Identity<'static>,
    /// The number of further calls of this request that may be shadowed.
    pub(super) candidates_left: Cell<usize>,
    /// The program that declared itself at `initialize` on the socket of the request.
    pub(super) program: Option<Rc<ClientInfo>>,
}

impl RpcCaller {
    /// Creates the caller of a request.
    pub(super) fn new(identity: Identity<'_>, plan: &Plan) -> Rc<RpcCaller> {
        RpcCaller::on_socket(identity, plan, None)
    }

    /// Creates the caller of a message on a socket.
    pub(super) fn on_socket(
        identity: Identity<'_>,
        plan: &Plan,
        program: Option<Rc<ClientInfo>>,
    ) -> Rc<RpcCaller> {
        Rc::new(RpcCaller {
            identity: identity.into_owned(),
            candidates_left: Cell::new(plan.candidates.per_request),
            program,
        })
    }
}

/// The reply to one message.
pub(super) enum ItemReply {
    /// A response, and its observer.
    Message(Box<FullResponse>, Option<Observer>),
    /// The upstream's HTTP response, forwarded unchanged; only for a message outside a batch.
    Forwarded(Response<ResponseBody>),
    /// No reply: the message was a notification or a response from the client.
    Nothing,
}

/// The result of a call, before the checks that decide whether it is sent to the client.
pub(super) enum CallResult {
    Answer(Box<FullResponse>),
    Forwarded(CallResponse),
    /// The translated response streams; only for a single call over HTTP.
    Streamed(CallResponse),
    Nothing,
    /// No answer: the client cancelled the call.
    Cancelled,
}

/// The batch of a message, if it is in one.
#[derive(Debug, Clone, Copy)]
pub(super) enum BatchContext<'a> {
    Single,
    /// A member of a batch; the cell holds the bytes left for the answers of the whole batch.
    Batch(&'a Cell<usize>),
}

impl BatchContext<'_> {
    /// Reserves `length` bytes for an answer; returns false if fewer are left.
    pub(super) fn reserve_answer(self, length: usize) -> bool {
        match self {
            BatchContext::Single => true,
            BatchContext::Batch(remaining) => {
                let left = remaining.get().checked_sub(length);
                remaining.set(left.unwrap_or(0));
                left.is_some()
            }
        }
    }

    pub(super) fn is_full(self) -> bool {
        match self {
            BatchContext::Single => false,
            BatchContext::Batch(remaining) => remaining.get() == 0,
        }
    }
}

impl RpcRequest {
    /// Creates the context for the messages of one request.
    pub(super) fn new(
        request_record: &AccessRecord,
        head: Box<request::Parts>,
        body: Bytes,
        origin: RequestOrigin,
        rpc_caller: Rc<RpcCaller>,
    ) -> RpcRequest {
        RpcRequest {
            since: request_record.context.call_start(),
            worker: request_record.context.worker().clone(),
            runtime_plan: request_record.context.runtime_plan().clone(),
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

    /// Fails if translation rejects the messages of this request.
    pub(super) fn check_valid(&self) -> Result<(), Failure> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(Failure::clone(fault)),
        }
    }

    /// Returns the status of a reply without a body.
    pub(super) fn no_reply_status(&self) -> StatusCode {
        routing::notification_status(&self.runtime_plan.plan, &self.head.headers)
    }

    /// Checks that the `Origin` of the client allows calls that the proxy does not pass through unchanged.
    pub(super) fn check_origin(&self) -> Result<(), Failure> {
        let head = RequestHead::new(&self.head);
        routing::check_origin(&self.runtime_plan.plan, head, self.origin.entry())
    }

    pub(super) fn caller(&self) -> Caller<'_> {
        self.rpc_caller
            .identity
            .caller(&self.runtime_plan.plan.rollout.clients)
    }

    /// Returns the head of the request, and where it came from.
    pub(super) fn client_request(&self) -> ClientRequest<'_> {
        ClientRequest {
            head: &self.head,
            origin: &self.origin,
        }
    }

    /// Returns the sessions of the caller.
    pub(super) fn sessions(&self) -> SessionLookup<'_, '_> {
        SessionLookup {
            table: self.worker.sessions(),
            runtime_plan: &self.runtime_plan,
            caller: self.caller(),
        }
    }

    /// Starts the record of one message.
    pub(super) fn begin_record(&self) -> Box<AccessRecord> {
        let line = RequestLine::for_call(&self.head, &self.origin);
        let mut record = AccessRecord::begin(&self.worker, &self.runtime_plan, Side::Rpc, line);
        // The body of the request had to be read before the call was known.
        record.context.start = self.since;
        record.context.set_origin(&self.origin);
        record.context.start_trace(&self.head.headers);
        record.context.set_authorization(&self.head.headers);
        record.set_client(self.caller());
        record
    }

    /// Returns the records of calls whose delivery will be observed; writes the others.
    pub(super) fn take_records(&self) -> Vec<AccessRecord> {
        self.undelivered
            .iter()
            .flat_map(|undelivered| undelivered.take_records())
            .collect()
    }

    /// Writes the record of an answered call, now or when the client gets the answer.
    pub(super) fn finish_record(&self, record: Box<AccessRecord>) {
        match &self.undelivered {
            None => drop(record),
            Some(undelivered) => undelivered.add(*record),
        }
    }

    /// Returns the kind of MCP revision that the client of a call uses.
    pub(super) fn client_revision(&self, call: &Call) -> ClientRevision {
        match self.socket {
            None => ClientRevision::of_headers(&self.head.headers),
            // Headers of a socket belong to its handshake, not to a message.
            Some(_) => ClientRevision::of_message(call),
        }
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

    /// Registers a call so that the client can cancel it; a replayed call cannot be cancelled. `upstream_id` is the id
    /// of the call at its upstream, if a forwarded cancellation must name it.
    pub(super) fn cancellable(
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

    /// Returns the id of the session that an `initialize` opens. It keeps the capabilities to give input, and the
    /// declared program.
    pub(super) fn new_session_id(&self, call: &Call) -> Option<HeaderValue> {
        let declared = ClientInfo::of_call(call);
        let mut suffix = InputCapabilities::of_initialize(call.params.as_ref()).to_suffix();
        suffix.extend(declared.map(|client| client.session_suffix()));
        CancellationRegistry::new_session_id(&suffix)
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
}
