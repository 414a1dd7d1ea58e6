//! Candidates: calls that are made a second time, the other way, only to compare.
//!
//! ```text
//! mod      which calls get one, and when it starts
//! again    a call that is kept, and made again
//! told     answers that are kept, and read
//! pair     two of them, compared
//! desk     where long work is done beside the workers
//! bench    what all candidates of a worker share
//! run      from the start to the verdict
//! ```
//!
//! Laws: a candidate starts when the client has been answered, and not before; nothing that becomes of it reaches
//! the client; only calls of safe routes have one; every candidate that might have been gets exactly one verdict.

mod comparison;
mod offload;
mod recorded_response;
mod replay;
mod run;
mod runner;

use std::fmt;
use std::mem;

use bytes::Bytes;
use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderName, request, response};

use super::RequestOrigin;
use super::record::Record;
use super::request_body::RequestBody;
use super::rpc::ReplayableRpc;
use crate::domain::compare::Skip;
use crate::domain::rollout::Stage;
use crate::domain::shadow_limits;
use crate::upstream::{BodyCopy, CopyUnavailable, pinned};

pub use offload::{ComparePool, CompareThread};
pub(super) use recorded_response::RecordedResponse;
pub(super) use runner::ShadowRunner;

use recorded_response::{ResponseOrigin, headers_size, is_stream};
use replay::ReplayableCall;
use run::{RunnableCandidate, skipped};

/// Headers that ask for an answer on a condition, or for a part of one. A translated call ignores them, so that the
/// two answers say nothing of each other.
static CONDITIONS: [HeaderName; 6] = [
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
];

/// A second run of a call, which starts when the client has been answered.
///
/// Dropped before that, it is skipped: the client has gone away.
pub(super) struct Candidate(CandidateState);

enum CandidateState {
    Waiting(Box<PendingCandidate>),
    /// Started, or skipped.
    Over,
}

struct PendingCandidate {
    record: Record,
    call: ReplayableCall,
    /// What the candidate is charged to.
    budget: BodyCopy,
    control: ControlResponse,
}

/// What the client is answered.
enum ControlResponse {
    /// Nothing yet.
    Unknown,
    /// An answer that passes by.
    Passing {
        head: RecordedResponse,
        body: BodyCopy,
    },
    /// This.
    Known(RecordedResponse),
}

/// Lets a candidate follow a REST call, where one may. Gives where the body is to be copied as it passes by.
pub(super) fn attach_rest(
    record: &mut Record,
    stage: Stage,
    (head, body): (&request::Parts, &RequestBody),
    arrival: &RequestOrigin,
) -> Option<BodyCopy> {
    // Most calls have none, and their headers are not asked.
    stage.candidate()?;
    let conditional = CONDITIONS
        .iter()
        .any(|name| head.headers.contains_key(name));
    let more = if conditional {
        Err(Skip::Conditional)
    } else {
        Ok(())
    };
    if !may_follow(record, stage, more) {
        return None;
    }
    let copy = record.worker().shadow_runner().tap();
    match body {
        RequestBody::Read(whole) => copy.is_copying(whole),
        RequestBody::Coming(..) if body.is_empty() => copy.finish(),
        RequestBody::Coming(..) => {}
    }
    let call = ReplayableCall::rest(head, copy.clone(), arrival);
    attach(record, call);
    Some(copy)
}

/// Lets a candidate follow an RPC call, where one may and its letter allows it.
pub(super) fn attach_rpc(
    record: &mut Record,
    stage: Stage,
    may_repeat: Result<(), Skip>,
    repeated: impl FnOnce() -> ReplayableRpc,
) {
    if may_follow(record, stage, may_repeat) {
        attach(record, ReplayableCall::Rpc(Box::new(repeated())));
    }
}

/// Whether a candidate may follow a call; where it may not, that is counted.
fn may_follow(record: &Record, stage: Stage, more: Result<(), Skip>) -> bool {
    let (Some(_), Some(index)) = (stage.candidate(), record.route()) else {
        return false;
    };
    let route = record.installed().plan.routes.route(index);
    let bench = record.worker().shadow_runner();
    let why_not = if let Some(skip) = shadow_limits::never(route) {
        Some(skip)
    } else if let Err(skip) = more {
        Some(skip)
    } else if bench.is_closed() {
        Some(Skip::Drain)
    } else if !bench.samples() {
        Some(Skip::NotSampled)
    } else {
        None
    };
    if let Some(skip) = why_not {
        skipped(record, skip);
    }
    why_not.is_none()
}

