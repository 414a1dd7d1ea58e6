//! Requests that a server with sessions sends during a call: elicitation, sampling and roots.
//!
//! A stateless client gets a result that asks for input; its retry continues the call. A client with a session gets the
//! request on the event stream of its call. The form of the messages is in [`OpenRequest`]. Laws: only a client that
//! declared the capability is asked; a client that does not answer costs its own call at most.
//!
//! Used by `link_call::input` and `link_call::message`.

use bytes::Bytes;
use http::header::AUTHORIZATION;
use tokio::time::timeout;

use super::input::no_input;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::exchange::remaining_time;
use crate::gateway::link_call::{self, CallProgress, LinkRequest, LinkedCall, ResumedCall};
use crate::gateway::rpc_reply::RpcReply;
use crate::gateway::rpc_request::RpcRequest;
use crate::gateway::suspended_calls::{CallOwner, WaitingCall};
use crate::upstream::link::{CallListener, LinkUpstream, ServerRequest, SuspendedCall};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::mcp::{
    BridgeAction, ClientRevision, InputCapabilities, OpenRequest, ServerEra, SuspensionEvent,
    state_of_retry, withdrawal,
};
use dualgauge_model::pending::INPUT_TIMEOUT;
use dualgauge_model::rollout::Proof;

impl RpcRequest {
    /// Returns the requests of a server with sessions that the client answers during this call. The era of a server
    /// that is not connected yet is unknown; a stateless server sends no requests.
    pub(super) fn answered_requests(
        &self,
        context: &CallContext,
        linked: LinkedCall<'_>,
    ) -> InputCapabilities {
        let LinkedCall { link, call } = linked;
        let is_possible = InputCapabilities::is_interactive(&call.method)
            && link.server_era() != ServerEra::Stateless
            && context.second_run_budget().is_none();
        match self.client_revision(call) {
            ClientRevision::Stateless if is_possible => InputCapabilities::of_call(call),
            ClientRevision::Sessions if is_possible && self.is_reachable(context) => {
                self.session_capabilities()
            }
            ClientRevision::Stateless | ClientRevision::Sessions => InputCapabilities::default(),
        }
    }

    /// Returns true if the client can be sent requests during this call.
    pub(super) fn is_reachable(&self, context: &CallContext) -> bool {
        context.notifications().is_some()
    }

    /// Sends a call over a link, or continues it if it is a retry. Requests of the server go to the client.
    pub(super) async fn send_answering(
        &self,
        record: &mut AccessRecord,
        linked: LinkedCall<'_>,
        request: LinkRequest<'_>,
    ) -> Result<RpcReply, Failure> {
        let LinkedCall { link, call } = linked;
        let mut progress = match self.waiting_call(linked)? {
            None => {
                let limit = link.plan().timeout;
                link_call::send_interactive(record, link, request, limit).await?
            }
            Some(waiting) => match waiting.request.response_of_retry(call.params.as_ref()) {
                None => return self.require_input(link, waiting),
                Some(response) => {
                    self.count_conversion(record, BridgeAction::ServerResponse);
                    let resumed = ResumedCall {
                        call: waiting.call,
                        responses: vec![response],
                        listener: listener(&record.context, linked),
                    };
                    link_call::resume(record, link, resumed).await?
                }
            },
        };
        let depth = self.runtime_plan.plan.limits.depth;
        loop {
            let ServerRequest {
                id,
                message,
                mut call,
            } = match progress {
                CallProgress::Reply(reply) => return Ok(reply),
                CallProgress::ServerRequest(request) => request,
            };
            let Some(request) = OpenRequest::new(id, message, depth) else {
                return Err(no_input("its request is nested too deeply"));
            };
            self.count_conversion(record, BridgeAction::ServerRequest);
            if self.client_revision(linked.call) == ClientRevision::Stateless {
                return self.require_input(link, WaitingCall { call, request });
            }
            let response = self.ask_session(record, &request, &mut call).await?;
            let resumed = ResumedCall {
                call,
                responses: Vec::from_iter(response),
                listener: None,
            };
            progress = link_call::resume(record, link, resumed).await?;
        }
    }

