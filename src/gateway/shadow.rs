//! Candidates: second runs of calls on the other path, made only to compare the responses.
//!
//! ```text
//! mod                 which calls get a candidate, and when it starts
//! replay              the calls that can be sent a second time
//! recorded_response   responses stored for comparison
//! recorded            calls from a recording, run and compared
//! comparison          a pair of responses, compared
//! offload             the thread for long comparisons
//! runner              the shared state of all candidates of a worker
//! run                 one candidate, from start to verdict
//! stream_recorder     the record of a response that streams
//! ```
//!
//! Laws: a candidate starts only after the client has the response, or the compared part of a stream. No result of a
//! candidate reaches the client. Only calls of safe routes have one. Every call that could have had a candidate gets
//! exactly one verdict.
//!
//! Used by the adapters of `gateway`'s protocols, `shared_state` and `worker`.

mod comparison;
mod offload;
mod recorded;
mod recorded_response;
mod replay;
mod run;
mod runner;
mod stream_recorder;

use std::fmt;
use std::mem;

use bytes::Bytes;
use http::response;
use tokio::time::Instant;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::FullResponse;
use super::response_observer::{Observer, ResponseObserver};
use crate::telemetry::clock;
use dualgauge_model::compare::{STREAM_EVENTS, Skip, StreamBound};
use dualgauge_model::failure::Failure;
use dualgauge_model::rollout::Stage;
use dualgauge_model::shadow_limits;
use dualgauge_net::{BodyCopy, CopyUnavailable, pinned};

pub use offload::{ComparePool, CompareThread};
pub(super) use recorded::RecordedRun;
pub(super) use recorded_response::headers_size;
pub(super) use replay::{ReplayFuture, ReplayableCall};
pub(super) use runner::ShadowRunner;

use recorded_response::{RecordedResponse, RecordedStream, ResponseOrigin, stream_format};
use run::{RunnableCandidate, count_skip};
use stream_recorder::StreamRecorder;

/// A second run of a call, which starts after the response is sent.
///
/// Dropped before that, it counts as skipped, because the client disconnected.
#[derive(Debug)]
struct Candidate(CandidateState);

#[derive(Debug)]
enum CandidateState {
    Pending(Box<PendingCandidate>),
    /// Started or skipped.
    Over,
}

struct PendingCandidate {
    record: AccessRecord,
    call: Box<dyn ReplayableCall>,
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
    /// A response that streams, recorded up to a bound.
    Streaming {
        head: RecordedResponse,
        recorder: StreamRecorder,
        /// The time at which recording ends.
        until: Instant,
    },
    /// A complete response.
    Known(RecordedResponse),
}

/// Returns true when a call may have a candidate; counts the skip otherwise.
pub(super) fn may_attach(
    context: &CallContext,
    stage: Stage,
    precondition: Result<(), Skip>,
) -> bool {
    let (Some(_), Some(index)) = (stage.candidate(), context.route()) else {
        return false;
    };
    let route = context.runtime_plan().plan.routes.route(index);
    let runner = context.worker().shadow_runner();
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
        count_skip(context, skip);
    }
    skip.is_none()
}

/// Returns the candidate of a call, which observes the response to it; `None` if the call is too large.
pub(super) fn candidate(record: &AccessRecord, call: Box<dyn ReplayableCall>) -> Option<Observer> {
    let budget = record.context.worker().shadow_runner().new_copy();
    let fits = budget.charge(call.size());
    let pending = PendingCandidate {
        record: record.for_second_run(),
        call,
        budget,
        control: ControlResponse::Unknown,
    };
    let candidate = Box::new(Candidate(CandidateState::Pending(Box::new(pending))));
    if !fits {
        candidate.skip(Skip::Large);
        return None;
    }
    Some(candidate)
}

impl Candidate {
    /// Ends the candidate without a run, and counts the reason.
    fn end(&mut self, why: Skip) {
        if let CandidateState::Pending(pending) = mem::replace(&mut self.0, CandidateState::Over) {
            count_skip(&pending.record.context, why);
        }
    }

