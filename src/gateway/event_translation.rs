//! The translation of the events of a response, and the memory of those that are incomplete.
//!
//! Laws: short events are translated on the worker, long ones on other threads (see [`super::offload`]), with the same
//! result and in the same order; buffered bytes are charged to the memory of calls, those of second runs to their own
//! budget.
//!
//! Used by `translated_stream`.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::call_context::CallContext;
use super::failures::memory_exhausted;
use super::offload::{Offload, is_long};
use super::rpc_reply::context;
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::response_stream::{
    ResponseStream, StreamInput, StreamScope, StreamStep, TranslatedInput,
};
use dualgauge_net::{BodyCopy, BudgetExhausted, Reservation};

/// The events of one response.
#[derive(Debug)]
pub(super) struct EventTranslation {
    stream: ResponseStream,
    /// The index of the route.
    route: usize,
    /// The translation of a long event on another thread.
    offloaded: Option<OffloadedEvent>,
    memory: EventMemory,
}

struct OffloadedEvent(Pin<Box<dyn Future<Output = Result<TranslatedInput, Failure>>>>);

impl fmt::Debug for OffloadedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffloadedEvent").finish_non_exhaustive()
    }
}

impl EventTranslation {
    pub(super) fn new(
        stream: ResponseStream,
        route: usize,
        memory: EventMemory,
    ) -> EventTranslation {
        EventTranslation {
            stream,
            route,
            offloaded: None,
            memory,
        }
    }

    pub(super) const fn route(&self) -> usize {
        self.route
    }

    /// Returns true after the last event.
    pub(super) const fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// Returns true while another thread translates an event.
    pub(super) const fn is_busy(&self) -> bool {
        self.offloaded.is_some()
    }

    /// Adds input, after all steps of the input before.
    ///
    /// # Errors
    ///
    /// Fails when the memory budget is exhausted.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.memory.hold(self.stream.held() + chunk.len())?;
        self.stream.feed(chunk);
        Ok(())
    }

    /// Ends the input after the upstream's last byte.
    pub(super) fn end_input(&mut self) {
        self.stream.end_input();
    }

    /// Returns the next step; `None` if it needs more input.
    ///
    /// # Errors
    ///
    /// Fails when the thread that translates an event fails.
    pub(super) fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        plan: &Arc<Plan>,
        offload: &Offload,
    ) -> Poll<Option<Result<StreamStep, Failure>>> {
        if self.offloaded.is_none() {
            let Some(input) = self.stream.next_input() else {
                self.memory.shrink_to(self.stream.held());
                return Poll::Ready(None);
            };
            if !is_long(input.len()) {
                let step = self.stream.translate(input, scope(plan, self.route));
                return Poll::Ready(Some(Ok(step)));
            }
            self.offloaded = Some(self.start_job(input, plan, offload));
        }
        let Some(OffloadedEvent(job)) = &mut self.offloaded else {
            return Poll::Ready(None);
        };
        let Poll::Ready(translated) = job.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.offloaded = None;
        Poll::Ready(Some(
            translated.map(|translated| self.stream.accept(translated)),
        ))
    }

    fn start_job(&self, input: StreamInput, plan: &Arc<Plan>, offload: &Offload) -> OffloadedEvent {
        let job = self.stream.job(input);
        let (plan, route, offload) = (plan.clone(), self.route, offload.clone());
        OffloadedEvent(Box::pin(async move {
            offload.run(move || job.run(scope(&plan, route))).await
        }))
    }

    /// Ends the events with a failure as the last one. An event that another thread translates is dropped.
    pub(super) fn fail(&mut self, failure: Failure, plan: &Plan) -> StreamStep {
        self.offloaded = None;
        let last = self.stream.fail(failure, scope(plan, self.route));
        self.memory.shrink_to(self.stream.held());
        last
    }
}

/// Returns the parts of a plan that translate the stream of a route.
fn scope(plan: &Plan, route: usize) -> StreamScope<'_> {
    StreamScope {
        route: plan.routes.route(route),
        events: &plan.events,
        limits: plan.limits.reply(),
        codes: &plan.face.failure_codes,
        context: context(&plan.limits),
    }
}

/// The budget that incomplete events are charged to.
#[derive(Debug)]
pub(super) enum EventMemory {
    /// The memory of calls.
    Calls(Reservation),
    /// The budget of a second run, and the most bytes that were held: it is released at the end of the run.
    SecondRun(BodyCopy, usize),
}

impl EventMemory {
    pub(super) fn new(context: &CallContext) -> EventMemory {
        match context.second_run_budget() {
            None => EventMemory::Calls(context.worker().memory().new_reservation()),
            Some(budget) => EventMemory::SecondRun(budget.clone(), 0),
        }
    }

    /// Charges `bytes` in all.
    fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        let held = match self {
            EventMemory::Calls(reservation) => reservation.resize(bytes),
            EventMemory::SecondRun(budget, most) => {
                let more = bytes.saturating_sub(*most);
                *most += more;
                match more == 0 || budget.charge(more) {
                    true => Ok(()),
                    false => Err(BudgetExhausted),
                }
            }
        };
        held.map_err(memory_exhausted)
    }

    /// Releases all but `bytes`.
    fn shrink_to(&mut self, bytes: usize) {
        match self {
            EventMemory::Calls(reservation) => reservation.shrink_to(bytes),
            EventMemory::SecondRun(..) => {}
        }
    }
}

#[cfg(test)]
mod tests;
