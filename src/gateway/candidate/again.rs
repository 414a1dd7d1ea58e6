//! A call that is made a second time, one way or the other.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::{HeaderMap, request};
use hyper::upgrade::OnUpgrade;

use super::told::{Told, headers_size, is_stream};
use crate::domain::claim::{self, Head};
use crate::domain::compare::Skip;
use crate::domain::failure::Failure;
use crate::domain::jsonrpc::RequestId;
use crate::domain::refusal;
use crate::domain::rollout::Way;
use crate::domain::side::Side;
use crate::gateway::Arrival;
use crate::gateway::forward::{Forwarded, forward};
use crate::gateway::intake::Content;
use crate::gateway::record::Record;
use crate::gateway::render::{self, Answer};
use crate::gateway::rpc::Repeated;
use crate::gateway::translated;
use crate::upstream::{Missing, ReadFault, Tap, Upstream, pinned, read_charged};

/// A call, kept so that it can be made again.
pub(super) enum Again {
    /// A REST call.
    Rest {
        /// As it came.
        head: Box<request::Parts>,
        /// A copy of what passes by.
        body: Tap,
        /// Where it comes from.
        arrival: Arrival,
    },
    /// An RPC call.
    Rpc(Box<Repeated>),
}

impl Again {
    /// A REST call, whose body is still to pass by `body`.
    pub(super) fn rest(head: &request::Parts, body: Tap, arrival: &Arrival) -> Again {
        let mut head = head.clone();
        // The client's connection is none of a second run's.
        head.extensions.remove::<OnUpgrade>();
        head.headers.remove(EXPECT);
        head.headers.remove(TRANSFER_ENCODING);
        Again::Rest {
            head: Box::new(head),
            body,
            arrival: arrival.clone(),
        }
    }

    /// How many bytes are kept for it, without the body that is still to come.
    pub(super) fn size(&self) -> usize {
        match self {
            Again::Rest { head, .. } => {
                headers_size(&head.headers) + head.uri.path().len() + size_of::<request::Parts>()
            }
            Again::Rpc(repeated) => headers_size(repeated.headers()) + repeated.size(),
        }
    }

    /// What answers the call of what its client was sent.
    pub(super) fn own_part(&self, answer: Bytes) -> Bytes {
        match self {
            Again::Rest { .. } => answer,
            Again::Rpc(repeated) => repeated.own_part(answer),
        }
    }

    /// Whether translation does not take it.
    pub(super) fn is_invalid(&self) -> bool {
        match self {
            Again::Rest { .. } => false,
            Again::Rpc(repeated) => repeated.is_invalid(),
        }
    }

    /// Whether all of it is there.
    pub(super) fn is_whole(&self) -> Result<(), Skip> {
        match self {
            Again::Rest { body, .. } => match body.whole() {
                Ok(_) => Ok(()),
                Err(Missing::Large) => Err(Skip::Large),
                Err(Missing::Unfinished) => Err(Skip::Unread),
            },
            Again::Rpc(_) => Ok(()),
        }
    }

    /// Makes the call.
    pub(super) async fn go(&self, record: &mut Record, way: Way) -> Result<Told, Skip> {
        let answered = match self {
            Again::Rest {
                head,
                body,
                arrival,
            } => {
                let body = body.whole().map_err(|_| Skip::Unread)?;
                let call = (head.clone(), body);
                pinned(|| rest(record, way, call, arrival)).await
            }
            Again::Rpc(repeated) => pinned(|| repeated.go(record, way)).await,
        };
        let told = match answered {
            Ok(answer) => keep(record, answer).await?,
            Err(failure) => self.refused(record, &failure),
        };
        match record.purse() {
            Some(purse) if purse.is_over() => Err(Skip::Large),
            Some(_) | None => Ok(told),
        }
    }

    /// What the client would have been told of a failure.
    pub(super) fn refused(&self, record: &mut Record, failure: &Failure) -> Told {
        let codes = &record.installed().plan.face.failure_codes;
        let whole = match self {
            Again::Rest { .. } => render::rest_failure(failure, codes),
            Again::Rpc(repeated) => {
                let null = RequestId::null();
                render::rpc_failure(failure, codes, repeated.id().unwrap_or(&null))
            }
        };
        record.failed(whole.status.as_u16(), failure);
        Told::failure(&whole, failure)
    }
}

async fn rest(
    record: &mut Record,
    way: Way,
    (head, body): (Box<request::Parts>, Bytes),
    arrival: &Arrival,
) -> Result<Answer, Failure> {
    match (way, record.route()) {
        (Way::New, Some(route)) => {
            let plan = &record.installed().plan;
            claim::guard(plan, Head::of(&head), arrival.entry())?;
            translated::rest_call(record, route, (head, Content::Read(body)), arrival).await
        }
        (Way::Old, _) | (Way::New, None) => {
            let upstream = record.upstream(Side::Rest).and_then(Upstream::http);
            let upstream = upstream.cloned();
            let upstream = upstream.ok_or_else(|| refusal::no_upstream(Side::Rest))?;
            let forwarded = if body.is_empty() && !head.headers.contains_key(CONTENT_LENGTH) {
                Forwarded::empty(head)
            } else {
                Forwarded::read(head, body)
            };
            forward(record, &upstream, forwarded, arrival).await
        }
    }
}

/// Reads an answer to its end.
async fn keep(record: &mut Record, answer: Answer) -> Result<Told, Skip> {
    let stream = match answer {
        Answer::Whole(whole) => return Ok(Told::whole(&whole)),
        Answer::Tunnel(_) => return Err(Skip::Stream),
        Answer::Stream(stream) => stream,
    };
    if is_stream(stream.response.headers()) {
        return Err(Skip::Stream);
    }
    let (head, body) = stream.response.into_parts();
    record.answered(head.status.as_u16());
    let limit = record.installed().plan.limits.answer;
    let Some(purse) = record.purse().cloned() else {
        return Err(Skip::Large);
    };
    match read_charged(body, limit, &purse).await {
        Ok(body) => {
            stream.lease.release();
            record.passed(&body);
            Ok(told(head.status, head.headers, body))
        }
        Err(ReadFault::TooLarge(_) | ReadFault::NoRoom(_)) => Err(Skip::Large),
        Err(fault @ ReadFault::Cut(_)) => {
            record.cut(fault);
            Ok(Told::broken())
        }
    }
}

fn told(status: http::StatusCode, headers: HeaderMap, body: Bytes) -> Told {
    Told {
        status,
        headers,
        body,
        source: super::told::Source::Server,
    }
}
