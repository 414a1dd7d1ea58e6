//! Identification of callers: matches the evidence of a request against the clients of the plan.
//!
//! Only a listener that requires credentials rejects calls here. Otherwise an invalid token is counted and ignored.
//!
//! Used throughout `gateway`.

use std::rc::Rc;

use http::HeaderMap;
use sha2::{Digest as _, Sha256};

use super::access_record::AccessRecord;
use super::request_origin::RequestOrigin;
use super::runtime_plan::RuntimePlan;
use crate::telemetry::clock;
use dualgauge_model::mcp::ClientInfo;
use dualgauge_model::rollout::{Authentication, ClientEvidence, CredentialFault, Digest, Identity};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::token::{Claims, TokenFault, Tokens};

/// Identifies the caller of a request and records it.
pub(super) fn identify<'a>(
    record: &mut AccessRecord,
    headers: &'a HeaderMap,
    origin: &'a RequestOrigin,
) -> Identity<'a> {
    record.context.set_origin(origin);
    record.context.start_trace(headers);
    record.context.set_authorization(headers);
    let context = &record.context;
    let runtime_plan = context.runtime_plan().clone();
    let clients = &runtime_plan.plan.rollout.clients;
    let reads = clients.reads_mcp_clients();
    let mcp_client = reads.then(|| ClientInfo::of_headers(headers)).flatten();
    let claims = |tokens: &Tokens, text: &str| {
        let verified = verify(&runtime_plan, tokens, text);
        if let Err(fault) = verified {
            context
                .worker()
                .count(|shard| shard.unverified_token(fault));
        }
        verified.ok()
    };
    let identity = clients.identify(ClientEvidence {
        headers,
        peer: Some(origin.peer()),
        subject: origin.subject(),
        mcp_client: mcp_client.as_ref(),
        digest,
        claims: &claims,
    });
    record.set_client(identity.caller(clients));
    identity
}

/// Fails if the listener requires credentials and the request has none of a client. A preflight that the proxy answers
/// never has credentials (Fetch, "CORS-preflight fetch").
pub(super) fn check_credentials(
    runtime_plan: &RuntimePlan,
    head: RequestHead<'_>,
    origin: &RequestOrigin,
) -> Result<(), CredentialFault> {
    let plan = &runtime_plan.plan;
    let clients = &plan.rollout.clients;
    if clients.authentication() == Authentication::Off {
        return Ok(());
    }
    let claims = |tokens: &Tokens, text: &str| verify(runtime_plan, tokens, text).ok();
    let evidence = ClientEvidence {
        headers: head.headers,
        peer: Some(origin.peer()),
        subject: origin.subject(),
        mcp_client: None,
        digest,
        claims: &claims,
    };
    let identity = clients.identify(evidence);
    let is_preflight = || {
        let at = clock::timestamp(clock::wall());
        routing::preflight(plan, identity.caller(clients), at, head).is_some()
    };
    match identity.is_authenticated() || is_preflight() {
        true => Ok(()),
        false => Err(clients.credential_fault(&evidence)),
    }
}

/// Identifies the caller of messages anew if a client of the plan is recognised by the program that the first message
/// declares. A session keeps the program that it began with.
pub(super) fn identify_by_message<'a>(
    record: &mut AccessRecord,
    headers: &'a HeaderMap,
    origin: &'a RequestOrigin,
    declared: impl FnOnce() -> Option<ClientInfo>,
) -> Option<Identity<'a>> {
    let runtime_plan = record.context.runtime_plan().clone();
    let clients = &runtime_plan.plan.rollout.clients;
    if !clients.reads_mcp_clients() || ClientInfo::of_headers(headers).is_some() {
        return None;
    }
    let declared = declared()?;
    // An invalid token was counted before.
    let claims = |tokens: &Tokens, text: &str| verify(&runtime_plan, tokens, text).ok();
    let identity = clients.identify(ClientEvidence {
        headers,
        peer: Some(origin.peer()),
        subject: origin.subject(),
        mcp_client: Some(&declared),
        digest,
        claims: &claims,
    });
    record.set_client(identity.caller(clients));
    Some(identity)
}

fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Returns the claims of a token that is valid now.
fn verify(
    runtime_plan: &RuntimePlan,
    tokens: &Tokens,
    text: &str,
) -> Result<Rc<Claims>, TokenFault> {
    let claims = runtime_plan.signed_claims(digest(text.as_bytes()), || tokens.signed(text))?;
    tokens.accept(&claims, clock::whole_unix_seconds())?;
    Ok(claims)
}
