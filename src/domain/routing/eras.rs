//! Calls of clients of MCP, each by the rules of the revision that it names.

use std::sync::LazyLock;

use http::{HeaderMap, StatusCode};

use crate::domain::failure::{Failure, Reason};
use crate::domain::jsonrpc::Call;
use crate::domain::local_reply::{HANDSHAKES, STATELESS};
use crate::domain::mcp::{self, ClientRevision, HeaderMismatch};
use crate::domain::plan::{Plan, UpstreamPlan};
use crate::domain::rejections;
use crate::domain::side::Side;

/// The revisions that clients may speak to servers behind links: results are put in the form of either kind.
static KNOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = HANDSHAKES.iter().chain(&STATELESS);
    all.map(|known| (*known).to_owned()).collect()
});

/// Checks what a client of MCP says of itself, where the proxy presents itself as a server of MCP or stands before one
/// whose messages it reads. `headers` are those of a posted message.
///
/// # Errors
/// A [`Failure`] where the headers say something else than the message, or the revision is not spoken.
pub fn mcp(plan: &Plan, headers: &HeaderMap, call: &Call) -> Result<(), Failure> {
    if !speaks_mcp(plan) {
        return Ok(());
    }
    check(plan, plan.upstream(Side::Rpc), Some(headers), call)
}

/// Checks that a batch may be sent: revisions of MCP without sessions have none.
///
/// # Errors
/// A [`Failure`] where it may not.
pub fn batch(plan: &Plan, headers: &HeaderMap) -> Result<(), Failure> {
    match speaks_modern_mcp(plan, headers) {
        true => Err(rejections::no_batch()),
        false => Ok(()),
    }
}

/// Checks a call before it goes over a link. The link tells the server its own revision and capabilities, so that the
/// server cannot see what the client leaves out. `headers` are those of a posted message.
///
/// # Errors
/// A [`Failure`] that blames the client.
pub fn linked(
    plan: &Plan,
    upstream: &UpstreamPlan,
    headers: Option<&HeaderMap>,
    call: &Call,
) -> Result<(), Failure> {
    rejections::withheld(upstream, &call.method)?;
    if !upstream.speaks_mcp() || call.id.is_none() {
        return Ok(());
    }
    // The headers of all messages are checked before where the plan speaks MCP.
    if headers.is_none() || !speaks_mcp(plan) {
        check(plan, Some(upstream), headers, call)?;
    }
    mcp::named(call).map_err(|what| Failure::new(Reason::InvalidParams, what))?;
    let era = headers.map_or_else(
        || ClientRevision::of_message(call),
        ClientRevision::of_headers,
    );
    mcp::complete(era, call).map_err(|what| Failure::new(Reason::MissingMeta, what))
}

/// Returns the HTTP status by which the client of a posted message reads a failure. One without sessions is told by it
/// that there is no such method (MCP 2026-07-28, "Protocol Version Header").
#[must_use]
pub fn rpc_face_status(plan: &Plan, headers: &HeaderMap, reason: Reason) -> u16 {
    match reason == Reason::RouteNotFound && speaks_modern_mcp(plan, headers) {
        true => reason.row().status,
        false => reason.rpc_face_status(),
    }
}

/// Returns the HTTP status of a notification that is taken. A client without sessions gets that of MCP ("Sending
/// Messages").
#[must_use]
pub fn notification_status(plan: &Plan, headers: &HeaderMap) -> StatusCode {
    match speaks_modern_mcp(plan, headers) {
        true => StatusCode::ACCEPTED,
        false => plan.face.notification_status,
    }
}

/// Whether a client speaks a revision of MCP without sessions to one who knows them.
fn speaks_modern_mcp(plan: &Plan, headers: &HeaderMap) -> bool {
    mcp::is_modern(headers) && speaks_mcp(plan)
}

fn speaks_mcp(plan: &Plan) -> bool {
    let upstream = plan.upstream(Side::Rpc);
    upstream.is_some_and(UpstreamPlan::speaks_mcp) || !plan.locals.versions().is_empty()
}

/// Checks by the revisions of the greetings, or without any by those that links know and agree on.
fn check(
    plan: &Plan,
    upstream: Option<&UpstreamPlan>,
    headers: Option<&HeaderMap>,
    call: &Call,
) -> Result<(), Failure> {
    let greeted = plan.locals.versions();
    let spoken = match greeted.is_empty() {
        true => &KNOWN[..],
        false => greeted,
    };
    let checked = match headers {
        Some(headers) => mcp::check(headers, call, spoken),
        None => mcp::check_message(call, spoken),
    };
    let Err(discord) = checked else {
        return Ok(());
    };
    if let (HeaderMismatch::Unspoken(version), Some(upstream), true) =
        (&discord, upstream, greeted.is_empty())
        && upstream.agrees_on(version)
    {
        return Ok(());
    }
    Err(rejections::mcp_header_mismatch(discord, spoken))
}
