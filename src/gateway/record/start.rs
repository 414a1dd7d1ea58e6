//! The start of a call, which may precede the creation of its record.

use tokio::time::Instant;

use super::{ClientTime, Record};
use crate::domain::time::Timestamp;

/// The start of a call, with the time spent waiting for the client.
#[derive(Debug, Clone, Copy)]
pub(in crate::gateway) struct CallStart {
    started: Instant,
    /// Wall-clock time of `started`.
    at: Timestamp,
    took: ClientTime,
}

impl Record {
    /// Sets the start of the call to that of its request, whose body had to be read first.
    pub(in crate::gateway) fn since(mut self: Box<Self>, beginning: CallStart) -> Box<Record> {
        (self.started, self.wall_time, self.took) =
            (beginning.started, beginning.at, beginning.took);
        self
    }

    /// Returns the start of the call.
    pub(in crate::gateway) fn beginning(&self) -> CallStart {
        CallStart {
            started: self.started,
            at: self.wall_time,
            took: self.took,
        }
    }
}
