//! When a call began, which may be before its record did.

use tokio::time::Instant;

use super::{ClientTime, Record};
use crate::domain::time::Timestamp;

/// When a call began, and how long it was waited for.
#[derive(Debug, Clone, Copy)]
pub(in crate::gateway) struct CallStart {
    started: Instant,
    /// The same moment, by the time of day.
    at: Timestamp,
    took: ClientTime,
}

impl Record {
    /// The call began with the request that brought it, whose body had to be read first.
    pub(in crate::gateway) fn since(mut self: Box<Self>, beginning: CallStart) -> Box<Record> {
        (self.started, self.wall_time, self.took) =
            (beginning.started, beginning.at, beginning.took);
        self
    }

    /// When and how it began.
    pub(in crate::gateway) fn beginning(&self) -> CallStart {
        CallStart {
            started: self.started,
            at: self.wall_time,
            took: self.took,
        }
    }
}
