//! Candidates: second runs of calls on the other path, made only to compare the responses.
//!
//! ```text
//! mod                 which calls get a candidate, and when it starts
//! replay              a call stored for a second run
//! recorded_response   responses stored for comparison
//! comparison          a pair of responses, compared
//! offload             the thread for long comparisons
//! runner              the shared state of all candidates of a worker
//! run                 one candidate, from start to verdict
//! ```
//!
//! Laws: a candidate starts only after the response is sent to the client, and no result of it reaches the client. Only
//! calls of safe routes have one. Every call that could have had a candidate gets exactly one verdict.
//!
//! Used throughout `gateway`.

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
use crate::upstream::{BodyCopy, CopyUnavailable, pinned};
use dualgauge_model::compare::Skip;
use dualgauge_model::rollout::Stage;
use dualgauge_model::shadow_limits;

pub use offload::{ComparePool, CompareThread};
pub(super) use recorded_response::RecordedResponse;
pub(super) use runner::ShadowRunner;

use recorded_response::{ResponseOrigin, headers_size, is_stream};
use replay::ReplayableCall;
use run::{RunnableCandidate, count_skip};

/// Headers of conditional and range requests. A translated call ignores them, so its response would not be comparable.
static CONDITIONS: [HeaderName; 6] = [
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
];

/// A second run of a call, which starts after the response is sent.
///
/// Dropped before that, it counts as skipped, because the client disconnected.
pub(super) struct Candidate(CandidateState);

enum CandidateState {
    Pending(Box<PendingCandidate>),
    /// Started or skipped.
    Over,
}

struct PendingCandidate {
    record: Record,
    call: ReplayableCall,
    /// The budget that the candidate is charged to.
    budget: BodyCopy,
    control: ControlResponse,
}

/// The response that the client receives.
enum ControlResponse {
    /// Not known yet.
    Unknown,
    /// A response that passes through, copied on the way.
    Passing {
        head: RecordedResponse,
        body: BodyCopy,
    },
    /// A complete response.
    Known(RecordedResponse),
}

/// Attaches a candidate to a REST call, if it may have one. Returns the copy that the caller must fill with the body.
pub(super) fn attach_rest(
    record: &mut Record,
    stage: Stage,
    (head, body): (&request::Parts, &RequestBody),
    origin: &RequestOrigin,
) -> Option<BodyCopy> {
    // Most calls have no candidate, so this check comes before reading the headers.
    stage.candidate()?;
    let conditional = CONDITIONS
        .iter()
        .any(|name| head.headers.contains_key(name));
    let precondition = if conditional {
        Err(Skip::Conditional)
    } else {
        Ok(())
    };
    if !may_attach(record, stage, precondition) {
        return None;
    }
    let copy = record.worker().shadow_runner().new_copy();
    match body {
        RequestBody::Read(copied) => copy.store_complete(copied),
        RequestBody::Streaming(..) if body.is_empty() => copy.finish(),
        RequestBody::Streaming(..) => {}
    }
    let call = ReplayableCall::rest(head, copy.clone(), origin);
    attach(record, call);
    Some(copy)
}

/// Attaches a candidate to an RPC call, if it may have one and its message can be repeated.
pub(super) fn attach_rpc(
    record: &mut Record,
    stage: Stage,
    may_repeat: Result<(), Skip>,
    replayable: impl FnOnce() -> ReplayableRpc,
) {
    if may_attach(record, stage, may_repeat) {
        attach(record, ReplayableCall::Rpc(Box::new(replayable())));
    }
}

/// Returns true when a call may have a candidate; counts the skip otherwise.
fn may_attach(record: &Record, stage: Stage, precondition: Result<(), Skip>) -> bool {
    let (Some(_), Some(index)) = (stage.candidate(), record.route()) else {
        return false;
    };
    let route = record.runtime_plan().plan.routes.route(index);
    let runner = record.worker().shadow_runner();
    let skip = if let Some(skip) = shadow_limits::never(route) {
        Some(skip)
    } else if let Err(skip) = precondition {
        Some(skip)
    } else if runner.is_closed() {
        Some(Skip::Drain)
    } else if !runner.should_sample() {
        Some(Skip::NotSampled)
    } else {
        None
    };
    if let Some(skip) = skip {
        count_skip(record, skip);
    }
    skip.is_none()
}

