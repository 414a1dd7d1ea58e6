//! Input that a stateless server requires of a client with sessions: requests on the event stream of the call, which the
//! client answers by posted responses. The decisions are in [`InputRound`].
//!
//! The proxy keeps nothing about a client: its capabilities are part of its session id. Laws: a call has a bounded number
//! of rounds; each waits for a bounded time, and not after the client has left.
//!
//! Used by `link_call::message` and `rpc::message`.

use http::HeaderMap;
use tokio::time::timeout;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::cancellation::MCP_SESSION;
use crate::gateway::client_requests::ClientRequest;
use crate::gateway::exchange::remaining_time;
use crate::gateway::link_call::{self, LinkRequest, LinkedCall};
use crate::gateway::offloaded_parsing;
use crate::gateway::rpc_reply::RpcReply;
use crate::gateway::rpc_request::RpcRequest;
use crate::upstream::link::NotificationSender;
use dualgauge_model::failure::{Advice, Failure, Reason};
use dualgauge_model::jsonrpc::{Call, ResponseReply};
use dualgauge_model::mcp::{
    BridgeAction, ClientRevision, InputCapabilities, InputProgress, InputRound, ServerEra,
};
use dualgauge_model::pending::{INPUT_TIMEOUT, RetryRule};
use dualgauge_model::rejections;
use dualgauge_patterns::json::Json;

/// The maximum number of rounds of one call.
const ROUNDS: usize = 8;

/// Returns the capabilities that are part of a session id.
fn capabilities_of(headers: &HeaderMap) -> InputCapabilities {
    let session = headers.get(&MCP_SESSION);
    let session = session.and_then(|session| session.to_str().ok());
    session
        .map(InputCapabilities::of_session)
        .unwrap_or_default()
}

impl RpcRequest {
    /// Sends a call over a link, and supplies the input that its server requires, as far as the client can.
    pub(super) async fn send_with_input(
        &self,
        record: &mut AccessRecord,
        linked: LinkedCall<'_>,
        request: LinkRequest<'_>,
    ) -> Result<RpcReply, Failure> {
        let LinkedCall { link, call } = linked;
        let (cancel_signal, logs) = (request.cancel_signal.clone(), request.logs);
        let limit = link.plan().timeout;
        let sent = self.send_answering(record, linked, request).await;
        let mut reply = sent.map_err(|refused| match refused.advice.as_deref() {
            Some(Advice::Capabilities(required)) => {
                let required = InputCapabilities::of_declared(required);
                self.without_input(&record.context, call, required)
            }
            Some(_) | None => refused,
        })?;
        let capabilities = self.input_capabilities(&record.context, linked);
        if capabilities == InputCapabilities::default() {
            return Ok(reply);
        }
        for _ in 0..ROUNDS {
            let round = self.input_round(&record.context, linked, &reply, capabilities);
            let Some(round) = round.await? else {
                return Ok(reply);
            };
            let round = self.collect_input(record, round).await?;
            let Some(text) = round.retry(call) else {
                return Ok(reply);
            };
            let again = self.parse_again(&text)?;
            let Some(template) = again.template() else {
                return Ok(reply);
            };
            self.count_conversion(record, BridgeAction::InputResponse);
            let request = LinkRequest {
                method: &call.method,
                call: template,
                retry_rule: RetryRule::Never,
                cancel_signal: cancel_signal.clone(),
                subscription: None,
                logs,
                input: InputCapabilities::default(),
            };
            reply = link_call::send(record, link, request, limit).await?;
        }
        Ok(reply)
    }

    /// Returns the capabilities that the client declared when it began its session.
    pub(super) fn session_capabilities(&self) -> InputCapabilities {
        match self.socket {
            Some(socket) => socket.input,
            None => capabilities_of(&self.head.headers),
        }
    }

    /// Returns the capabilities of a client that the proxy can ask during this call. A client that posts the call and
    /// reads no event stream cannot be asked.
    pub(super) fn input_capabilities(
        &self,
        context: &CallContext,
        linked: LinkedCall<'_>,
    ) -> InputCapabilities {
        let LinkedCall { link, call } = linked;
        let is_old = self.client_revision(call) == ClientRevision::Sessions;
        match is_old && self.is_reachable(context) && link.server_era() != ServerEra::Sessions {
            true => self.session_capabilities(),
            false => InputCapabilities::default(),
        }
    }