    /// Starts the candidate; `bound` is set if the control streams on beyond the part that is compared.
    fn start(&mut self, bound: Option<StreamBound>) {
        let CandidateState::Pending(mut pending) = mem::replace(&mut self.0, CandidateState::Over)
        else {
            return;
        };
        if let ControlResponse::Streaming { head, .. } = &mut pending.control
            && let Some(stream) = &mut head.stream
        {
            stream.bound = bound;
        }
        let tasks = pending.record.context.worker().tasks().clone();
        if let Some(runnable) = pending.into_runnable() {
            tasks.start_after_turn(pinned(|| runnable.run()));
        }
    }

    /// Sets the complete response that the client receives.
    fn set_control(&mut self, control: RecordedResponse) {
        let CandidateState::Pending(pending) = &mut self.0 else {
            return;
        };
        if pending.budget.charge(control.size()) {
            pending.control = ControlResponse::Known(control);
        } else {
            self.end(Skip::Large);
        }
    }
}

impl ResponseObserver for Candidate {
    fn on_full(&mut self, full: &FullResponse, failure: Option<&Failure>) {
        if matches!(self.0, CandidateState::Over) {
            return;
        }
        self.set_control(match failure {
            None => RecordedResponse::from_full(full),
            Some(failure) => RecordedResponse::failure(full, failure),
        });
    }

    /// Records the head of a response that passes through.
    fn on_head(&mut self, head: &response::Parts) {
        let CandidateState::Pending(pending) = &mut self.0 else {
            return;
        };
        let format = match stream_format(&head.headers, &pending.record.context) {
            Ok(format) => format,
            Err(skip) => return self.end(skip),
        };
        let head = RecordedResponse {
            status: head.status,
            headers: head.headers.clone(),
            body: Bytes::new(),
            source: ResponseOrigin::Server,
            stream: None,
        };
        let headers = headers_size(&head.headers);
        let fits = match format {
            None => {
                let body = pending.record.context.worker().shadow_runner().new_copy();
                let fits = body.charge(headers);
                pending.control = ControlResponse::Passing { head, body };
                fits
            }
            Some(format) => {
                let fits = pending.budget.charge(headers);
                let plan = &pending.record.context.runtime_plan().plan;
                pending.control = ControlResponse::Streaming {
                    head: RecordedResponse {
                        stream: Some(RecordedStream {
                            format,
                            bound: None,
                        }),
                        ..head
                    },
                    recorder: StreamRecorder::new(format, STREAM_EVENTS),
                    until: clock::now() + plan.candidates.timeout,
                };
                fits
            }
        };
        if !fits {
            self.end(Skip::Large);
        }
    }

    fn on_chunk(&mut self, chunk: &[u8]) {
        let CandidateState::Pending(pending) = &mut self.0 else {
            return;
        };
        match &mut pending.control {
            ControlResponse::Passing { body, .. } => body.record(chunk),
            ControlResponse::Streaming {
                recorder, until, ..
            } => {
                let is_late = *until <= clock::now();
                let reached = recorder.record(chunk);
                let bound = reached.or(is_late.then_some(StreamBound::Time));
                if !pending.budget.charge(chunk.len()) {
                    return self.end(Skip::Large);
                }
                if let Some(bound) = bound {
                    self.start(Some(bound));
                }
            }
            ControlResponse::Unknown | ControlResponse::Known(_) => {}
        }
    }

    /// Starts the candidate, after the response is sent.
    fn on_sent(mut self: Box<Self>) {
        self.start(None);
    }

    /// Starts the candidate after the control's response broke off. Nothing can be compared, but the candidate's
    /// success is counted.
    fn on_cut(mut self: Box<Self>) {
        self.set_control(RecordedResponse::broken());
        self.on_sent();
    }

    fn skip(mut self: Box<Self>, why: Skip) {
        self.end(why);
    }
}

impl PendingCandidate {
    /// Returns the candidate ready to run; counts the skip if it cannot run.
    fn into_runnable(self) -> Option<RunnableCandidate> {
        let runner = self.record.context.worker().shadow_runner().clone();
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
            ControlResponse::Streaming { head, recorder, .. } => Ok(RecordedResponse {
                body: recorder.into_body(),
                ..head
            }),
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
                count_skip(&self.record.context, skip);
                None
            }
        }
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if let CandidateState::Pending(pending) = &self.0 {
            let is_closed = pending.record.context.worker().shadow_runner().is_closed();
            self.end(if is_closed {
                Skip::Drain
            } else {
                Skip::Cancelled
            });
        }
    }
}

impl fmt::Debug for PendingCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCandidate").finish_non_exhaustive()
    }
}
