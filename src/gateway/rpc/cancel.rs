//! Forwarding of a client's `notifications/cancelled` to an HTTP upstream (MCP, "Cancellation").
//!
//! The forwarded notification names the id that the upstream knows: the id assigned by the proxy, or the client's id of
//! a call that was sent unchanged.
//! Law: a server never gets a client's id that it may know as the id of another call.

use bytes::Bytes;
use http::StatusCode;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::rpc_request::{BatchContext, CallResult, RpcRequest};
use crate::upstream::Upstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{self, Call, RequestId};
use dualgauge_model::plan::CANCELLED;
use dualgauge_patterns::json::Json;

/// The call that a notification cancels.
pub(super) struct CancelRequest<'a> {
    /// The notification itself.
    notification: &'a Call,
    /// The id that the client gave the call.
    id: Bytes,
    /// The proxy's ids under which HTTP upstreams know the call.
    upstream_ids: Vec<u64>,
}

impl RpcRequest {
    /// Cancels the call of the same session that a notification names, even if the notification itself fails later.
    pub(super) fn cancel_named_call<'a>(&self, call: &'a Call) -> Option<CancelRequest<'a>> {
        if call.id.is_some() || *call.method != *CANCELLED {
            return None;
        }
        let depth = self.runtime_plan.plan.limits.depth;
        let id = jsonrpc::cancelled_id(&call.text.clone().into_bytes(), depth)?;
        let mut upstream_ids = self.upstream_ids.clone();
        if let Some(scope) = self.scope() {
            upstream_ids.extend(self.worker.cancellations().cancel(scope, &id));
        }
        upstream_ids.sort_unstable();
        upstream_ids.dedup();
        Some(CancelRequest {
            notification: call,
            id,
            upstream_ids,
        })
    }

    /// Forwards a cancellation to an HTTP upstream, once for each id under which it knows the call.
    pub(super) async fn forward_cancellation(
        &self,
        record: &mut AccessRecord,
        upstream: &Upstream,
        cancelled: CancelRequest<'_>,
        batch: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        let CancelRequest {
            notification: call,
            id,
            upstream_ids,
        } = cancelled;
        if upstream_ids.is_empty() && self.was_passed_through(&id) {
            return self.forward_call(record, upstream, call, batch).await;
        }
        let depth = self.runtime_plan.plan.limits.depth;
        let text = call.text.clone().into_bytes();
        // The server gets no cancellation of a call that is over.
        record.set_response(StatusCode::ACCEPTED.as_u16());
        for upstream_id in upstream_ids {
            let Some(text) = jsonrpc::with_cancelled_id(&text, upstream_id, depth) else {
                continue;
            };
            // Parsing cannot fail: the message was parsed before.
            let Ok(json) = Json::parse(text.clone(), depth) else {
                continue;
            };
            let mut translated = call.clone();
            translated.text = json;
            let request = RpcRequest {
                body: text,
                ..self.clone()
            };
            let forwarded =
                request.forward_call(record, upstream, &translated, BatchContext::Single);
            Box::pin(forwarded).await?;
        }
        Ok(CallResult::Nothing)
    }

    /// Returns true if a server may know the client's call by this id. Calls over a socket always get ids of the
    /// proxy.
    fn was_passed_through(&self, id: &Bytes) -> bool {
        let depth = self.runtime_plan.plan.limits.depth;
        let id = Json::parse(id.clone(), depth).ok().and_then(RequestId::new);
        self.socket.is_none() && id.is_none_or(|id| id.is_portable())
    }
}
