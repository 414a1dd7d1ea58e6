//! Replays of JSON-RPC calls: a call that is made a second time, over either path.

use std::cell::Cell;

use bytes::Bytes;
use http::HeaderMap;

use super::{BatchContext, CallResult, RpcRequest};
use crate::domain::compare::Skip;
use crate::domain::failure::{Failure, Reason};
use crate::domain::jsonrpc::{Call, RequestId, parse_response, parts};
use crate::domain::rejections;
use crate::domain::rollout::Path;
use crate::domain::side::Side;
use crate::gateway::record::Record;
use crate::gateway::response::CallResponse;

/// A call, with the context of the request that it was part of.
pub(in crate::gateway) struct ReplayableRpc {
    letter: RpcRequest,
    call: Call,
    sent: SentAs,
}

/// The form in which a call was sent.
#[derive(Debug, Clone, Copy)]
enum SentAs {
    Alone,
    InBatch,
    /// In a batch that was sent as one message.
    InWhole,
}

impl RpcRequest {
    /// Fails if a call of this request may not be replayed.
    pub(super) fn may_repeat(&self, call: &Call) -> Result<(), Skip> {
        if call.id.is_none() {
            return Err(Skip::Notification);
        }
        if self.author.candidates.get() == 0 {
            return Err(Skip::BatchLimit);
        }
        Ok(())
    }

    /// Returns a replay of a call, and takes it from the request's allowance.
    pub(super) fn replayable(&self, call: &Call, company: BatchContext<'_>) -> ReplayableRpc {
        let sent = match company {
            BatchContext::Single => SentAs::Alone,
            BatchContext::Batch(_) => SentAs::InBatch,
        };
        self.again(call, sent)
    }

    /// Returns a replay of a call from a batch that was sent as one message.
    pub(super) fn replayable_part(&self, call: &Call) -> ReplayableRpc {
        self.again(call, SentAs::InWhole)
    }

    fn again(&self, call: &Call, sent: SentAs) -> ReplayableRpc {
        self.author
            .candidates
            .set(self.author.candidates.get().saturating_sub(1));
        ReplayableRpc {
            letter: RpcRequest {
                // The answer to a replay never reaches the client.
                kept: None,
                ..self.clone()
            },
            call: call.clone(),
            sent,
        }
    }
}

impl ReplayableRpc {
    /// Returns the headers of the request.
    pub(in crate::gateway) fn headers(&self) -> &HeaderMap {
        &self.letter.head.headers
    }

    /// Returns the number of bytes that the replay keeps; the body of the whole request counts.
    pub(in crate::gateway) fn size(&self) -> usize {
        self.letter.body.len() + self.call.method.len() + size_of::<ReplayableRpc>()
    }

    /// Returns the id of the call.
    pub(in crate::gateway) fn id(&self) -> Option<&RequestId> {
        self.call.id.as_ref()
    }

    /// Returns true if translation rejects the call.
    pub(in crate::gateway) fn is_invalid(&self) -> bool {
        self.letter.fault.is_some()
    }

    /// Extracts the answer to this call from the answer to its batch; returns an answer of another form unchanged.
    pub(in crate::gateway) fn own_part(&self, answer: Bytes) -> Bytes {
        let depth = self.letter.installed.plan.limits.depth;
        let (SentAs::InWhole, Some(id)) = (self.sent, &self.call.id) else {
            return answer;
        };
        let answers = |part: &Bytes| {
            let response = parse_response(part, depth).ok();
            let said = response.and_then(|response| response.id);
            said.is_some_and(|said| said.as_bytes() == id.as_bytes())
        };
        let mut parts = parts(&answer, depth).into_iter().flatten();
        parts.find(answers).unwrap_or(answer)
    }

    /// Makes the call over the given path.
    pub(in crate::gateway) async fn go(
        &self,
        record: &mut Record,
        way: Path,
    ) -> Result<CallResponse, Failure> {
        let spoken = match (way, record.route()) {
            (Path::New, Some(_)) if self.letter.fault.is_some() => {
                let message = "the message is not valid JSON-RPC 2.0, or not sent as JSON";
                return Err(Failure::new(Reason::InvalidRequest, message));
            }
            (Path::New, Some(route)) => {
                self.letter.guard()?;
                self.letter.translate(record, route, &self.call).await?
            }
            (Path::Old, _) | (Path::New, None) => self.pass(record).await?,
        };
        match spoken {
            CallResult::Answer(whole) => Ok(CallResponse::Full(whole)),
            CallResult::Stream(answer) => Ok(answer),
            CallResult::Nothing | CallResult::Cancelled => Err(Failure::new(
                Reason::Internal,
                "a call that requires an answer got none",
            )),
        }
    }

    async fn pass(&self, record: &mut Record) -> Result<CallResult, Failure> {
        let upstream = record.upstream(Side::Rpc).cloned();
        let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rpc))?;
        let room = Cell::new(self.letter.installed.plan.limits.answer);
        let company = match self.sent {
            SentAs::Alone => BatchContext::Single,
            SentAs::InBatch | SentAs::InWhole => BatchContext::Batch(&room),
        };
        self.letter
            .pass_on(record, &upstream, &self.call, company)
            .await
    }
}
