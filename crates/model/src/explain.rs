//! Explanations of calls without sending them: the route, the client, the decision, the request to the upstream, the
//! possible replies or the refusal.
//!
//! The same functions serve a call and explain it, so both agree. No server is contacted. Law: no explanation contains
//! the value of a credential; `***` replaces it.
//!
//! Used by `app`, `cli` and `server`.

mod case;
mod era_bridge;
mod frame;
mod in_front;
mod link_login;
mod local_reply;
mod reply;
mod resource_metadata;
mod response_stream;
mod rest;
mod rpc;
mod secrets;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod unknown_members;
mod view;

use core::cell::Cell;
use std::rc::Rc;

use super::client_ip::Peer;
use super::jsonrpc::{MessageLimits, parse};
use super::mcp::ClientInfo;
use super::plan::Plan;
use super::rejections;
use super::rollout::{Authentication, ClientEvidence, Digest};
use super::routing::{self, RequestHead, classify_request};
use super::token::Tokens;
use super::translate::TranslateContext;
use case::Case;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Now;
use dualgauge_patterns::side::Side;

pub use case::ExplainRequest;
pub use view::{
    Decided, ExplainedAnswer, ExplainedBridge, Explanation, HoleValue, NamedRoute, PassedOver,
    Refusal, RowLine, SentRequest, Value,
};

/// Functions that the model does not have itself.
#[derive(Debug, Clone, Copy)]
pub struct ExplainEnvironment {
    /// Computes SHA-256, for API keys.
    pub digest: fn(&[u8]) -> Digest,
    /// Returns the current time.
    pub now: Now,
    /// Returns the seconds since 1970, for the verification of tokens.
    pub unix_seconds: fn() -> u64,
}

/// Returns the program that an MCP client declares, if the plan looks at it: that of the session, or of the message.
fn mcp_client(plan: &Plan, request: &ExplainRequest<'_>) -> Option<ClientInfo> {
    if !plan.rollout.clients.reads_mcp_clients() {
        return None;
    }
    ClientInfo::of_headers(request.head.headers).or_else(|| {
        let limits = MessageLimits {
            depth: plan.limits.depth,
            batch: plan.limits.batch,
        };
        ClientInfo::of_messages(&parse(request.body, limits).ok()?)
    })
}

/// Explains a request: one explanation for a REST call, one per message for an RPC body.
#[must_use]
pub fn explain(
    plan: &Plan,
    request: ExplainRequest<'_>,
    environment: ExplainEnvironment,
) -> Vec<Explanation> {
    let mut explanations = explain_calls(plan, request, environment);
    link_login::add(plan, &mut explanations);
    explanations
}

fn explain_calls(
    plan: &Plan,
    request: ExplainRequest<'_>,
    environment: ExplainEnvironment,
) -> Vec<Explanation> {
    let mut headers = request.head.headers.clone();
    let hops = plan.rollout.clients.hops();
    let is_trusted = || request.peer.is_none_or(|peer| hops.trusts(peer));
    plan.identity_headers.clean(&mut headers, is_trusted);
    let head = RequestHead {
        headers: &headers,
        ..request.head
    };
    let request = ExplainRequest { head, ..request };
    let target = classify_request(plan, request.head);
    let token = Cell::new(None);
    let claims = |tokens: &Tokens, text: &str| {
        let verified = tokens.verify(text, (environment.unix_seconds)());
        token.set(verified.as_ref().err().copied());
        verified.ok().map(Rc::new)
    };
    let peer = request.peer.map(Peer::at);
    let mcp_client = mcp_client(plan, &request);
    let clients = &plan.rollout.clients;
    let evidence = ClientEvidence {
        headers: request.head.headers,
        peer: peer.as_ref(),
        subject: None,
        mcp_client: mcp_client.as_ref(),
        digest: environment.digest,
        claims: &claims,
    };
    let identity = clients.identify(evidence);
    let case = Case {
        plan,
        request,
        caller: identity.caller(clients),
        token: token.get(),
        side: target.side,
        context: TranslateContext {
            depth: plan.limits.depth,
            now: environment.now,
        },
        in_old_batch: false,
    };
    if clients.authentication() == Authentication::Required
        && !identity.is_authenticated()
        && routing::preflight(plan, case.caller, case.at(), case.request.head).is_none()
    {
        let fault = clients.credential_fault(&evidence);
        return vec![case.refuse(case.begin(), rejections::unauthenticated(clients, fault))];
    }
    if let (None, Some(followed)) = (&target.refused, target.stream) {
        return vec![stream::explain(&case, followed)];
    }
    match (target.refused, target.side) {
        (Some(failure), _) => vec![case.refuse(case.begin(), failure)],
        (None, Side::Rest) => rest::explain(&case),
        (None, Side::Rpc) => explain_posted(case),
    }
}

/// Explains a request to an RPC path: a frame, a message of an old dialect, or JSON-RPC.
fn explain_posted(mut case: Case<'_>) -> Vec<Explanation> {
    let is_old = rest::is_old(&case);
    let of_route = |frame: &Json| case.plan.routes.select_frame(frame).is_some();
    let frame = frame::parse(&case).filter(|frame| !is_old || of_route(frame));
    if frame.is_none() && !is_old {
        return rpc::explain(&case);
    }
    // Frames and old messages are calls of the REST side.
    case.side = Side::Rest;
    match frame {
        Some(frame) => vec![frame::explain(&case, &frame)],
        None => rest::explain(&case),
    }
}
