//! A client's `notifications/cancelled` on its way to a server behind HTTP (MCP, "Cancellation").
//!
//! A call that was sent under an id of the proxy is named by that id, and one that was sent unchanged by the client's.
//! Law: a server never gets a client's id that it may know as the id of another call.

use bytes::Bytes;
use http::StatusCode;

use super::{BatchContext, CallResult, RpcRequest};
use crate::domain::failure::Failure;
use crate::domain::json::Json;
use crate::domain::jsonrpc::{self, Call, RequestId};
use crate::domain::plan::CANCELLED;
use crate::gateway::record::Record;
use crate::upstream::Upstream;

/// The call that a notification cancels.
pub(super) struct CancelRequest {
    /// The id that the client gave the call.
    id: Bytes,
    /// The proxy's ids under which HTTP upstreams know the call.
    upstream_ids: Vec<u64>,
}

impl RpcRequest {
    /// Cancels the call of the same session that a notification names, even if the notification itself fails later.
    pub(super) fn cancels(&self, call: &Call) -> Option<CancelRequest> {
        if call.id.is_some() || *call.method != *CANCELLED {
            return None;
        }
        let depth = self.installed.plan.limits.depth;
        let id = jsonrpc::cancelled_id(&call.text.clone().into_bytes(), depth)?;
        let mut minted = self.minted.clone();
        if let Some(scope) = self.scope() {
            minted.extend(self.worker.cancellations().cancel(scope, &id));
        }
        minted.sort_unstable();
        minted.dedup();
        Some(CancelRequest {
            id,
            upstream_ids: minted,
        })
    }

    /// Forwards a cancellation to an HTTP upstream, once for each id under which it knows the call.
    pub(super) async fn pass_cancelled(
        &self,
        record: &mut Record,
        upstream: &Upstream,
        (call, cancelled): (&Call, CancelRequest),
        company: BatchContext<'_>,
    ) -> Result<CallResult, Failure> {
        let CancelRequest {
            id,
            upstream_ids: minted,
        } = cancelled;
        if minted.is_empty() && self.was_passed_through(&id) {
            return self.pass_on(record, upstream, call, company).await;
        }
        let depth = self.installed.plan.limits.depth;
        let text = call.text.clone().into_bytes();
        // The server gets no cancellation of a call that is over.
        record.answered(StatusCode::ACCEPTED.as_u16());
        for minted in minted {
            let Some(text) = jsonrpc::with_cancelled_id(&text, minted, depth) else {
                continue;
            };
            // Parsing cannot fail: the message was parsed before.
            let Ok(json) = Json::parse(text.clone(), depth) else {
                continue;
            };
            let mut renamed = call.clone();
            renamed.text = json;
            let letter = RpcRequest {
                body: text,
                ..self.clone()
            };
            let passed = letter.pass_on(record, upstream, &renamed, BatchContext::Single);
            Box::pin(passed).await?;
        }
        Ok(CallResult::Nothing)
    }

    /// Returns true if a server may know the client's call by this id. Calls over a socket always get ids of the
    /// proxy.
    fn was_passed_through(&self, id: &Bytes) -> bool {
        let depth = self.installed.plan.limits.depth;
        let id = Json::parse(id.clone(), depth).ok().and_then(RequestId::new);
        self.socket.is_none() && id.is_none_or(|id| id.travels())
    }
}
