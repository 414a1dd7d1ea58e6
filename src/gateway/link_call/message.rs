//! JSON-RPC messages that go over a link. Used by `rpc`.

use std::pin::pin;
use std::rc::Rc;

use http::StatusCode;

use super::era_bridge::AnswerHead;
use super::{LinkRequest, LinkedCall, send_notification};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::rpc_message_with_headers;
use crate::gateway::cancellation::{MCP_SESSION, unless_cancelled};
use crate::gateway::offloaded_parsing;
use crate::gateway::rpc_reply::RpcReply;
use crate::gateway::rpc_request::{CallResult, RpcRequest};
use crate::upstream::link::LinkUpstream;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, Call, LISTEN, RequestId};
use dualgauge_model::mcp::{self, BridgeAction, InputCapabilities, LogFilter, ServerEra};
use dualgauge_model::pending;
use dualgauge_model::routing;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

impl RpcRequest {
    /// Sends a call over a link, under an id that is unique on that link.
    pub(in crate::gateway) async fn send_over_link(
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
            send_notification(record, link, &call.method, text, limit).await?;
            record.set_response(StatusCode::ACCEPTED.as_u16());
            return Ok(CallResult::Nothing);
        };
        let subscription = self.subscription(record, link, call)?;
        let cancellable = self.cancellable(&record.context, id, None);
        let linked = LinkedCall { link, call };
        let resource = self.add_session_resource(&record.context, link, call).await;
        let request = LinkRequest {
            method: &call.method,
            call: template,
            retry_rule: pending::RetryRule::Never,
            cancel_signal: cancellable.as_ref().map(|call| call.cancel_signal.clone()),
            subscription,
            logs: LogFilter::of_call(self.client_revision(call), call),
            input: self.answered_requests(&record.context, linked),
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
        let mut result = self.convert_reply(record, id, reply, linked).await?;
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

    /// Builds the answer to a call that was sent under an id of the proxy. Its result or error is converted to the
    /// client's MCP revision, which the server does not know.
    async fn convert_reply(
        &self,
        record: &mut AccessRecord,
        id: &RequestId,
        reply: RpcReply,
        linked: LinkedCall<'_>,
    ) -> Result<CallResult, Failure> {
        let limits = &self.runtime_plan.plan.limits;
        let response =
            offloaded_parsing::parse_reply(record.context.worker(), &reply, limits).await?;
        let (converted, head) = match &response.reply {
            jsonrpc::ResponseReply::Result(result) => {
                let converted = self.convert_result(&record.context, linked.call, result)?;
                record.set_result(result);
                (converted, AnswerHead::with_status(200))
            }
            jsonrpc::ResponseReply::Error(error) => {
                if let Some(full) = self.convert_server_error(record, linked, id, error) {
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
        context: &CallContext,
        call: &Call,
        result: &Json,
    ) -> Result<Option<Rope>, Failure> {
        let converted = mcp::missing_members_for(self.client_revision(call), &call.method, result);
        converted.map_err(|_| {
            let required = InputCapabilities::required_by_result(result);
            self.without_input(context, call, required)
        })
    }
}
