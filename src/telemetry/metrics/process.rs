//! What is known once for the whole process, and comes in at scrape.

use std::time::SystemTime;

use crate::domain::rollout::{Flag, Percent, Stage};
use crate::domain::side::Side;

/// What is known once for the whole process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Reloads that installed a plan; the first load is none.
    pub reloads_ok: u64,
    /// Reloads that were refused and left the plan as it was.
    pub reloads_failed: u64,
    /// When the live plan was loaded.
    pub loaded_at: SystemTime,
    /// The flags of the live plan; names are unique.
    pub flags: Vec<FlagState>,
    /// Log lines that found the queue full.
    pub log_lines_dropped: u64,
}

/// One flag of the live plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagState {
    /// Its name.
    pub flag: String,
    /// The glob of its clients.
    pub client: String,
    /// The glob of its routes.
    pub route: String,
    /// Its side; both where absent.
    pub side: Option<Side>,
    /// The stage that it gives.
    pub stage: Stage,
    /// To how many callers.
    pub percent: Percent,
}

impl From<&Flag> for FlagState {
    fn from(flag: &Flag) -> Self {
        FlagState {
            flag: flag.name.clone(),
            client: flag.client.as_str().to_owned(),
            route: flag.route.as_str().to_owned(),
            side: flag.side,
            stage: flag.stage,
            percent: flag.percent,
        }
    }
}
