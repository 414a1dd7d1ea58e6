//! Calls between an MCP client and a server of another era, over a link. The decisions are in `dualgauge_model::mcp`.
//!
//! Used by `link_call::message`.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::{FullResponse, rpc_message, status};
use crate::gateway::exchange::remaining_time;
use crate::gateway::link_call::{self, LinkedCall};
use crate::gateway::offloaded_parsing;
use crate::gateway::resource_challenges;
use crate::gateway::rpc_request::{CallResult, RpcRequest};
use crate::gateway::session_listener::{self, has_session_streams};
use crate::gateway::session_streams::{NewResource, ServedSession};
use crate::upstream::link::LinkUpstream;
use dualgauge_model::failure::{Blame, Failure};
use dualgauge_model::jsonrpc::{self, Call, ErrorObject, RequestId, ResponseReply};
use dualgauge_model::mcp::{
    BridgeAction, ClientRevision, ConvertedError, InputCapabilities, LogFilter, LogLevel,
    SET_LEVEL, ServerEra, convert_error, discover_from_initialize, with_session_metadata,
};
use dualgauge_model::outcome::{ErrorStatus, rejection_head};
use dualgauge_model::pending::RetryRule;
use dualgauge_model::rollout::Way;
use dualgauge_patterns::rope::Rope;

/// The head of the response to a call over a link.
pub(super) struct AnswerHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

impl AnswerHead {
    pub(super) fn with_status(code: u16) -> AnswerHead {
        AnswerHead {
            status: status(code),
            headers: HeaderMap::new(),
        }
    }
}

/// The longest wait until a subscription includes a resource.
const INCLUDED: Duration = Duration::from_secs(5);
const DISCOVER: &str = "server/discover";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// Returns the resource that a call names.
fn uri_of(call: &Call) -> Option<String> {
    call.params.as_ref()?.member("uri")?.text()?.ok()
}

impl RpcRequest {
    /// Counts a conversion, and notes it for the log line of the call.
    pub(super) fn count_conversion(&self, record: &AccessRecord, action: BridgeAction) {
        self.worker.count(|shard| shard.bridged(action));
        record.note_conversion(action);
    }

    /// Returns a call with the log level and the capabilities of its client's session, if the server reads them there.
    /// The era of a server that is not connected yet is unknown; a server with sessions ignores the members.
    pub(super) fn with_session_metadata(
        &self,
        record: &AccessRecord,
        link: &LinkUpstream,
        call: &Call,
    ) -> Result<Option<Call>, Failure> {
        let is_old = self.client_revision(call) == ClientRevision::Sessions;
        if !is_old || link.server_era() == ServerEra::Sessions || call.id.is_none() {
            return Ok(None);
        }
        let level = self.scope();
        let level = level.and_then(|scope| self.worker.log_levels().get(scope));
        let capabilities = self.input_capabilities(&record.context, LinkedCall { link, call });
        if level.is_none() && capabilities == InputCapabilities::default() {
            return Ok(None);
        }
        let depth = self.runtime_plan.plan.limits.depth;
        let text = call.text.clone().into_bytes();
        let Some(text) = with_session_metadata(&text, level, capabilities, depth) else {
            return Ok(None);
        };
        if level.is_some() {
            self.count_conversion(record, BridgeAction::LogLevel);
        }
        self.parse_again(&text).map(Some)
    }

    /// Keeps the level that a client has set for its session, if the server has no sessions. The link has answered.
    pub(super) fn keep_session_level(&self, link: &LinkUpstream, call: &Call) {
        let is_old = self.client_revision(call) == ClientRevision::Sessions;
        if *call.method != *SET_LEVEL || !is_old || link.server_era() != ServerEra::Stateless {
            return;
        }
        let level = LogLevel::of_params(call.params.as_ref());
        if let (Some(level), Some(scope)) = (level, self.scope()) {
            self.worker.log_levels().set(scope, level);
        }
    }

    /// Adds the resource that a session subscribes to. Returns once the subscription of the session includes it, so that no
    /// update is lost after the response. A session without a stream gets a subscription that waits for one.
    pub(super) async fn add_session_resource(
        &self,
        context: &CallContext,
        link: &Rc<LinkUpstream>,
        call: &Call,
    ) -> Option<NewResource> {
        let is_old = self.client_revision(call) == ClientRevision::Sessions;
        if *call.method != *SUBSCRIBE || !is_old || !has_session_streams(link) {
            return None;
        }
        let (session, uri) = (self.scope()?, uri_of(call)?);
        let way = session_listener::way_of(&self.runtime_plan, link);
        let served = ServedSession { session, way };
        let resource = self.worker.session_streams().subscribe(served, uri)?;
        if link.server_era() != ServerEra::Stateless {
            session_listener::hold(&self.worker, served);
        }
        let limit = remaining_time(context, INCLUDED).ok()?;
        let included = timeout(limit, resource.is_included());
        // If it takes longer, the call itself fails or the stream subscribes later.
        let _ = self.worker.until_shutdown(included).await;
        Some(resource)
    }

    /// Lets the stream of the session have the changes of the candidate's lists: a call of the session goes there.
    pub(in crate::gateway) fn note_candidate(&self) {
        if let Some(session) = self.scope() {
            let way = Way::New;
            let served = ServedSession { session, way };
            self.worker.session_streams().note_use(served);
        }
    }