    /// Returns the call that a retry continues. A state that a stateless server may have written is left to it.
    fn waiting_call(&self, linked: LinkedCall<'_>) -> Result<Option<WaitingCall>, Failure> {
        let LinkedCall { link, call } = linked;
        let era = link.server_era();
        let is_interactive = InputCapabilities::is_interactive(&call.method);
        if era == ServerEra::Stateless || !is_interactive {
            return Ok(None);
        }
        let Some(state) = state_of_retry(call.params.as_ref()) else {
            return Ok(None);
        };
        match self.worker.suspended_calls().take(self.owner(link), &state) {
            Some(waiting) => {
                self.count_suspension(SuspensionEvent::Continued);
                Ok(Some(waiting))
            }
            None if era == ServerEra::Unknown => Ok(None),
            None => {
                self.count_suspension(SuspensionEvent::Unknown);
                let message = "the `requestState` is unknown, was used before, or has expired; send the call again without it";
                let cause = "no call of this client waits with the request state";
                Err(Failure::new(Reason::InvalidParams, message).because(cause))
            }
        }
    }

    fn count_suspension(&self, event: SuspensionEvent) {
        self.worker.count(|shard| shard.suspended_call(event));
    }

    /// Keeps a call until its client sends it again, and returns the response that asks for the input.
    fn require_input(
        &self,
        link: &LinkUpstream,
        waiting: WaitingCall,
    ) -> Result<RpcReply, Failure> {
        let request = waiting.request.clone();
        let owner = self.owner(link);
        let state = self.worker.suspended_calls().add(owner, waiting);
        let Some(state) = state else {
            self.count_suspension(SuspensionEvent::Refused);
            return Err(no_input("too many clients are asked for input"));
        };
        self.count_suspension(SuspensionEvent::Suspended);
        Ok(link_call::own_reply(|id| {
            request.input_required(id, &state)
        }))
    }

    /// Returns the owner of a call. A caller that is not authenticated is known by its `Authorization` as well, and so is
    /// each caller of a link that belongs to one `Authorization`.
    fn owner(&self, link: &LinkUpstream) -> CallOwner<'_> {
        let caller = self.caller();
        let is_known = caller.proof == Proof::Authenticated && link.is_shared();
        let authorization = self.head.headers.get(AUTHORIZATION);
        CallOwner {
            caller,
            authorization: authorization.filter(|_| !is_known),
        }
    }

    /// Sends a request to a client with a session, and returns the response for the server. Returns `None` if the server
    /// no longer waits for it, because its reply has ended the call.
    async fn ask_session(
        &self,
        record: &AccessRecord,
        request: &OpenRequest,
        call: &mut SuspendedCall,
    ) -> Result<Option<Bytes>, Failure> {
        let failure = |why| Ok(Some(request.failure(why)));
        let (Some(notifier), Some(session)) = (record.context.notifications(), self.scope()) else {
            return failure("\"the client cannot be asked\"");
        };
        let Some(mut asked) = self.worker.client_requests().register(session) else {
            return failure("\"too many requests wait for clients\"");
        };
        if !notifier.ask(request.message(&asked.id)) {
            return failure("\"the client is too slow\"");
        }
        let limit = remaining_time(&record.context, INPUT_TIMEOUT)?;
        let depth = self.runtime_plan.plan.limits.depth;
        // The registry keeps the sender until the response comes.
        let answered = timeout(limit, &mut asked.response);
        // Both branches are cancel-safe: the response and the reply stay in their channels.
        let answered = tokio::select! {
            answered = self.worker.until_shutdown(answered) => answered?,
            () = call.replied() => {
                let _ = notifier.ask(withdrawal(&asked.id));
                if self.socket.is_none() {
                    // The event stream ends with the reply.
                    notifier.precede_reply();
                }
                return Ok(None);
            }
        };
        if let Ok(Ok(response)) = answered {
            self.count_conversion(record, BridgeAction::ServerResponse);
            return Ok(Some(request.response_of_client(&response, depth)));
        }
        let _ = notifier.ask(withdrawal(&asked.id));
        failure("\"the client did not answer in time\"")
    }
}

/// Returns the receiver of the notifications of a retry.
fn listener(context: &CallContext, linked: LinkedCall<'_>) -> Option<CallListener> {
    let params = linked.call.params.as_ref();
    let meta = params.and_then(|params| params.member("_meta"));
    Some(CallListener {
        notifier: context.notifications()?,
        progress_token: meta.and_then(|meta| meta.member("progressToken")),
    })
}
