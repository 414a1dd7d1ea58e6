//! JSON-RPC messages on a client's WebSocket. [`super::WebSocketSession`] calls this for each.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http::Version;
use tokio::sync::Notify;

use super::WebSocketSession;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::rpc_failure;
use crate::gateway::failures::memory_exhausted;
use crate::gateway::identity::{check_credentials, identify, identify_by_message};
use crate::gateway::offloaded_parsing;
use crate::gateway::request_line::RequestLine;
use crate::gateway::rpc::batch::BatchReply;
use crate::gateway::rpc::in_flight::{InboundMessage, OutboundMessage};
use crate::gateway::rpc_request::{BatchContext, ClientSocket, RpcCaller, RpcRequest};
use crate::gateway::runtime_plan::RuntimePlan;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{self, RequestId};
use dualgauge_model::mcp::{ClientInfo, InputCapabilities};
use dualgauge_model::rejections;
use dualgauge_model::routing::RequestHead;
use dualgauge_patterns::side::Side;

/// An `initialize` that is being served; dropping it means that it is over.
struct SessionBegin<'a>(&'a Notify);

impl Drop for SessionBegin<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl WebSocketSession {
    /// Reads and parses a JSON-RPC message.
    async fn read(
        &self,
        context: &CallContext,
        body: Bytes,
    ) -> Result<(Bytes, jsonrpc::Incoming), Failure> {
        self.check_credentials(context.runtime_plan())?;
        context.admit()?;
        let body = self
            .worker
            .memory()
            .account(body)
            .map_err(memory_exhausted)?;
        let limits = &context.runtime_plan().plan.limits;
        let read = offloaded_parsing::parse_messages(&self.worker, &body, limits).await?;
        let incoming = read.map_err(rejections::no_message)?;
        Ok((body, incoming))
    }

    /// Checks the credentials of the handshake again, because a token expires and a reload removes keys.
    pub(super) fn check_credentials(&self, runtime_plan: &RuntimePlan) -> Result<(), Failure> {
        let head = RequestHead::new(&self.head);
        check_credentials(runtime_plan, head, &self.origin).map_err(|fault| {
            self.worker
                .count(|shard| shard.unauthenticated_request(fault));
            rejections::unauthenticated(&runtime_plan.plan.rollout.clients, fault)
        })
    }

    /// Returns the program that the client declares, in this message or at `initialize`.
    fn program(&self, incoming: &jsonrpc::Incoming) -> Option<ClientInfo> {
        let declared = ClientInfo::of_messages(incoming);
        declared.or_else(|| self.program.borrow().as_deref().cloned())
    }

    /// Keeps the capabilities and the program of a client that begins its session with this message.
    fn begin_session(&self, incoming: &jsonrpc::Incoming) -> Option<SessionBegin<'_>> {
        match incoming {
            jsonrpc::Incoming::Single(jsonrpc::MessageItem::Call(call))
                if *call.method == *"initialize" =>
            {
                let declared = InputCapabilities::of_initialize(call.params.as_ref());
                self.input.set(declared);
                self.program.replace(ClientInfo::of_call(call).map(Rc::new));
                Some(SessionBegin(&self.begun))
            }
            jsonrpc::Incoming::Single(_) | jsonrpc::Incoming::Batch(_) => None,
        }
    }

    fn client_socket(&self) -> ClientSocket {
        ClientSocket {
            number: self.number,
            input: self.input.get(),
        }
    }

    /// Serves a JSON-RPC message; returns the answer, if it has one.
    pub(super) async fn serve_rpc_message(
        &self,
        InboundMessage {
            text: body,
            upstream_ids,
        }: InboundMessage,
    ) -> Option<OutboundMessage> {
        let runtime_plan = self.worker.runtime_plan();
        let line = RequestLine {
            version: Version::HTTP_11,
            ..RequestLine::for_call(&self.head, &self.origin)
        };
        let mut request_record = AccessRecord::begin(&self.worker, &runtime_plan, Side::Rpc, line);
        let identity = identify(&mut request_record, &self.head.headers, &self.origin);
        let (body, incoming) = match self.read(&request_record.context, body).await {
            Ok(read) => read,
            Err(failure) => {
                let codes = &runtime_plan.plan.face.failure_codes;
                let full = rpc_failure(&failure, codes, &RequestId::null());
                request_record.set_failure(full.status.as_u16(), &failure);
                return Some(OutboundMessage::new(full.body.into_bytes()));
            }
        };
        let declared = || self.program(&incoming);
        let _begins = self.begin_session(&incoming);
        let by_message = identify_by_message(
            &mut request_record,
            &self.head.headers,
            &self.origin,
            declared,
        );
        let identity = by_message.unwrap_or(identity);
        let program = self.program.borrow().clone();
        let request = RpcRequest {
            since: request_record.context.call_start(),
            worker: self.worker.clone(),
            head: self.head.clone(),
            body,
            origin: self.origin.clone(),
            rpc_caller: RpcCaller::on_socket(identity, &runtime_plan.plan, program),
            socket: Some(self.client_socket()),
            upstream_ids,
            undelivered: matches!(incoming, jsonrpc::Incoming::Batch(_)).then(Rc::default),
            runtime_plan,
            fault: None,
        };
        let BatchReply { full, observers } = match incoming {
            jsonrpc::Incoming::Single(item) => {
                let remaining = Cell::new(request.runtime_plan.plan.limits.answer);
                let batch = BatchContext::Batch(&remaining);
                let (reply, _) = request.serve_message(request_record, item, batch).await;
                BatchReply::from_single(reply)?
            }
            jsonrpc::Incoming::Batch(items) => {
                request_record.discard();
                request.serve_items(items).await?
            }
        };
        drop(request.take_records());
        Some(OutboundMessage {
            text: Some(full.body.into_bytes()),
            observers,
            permit: None,
        })
    }
}
