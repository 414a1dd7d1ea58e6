//! The context of the messages of one request, and the results of serving one.
//!
//! Used throughout `rpc`.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http::{Response, StatusCode, request};

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallStart;
use crate::gateway::call_response::{CallResponse, FullResponse};
use crate::gateway::request_line::RequestLine;
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::response_body::ResponseBody;
use crate::gateway::response_observer::Observer;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::sessions::SessionLookup;
use crate::gateway::undelivered::UndeliveredRecords;
use crate::gateway::worker::Worker;
use dualgauge_model::failure::Failure;
use dualgauge_model::mcp::{ClientInfo, InputCapabilities};
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
        record.context.set_client(self.caller());
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
}
