//! When a call began, which may be before its record did.

use tokio::time::Instant;

use super::{Record, Took};
use crate::domain::calendar::Moment;

/// When a call began, and how long it was waited for.
#[derive(Debug, Clone, Copy)]
pub(in crate::gateway) struct Beginning {
    started: Instant,
    /// The same moment, by the time of day.
    at: Moment,
    took: Took,
}

impl Record {
    /// The call began with the request that brought it, whose body had to be read first.
    pub(in crate::gateway) fn since(mut self: Box<Self>, beginning: Beginning) -> Box<Record> {
        (self.started, self.at, self.took) = (beginning.started, beginning.at, beginning.took);
        self
    }

    /// When and how it began.
    pub(in crate::gateway) fn beginning(&self) -> Beginning {
        Beginning {
            started: self.started,
            at: self.at,
            took: self.took,
        }
    }
}
