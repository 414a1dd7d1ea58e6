//! A call of the RPC face that is made a second time, one way or the other.

use std::cell::Cell;

use http::HeaderMap;

use super::{Company, Letter, Spoken};
use crate::domain::compare::Skip;
use crate::domain::failure::{Failure, Reason};
use crate::domain::jsonrpc::{Call, RequestId};
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
            sent: match company {
                Company::Alone => Sent::Alone,
                Company::Batch(_) => Sent::InBatch,
            },
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

    /// Makes the call.
    pub(in crate::gateway) async fn go(
        &self,
        record: &mut Record,
        way: Way,
    ) -> Result<Answer, Failure> {
        let spoken = match (way, record.route()) {
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
            Sent::InBatch => Company::Batch(&room),
        };
        self.letter
            .pass_on(record, &upstream, &self.call, company)
            .await
    }
}
