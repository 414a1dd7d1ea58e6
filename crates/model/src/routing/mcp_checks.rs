//! Checks of MCP calls by the rules of the protocol revision that the client uses.

use std::sync::LazyLock;

use http::{HeaderMap, StatusCode};

use crate::failure::{Failure, Reason};
use crate::jsonrpc::Call;
use crate::local_reply::{HANDSHAKES, STATELESS};
use crate::mcp::{self, ClientRevision, HeaderMismatch};
use crate::plan::{Plan, UpstreamPlan};
use crate::rejections;
use dualgauge_patterns::side::Side;

/// The revisions that clients may use with servers behind links: the proxy converts results between both kinds.
static KNOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = HANDSHAKES.iter().chain(&STATELESS);
    all.map(|known| (*known).to_owned()).collect()
});

/// Checks the headers of an MCP client, if the proxy acts as an MCP server or reads the messages for one. `headers`
/// are those of a posted message.
///
/// # Errors
///
/// Fails if the headers contradict the message, or if the revision is not supported.
pub fn check_mcp_headers(plan: &Plan, headers: &HeaderMap, call: &Call) -> Result<(), Failure> {
    if !speaks_mcp(plan) {
        return Ok(());
    }
    check(plan, plan.upstream(Side::Rpc), Some(headers), call)
}

/// Checks that a batch may be sent: sessionless MCP revisions have no batches.
///
/// # Errors
///
/// Fails if the client uses such a revision.
pub fn check_batch_allowed(plan: &Plan, headers: &HeaderMap) -> Result<(), Failure> {
    match speaks_modern_mcp(plan, headers) {
        true => Err(rejections::no_batch()),
        false => Ok(()),
    }
}

/// Checks a call before it goes over a link. The link sends its own revision and capabilities to the server, which
/// therefore cannot detect what the client omits. `headers` are those of a posted message.
///
/// # Errors
///
/// Fails with an error of the client.
pub fn check_call_over_link(
    plan: &Plan,
    upstream: &UpstreamPlan,
    headers: Option<&HeaderMap>,
    call: &Call,
) -> Result<(), Failure> {
    rejections::withheld(upstream, &call.method)?;
    if !upstream.speaks_mcp() || call.id.is_none() {
        return Ok(());
    }
    // If the plan speaks MCP, the headers of all messages were checked before.
    if headers.is_none() || !speaks_mcp(plan) {
        check(plan, Some(upstream), headers, call)?;
    }
    mcp::named(call).map_err(|what| Failure::new(Reason::InvalidParams, what))?;
    let client_revision = headers.map_or_else(
        || ClientRevision::of_message(call),
        ClientRevision::of_headers,
    );
    mcp::check_client_capabilities(client_revision, call)
        .map_err(|what| Failure::new(Reason::MissingMeta, what))
}

/// Returns the HTTP status of a failure for the client of a posted message. A sessionless MCP client expects a
/// distinct status for an unknown method (MCP 2026-07-28, "Protocol Version Header").
#[must_use]
pub fn rpc_face_status(plan: &Plan, headers: &HeaderMap, reason: Reason) -> u16 {
    match reason == Reason::RouteNotFound && speaks_modern_mcp(plan, headers) {
        true => reason.row().status,
        false => reason.rpc_face_status(),
    }
}

/// Returns the HTTP status of an accepted notification: that of MCP ("Sending Messages to the Server") where the plan
/// speaks it. The configured status does not apply to a sessionless client.
#[must_use]
pub fn notification_status(plan: &Plan, headers: &HeaderMap) -> StatusCode {
    match (speaks_mcp(plan), plan.face.notification_status) {
        (true, Some(configured)) if !mcp::is_modern(headers) => configured,
        (true, _) => StatusCode::ACCEPTED,
        (false, configured) => configured.unwrap_or(StatusCode::NO_CONTENT),
    }
}

/// Returns true if the client uses a sessionless MCP revision and the plan speaks MCP.
fn speaks_modern_mcp(plan: &Plan, headers: &HeaderMap) -> bool {
    mcp::is_modern(headers) && speaks_mcp(plan)
}

fn speaks_mcp(plan: &Plan) -> bool {
    let upstream = plan.upstream(Side::Rpc);
    upstream.is_some_and(UpstreamPlan::speaks_mcp) || !plan.locals.versions().is_empty()
}

/// Checks against the revisions of the local replies. Without any, checks against those that links know and the
/// upstream agrees on.
fn check(
    plan: &Plan,
    upstream: Option<&UpstreamPlan>,
    headers: Option<&HeaderMap>,
    call: &Call,
) -> Result<(), Failure> {
    let local_versions = plan.locals.versions();
    let supported = match local_versions.is_empty() {
        true => &KNOWN[..],
        false => local_versions,
    };
    let checked = match headers {
        Some(headers) => mcp::check(headers, call, supported),
        None => mcp::check_message(call, supported),
    };
    let Err(mismatch) = checked else {
        return Ok(());
    };
    if let (HeaderMismatch::Unsupported(version), Some(upstream), true) =
        (&mismatch, upstream, local_versions.is_empty())
        && upstream.agrees_on(version)
    {
        return Ok(());
    }
    Err(rejections::mcp_header_mismatch(mismatch, supported))
}
