//! A call of the RPC face that is made a second time, one way or the other.

use std::cell::Cell;

use bytes::Bytes;
use http::HeaderMap;

use super::{Company, Letter, Spoken};
use crate::domain::compare::Skip;
use crate::domain::failure::{Failure, Reason};
use crate::domain::jsonrpc::{Call, RequestId, parse_response, parts};
use crate::domain::refusal;
use crate::domain::rollout::Way;
use crate::domain::side::Side;
use crate::gateway::record::Record;
use crate::gateway::render::Answer;

/// A call, with the letter that brought it.
pub(in crate::gateway) struct Repeated {
    letter: Letter,
    call: Call,
    sent: Sent,
}

/// How a call came.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Alone,
    InBatch,
    /// In a batch that was sent as one message.
    InWhole,
}

impl Letter {
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
    pub(super) fn repeated(&self, call: &Call, company: Company<'_>) -> Repeated {
        let sent = match company {
            Company::Alone => Sent::Alone,
            Company::Batch(_) => Sent::InBatch,
        };
        self.again(call, sent)
    }

    /// The same of a batch that is sent as one message.
    pub(super) fn repeated_part(&self, call: &Call) -> Repeated {
        self.again(call, Sent::InWhole)
    }

    fn again(&self, call: &Call, sent: Sent) -> Repeated {
        self.author
            .candidates
            .set(self.author.candidates.get().saturating_sub(1));
        Repeated {
            letter: Letter {
                // A second run is nobody's answer.
                kept: None,
                ..self.clone()
            },
            call: call.clone(),
            sent,
        }
    }
}

impl Repeated {
    /// The headers that the call came with.
    pub(in crate::gateway) fn headers(&self) -> &HeaderMap {
        &self.letter.head.headers
    }

    /// How many bytes are kept for it: those of the whole letter, of which it is a part.
    pub(in crate::gateway) fn size(&self) -> usize {
        self.letter.body.len() + self.call.method.len() + size_of::<Repeated>()
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
        let (Sent::InWhole, Some(id)) = (self.sent, &self.call.id) else {
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
        way: Way,
    ) -> Result<Answer, Failure> {
        let spoken = match (way, record.route()) {
            (Way::New, Some(_)) if self.letter.fault.is_some() => {
                let message = "the message is not valid JSON-RPC 2.0, or not sent as JSON";
                return Err(Failure::new(Reason::InvalidRequest, message));
            }
            (Way::New, Some(route)) => {
                self.letter.guard()?;
                self.letter.translate(record, route, &self.call).await?
            }
            (Way::Old, _) | (Way::New, None) => self.pass(record).await?,
        };
        match spoken {
            Spoken::Answer(whole) => Ok(Answer::Whole(whole)),
            Spoken::Stream(answer) => Ok(answer),
            Spoken::Nothing | Spoken::Recalled => Err(Failure::new(
                Reason::Internal,
                "a call that waits for an answer got none",
            )),
        }
    }

    async fn pass(&self, record: &mut Record) -> Result<Spoken, Failure> {
        let upstream = record.upstream(Side::Rpc).cloned();
        let upstream = upstream.ok_or_else(|| refusal::no_upstream(Side::Rpc))?;
        let room = Cell::new(self.letter.installed.plan.limits.answer);
        let company = match self.sent {
            Sent::Alone => Company::Alone,
            Sent::InBatch | Sent::InWhole => Company::Batch(&room),
        };
        self.letter
            .pass_on(record, &upstream, &self.call, company)
            .await
    }
}
