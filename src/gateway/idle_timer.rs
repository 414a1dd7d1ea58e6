//! Idle timeouts and heartbeats of sockets.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::pending::Heartbeat;
use crate::telemetry::clock;
use crate::upstream::ReadMode;

/// The state of a socket: busy with calls, or idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// At least one call is in progress.
    Open,
    /// No call is in progress.
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

/// The action to take when a deadline passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleAction {
    /// Send a ping.
    Ask,
    /// Do nothing.
    Wait,
    /// Close the socket.
    End,
}

/// The idle state of one socket.
#[derive(Debug)]
pub(super) struct IdleTimer {
    /// Time of the last received data, pongs included.
    heard: Instant,
    /// Time of the last message in either direction.
    used: Instant,
    asked: Option<Instant>,
    limit: Duration,
    beat: Option<Heartbeat>,
}

impl IdleTimer {
    /// Creates a timer with an idle timeout of `limit` and pings as configured in `beat`.
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

    /// Records received data.
    pub(super) fn on_received(&mut self) {
        self.heard = clock::now();
        self.asked = None;
    }

    /// Records a message in either direction.
    pub(super) fn on_activity(&mut self) {
        self.on_received();
        self.used = self.heard;
    }

    /// Returns the time of the next check.
    pub(super) fn next_deadline(&self) -> Instant {
        let idle = self.used + self.limit;
        let beat = self.beat.map(|beat| match self.asked {
            Some(asked) => asked + beat.within,
            None => self.heard + beat.every,
        });
        beat.map_or(idle, |beat| beat.min(idle))
    }

    /// Returns the action for a client whose reads may be paused.
    pub(super) fn action_when_paused(&mut self, intake: ReadMode, work: Activity) -> IdleAction {
        if intake == ReadMode::Shut {
            // While reads are paused, pongs are not seen. Writing the ping still detects a connection that is gone.
            self.on_activity();
            return IdleAction::Ask;
        }
        self.on_deadline(work)
    }

    /// Returns the action at a deadline. A socket with calls in progress is not idle, but its peer may be gone.
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
