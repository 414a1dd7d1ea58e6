//! The start of a call, which may precede the creation of its record. Used by `rpc`.

use tokio::time::Instant;

use super::{ClientTime, Record};
use dualgauge_model::time::Timestamp;

/// The start of a call, with the time spent waiting for the client.
#[derive(Debug, Clone, Copy)]
pub(in crate::gateway) struct CallStart {
    started: Instant,
    /// Wall-clock time of `started`.
    wall_time: Timestamp,
    client_time: ClientTime,
}

impl Record {
    /// Sets the start of the call to that of its request, whose body had to be read first.
    pub(in crate::gateway) fn with_start(mut self: Box<Self>, start: CallStart) -> Box<Record> {
        (self.started, self.wall_time, self.client_time) =
            (start.started, start.wall_time, start.client_time);
        self
    }

    /// Returns the start of the call.
    pub(in crate::gateway) fn call_start(&self) -> CallStart {
        CallStart {
            started: self.started,
            wall_time: self.wall_time,
            client_time: self.client_time,
        }
    }
}
