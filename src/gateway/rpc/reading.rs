//! Reads the whole body of a request to an RPC path, since its method chooses the route. Used by `rpc`.

use bytes::Bytes;
use http::HeaderMap;

use crate::gateway::call_context::CallContext;
use crate::gateway::offloaded_parsing;
use crate::gateway::request_body::{self, RequestBody, message_text};
use dualgauge_model::dialect;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc;
use dualgauge_model::mcp::ClientInfo;
use dualgauge_model::posted;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_net::IncomingBody;

/// The body of a request, after reading.
pub(super) enum RpcBody {
    /// The body, and the valid messages in it.
    Messages(Bytes, jsonrpc::Incoming),
    /// A body that is not valid JSON-RPC 2.0, or has a media type or content coding that translation rejects.
    Other(RequestBody, posted::PostedBody),
}

impl RpcBody {
    /// Returns the body if it is a message of an old dialect, or a batch of such messages.
    ///
    /// # Errors
    ///
    /// Fails when the parsing thread fails.
    pub(super) async fn old_message(
        &self,
        context: &CallContext,
        head: RequestHead<'_>,
    ) -> Result<Option<Bytes>, Failure> {
        let plan = &context.runtime_plan().plan;
        let old = plan.routes.old();
        let (body, text) = match self {
            RpcBody::Messages(body, _) if old.with_version => (body, Some(body)),
            RpcBody::Other(RequestBody::Read(body), posted) if old.any => {
                (body, posted.text.as_ref())
            }
            RpcBody::Messages(..) | RpcBody::Other(..) => return Ok(None),
        };
        let Some(text) = text.filter(|_| dialect::may_be_old(plan, head)) else {
            return Ok(None);
        };
        let json = offloaded_parsing::parse_text(context.worker(), text, plan.limits.depth).await?;
        let is_old = json.is_some_and(|json| dialect::is_old(plan, head, &json));
        Ok(is_old.then(|| body.clone()))
    }

    /// Returns the program that the first message declares, as MCP clients do.
    pub(super) fn client_info(&self) -> Option<ClientInfo> {
        match self {
            RpcBody::Messages(_, incoming) => ClientInfo::of_messages(incoming),
            RpcBody::Other(..) => None,
        }
    }
}

/// Reads a request. A body whose announced length exceeds the limit is not read if translation would refuse it anyway.
pub(super) async fn read(
    context: &CallContext,
    headers: &HeaderMap,
    body: IncomingBody,
) -> Result<RpcBody, Failure> {
    context.admit()?;
    let plan = &context.runtime_plan().plan;
    let fault = request_body::message_fault(headers, &body);
    if fault.is_some() && is_beyond(&body, plan.limits.body) {
        let unread = posted::PostedBody { text: None, fault };
        return Ok(RpcBody::Other(RequestBody::Streaming(body, None), unread));
    }
    let body = request_body::read_raw(body, &plan.limits, context.worker()).await?;
    parse(context, headers, body, fault).await
}

/// Parses a body that is read. `fault` is the reason why translation rejects it from its headers alone.
pub(super) async fn parse(
    context: &CallContext,
    headers: &HeaderMap,
    body: Bytes,
    fault: Option<Failure>,
) -> Result<RpcBody, Failure> {
    let plan = &context.runtime_plan().plan;
    if fault.is_none()
        && let Ok(incoming) =
            offloaded_parsing::parse_messages(context.worker(), &body, &plan.limits).await?
        && incoming.has_message()
    {
        if let jsonrpc::Incoming::Batch(_) = &incoming {
            routing::check_batch_allowed(plan, headers)?;
        }
        return Ok(RpcBody::Messages(body, incoming));
    }
    let text = message_text(headers, &body, &plan.limits, context.worker().memory())?;
    Ok(RpcBody::Other(
        RequestBody::Read(body),
        posted::PostedBody { text, fault },
    ))
}

/// Returns true if the announced length of a body exceeds `limit`.
fn is_beyond(body: &IncomingBody, limit: usize) -> bool {
    hyper::body::Body::size_hint(body).lower() > limit as u64
}
