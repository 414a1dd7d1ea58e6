//! For how long the other end of a socket has said nothing, and what is done about it.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::pending::Heartbeat;
use crate::telemetry::clock;
use crate::upstream::ReadMode;

/// Whether anything is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Somebody waits.
    Open,
    /// Nobody does.
    Done,
}

impl Activity {
    pub(super) const fn new(count: usize) -> Activity {
        match count {
            0 => Activity::Done,
            _ => Activity::Open,
        }
    }
}

/// What is done about an end that says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleAction {
    /// It is asked for a sign of life.
    Ask,
    /// Nothing.
    Wait,
    /// It is let go.
    End,
}

/// For how long an end has said nothing.
#[derive(Debug)]
pub(super) struct IdleTimer {
    /// The last sign of life.
    heard: Instant,
    /// The last message, either way.
    used: Instant,
    asked: Option<Instant>,
    limit: Duration,
    beat: Option<Heartbeat>,
}

impl IdleTimer {
    /// It may be without a message for `limit`, and is asked for signs of life as `beat` says.
    pub(super) fn new(limit: Duration, beat: Option<Heartbeat>) -> IdleTimer {
        let now = clock::now();
        IdleTimer {
            heard: now,
            used: now,
            asked: None,
            limit,
            beat,
        }
    }

    /// There is a sign of life.
    pub(super) fn on_received(&mut self) {
        self.heard = clock::now();
        self.asked = None;
    }

    /// There is a message, either way.
    pub(super) fn on_activity(&mut self) {
        self.on_received();
        self.used = self.heard;
    }

    /// When it is to be looked at again.
    pub(super) fn next_deadline(&self) -> Instant {
        let idle = self.used + self.limit;
        let beat = self.beat.map(|beat| match self.asked {
            Some(asked) => asked + beat.within,
            None => self.heard + beat.every,
        });
        beat.map_or(idle, |beat| beat.min(idle))
    }

    /// The same of a client of whom perhaps nothing is read.
    pub(super) fn deadline(&mut self, intake: ReadMode, work: Activity) -> IdleAction {
        if intake == ReadMode::Shut {
            // Signs of life are not read; one that is gone does not take the question, either.
            self.on_activity();
            return IdleAction::Ask;
        }
        self.on_deadline(work)
    }

    /// One whose calls are in progress is not idle, but may be gone.
    pub(super) fn on_deadline(&mut self, work: Activity) -> IdleAction {
        let now = clock::now();
        if self.used + self.limit <= now {
            if work == Activity::Done {
                return IdleAction::End;
            }
            self.used = now;
        }
        let Some(beat) = self.beat else {
            return IdleAction::Wait;
        };
        match self.asked {
            Some(asked) if asked + beat.within <= now => IdleAction::End,
            Some(_) => IdleAction::Wait,
            None if self.heard + beat.every <= now => {
                self.asked = Some(now);
                IdleAction::Ask
            }
            None => IdleAction::Wait,
        }
    }
}
