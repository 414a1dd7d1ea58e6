//! The state shared by the inspector of a connection and the service behind it.

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use crate::{InlineBody, ThreadBound, WriteControl};
use dualgauge_transport::wire::{HeaderCase, SentTarget, Violation};

/// The state shared by the inspector of one connection and the service behind it.
///
/// Messages are numbered because hyper reads ahead: a violation may be found while an earlier request is still being
/// answered.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    shared: ThreadBound<InspectionState>,
}

#[derive(Debug, Default)]
struct InspectionState {
    refused: Option<(u64, Violation)>,
    begun: u64,
    /// True if hyper has the whole response to the last begun request.
    is_answered: bool,
    /// The time of the last head that did not arrive in one read; taken by its request.
    head: Duration,
    /// The header case of requests that have not begun, by number.
    requests: VecDeque<(u64, HeaderCase)>,
    /// The original targets of requests that have not begun, by number, if hyper gets another one.
    targets: VecDeque<(u64, Rc<SentTarget>)>,
    /// The header case of the response head that is written next.
    answer: Option<HeaderCase>,
    /// The inline body of a request that has not begun, with its number.
    inline_body: Option<(u64, InlineBody)>,
    /// The number of the request whose body is incomplete.
    owes: u64,
    /// The number of the request answered last, and its result.
    answered: Option<(u64, UpgradeResult)>,
    flushing: Flushing,
    /// Disables write coalescing when someone waits for a flush.
    write_control: WriteControl,
}

/// The watch on a flush of hyper's output.
#[derive(Debug, Default)]
enum Flushing {
    #[default]
    Unwatched,
    /// A flush is awaited; the waker is absent until the first poll.
    Watched(Option<Waker>),
}

impl Inspection {
    /// Creates the state of a connection whose socket coalesces writes.
    #[must_use]
    pub fn with_write_control(write_control: WriteControl) -> Inspection {
        let shared = InspectionState {
            write_control,
            ..InspectionState::default()
        };
        Inspection {
            shared: ThreadBound::new(shared),
        }
    }

    /// Starts the next request of the service; returns its data from the inspector.
    #[must_use]
    pub fn begin(&self) -> AdmittedRequest {
        let mut shared = self.shared.get();
        shared.begun += 1;
        shared.is_answered = false;
        let number = shared.begun;
        let of_it = |(own, _): &mut (u64, HeaderCase)| *own == number;
        let sent = |(own, _): &mut (u64, Rc<SentTarget>)| *own == number;
        AdmittedRequest {
            number,
            head_time: mem::take(&mut shared.head),
            violation: shared.refusal(number),
            header_case: shared.requests.pop_front_if(of_it).map(|(_, own)| own),
            target: shared.targets.pop_front_if(sent).map(|(_, own)| own),
            inline_body: (shared.inline_body.take_if(|(own, _)| *own == number))
                .map(|(_, body)| body),
        }
    }

    /// Returns the number of the request that was begun last.
    pub(super) fn begun(&self) -> u64 {
        self.shared.get().begun
    }

    /// Returns true if the last request has no complete response yet.
    pub(super) fn is_in_progress(&self) -> bool {
        let shared = self.shared.get();
        shared.begun > 0 && !shared.is_answered
    }

    /// Records that hyper has the whole response to the last request, or has dropped it.
    pub fn record_answered(&self) {
        self.shared.get().is_answered = true;
    }

    /// Records the time of a head, before hyper has its end.
    pub(super) fn record_head_time(&self, head_time: Duration) {
        self.shared.get().head = head_time;
    }

    /// Records the header case of a request, before hyper has the end of its head.
    pub(super) fn record_request_case(&self, request: u64, header_case: HeaderCase) {
        self.shared.get().requests.push_back((request, header_case));
    }

    /// Records the original target of a request, before hyper has its request line.
    pub(super) fn record_target(&self, request: u64, target: SentTarget) {
        let target = (request, Rc::new(target));
        self.shared.get().targets.push_back(target);
    }

    /// Returns true if an inline body can be recorded.
    pub(super) fn can_record_inline_body(&self) -> bool {
        self.shared.get().inline_body.is_none()
    }

