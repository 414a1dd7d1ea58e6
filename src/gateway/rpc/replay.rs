//! A call of the RPC face that is made a second time, one way or the other.

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

/// A call, with the letter that brought it.
pub(in crate::gateway) struct ReplayableRpc {
    letter: RpcRequest,
    call: Call,
    sent: SentAs,
}

/// How a call came.
#[derive(Debug, Clone, Copy)]
enum SentAs {
    Alone,
    InBatch,
    /// In a batch that was sent as one message.
    InWhole,
}

impl RpcRequest {
    /// Whether a call of this letter may be made a second time.
    pub(super) fn may_repeat(&self, call: &Call) -> Result<(), Skip> {
        if call.id.is_none() {
            return Err(Skip::Notification);
        }
        if self.author.candidates.get() == 0 {
            return Err(Skip::BatchLimit);
        }
        Ok(())
    }

    /// A call that is to be made a second time.
    pub(super) fn replayable(&self, call: &Call, company: BatchContext<'_>) -> ReplayableRpc {
        let sent = match company {
            BatchContext::Single => SentAs::Alone,
            BatchContext::Batch(_) => SentAs::InBatch,
        };
        self.again(call, sent)
    }

    /// The same of a batch that is sent as one message.
    pub(super) fn replayable_part(&self, call: &Call) -> ReplayableRpc {
        self.again(call, SentAs::InWhole)
    }

    fn again(&self, call: &Call, sent: SentAs) -> ReplayableRpc {
        self.author
            .candidates
            .set(self.author.candidates.get().saturating_sub(1));
        ReplayableRpc {
            letter: RpcRequest {
                // A second run is nobody's answer.
                kept: None,
                ..self.clone()
            },
            call: call.clone(),
            sent,
        }
    }
}

impl ReplayableRpc {
    /// The headers that the call came with.
    pub(in crate::gateway) fn headers(&self) -> &HeaderMap {
        &self.letter.head.headers
    }

    /// How many bytes are kept for it: those of the whole letter, of which it is a part.
    pub(in crate::gateway) fn size(&self) -> usize {
        self.letter.body.len() + self.call.method.len() + size_of::<ReplayableRpc>()
    }

    /// Its id.
    pub(in crate::gateway) fn id(&self) -> Option<&RequestId> {
        self.call.id.as_ref()
    }

    /// Whether translation does not take it.
    pub(in crate::gateway) fn is_invalid(&self) -> bool {
        self.letter.fault.is_some()
    }

    /// The answer to the call in the answer to the message that it was sent in. An answer in another form is kept as it is.
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

    /// Makes the call.
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
                "a call that waits for an answer got none",
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