    /// Keeps the resource that a session has subscribed to, if the server accepts that.
    pub(super) fn keep_session_resource(&self, resource: NewResource, reply: &Bytes) {
        let depth = self.runtime_plan.plan.limits.depth;
        let reply = jsonrpc::parse_response(reply, depth).map(|response| response.reply);
        if let Ok(ResponseReply::Result(_)) = reply {
            resource.keep();
        }
    }

    /// Answers a session that no longer wants a resource. The link unsubscribes once no session needs the resource.
    /// Returns `None` if the server must answer itself.
    pub(super) fn forget_session_resource(
        &self,
        link: &LinkUpstream,
        call: &Call,
    ) -> Option<CallResult> {
        let is_asked = *call.method == *UNSUBSCRIBE && has_session_streams(link);
        if !is_asked || self.client_revision(call) != ClientRevision::Sessions {
            return None;
        }
        let (id, session, uri) = (call.id.as_ref()?, self.scope()?, uri_of(call)?);
        if !self.worker.session_streams().unsubscribe(session, &uri) {
            return None;
        }
        let result = Rope::from(Bytes::from_static(b"{}"));
        let full = rpc_message(jsonrpc::result(id, result));
        Some(CallResult::Answer(Box::new(full)))
    }

    /// Answers `server/discover` with the response of a server with sessions to `initialize`. Returns `None` if the
    /// server must answer itself.
    pub(super) async fn discover_old_server(
        &self,
        record: &mut AccessRecord,
        link: &LinkUpstream,
        call: &Call,
    ) -> Result<Option<CallResult>, Failure> {
        let is_asked = *call.method == *DISCOVER && link.plan().sends_initialize();
        let (Some(id), Some(template)) = (&call.id, call.template()) else {
            return Ok(None);
        };
        if !is_asked || link.server_era() == ServerEra::Stateless {
            return Ok(None);
        }
        let request = link_call::LinkRequest {
            method: "initialize",
            call: template,
            retry_rule: RetryRule::Never,
            cancel_signal: None,
            subscription: None,
            logs: LogFilter::Nothing,
            input: InputCapabilities::default(),
        };
        let reply = link_call::send(record, link, request, link.plan().timeout).await?;
        if link.server_era() == ServerEra::Stateless {
            return Ok(None);
        }
        let depth = self.runtime_plan.plan.limits.depth;
        let body = &reply.response.body;
        let parsed = offloaded_parsing::parse_response(record.context.worker(), body, depth);
        let Ok(ResponseReply::Result(greeting)) = parsed.await?.map(|response| response.reply)
        else {
            return Ok(None);
        };
        self.count_conversion(record, BridgeAction::Discovery);
        let result = discover_from_initialize(&greeting);
        record.set_result(&result);
        let result = Rope::from(result.into_bytes());
        let full = rpc_message(jsonrpc::result(id, result));
        Ok(Some(CallResult::Answer(Box::new(full))))
    }

    /// Returns the head of the response to a call that the server of a link rejected by its HTTP status, as by 401: MCP
    /// clients read the status and the challenges there. A message on a socket, or in a batch, has no head.
    fn reject(
        &self,
        record: &mut AccessRecord,
        linked: LinkedCall<'_>,
        error: &ErrorObject,
    ) -> Option<AnswerHead> {
        let is_alone = self.socket.is_none() && linked.link.plan().speaks_mcp();
        let takes = self.runtime_plan.plan.face.error_status == ErrorStatus::OfServer;
        let (code, fields) = rejection_head(error).filter(|_| is_alone && takes)?;
        record.set_error(code, error.code, Blame::of_code(error.code));
        let status = status(code);
        let mut headers: HeaderMap = fields.into_iter().collect();
        resource_challenges::name_proxy(&record.context, status, &mut headers);
        Some(AnswerHead { status, headers })
    }

    /// Returns the head of the response with an error of the server.
    pub(super) fn error_head(
        &self,
        record: &mut AccessRecord,
        linked: LinkedCall<'_>,
        error: &ErrorObject,
    ) -> AnswerHead {
        let rejected = self.reject(record, linked, error);
        rejected.unwrap_or_else(|| {
            record.set_error(200, error.code, Blame::of_code(error.code));
            AnswerHead::with_status(match self.socket {
                None => self.client_revision(linked.call).status(error.code),
                // A message on a socket has no status.
                Some(_) => 200,
            })
        })
    }

    /// Converts an error of the server to the codes of the client's revision. Returns `None` if it can be sent unchanged.
    pub(super) fn convert_server_error(
        &self,
        record: &mut AccessRecord,
        linked: LinkedCall<'_>,
        id: &RequestId,
        error: &ErrorObject,
    ) -> Option<FullResponse> {
        let LinkedCall { link, call } = linked;
        let client = self.client_revision(call);
        let (action, converted) = convert_error(client, link.server_era(), call, error)?;
        self.count_conversion(record, action);
        let (body, code) = match converted {
            ConvertedError::Result(result) => {
                record.set_result(&result);
                let result = Rope::from(result.into_bytes());
                (jsonrpc::result(id, result), 200)
            }
            ConvertedError::Error(error) => {
                record.set_error(200, error.code, Blame::of_code(error.code));
                let code = match self.socket {
                    None => client.status(error.code),
                    // A message on a socket has no status.
                    Some(_) => 200,
                };
                (jsonrpc::error(id, &error), code)
            }
        };
        let mut full = rpc_message(body);
        full.status = status(code);
        Some(full)
    }
}
