//! The reports of a process, and the counts of others as last read. Used by `control::state`.

use super::report_age::ReportAges;
use super::report_counts::ReportCounts;
use super::reporter_id::ReporterId;
use crate::config::raw::RawConfig;
use crate::store::Versioned;
use dualgauge_model::lifecycle::Usage;

/// The replica name of a process that shares its store with no other.
const ALONE: &str = "local";

/// The reporting state: the own id and last report, and the counts of others.
#[derive(Debug)]
pub(super) struct Reporting {
    pub(super) own: ReporterId,
    pub(super) left: Option<u64>,
    pub(super) silence: ReportAges,
    /// The usage counted by others, including processes that have ended.
    pub(super) others: Usage,
    /// The folded counts of ended processes, as last read.
    pub(super) archive: Versioned,
    pub(super) counts: ReportCounts,
}

impl Reporting {
    pub(super) fn from_config(config: &RawConfig) -> Reporting {
        let store = config.rollout.store.as_ref();
        let replica = store.map_or_else(|| ALONE.to_owned(), |store| store.replica.value.clone());
        Reporting {
            own: ReporterId::new(replica),
            left: None,
            silence: ReportAges::default(),
            others: Usage::default(),
            archive: Versioned::default(),
            counts: ReportCounts::default(),
        }
    }
}
