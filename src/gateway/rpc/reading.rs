//! The body of a request to an RPC path: read whole, since its method chooses the route.

use bytes::Bytes;
use http::HeaderMap;

use crate::domain::claim;
use crate::domain::failure::Failure;
use crate::domain::jsonrpc;
use crate::domain::posted;
use crate::gateway::intake::{self, Content};
use crate::gateway::long_texts;
use crate::gateway::record::Record;
use crate::upstream::Inflow;

/// What was read of a request.
pub(super) enum Read {
    /// Its body, and the valid messages in it.
    Messages(Bytes, jsonrpc::Incoming),
    /// What is not valid JSON-RPC 2.0, or not sent as translation takes it.
    Other(Content, posted::Body),
}

/// Reads a request. A body whose announced length exceeds the limit is not read if translation would refuse it anyway.
pub(super) async fn read(
    reading: &Record,
    headers: &HeaderMap,
    body: Inflow,
) -> Result<Read, Failure> {
    reading.admit()?;
    let plan = &reading.installed().plan;
    let bounds = (&plan.limits, reading.worker().memory());
    let fault = intake::message_fault(headers, &body);
    if fault.is_some() && is_beyond(&body, plan.limits.body) {
        let unread = posted::Body { text: None, fault };
        return Ok(Read::Other(Content::Coming(body, None), unread));
    }
    let body = intake::raw(body, (&plan.limits, &**reading.worker())).await?;
    if fault.is_none()
        && let Ok(incoming) = long_texts::messages(reading.worker(), &body, &plan.limits).await?
        && incoming.has_message()
    {
        if let jsonrpc::Incoming::Batch(_) = &incoming {
            claim::batch(plan, headers)?;
        }
        return Ok(Read::Messages(body, incoming));
    }
    let text = intake::message_text(headers, &body, bounds)?;
    Ok(Read::Other(
        Content::Read(body),
        posted::Body { text, fault },
    ))
}

/// Whether a body says that it is longer than a limit.
fn is_beyond(body: &Inflow, limit: usize) -> bool {
    hyper::body::Body::size_hint(body).lower() > limit as u64
}