fn attach(record: &mut Record, call: ReplayableCall) {
    let purse = record.worker().shadow_runner().tap();
    let kept = purse.charge(call.size());
    let waiting = PendingCandidate {
        record: record.again(),
        call,
        budget: purse,
        control: ControlResponse::Unknown,
    };
    let candidate = Candidate(CandidateState::Waiting(Box::new(waiting)));
    if kept {
        record.is_followed_by(candidate);
    } else {
        candidate.skip(Skip::Large);
    }
}

impl Candidate {
    /// The client is answered by what passes by from now on, and it starts like this. Nothing follows where it has no end.
    pub(super) fn on_head(&mut self, head: &response::Parts) {
        if is_stream(&head.headers) {
            return mem::replace(self, Candidate(CandidateState::Over)).skip(Skip::Stream);
        }
        let CandidateState::Waiting(waiting) = &mut self.0 else {
            return;
        };
        let body = waiting.record.worker().shadow_runner().tap();
        let fits = body.charge(headers_size(&head.headers));
        let head = RecordedResponse {
            status: head.status,
            headers: head.headers.clone(),
            body: Bytes::new(),
            source: ResponseOrigin::Server,
        };
        waiting.control = ControlResponse::Passing { head, body };
        if !fits {
            mem::replace(self, Candidate(CandidateState::Over)).skip(Skip::Large);
        }
    }

    /// A piece of the answer passes by.
    pub(super) fn on_chunk(&mut self, piece: &[u8]) {
        if let CandidateState::Waiting(waiting) = &mut self.0
            && let ControlResponse::Passing { body, .. } = &waiting.control
        {
            body.record(piece);
        }
    }

    /// The client is answered with this.
    pub(super) fn with_control(mut self, control: RecordedResponse) -> Candidate {
        if let CandidateState::Waiting(waiting) = &mut self.0 {
            if !waiting.budget.charge(control.size()) {
                self.skip(Skip::Large);
                return Candidate(CandidateState::Over);
            }
            waiting.control = ControlResponse::Known(control);
        }
        self
    }

    /// The answer has broken off: there is nothing to compare with, but whether the other way serves can be told.
    pub(super) fn start_without_control(self) {
        self.with_control(RecordedResponse::broken()).start();
    }

    /// The client has been answered: this begins when the answer is sent.
    pub(super) fn start(mut self) {
        let CandidateState::Waiting(waiting) = mem::replace(&mut self.0, CandidateState::Over)
        else {
            return;
        };
        let tasks = waiting.record.worker().tasks().clone();
        if let Some(ready) = waiting.ready() {
            tasks.start_behind(pinned(|| ready.run()));
        }
    }

    /// Nothing is to be run.
    pub(super) fn skip(mut self, why: Skip) {
        if let CandidateState::Waiting(waiting) = mem::replace(&mut self.0, CandidateState::Over) {
            skipped(&waiting.record, why);
        }
    }
}

impl PendingCandidate {
    /// What can run now, if it can.
    fn ready(self) -> Option<RunnableCandidate> {
        let bench = self.record.worker().shadow_runner().clone();
        let mut held = None;
        let control = match self.control {
            ControlResponse::Known(told) => Ok(told),
            ControlResponse::Passing { head, body } => {
                body.finish();
                let whole = body.whole();
                held = Some(body);
                match whole {
                    Ok(whole) => Ok(RecordedResponse {
                        body: self.call.own_part(whole),
                        ..head
                    }),
                    Err(CopyUnavailable::Large | CopyUnavailable::Unfinished) => Err(Skip::Large),
                }
            }
            ControlResponse::Unknown => Err(Skip::Cancelled),
        };
        let checked = control.and_then(|control| {
            self.call.is_whole()?;
            if bench.is_closed() {
                return Err(Skip::Drain);
            }
            Ok((control, bench.permit().ok_or(Skip::Busy)?))
        });
        match checked {
            Ok((control, seat)) => Some(RunnableCandidate {
                record: self.record,
                call: self.call,
                budget: self.budget,
                control,
                permit: seat,
                _held: held,
            }),
            Err(skip) => {
                skipped(&self.record, skip);
                None
            }
        }
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if let CandidateState::Waiting(waiting) = mem::replace(&mut self.0, CandidateState::Over) {
            let closed = waiting.record.worker().shadow_runner().is_closed();
            let why = if closed { Skip::Drain } else { Skip::Cancelled };
            skipped(&waiting.record, why);
        }
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").finish_non_exhaustive()
    }
}
