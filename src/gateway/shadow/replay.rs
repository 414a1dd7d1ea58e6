//! Calls stored for a second run, on either path.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::{HeaderMap, request};
use hyper::upgrade::OnUpgrade;

use super::recorded_response::{RecordedResponse, headers_size, is_stream};
use crate::domain::compare::Skip;
use crate::domain::failure::Failure;
use crate::domain::jsonrpc::RequestId;
use crate::domain::rejections;
use crate::domain::rollout::Path;
use crate::domain::routing::{self, RequestHead};
use crate::domain::side::Side;
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

/// A call stored so that it can be sent again.
pub(super) enum ReplayableCall {
    /// A REST call.
    Rest {
        /// The request head as it arrived.
        head: Box<request::Parts>,
        /// A copy of the body, taken while it passes through.
        body: BodyCopy,
        /// The connection and request line of the original request.
        arrival: RequestOrigin,
    },
    /// An RPC call.
    Rpc(Box<ReplayableRpc>),
}

impl ReplayableCall {
    /// Stores a REST call; the caller fills `body` while the request passes through.
    pub(super) fn rest(
        head: &request::Parts,
        body: BodyCopy,
        arrival: &RequestOrigin,
    ) -> ReplayableCall {
        let mut head = head.clone();
        // A second run must not use the client's connection.
        head.extensions.remove::<OnUpgrade>();
        head.headers.remove(EXPECT);
        head.headers.remove(TRANSFER_ENCODING);
        ReplayableCall::Rest {
            head: Box::new(head),
            body,
            arrival: arrival.clone(),
        }
    }

    /// Returns the memory that the call occupies in bytes, without a body that is still arriving.
    pub(super) fn size(&self) -> usize {
        match self {
            ReplayableCall::Rest { head, .. } => {
                headers_size(&head.headers) + head.uri.path().len() + size_of::<request::Parts>()
            }
            ReplayableCall::Rpc(repeated) => headers_size(repeated.headers()) + repeated.size(),
        }
    }

    /// Returns the response to this call; for a call of a batch, its part of the batch response.
    pub(super) fn own_part(&self, answer: Bytes) -> Bytes {
        match self {
            ReplayableCall::Rest { .. } => answer,
            ReplayableCall::Rpc(repeated) => repeated.own_part(answer),
        }
    }

    /// Returns true when translation rejects the message of the call.
    pub(super) fn is_invalid(&self) -> bool {
        match self {
            ReplayableCall::Rest { .. } => false,
            ReplayableCall::Rpc(repeated) => repeated.is_invalid(),
        }
    }

    /// Fails with the reason when the body was not copied completely.
    pub(super) fn is_whole(&self) -> Result<(), Skip> {
        match self {
            ReplayableCall::Rest { body, .. } => match body.whole() {
                Ok(_) => Ok(()),
                Err(CopyUnavailable::Large) => Err(Skip::Large),
                Err(CopyUnavailable::Unfinished) => Err(Skip::Unread),
            },
            ReplayableCall::Rpc(_) => Ok(()),
        }
    }

    /// Sends the call on `way` and returns the response.
    pub(super) async fn go(
        &self,
        record: &mut Record,
        way: Path,
    ) -> Result<RecordedResponse, Skip> {
        let answered = match self {
            ReplayableCall::Rest {
                head,
                body,
                arrival,
            } => {
                let body = body.whole().map_err(|_| Skip::Unread)?;
                let call = (head.clone(), body);
                pinned(|| rest(record, way, call, arrival)).await
            }
            ReplayableCall::Rpc(repeated) => pinned(|| repeated.go(record, way)).await,
        };
        let told = match answered {
            Ok(answer) => keep(record, answer).await?,
            Err(failure) => self.refused(record, &failure),
        };
        match record.budget() {
            Some(purse) if purse.is_over() => Err(Skip::Large),
            Some(_) | None => Ok(told),
        }
    }

    /// Returns the response that a client would get for the failure.
    pub(super) fn refused(&self, record: &mut Record, failure: &Failure) -> RecordedResponse {
        let codes = &record.installed().plan.face.failure_codes;
        let whole = match self {
            ReplayableCall::Rest { .. } => response::rest_failure(failure, codes),
            ReplayableCall::Rpc(repeated) => {
                let null = RequestId::null();
                response::rpc_failure(failure, codes, repeated.id().unwrap_or(&null))
            }
        };
        record.failed(whole.status.as_u16(), failure);
        RecordedResponse::failure(&whole, failure)
    }
}

async fn rest(
    record: &mut Record,
    way: Path,
    (head, body): (Box<request::Parts>, Bytes),
    arrival: &RequestOrigin,
) -> Result<CallResponse, Failure> {
    match (way, record.route()) {
        (Path::New, Some(route)) => {
            let plan = &record.installed().plan;
            routing::guard(plan, RequestHead::new(&head), arrival.entry())?;
            translate::rest_call(record, route, (head, RequestBody::Read(body)), arrival).await
        }
        (Path::Old, _) | (Path::New, None) => {
            let upstream = record.upstream(Side::Rest).and_then(Upstream::http);
            let upstream = upstream.cloned();
            let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
            let forwarded = if body.is_empty() && !head.headers.contains_key(CONTENT_LENGTH) {
                PassthroughRequest::empty(head)
            } else {
                PassthroughRequest::read(head, body)
            };
            forward(record, &upstream, forwarded, arrival).await
        }
    }
}

/// Reads a response to its end.
async fn keep(record: &mut Record, answer: CallResponse) -> Result<RecordedResponse, Skip> {
    let stream = match answer {
        CallResponse::Full(whole) => return Ok(RecordedResponse::whole(&whole)),
        CallResponse::Upgrade(_) => return Err(Skip::Stream),
        CallResponse::Streaming(stream) => stream,
    };
    if is_stream(stream.response.headers()) {
        return Err(Skip::Stream);
    }
    let (head, body) = stream.response.into_parts();
    record.answered(head.status.as_u16());
    let limit = record.installed().plan.limits.answer;
    let Some(purse) = record.budget().cloned() else {
        return Err(Skip::Large);
    };
    match collect_budgeted(body, limit, &purse).await {
        Ok(body) => {
            stream.lease.release();
            record.passed(&body);
            Ok(told(head.status, head.headers, body))
        }
        Err(CollectError::TooLarge(_) | CollectError::NoRoom(_)) => Err(Skip::Large),
        Err(fault @ CollectError::Cut(_)) => {
            record.cut(fault);
            Ok(RecordedResponse::broken())
        }
    }
}

fn told(status: http::StatusCode, headers: HeaderMap, body: Bytes) -> RecordedResponse {
    RecordedResponse {
        status,
        headers,
        body,
        source: super::recorded_response::ResponseOrigin::Server,
    }
}