fn attach(record: &mut Record, call: ReplayableCall) {
    let budget = record.worker().shadow_runner().new_copy();
    let fits = budget.charge(call.size());
    let pending = PendingCandidate {
        record: record.for_second_run(),
        call,
        budget,
        control: ControlResponse::Unknown,
    };
    let candidate = Candidate(CandidateState::Pending(Box::new(pending)));
    if fits {
        record.set_candidate(candidate);
    } else {
        candidate.skip(Skip::Large);
    }
}

impl Candidate {
    /// Records the head of a response that passes through. Skips the candidate if the response is an event stream.
    pub(super) fn on_head(&mut self, head: &response::Parts) {
        if is_stream(&head.headers) {
            return mem::replace(self, Candidate(CandidateState::Over)).skip(Skip::Stream);
        }
        let CandidateState::Pending(pending) = &mut self.0 else {
            return;
        };
        let body = pending.record.worker().shadow_runner().new_copy();
        let fits = body.charge(headers_size(&head.headers));
        let head = RecordedResponse {
            status: head.status,
            headers: head.headers.clone(),
            body: Bytes::new(),
            source: ResponseOrigin::Server,
        };
        pending.control = ControlResponse::Passing { head, body };
        if !fits {
            mem::replace(self, Candidate(CandidateState::Over)).skip(Skip::Large);
        }
    }

    /// Copies a chunk of the response body.
    pub(super) fn on_chunk(&mut self, chunk: &[u8]) {
        if let CandidateState::Pending(pending) = &mut self.0
            && let ControlResponse::Passing { body, .. } = &pending.control
        {
            body.record(chunk);
        }
    }

    /// Sets the complete response that the client receives.
    pub(super) fn with_control(mut self, control: RecordedResponse) -> Candidate {
        if let CandidateState::Pending(pending) = &mut self.0 {
            if !pending.budget.charge(control.size()) {
                self.skip(Skip::Large);
                return Candidate(CandidateState::Over);
            }
            pending.control = ControlResponse::Known(control);
        }
        self
    }

    /// Starts the candidate after the control's response broke off. Nothing can be compared, but the candidate's
    /// success is counted.
    pub(super) fn start_without_control(self) {
        self.with_control(RecordedResponse::broken()).start();
    }

    /// Starts the candidate, after the response is sent.
    pub(super) fn start(mut self) {
        let CandidateState::Pending(pending) = mem::replace(&mut self.0, CandidateState::Over)
        else {
            return;
        };
        let tasks = pending.record.worker().tasks().clone();
        if let Some(runnable) = pending.into_runnable() {
            tasks.start_after_turn(pinned(|| runnable.run()));
        }
    }

    /// Skips the candidate.
    pub(super) fn skip(mut self, why: Skip) {
        if let CandidateState::Pending(pending) = mem::replace(&mut self.0, CandidateState::Over) {
            count_skip(&pending.record, why);
        }
    }
}

impl PendingCandidate {
    /// Returns the candidate ready to run; counts the skip if it cannot run.
    fn into_runnable(self) -> Option<RunnableCandidate> {
        let runner = self.record.worker().shadow_runner().clone();
        let mut control_budget = None;
        let control = match self.control {
            ControlResponse::Known(response) => Ok(response),
            ControlResponse::Passing { head, body } => {
                body.finish();
                let copied = body.whole();
                control_budget = Some(body);
                match copied {
                    Ok(copied) => Ok(RecordedResponse {
                        body: self.call.extract_own_part(copied),
                        ..head
                    }),
                    Err(CopyUnavailable::BudgetExhausted | CopyUnavailable::Unfinished) => {
                        Err(Skip::Large)
                    }
                }
            }
            ControlResponse::Unknown => Err(Skip::Cancelled),
        };
        let admitted = control.and_then(|control| {
            self.call.check_complete()?;
            if runner.is_closed() {
                return Err(Skip::Drain);
            }
            Ok((control, runner.permit().ok_or(Skip::Busy)?))
        });
        match admitted {
            Ok((control, permit)) => Some(RunnableCandidate {
                record: self.record,
                call: self.call,
                budget: self.budget,
                control,
                permit,
                _control_budget: control_budget,
            }),
            Err(skip) => {
                count_skip(&self.record, skip);
                None
            }
        }
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if let CandidateState::Pending(pending) = mem::replace(&mut self.0, CandidateState::Over) {
            let closed = pending.record.worker().shadow_runner().is_closed();
            let why = if closed { Skip::Drain } else { Skip::Cancelled };
            count_skip(&pending.record, why);
        }
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").finish_non_exhaustive()
    }
}
