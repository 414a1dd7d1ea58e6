//! What the two ends of one connection tell each other: the inspector on the socket, and the service.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::StatusCode;

use crate::domain::wire::{Spelling, Violation};
use crate::upstream::Haste;

/// What the inspector of one connection and the service behind it tell each other.
///
/// Messages have numbers because hyper reads ahead: a violation may be found while an earlier request is
/// still being answered.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    refused: OnceLock<(u64, Violation)>,
    begun: AtomicU64,
    /// How many microseconds the last head took that did not come at once; taken by the request that has it.
    head: AtomicU64,
    spelled: Mutex<Spelled>,
    /// The number of the request of whose body some has yet to come.
    owes: AtomicU64,
    /// The number of the request that was answered last, twice, and 1 if it was answered with 101.
    answered: AtomicU64,
    /// Whether somebody waits until all is written that hyper has, and who.
    must_flush: AtomicBool,
    flushed: Mutex<Option<Waker>>,
    /// What is flushed is sent where somebody waits for that.
    haste: Haste,
}

/// How names are written.
#[derive(Debug, Default)]
struct Spelled {
    /// Those of requests that have not begun, with their numbers.
    requests: VecDeque<(u64, Spelling)>,
    /// Those of the answer whose head is written next.
    answer: Option<Spelling>,
}

impl Inspection {
    /// Of a connection whose socket lets small messages wait.
    #[must_use]
    pub fn hastening(haste: Haste) -> Inspection {
        let shared = Arc::new(Shared {
            haste,
            ..Shared::default()
        });
        Inspection { shared }
    }

    /// Counts a request, when the service is called with it: the first has number 1.
    #[must_use]
    pub fn begin(&self) -> u64 {
        // One task serves a connection, so that nobody else counts meanwhile.
        let number = self.shared.begun.load(Ordering::Relaxed) + 1;
        self.shared.begun.store(number, Ordering::Relaxed);
        number
    }

    /// How long the head of the request took that has just begun; nothing where it came at once.
    #[must_use]
    pub fn take_head(&self) -> Duration {
        let micros = self.shared.head.load(Ordering::Relaxed);
        self.shared.head.store(0, Ordering::Relaxed);
        Duration::from_micros(micros)
    }

    /// Says how long a head took, before hyper has the end of it.
    pub(super) fn head_took(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.shared.head.store(micros, Ordering::Relaxed);
    }

    /// Says how the names of a request are written, before hyper has the end of its head.
    pub(super) fn request_spelled(&self, request: u64, spelling: Spelling) {
        self.spelled().requests.push_back((request, spelling));
    }

    /// How the names of the request are written that has just begun, unless in lower case.
    #[must_use]
    pub fn take_spelling(&self, request: u64) -> Option<Spelling> {
        let of_it = |(number, _): &mut (u64, Spelling)| *number == request;
        let found = self.spelled().requests.pop_front_if(of_it);
        found.map(|(_, spelling)| spelling)
    }

    /// Says how the names of an answer are written, before hyper has the answer.
    pub fn answer_spelled(&self, spelling: Option<Spelling>) {
        self.spelled().answer = spelling;
    }

    /// How the names of the head are written that goes out now, unless in lower case.
    pub(super) fn take_answer(&self) -> Option<Spelling> {
        self.spelled().answer.take()
    }

    fn spelled(&self) -> MutexGuard<'_, Spelled> {
        let spelled = self.shared.spelled.lock();
        spelled.unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the request with this number must be refused, if it must. Worth a look when the request begins,
    /// and again when its body cannot be read.
    #[must_use]
    pub fn refusal(&self, request: u64) -> Option<Violation> {
        match self.shared.refused.get() {
            Some((refused, violation)) if *refused == request => Some(*violation),
            Some(_) | None => None,
        }
    }

    /// Whether some of the body of this request has yet to come.
    #[must_use]
    pub fn owes(&self, request: u64) -> bool {
        self.shared.owes.load(Ordering::Relaxed) == request
    }

    /// Says of which request some has yet to come.
    pub(super) fn owed(&self, request: u64) {
        self.shared.owes.store(request, Ordering::Relaxed);
    }

    /// Says how a request was answered, before hyper has the answer. A request for an upgrade needs this,
    /// for the bytes behind it are held until then; for any other it does nothing.
    pub fn answered(&self, request: u64, status: StatusCode) {
        let is_switched = status == StatusCode::SWITCHING_PROTOCOLS;
        if is_switched {
            self.shared.haste.begin();
        }
        let answer = request << 1 | u64::from(is_switched);
        self.shared.answered.store(answer, Ordering::Release);
    }

    /// Asks to be told when all is written that hyper has now.
    pub fn must_flush(&self) {
        self.shared.haste.begin();
        self.shared.must_flush.store(true, Ordering::Relaxed);
    }

    /// Waits until that is so.
    pub fn poll_flushed(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.shared.must_flush.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        *self.flushed() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Says that all is written that hyper had.
    pub(super) fn is_flushed(&self) {
        if self.shared.must_flush.load(Ordering::Relaxed) {
            self.shared.must_flush.store(false, Ordering::Relaxed);
            if let Some(waiting) = self.flushed().take() {
                waiting.wake();
            }
        }
    }

    fn flushed(&self) -> MutexGuard<'_, Option<Waker>> {
        let flushed = self.shared.flushed.lock();
        flushed.unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which request is refused. The first refusal is the only one: nothing is read after it.
    pub(super) fn refuse(&self, request: u64, violation: Violation) {
        let _ = self.shared.refused.set((request, violation));
    }

    /// How a request was answered, if it was.
    pub(super) fn answer(&self, request: u64) -> Option<Answer> {
        let answer = self.shared.answered.load(Ordering::Acquire);
        match (answer >> 1 >= request, answer & 1) {
            (false, _) => None,
            (true, 0) => Some(Answer::Declined),
            (true, _) => Some(Answer::Switched),
        }
    }
}

/// The answer to a request for an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Switched,
    Declined,
}
