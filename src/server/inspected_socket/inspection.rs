//! What the two ends of one connection tell each other: the inspector on the socket, and the service.

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use crate::domain::wire::{HeaderCase, SentTarget, Violation};
use crate::upstream::{InlineBody, ThreadBound, WriteControl};

/// What the inspector of one connection and the service behind it tell each other.
///
/// Messages have numbers because hyper reads ahead: a violation may be found while an earlier request is
/// still being answered.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    shared: ThreadBound<InspectionState>,
}

#[derive(Debug, Default)]
struct InspectionState {
    refused: Option<(u64, Violation)>,
    begun: u64,
    /// Whether hyper has the whole answer to each of them.
    is_answered: bool,
    /// How long the last head took that did not come at once; taken by the request that has it.
    head: Duration,
    /// How names are written: those of requests that have not begun, with their numbers.
    requests: VecDeque<(u64, HeaderCase)>,
    /// Targets that hyper does not get as they came, of requests that have not begun, with their numbers.
    targets: VecDeque<(u64, Rc<SentTarget>)>,
    /// And the names of the answer whose head is written next.
    answer: Option<HeaderCase>,
    /// The body of a request that has not begun, where it came at once, with its number.
    whole: Option<(u64, InlineBody)>,
    /// The number of the request of whose body some has yet to come.
    owes: u64,
    /// The number of the request that was answered last, and how.
    answered: Option<(u64, RefusalAnswer)>,
    flushing: Flushing,
    /// What is flushed is sent where somebody waits for that; until then it may wait.
    reins: WriteControl,
}

/// Whether somebody waits until all is written that hyper has, and who.
#[derive(Debug, Default)]
enum Flushing {
    #[default]
    Unwatched,
    /// Nobody has asked since how it stands.
    Watched(Option<Waker>),
}

impl Inspection {
    /// Of a connection whose socket lets messages wait.
    #[must_use]
    pub fn hastening(reins: WriteControl) -> Inspection {
        let shared = InspectionState {
            reins,
            ..InspectionState::default()
        };
        Inspection {
            shared: ThreadBound::new(shared),
        }
    }

    /// The service is called with a request: what is known of it besides.
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
            took: mem::take(&mut shared.head),
            refused: shared.refusal(number),
            spelling: shared.requests.pop_front_if(of_it).map(|(_, own)| own),
            target: shared.targets.pop_front_if(sent).map(|(_, own)| own),
            whole: (shared.whole.take_if(|(own, _)| *own == number)).map(|(_, body)| body),
        }
    }

    /// The number of the request that the service was called with last.
    pub(super) fn begun(&self) -> u64 {
        self.shared.get().begun
    }

    /// Whether the last of them has yet to be answered, or some of its answer has yet to come.
    pub(super) fn is_in_hand(&self) -> bool {
        let shared = self.shared.get();
        shared.begun > 0 && !shared.is_answered
    }

    /// Says that hyper has the whole answer to the last request, or lets it be.
    pub fn is_answered(&self) {
        self.shared.get().is_answered = true;
    }

    /// Says how long a head took, before hyper has the end of it.
    pub(super) fn head_took(&self, took: Duration) {
        self.shared.get().head = took;
    }

    /// Says how the names of a request are written, before hyper has the end of its head.
    pub(super) fn request_spelled(&self, request: u64, spelling: HeaderCase) {
        self.shared.get().requests.push_back((request, spelling));
    }

    /// Says which target a request has, before hyper has its request line.
    pub(super) fn request_sent(&self, request: u64, target: SentTarget) {
        let target = (request, Rc::new(target));
        self.shared.get().targets.push_back(target);
    }

    /// Whether there is room for the body of a request.
    pub(super) fn has_room_for_whole(&self) -> bool {
        self.shared.get().whole.is_none()
    }

    /// Says what the body of a request is, before hyper has the end of its head.
    pub(super) fn request_came_whole(&self, request: u64, body: InlineBody) {
        self.shared.get().whole = Some((request, body));
    }

    /// Says how the names of an answer are written, before hyper has the answer.
    pub fn answer_spelled(&self, spelling: Option<HeaderCase>) {
        self.shared.get().answer = spelling;
    }

    /// How the names of the head are written that goes out now, unless in lower case.
    pub(super) fn take_answer(&self) -> Option<HeaderCase> {
        self.shared.get().answer.take()
    }

    /// Why the request with this number must be refused, if it must: worth a look when its body cannot be read.
    #[must_use]
    pub fn refusal(&self, request: u64) -> Option<Violation> {
        self.shared.get().refusal(request)
    }

    /// Whether some of the body of this request has yet to come.
    #[must_use]
    pub fn owes(&self, request: u64) -> bool {
        self.shared.get().owes == request
    }

    /// Says of which request some has yet to come.
    pub(super) fn owed(&self, request: u64) {
        self.shared.get().owes = request;
    }

    /// Says how a request was answered, before hyper has the answer. A request for an upgrade needs this,
    /// for the bytes behind it are held until then; for any other it does nothing.
    pub fn answered(&self, request: u64, status: StatusCode) {
        let mut shared = self.shared.get();
        let answer = match status {
            StatusCode::SWITCHING_PROTOCOLS => RefusalAnswer::Switched,
            _ => RefusalAnswer::Declined,
        };
        shared.answered = Some((request, answer));
        if answer == RefusalAnswer::Switched {
            shared.reins.disable_coalescing();
        }
    }

    /// From now on, what is flushed is sent.
    pub(super) fn hasten(&self) {
        self.shared.get().reins.disable_coalescing();
    }

    /// Asks to be told when all is written that hyper has now.
    pub fn must_flush(&self) {
        let mut shared = self.shared.get();
        shared.reins.disable_coalescing();
        shared.flushing = Flushing::Watched(None);
    }

    /// Waits until that is so.
    pub fn poll_flushed(&self, cx: &Context<'_>) -> Poll<()> {
        match &mut self.shared.get().flushing {
            Flushing::Unwatched => Poll::Ready(()),
            Flushing::Watched(watcher) => {
                *watcher = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Says that all is written that hyper had.
    pub(super) fn is_flushed(&self) {
        let flushing = mem::take(&mut self.shared.get().flushing);
        if let Flushing::Watched(Some(watcher)) = flushing {
            watcher.wake();
        }
    }

    /// Says that this is of what hyper writes next, if it writes at once.
    pub(in crate::server) fn gives(&self, piece: &Bytes) {
        self.shared.get().reins.offer_shared(piece);
    }

    /// Says which request is refused. The first refusal is the only one: nothing is read after it.
    pub(super) fn refuse(&self, request: u64, violation: Violation) {
        let refused = &mut self.shared.get().refused;
        refused.get_or_insert((request, violation));
    }

    /// How a request was answered, if it was.
    pub(super) fn answer(&self, request: u64) -> Option<RefusalAnswer> {
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

/// A request that the service is called with.
#[derive(Debug)]
pub struct AdmittedRequest {
    /// Its number: the first has number 1.
    pub number: u64,
    /// How long its head took; nothing where it came at once.
    pub took: Duration,
    /// Why it must be refused, if it must.
    pub refused: Option<Violation>,
    /// How its names are written, unless in lower case.
    pub spelling: Option<HeaderCase>,
    /// Its target, where hyper has another one.
    pub target: Option<Rc<SentTarget>>,
    /// Its body, where that came at once.
    pub whole: Option<InlineBody>,
}

/// The answer to a request for an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalAnswer {
    Switched,
    Declined,
}
