//! Idle timeouts and heartbeats of sockets. Used by `gateway` and `legacy_socket::connection`.

use std::time::Duration;

use tokio::time::Instant;

use crate::telemetry::clock;
use dualgauge_model::pending::Heartbeat;
use dualgauge_net::ReadMode;

/// The state of a socket: busy with calls, or idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// At least one call is in progress.
    Busy,
    /// No call is in progress.
    Idle,
}

impl Activity {
    /// Returns `Busy` if any of `count` calls is in progress.
    #[must_use]
    pub const fn new(count: usize) -> Activity {
        match count {
            0 => Activity::Idle,
            _ => Activity::Busy,
        }
    }
}

/// The action to take when a deadline passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleAction {
    /// Send a ping.
    Ping,
    /// Do nothing.
    Wait,
    /// Close the socket.
    Close,
}

/// The idle state of one socket.
#[derive(Debug)]
pub struct IdleTimer {
    /// Time of the last received data, pongs included.
    received_at: Instant,
    /// Time of the last message in either direction.
    active_at: Instant,
    pinged_at: Option<Instant>,
    limit: Duration,
    heartbeat: Option<Heartbeat>,
}

impl IdleTimer {
    /// Creates a timer with an idle timeout of `limit` and pings as configured in `heartbeat`.
    #[must_use]
    pub fn new(limit: Duration, heartbeat: Option<Heartbeat>) -> IdleTimer {
        let now = clock::now();
        IdleTimer {
            received_at: now,
            active_at: now,
            pinged_at: None,
            limit,
            heartbeat,
        }
    }

    /// Records received data.
    pub fn on_received(&mut self) {
        self.received_at = clock::now();
        self.pinged_at = None;
    }

    /// Records a message in either direction.
    pub fn on_activity(&mut self) {
        self.on_received();
        self.active_at = self.received_at;
    }

    /// Returns the time of the next check.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let idle = self.active_at + self.limit;
        let heartbeat = self.heartbeat.map(|heartbeat| match self.pinged_at {
            Some(pinged_at) => pinged_at + heartbeat.within,
            None => self.received_at + heartbeat.every,
        });
        heartbeat.map_or(idle, |heartbeat| heartbeat.min(idle))
    }

    /// Returns the action for a client whose reads may be paused.
    pub fn action_when_paused(&mut self, read_mode: ReadMode, activity: Activity) -> IdleAction {
        if read_mode == ReadMode::Shut {
            // While reads are paused, pongs are not seen. Writing the ping still detects a connection that is gone.
            self.on_activity();
            return IdleAction::Ping;
        }
        self.on_deadline(activity)
    }

    /// Returns the action at a deadline. A socket with calls in progress is not idle, but its peer may be gone.
    pub fn on_deadline(&mut self, activity: Activity) -> IdleAction {
        let now = clock::now();
        if self.active_at + self.limit <= now {
            if activity == Activity::Idle {
                return IdleAction::Close;
            }
            self.active_at = now;
        }
        let Some(heartbeat) = self.heartbeat else {
            return IdleAction::Wait;
        };
        match self.pinged_at {
            Some(pinged_at) if pinged_at + heartbeat.within <= now => IdleAction::Close,
            Some(_) => IdleAction::Wait,
            None if self.received_at + heartbeat.every <= now => {
                self.pinged_at = Some(now);
                IdleAction::Ping
            }
            None => IdleAction::Wait,
        }
    }
}