    /// Records the inline body of a request, before hyper has the end of its head.
    pub(super) fn record_inline_body(&self, request: u64, body: InlineBody) {
        self.shared.get().inline_body = Some((request, body));
    }

    /// Records the header case of a response, before hyper has the response.
    pub fn record_response_case(&self, header_case: Option<HeaderCase>) {
        self.shared.get().answer = header_case;
    }

    /// Returns the header case of the head being written; `None` is lower case.
    pub(super) fn take_answer(&self) -> Option<HeaderCase> {
        self.shared.get().answer.take()
    }

    /// Returns the violation for which a request must be refused, if any. Check it when the body cannot be read.
    #[must_use]
    pub fn refusal(&self, request: u64) -> Option<Violation> {
        self.shared.get().refusal(request)
    }

    /// Returns true if the body of this request is incomplete.
    #[must_use]
    pub fn has_incomplete_body(&self, request: u64) -> bool {
        self.shared.get().owes == request
    }

    /// Records the request whose body is incomplete.
    pub(super) fn record_incomplete_body(&self, request: u64) {
        self.shared.get().owes = request;
    }

    /// Records the result of a request, before hyper has the response. An upgrade request needs this, because the
    /// bytes behind it are held until then; for other requests it has no effect.
    pub fn record_status(&self, request: u64, status: StatusCode) {
        let mut shared = self.shared.get();
        let answer = match status {
            StatusCode::SWITCHING_PROTOCOLS => UpgradeResult::Switched,
            _ => UpgradeResult::Declined,
        };
        shared.answered = Some((request, answer));
        if answer == UpgradeResult::Switched {
            shared.write_control.disable_coalescing();
        }
    }

    /// Disables write coalescing.
    pub(super) fn disable_coalescing(&self) {
        self.shared.get().write_control.disable_coalescing();
    }

    /// Starts to watch for a flush of everything that hyper has now.
    pub fn must_flush(&self) {
        let mut shared = self.shared.get();
        shared.write_control.disable_coalescing();
        shared.flushing = Flushing::Watched(None);
    }

    /// Waits for that flush.
    pub fn poll_flushed(&self, cx: &Context<'_>) -> Poll<()> {
        match &mut self.shared.get().flushing {
            Flushing::Unwatched => Poll::Ready(()),
            Flushing::Watched(watcher) => {
                *watcher = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Records that hyper's output is flushed.
    pub(super) fn is_flushed(&self) {
        let flushing = mem::take(&mut self.shared.get().flushing);
        if let Flushing::Watched(Some(watcher)) = flushing {
            watcher.wake();
        }
    }

    /// Offers memory that hyper's next write will contain, so that it need not be copied.
    pub(crate) fn offer_shared(&self, piece: &Bytes) {
        self.shared.get().write_control.offer_shared(piece);
    }

    /// Refuses a request. Only the first refusal counts, because nothing is read after it.
    pub(super) fn refuse(&self, request: u64, violation: Violation) {
        let refused = &mut self.shared.get().refused;
        refused.get_or_insert((request, violation));
    }

    /// Returns the result of a request, if it was answered.
    pub(super) fn answer(&self, request: u64) -> Option<UpgradeResult> {
        let (answered, answer) = self.shared.get().answered?;
        (answered >= request).then_some(answer)
    }
}

impl InspectionState {
    fn refusal(&self, request: u64) -> Option<Violation> {
        let (refused, violation) = self.refused?;
        (refused == request).then_some(violation)
    }
}

/// A request passed to the service, with its data from the inspector.
#[derive(Debug)]
pub struct AdmittedRequest {
    /// The number of the request, from 1.
    pub number: u64,
    /// The time that the head took; zero if it arrived in one read.
    pub head_time: Duration,
    /// The violation for which the request must be refused, if any.
    pub violation: Option<Violation>,
    /// The header case; `None` is lower case.
    pub header_case: Option<HeaderCase>,
    /// The original target, if hyper has another one.
    pub target: Option<Rc<SentTarget>>,
    /// The inline body, if it arrived with the head.
    pub inline_body: Option<InlineBody>,
}

/// The result of an upgrade request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpgradeResult {
    Switched,
    Declined,
}
