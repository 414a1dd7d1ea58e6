//! For how long the other end of a socket has said nothing, and what is done about it.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::pending::Heartbeat;
use crate::telemetry::clock;
use crate::upstream::Intake;

/// Whether anything is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Somebody waits.
    Open,
    /// Nobody does.
    Done,
}

impl Work {
    pub(super) const fn of(count: usize) -> Work {
        match count {
            0 => Work::Done,
            _ => Work::Open,
        }
    }
}

/// What is done about an end that says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ring {
    /// It is asked for a sign of life.
    Ask,
    /// Nothing.
    Wait,
    /// It is let go.
    End,
}

/// For how long an end has said nothing.
#[derive(Debug)]
pub(super) struct Silence {
    /// The last sign of life.
    heard: Instant,
    /// The last message, either way.
    used: Instant,
    asked: Option<Instant>,
    limit: Duration,
    beat: Option<Heartbeat>,
}

impl Silence {
    /// It may be without a message for `limit`, and is asked for signs of life as `beat` says.
    pub(super) fn new(limit: Duration, beat: Option<Heartbeat>) -> Silence {
        let now = clock::now();
        Silence {
            heard: now,
            used: now,
            asked: None,
            limit,
            beat,
        }
    }

    /// There is a sign of life.
    pub(super) fn heard(&mut self) {
        self.heard = clock::now();
        self.asked = None;
    }

    /// There is a message, either way.
    pub(super) fn used(&mut self) {
        self.heard();
        self.used = self.heard;
    }

    /// When it is to be looked at again.
    pub(super) fn alarm(&self) -> Instant {
        let idle = self.used + self.limit;
        let beat = self.beat.map(|beat| match self.asked {
            Some(asked) => asked + beat.within,
            None => self.heard + beat.every,
        });
        beat.map_or(idle, |beat| beat.min(idle))
    }

    /// The same of a client of whom perhaps nothing is read.
    pub(super) fn ring_at(&mut self, intake: Intake, work: Work) -> Ring {
        if intake == Intake::Shut {
            // Signs of life are not read; one that is gone does not take the question, either.
            self.used();
            return Ring::Ask;
        }
        self.ring(work)
    }

    /// One whose calls are in progress is not idle, but may be gone.
    pub(super) fn ring(&mut self, work: Work) -> Ring {
        let now = clock::now();
        if self.used + self.limit <= now {
            if work == Work::Done {
                return Ring::End;
            }
            self.used = now;
        }
        let Some(beat) = self.beat else {
            return Ring::Wait;
        };
        match self.asked {
            Some(asked) if asked + beat.within <= now => Ring::End,
            Some(_) => Ring::Wait,
            None if self.heard + beat.every <= now => {
                self.asked = Some(now);
                Ring::Ask
            }
            None => Ring::Wait,
        }
    }
}
