//! A client's `notifications/cancelled` on its way to a server behind HTTP (MCP, "Cancellation").
//!
//! A call that went with an id of the proxy's own is named by that; one that went as it came, by the client's. Law: no
//! server is told an id of the client's that it may know as another call's.

use bytes::Bytes;
use http::StatusCode;

use super::{BatchContext, CallResult, RpcRequest};
use crate::domain::failure::Failure;
use crate::domain::json::Json;
use crate::domain::jsonrpc::{self, Call, RequestId};
use crate::domain::plan::CANCELLED;
use crate::gateway::record::Record;
use crate::upstream::Upstream;

/// What a notification cancels.
pub(super) struct CancelRequest {
    /// The id that the client gave the call.
    id: Bytes,
    /// Those of the proxy's own that servers behind HTTP know it by.
    upstream_ids: Vec<u64>,
}

impl RpcRequest {
    /// A notification that cancels a call of the same session ends it, whatever else becomes of the notification.
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

    /// Passes a notification on that cancels a call of a server behind HTTP.
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
        // Of a call that is over the server hears nothing.
        record.answered(StatusCode::ACCEPTED.as_u16());
        for minted in minted {
            let Some(text) = jsonrpc::with_cancelled_id(&text, minted, depth) else {
                continue;
            };
            // What was read once is read again.
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

    /// Whether a call of the client that has this id may be at a server with it: over a socket all get others.
    fn was_passed_through(&self, id: &Bytes) -> bool {
        let depth = self.installed.plan.limits.depth;
        let id = Json::parse(id.clone(), depth).ok().and_then(RequestId::new);
        self.socket.is_none() && id.is_none_or(|id| id.travels())
    }
}