    /// Returns the failure of a call whose server requires input that the client does not supply, with the reason.
    pub(super) fn without_input(
        &self,
        context: &CallContext,
        call: &Call,
        required: InputCapabilities,
    ) -> Failure {
        if self.client_revision(call) == ClientRevision::Stateless {
            return rejections::missing_capability(required);
        }
        let missing = required.without(self.session_capabilities());
        let has_session = self.scope().is_some();
        let is_declared = missing == InputCapabilities::default();
        let why = match (is_declared, has_session) {
            (_, false) => "the call has no `Mcp-Session-Id` of the client's `initialize`",
            (false, true) => "the client did not declare this capability in its `initialize`",
            (true, true) if !self.is_reachable(context) => {
                "the client cannot be asked; accept `text/event-stream`, and post the call alone"
            }
            (true, true) => "it asks for more than the proxy passes on during one call",
        };
        rejections::input_missing(if is_declared { required } else { missing }, why)
    }

    /// Returns the round that a reply begins, if it asks for input that the client can supply.
    async fn input_round(
        &self,
        context: &CallContext,
        linked: LinkedCall<'_>,
        reply: &RpcReply,
        capabilities: InputCapabilities,
    ) -> Result<Option<InputRound>, Failure> {
        let body = &reply.response.body;
        if !InputRound::may_begin(body) {
            return Ok(None);
        }
        let depth = self.runtime_plan.plan.limits.depth;
        let parsed = offloaded_parsing::parse_response(context.worker(), body, depth);
        let Ok(ResponseReply::Result(result)) = parsed.await?.map(|response| response.reply) else {
            return Ok(None);
        };
        let method = &linked.call.method;
        Ok(InputRound::of_result(method, &result, capabilities))
    }

    /// Sends the requests of a round to the client, and waits for its responses. Dropping the future withdraws them.
    async fn collect_input(
        &self,
        record: &AccessRecord,
        mut round: InputRound,
    ) -> Result<InputRound, Failure> {
        let Some(notifier) = record.context.notifications() else {
            return Err(no_input("the client reads no event stream"));
        };
        let depth = self.runtime_plan.plan.limits.depth;
        let waiting = self.ask_client(record, &round, &notifier)?;
        let limit = remaining_time(&record.context, INPUT_TIMEOUT)?;
        let collected = timeout(limit, async {
            for (index, mut request) in waiting.into_iter().enumerate() {
                // The registry keeps the sender until the response comes.
                let Ok(response) = (&mut request.response).await else {
                    return Err(no_input("the client did not answer"));
                };
                match round.take(index, &response, depth) {
                    InputProgress::Waiting | InputProgress::Complete => {}
                    InputProgress::Refused(_) => {
                        return Err(no_input("the client refused to supply it"));
                    }
                }
            }
            Ok(())
        });
        match self.worker.until_shutdown(collected).await? {
            Ok(collected) => collected.map(|()| round),
            Err(_) => Err(no_input("the client did not supply it in time")),
        }
    }

    fn ask_client(
        &self,
        record: &AccessRecord,
        round: &InputRound,
        notifier: &NotificationSender,
    ) -> Result<Vec<ClientRequest>, Failure> {
        let Some(session) = self.scope() else {
            return Err(no_input("the client has no session"));
        };
        let mut waiting = Vec::with_capacity(round.len());
        for index in 0..round.len() {
            let request = self.worker.client_requests().register(session);
            let request =
                request.ok_or_else(|| no_input("too many clients are asked for input"))?;
            let message = round.message(index, &request.id);
            if !message.is_some_and(|message| notifier.ask(message)) {
                return Err(no_input("the client is too slow"));
            }
            self.count_conversion(record, BridgeAction::InputRequest);
            waiting.push(request);
        }
        Ok(waiting)
    }

    /// Hands a client's response to the call that asked for it. Returns false if none did.
    pub(in crate::gateway) fn take_client_response(&self, response: &Json) -> bool {
        let id = response.member("id").and_then(|id| id.text()?.ok());
        let (Some(id), Some(session)) = (id, self.scope()) else {
            return false;
        };
        let text = response.clone().into_bytes();
        self.worker.client_requests().respond(session, &id, text)
    }
}

/// Returns the failure of a call whose server requires input that it does not get.
pub(super) fn no_input(why: &str) -> Failure {
    let message = format!("the server requires input, but {why}");
    Failure::new(Reason::UpstreamInputRequired, message)
}
