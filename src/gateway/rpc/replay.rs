//! Replays of JSON-RPC calls: a call that is made a second time, on either way.
//!
//! Used by `rpc`.

use std::cell::Cell;

use bytes::Bytes;
use http::request;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::{CallResponse, FullResponse, rpc_failure};
use crate::gateway::request_origin::ClientRequest;
use crate::gateway::rpc_request::{BatchContext, CallResult, RpcRequest};
use crate::gateway::serve::{self, TwoWayCall};
use crate::gateway::shadow::{ReplayFuture, ReplayableCall, headers_size};
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Failure, FailureCodes, Reason};
use dualgauge_model::jsonrpc::{Call, RequestId, parse_response, split_batch};
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::Way;
use dualgauge_patterns::side::Side;

/// A call, with the context of the request that it was part of.
pub(super) struct ReplayableRpc {
    request: RpcRequest,
    call: Call,
    sent: SentAs,
}

/// The form in which a call was sent.
#[derive(Debug, Clone, Copy)]
enum SentAs {
    Single,
    InBatch,
    /// In a batch that was sent as one message.
    InForwardedBatch,
}

impl RpcRequest {
    /// Fails if a call of this request may not be replayed.
    pub(super) fn may_repeat(&self, call: &Call) -> Result<(), Skip> {
        if call.id.is_none() {
            return Err(Skip::Notification);
        }
        if self.rpc_caller.candidates_left.get() == 0 {
            return Err(Skip::BatchLimit);
        }
        Ok(())
    }

    /// Returns a replay of a call, and counts it against `candidates.per_request`.
    pub(super) fn replayable(&self, call: &Call, batch: BatchContext<'_>) -> ReplayableRpc {
        let sent = match batch {
            BatchContext::Single => SentAs::Single,
            BatchContext::Batch(_) => SentAs::InBatch,
        };
        self.for_replay(call, sent)
    }

    /// Returns a replay of a call from a batch that was sent as one message.
    pub(super) fn replayable_batch_item(&self, call: &Call) -> ReplayableRpc {
        self.for_replay(call, SentAs::InForwardedBatch)
    }

    fn for_replay(&self, call: &Call, sent: SentAs) -> ReplayableRpc {
        self.rpc_caller
            .candidates_left
            .set(self.rpc_caller.candidates_left.get().saturating_sub(1));
        ReplayableRpc {
            request: RpcRequest {
                // The answer to a replay never reaches the client.
                undelivered: None,
                ..self.clone()
            },
            call: call.clone(),
            sent,
        }
    }
}

impl ReplayableRpc {
    /// Sends the call on the given way.
    async fn send(&self, record: &mut AccessRecord, way: Way) -> Result<CallResponse, Failure> {
        let request = self.request.client_request();
        let result = serve::send_again(record, request, &mut SecondRun(self), way).await?;
        match result {
            CallResult::Answer(full) => Ok(CallResponse::Full(full)),
            CallResult::Forwarded(answer) | CallResult::Streamed(answer) => Ok(answer),
            CallResult::Nothing | CallResult::Cancelled => Err(rejections::missing_answer()),
        }
    }

    fn batch<'a>(&self, remaining: &'a Cell<usize>) -> BatchContext<'a> {
        match self.sent {
            SentAs::Single => BatchContext::Single,
            SentAs::InBatch | SentAs::InForwardedBatch => BatchContext::Batch(remaining),
        }
    }
}

/// A second run of a call.
struct SecondRun<'a>(&'a ReplayableRpc);

impl<'a> TwoWayCall for SecondRun<'a> {
    type Head = &'a request::Parts;
    type Answer = CallResult;

    /// An invalid message fails here, whatever its origin.
    fn check_origin(&self, _: &Plan, _: ClientRequest<'_>) -> Result<(), Failure> {
        let SecondRun(ReplayableRpc { request, .. }) = self;
        if request.fault.is_some() {
            let message = "the message is not valid JSON-RPC 2.0, or not sent as JSON";
            return Err(Failure::new(Reason::InvalidRequest, message));
        }
        request.check_origin()
    }

    async fn translate(
        &mut self,
        record: &mut AccessRecord,
        _: ClientRequest<'_, &'a request::Parts>,
        index: usize,
    ) -> Result<CallResult, Failure> {
        let SecondRun(replay) = self;
        let remaining = Cell::new(replay.request.runtime_plan.plan.limits.answer);
        let batch = replay.batch(&remaining);
        let translated = replay.request.translate(record, index, &replay.call, batch);
        translated.await
    }

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        _: ClientRequest<'_, &'a request::Parts>,
        _: Option<usize>,
    ) -> Result<CallResult, Failure> {
        let SecondRun(replay) = self;
        let upstream = record.context.upstream(Side::Rpc).cloned();
        let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rpc))?;
        let remaining = Cell::new(replay.request.runtime_plan.plan.limits.answer);
        let batch = replay.batch(&remaining);
        let forwarded = replay
            .request
            .forward_call(record, &upstream, &replay.call, batch);
        forwarded.await
    }
}

impl ReplayableCall for ReplayableRpc {
    /// Returns the number of bytes that the replay keeps; the body of the whole request counts.
    fn size(&self) -> usize {
        headers_size(&self.request.head.headers)
            + self.request.body.len()
            + self.call.method.len()
            + size_of::<ReplayableRpc>()
    }

    fn check_complete(&self) -> Result<(), Skip> {
        Ok(())
    }

    fn is_invalid(&self) -> bool {
        self.request.fault.is_some()
    }

    fn extract_own_part(&self, answer: Bytes) -> Bytes {
        let depth = self.request.runtime_plan.plan.limits.depth;
        let (SentAs::InForwardedBatch, Some(id)) = (self.sent, &self.call.id) else {
            return answer;
        };
        let matches_id = |part: &Bytes| {
            let response = parse_response(part, depth).ok();
            let response_id = response.and_then(|response| response.id);
            response_id.is_some_and(|response_id| response_id.as_bytes() == id.as_bytes())
        };
        let mut parts = split_batch(&answer, depth).into_iter().flatten();
        parts.find(matches_id).unwrap_or(answer)
    }

    fn send<'a>(&'a self, record: &'a mut AccessRecord, way: Way) -> ReplayFuture<'a> {
        Box::pin(ReplayableRpc::send(self, record, way))
    }

    fn render_failure(&self, failure: &Failure, codes: &FailureCodes) -> FullResponse {
        let null = RequestId::null();
        rpc_failure(failure, codes, self.call.id.as_ref().unwrap_or(&null))
    }
}
