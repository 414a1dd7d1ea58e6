//! Calls stored for a second run, on either way. Used by `shadow` and `shadow::run`.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::{HeaderMap, request};
use hyper::upgrade::OnUpgrade;

use super::recorded_response::{RecordedResponse, headers_size, is_stream};
use crate::gateway::RequestOrigin;
use crate::gateway::passthrough::{PassthroughRequest, forward};
use crate::gateway::record::Record;
use crate::gateway::request_body::RequestBody;
use crate::gateway::response::{self, CallResponse};
use crate::gateway::rpc::ReplayableRpc;
use crate::gateway::translate;
use crate::upstream::{
    BodyCopy, CollectError, CopyUnavailable, Upstream, collect_budgeted, pinned,
};
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::RequestId;
use dualgauge_model::rejections;
use dualgauge_model::rollout::Way;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_patterns::side::Side;

/// A call stored so that it can be sent again.
pub(super) enum ReplayableCall {
    /// A REST call.
    Rest {
        /// The request head as it arrived.
        head: Box<request::Parts>,
        /// A copy of the body, taken while it passes through.
        body: BodyCopy,
        /// The connection and request line of the original request.
        origin: RequestOrigin,
    },
    /// An RPC call.
    Rpc(Box<ReplayableRpc>),
}

impl ReplayableCall {
    /// Stores a REST call; the caller fills `body` while the request passes through.
    pub(super) fn rest(
        head: &request::Parts,
        body: BodyCopy,
        origin: &RequestOrigin,
    ) -> ReplayableCall {
        let mut head = head.clone();
        // A second run must not use the client's connection.
        head.extensions.remove::<OnUpgrade>();
        head.headers.remove(EXPECT);
        head.headers.remove(TRANSFER_ENCODING);
        ReplayableCall::Rest {
            head: Box::new(head),
            body,
            origin: origin.clone(),
        }
    }

    /// Returns the memory that the call occupies in bytes, without a body that is still arriving.
    pub(super) fn size(&self) -> usize {
        match self {
            ReplayableCall::Rest { head, .. } => {
                headers_size(&head.headers) + head.uri.path().len() + size_of::<request::Parts>()
            }
            ReplayableCall::Rpc(rpc) => headers_size(rpc.headers()) + rpc.size(),
        }
    }

    /// Returns the response to this call; for a call of a batch, its part of the batch response.
    pub(super) fn extract_own_part(&self, answer: Bytes) -> Bytes {
        match self {
            ReplayableCall::Rest { .. } => answer,
            ReplayableCall::Rpc(rpc) => rpc.extract_own_part(answer),
        }
    }

    /// Returns true when translation rejects the message of the call.
    pub(super) fn is_invalid(&self) -> bool {
        match self {
            ReplayableCall::Rest { .. } => false,
            ReplayableCall::Rpc(rpc) => rpc.is_invalid(),
        }
    }

    /// Fails with the reason when the body was not copied completely.
    pub(super) fn check_complete(&self) -> Result<(), Skip> {
        match self {
            ReplayableCall::Rest { body, .. } => match body.whole() {
                Ok(_) => Ok(()),
                Err(CopyUnavailable::BudgetExhausted) => Err(Skip::Large),
                Err(CopyUnavailable::Unfinished) => Err(Skip::Unread),
            },
            ReplayableCall::Rpc(_) => Ok(()),
        }
    }

    /// Sends the call on `way` and returns the response.
    pub(super) async fn send(
        &self,
        record: &mut Record,
        way: Way,
    ) -> Result<RecordedResponse, Skip> {
        let result = match self {
            ReplayableCall::Rest { head, body, origin } => {
                let body = body.whole().map_err(|_| Skip::Unread)?;
                let call = (head.clone(), body);
                pinned(|| send_rest(record, way, call, origin)).await
            }
            ReplayableCall::Rpc(rpc) => pinned(|| rpc.send(record, way)).await,
        };
        let response = match result {
            Ok(answer) => collect(record, answer).await?,
            Err(failure) => self.failure_response(record, &failure),
        };
        match record.second_run_budget() {
            Some(budget) if budget.is_discarded() => Err(Skip::Large),
            Some(_) | None => Ok(response),
        }
    }

    /// Returns the response that a client would get for the failure.
    pub(super) fn failure_response(
        &self,
        record: &mut Record,
        failure: &Failure,
    ) -> RecordedResponse {
        let codes = &record.runtime_plan().plan.face.failure_codes;
        let full = match self {
            ReplayableCall::Rest { .. } => response::rest_failure(failure, codes),
            ReplayableCall::Rpc(rpc) => {
                let null = RequestId::null();
                response::rpc_failure(failure, codes, rpc.id().unwrap_or(&null))
            }
        };
        record.set_failure(full.status.as_u16(), failure);
        RecordedResponse::failure(&full, failure)
    }
}

async fn send_rest(
    record: &mut Record,
    way: Way,
    (head, body): (Box<request::Parts>, Bytes),
    origin: &RequestOrigin,
) -> Result<CallResponse, Failure> {
    match (way, record.route()) {
        (Way::New, Some(route)) => {
            let plan = &record.runtime_plan().plan;
            routing::check_origin(plan, RequestHead::new(&head), origin.entry())?;
            translate::serve_rest_call(record, route, (head, RequestBody::Read(body)), origin).await
        }
        (Way::Old, _) | (Way::New, None) => {
            let upstream = record.upstream(Side::Rest).and_then(Upstream::http);
            let upstream = upstream.cloned();
            let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
            let passthrough = if body.is_empty() && !head.headers.contains_key(CONTENT_LENGTH) {
                PassthroughRequest::empty(head)
            } else {
                PassthroughRequest::from_bytes(head, body)
            };
            forward(record, &upstream, passthrough, origin).await
        }
    }
}

/// Reads a response to its end.
async fn collect(record: &mut Record, answer: CallResponse) -> Result<RecordedResponse, Skip> {
    let stream = match answer {
        CallResponse::Full(full) => return Ok(RecordedResponse::from_full(&full)),
        CallResponse::Upgrade(_) => return Err(Skip::Stream),
        CallResponse::Streaming(stream) => stream,
    };
    if is_stream(stream.response.headers()) {
        return Err(Skip::Stream);
    }
    let (head, body) = stream.response.into_parts();
    record.set_response(head.status.as_u16());
    let limit = record.runtime_plan().plan.limits.answer;
    let Some(budget) = record.second_run_budget().cloned() else {
        return Err(Skip::Large);
    };
    match collect_budgeted(body, limit, &budget).await {
        Ok(body) => {
            stream.lease.release();
            record.inspect_response(&body);
            Ok(recorded(head.status, head.headers, body))
        }
        Err(CollectError::TooLarge(_) | CollectError::NoRoom(_)) => Err(Skip::Large),
        Err(fault @ CollectError::Cut(_)) => {
            record.cut(fault);
            Ok(RecordedResponse::broken())
        }
    }
}

fn recorded(status: http::StatusCode, headers: HeaderMap, body: Bytes) -> RecordedResponse {
    RecordedResponse {
        status,
        headers,
        body,
        source: super::recorded_response::ResponseOrigin::Server,
    }
}
