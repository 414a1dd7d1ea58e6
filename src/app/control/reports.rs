//! What this process has counted, left where a restart and other replicas find it, and what all have counted.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Control;
use super::guards::Watched;
use crate::config::raw::RawConfig;
use crate::domain::rollout::{Source, Tallies};
use crate::store::{CommitError, Report, Reports, boot};
use crate::telemetry::clock::millis;

/// How often a report is written into a folder; to a server it goes at each look, for the guards of all replicas rule
/// on the counts of all.
const WRITE_EVERY_MS: u64 = 10_000;
/// A process whose report is older has ended, and its report is folded into the archive.
const GONE_AFTER_MS: u64 = 300_000;

/// Who reports, and when last.
#[derive(Debug)]
pub(super) struct Reporting {
    own: Source,
    since: u64,
    left: Option<u64>,
    /// What other processes have left, as far as this one knows.
    others: Vec<Counted>,
    archive: Counted,
}

/// What one process has counted, as it is stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Counted {
    tallies: Tallies,
    guards: std::collections::BTreeMap<String, Watched>,
}

/// What this process has counted since it began.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// By the names of guarded flags.
    pub tallies: Tallies,
}

impl Reporting {
    pub(super) fn of(config: &RawConfig, at: SystemTime) -> Reporting {
        Reporting {
            own: (config.rollout.replica.value.clone(), boot()),
            since: millis(at),
            left: None,
            others: Vec::new(),
            archive: Counted::default(),
        }
    }

    fn is_due(&self, at: u64, shared: bool) -> bool {
        shared || self.left.is_none_or(|left| at.saturating_sub(left) >= WRITE_EVERY_MS)
    }
}
