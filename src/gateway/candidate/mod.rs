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

mod again;
mod bench;
mod desk;
mod pair;
mod run;
mod told;

use std::fmt;
use std::mem;

use bytes::Bytes;
use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderName, request, response};

use super::Arrival;
use super::intake::Content;
use super::record::Record;
use super::rpc::Repeated;
use crate::domain::candidates;
use crate::domain::compare::Skip;
use crate::domain::rollout::Stage;
use crate::upstream::{Missing, Tap, pinned};

pub(super) use bench::Bench;
pub use desk::{Clerk, Desk};
pub(super) use told::Told;

use again::Again;
use run::{Ready, skipped};
use told::{Source, headers_size, is_stream};

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
pub(super) struct Candidate(State);

enum State {
    Waiting(Box<Waiting>),
    /// Started, or skipped.
    Over,
}

struct Waiting {
    record: Record,
    call: Again,
    /// What the candidate is charged to.
    purse: Tap,
    control: Control,
}

/// What the client is answered.
enum Control {
    /// Nothing yet.
    Unknown,
    /// An answer that passes by.
    Passing { head: Told, body: Tap },
    /// This.
    Known(Told),
}

/// Lets a candidate follow a REST call, where one may. Gives where the body is to be copied as it passes by.
pub(super) fn behind_rest(
    record: &mut Record,
    stage: Stage,
    (head, body): (&request::Parts, &Content),
    arrival: &Arrival,
) -> Option<Tap> {
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
    let copy = record.worker().bench().tap();
    match body {
        Content::Read(whole) => copy.keeps(whole),
        Content::Coming(..) if body.is_empty() => copy.ends(),
        Content::Coming(..) => {}
    }
    let call = Again::rest(head, copy.clone(), arrival);
    follow(record, call);
    Some(copy)
}

/// Lets a candidate follow an RPC call, where one may and its letter allows it.
pub(super) fn behind_rpc(
    record: &mut Record,
    stage: Stage,
    may_repeat: Result<(), Skip>,
    repeated: impl FnOnce() -> Repeated,
) {
    if may_follow(record, stage, may_repeat) {
        follow(record, Again::Rpc(Box::new(repeated())));
    }
}

/// Whether a candidate may follow a call; where it may not, that is counted.
fn may_follow(record: &Record, stage: Stage, more: Result<(), Skip>) -> bool {
    let (Some(_), Some(index)) = (stage.candidate(), record.route()) else {
        return false;
    };
    let route = record.installed().plan.routes.route(index);
    let bench = record.worker().bench();
    let why_not = if let Some(skip) = candidates::never(route) {
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

fn follow(record: &mut Record, call: Again) {
    let purse = record.worker().bench().tap();
    let kept = purse.charge(call.size());
    let waiting = Waiting {
        record: record.again(),
        call,
        purse,
        control: Control::Unknown,
    };
    let candidate = Candidate(State::Waiting(Box::new(waiting)));
    if kept {
        record.is_followed_by(candidate);
    } else {
        candidate.skip(Skip::Large);
    }
}

impl Candidate {
    /// The client is answered by what passes by from now on, and it starts like this. Nothing follows where it has no end.
    pub(super) fn passes(&mut self, head: &response::Parts) {
        if is_stream(&head.headers) {
            return mem::replace(self, Candidate(State::Over)).skip(Skip::Stream);
        }
        let State::Waiting(waiting) = &mut self.0 else {
            return;
        };
        let body = waiting.record.worker().bench().tap();
        let fits = body.charge(headers_size(&head.headers));
        let head = Told {
            status: head.status,
            headers: head.headers.clone(),
            body: Bytes::new(),
            source: Source::Server,
        };
        waiting.control = Control::Passing { head, body };
        if !fits {
            mem::replace(self, Candidate(State::Over)).skip(Skip::Large);
        }
    }

    /// A piece of the answer passes by.
    pub(super) fn piece(&mut self, piece: &[u8]) {
        if let State::Waiting(waiting) = &mut self.0
            && let Control::Passing { body, .. } = &waiting.control
        {
            body.passes(piece);
        }
    }

    /// The client is answered with this.
    pub(super) fn beside(mut self, control: Told) -> Candidate {
        if let State::Waiting(waiting) = &mut self.0 {
            if !waiting.purse.charge(control.size()) {
                self.skip(Skip::Large);
                return Candidate(State::Over);
            }
            waiting.control = Control::Known(control);
        }
        self
    }

    /// The answer has broken off: there is nothing to compare with, but whether the other way serves can be told.
    pub(super) fn start_beside_nothing(self) {
        self.beside(Told::broken()).start();
    }

    /// The client has been answered: this begins when the answer is sent.
    pub(super) fn start(mut self) {
        let State::Waiting(waiting) = mem::replace(&mut self.0, State::Over) else {
            return;
        };
        let tasks = waiting.record.worker().tasks().clone();
        if let Some(ready) = waiting.ready() {
            tasks.start_behind(pinned(|| ready.run()));
        }
    }

    /// Nothing is to be run.
    pub(super) fn skip(mut self, why: Skip) {
        if let State::Waiting(waiting) = mem::replace(&mut self.0, State::Over) {
            skipped(&waiting.record, why);
        }
    }
}

impl Waiting {
    /// What can run now, if it can.
    fn ready(self) -> Option<Ready> {
        let bench = self.record.worker().bench().clone();
        let mut held = None;
        let control = match self.control {
            Control::Known(told) => Ok(told),
            Control::Passing { head, body } => {
                body.ends();
                let whole = body.whole();
                held = Some(body);
                match whole {
                    Ok(whole) => Ok(Told {
                        body: self.call.own_part(whole),
                        ..head
                    }),
                    Err(Missing::Large | Missing::Unfinished) => Err(Skip::Large),
                }
            }
            Control::Unknown => Err(Skip::Cancelled),
        };
        let checked = control.and_then(|control| {
            self.call.is_whole()?;
            if bench.is_closed() {
                return Err(Skip::Drain);
            }
            Ok((control, bench.seat().ok_or(Skip::Busy)?))
        });
        match checked {
            Ok((control, seat)) => Some(Ready {
                record: self.record,
                call: self.call,
                purse: self.purse,
                control,
                seat,
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
        if let State::Waiting(waiting) = mem::replace(&mut self.0, State::Over) {
            let closed = waiting.record.worker().bench().is_closed();
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
