//! The runtime state, without its operations. Used throughout `control`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::evaluation_log::EvaluationLog;
use super::file_watch::FileWatch;
use super::guarded_flag::Guards;
use super::reporting::Reporting;
use super::restart_only::RestartOnly;
use super::source::FlagSource;
use crate::config::load::Sources;
use crate::config::problem::Problems;
use crate::config::raw::{RawConfig, RawFlag};
use crate::store::{Health, Late, SnapshotDir, Store, StoreError};
use crate::telemetry::metrics::{EvaluationCounts, FlagSourceState, GuardTrips};
use dualgauge_model::lifecycle::Timeline;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::Kill;
use dualgauge_model::rollout::overrides::{ChangeMeta, Overrides};

/// The runtime state and its operations. It reads and writes files, so it must not run on a thread that serves calls.
#[derive(Debug)]
pub struct Control {
    pub(super) sources: Sources,
    /// The configuration from the files, with restart-only settings as they were at the start. Boxed, because it is
    /// large and the owning task is moved.
    pub(super) config: Box<RawConfig>,
    /// The restart-only settings from the files.
    pub(super) fixed: RestartOnly,
    /// The flags of the flags file.
    pub(super) file_flags: Vec<RawFlag>,
    /// The flags of the flags file, with run-time changes applied.
    pub(super) flags: Vec<RawFlag>,
    /// The source of flags. Boxed, because the owning task is moved.
    pub(super) source: Box<FlagSource>,
    pub(super) overrides: Overrides,
    /// The revision of the overrides in the store.
    pub(super) revision: u64,
    pub(super) store: Store,
    pub(super) known: Known,
    /// The folder for copies of a shared store's state.
    pub(super) copies: Option<SnapshotDir>,
    pub(super) plan: Arc<Plan>,
    pub(super) reloads: Reloads,
    pub(super) watch: FileWatch,
    /// The problems of the files, if the files are not in force.
    pub(super) refused: Option<Problems>,
    pub(super) guards: Guards,
    pub(super) reporting: Reporting,
    /// The evaluations for applications.
    pub(super) evaluations: EvaluationCounts,
    /// The evaluations that failed, for the log.
    pub(super) evaluation_log: EvaluationLog,
    /// The calls and clients over time, since this process began.
    pub(super) timeline: Timeline,
    /// The flags that a guard has tripped but could not store, with the reasons.
    pub(super) tripped_here: BTreeMap<String, String>,
    /// The kill switch, while it acts and is not stored.
    pub(super) thrown: Option<KillRequest>,
    /// The stale changes that still have to be dropped.
    pub(super) void: StaleChanges,
    /// The reason why the stored state is not in force, or the state in force is not stored.
    pub(super) trouble: Option<String>,
}

/// The flags whose changes are to be dropped, and the reasons.
pub(super) type StaleChanges = BTreeMap<String, &'static str>;

/// A kill switch that acts in this process and is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KillRequest {
    /// The author of the change.
    pub(super) by: ChangeMeta,
    /// The reason why it is not stored; `None` before the first attempt has ended.
    pub(super) error: Option<String>,
}

/// The origin of the overrides: whether the store has ever been read by this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// The store was read.
    Yes,
    /// The store was unavailable since the start, and a copy from an earlier process applies.
    Copied {
        /// The time of the copy, in RFC 3339.
        at: String,
    },
    /// The store was unavailable since the start, and there is no copy, so the flipped flags are unknown.
    NotYet,
}

/// The counts of reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloads {
    /// Reloads that put a new plan in force.
    pub succeeded: u64,
    /// Reloads that left the previous plan in force.
    pub failed: u64,
    /// The time at which the files of the plan in force were read.
    pub loaded_at: SystemTime,
}

/// The facts about the state for the metrics page, in addition to the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The counts of reloads.
    pub reloads: Reloads,
    /// The trips of guards, enforced or dry-run.
    pub trips: Vec<GuardTrips>,
    /// The last decision of each guard, by the name of the flag.
    pub rulings: Vec<(String, &'static str)>,
    /// The evaluations for applications.
    pub evaluations: EvaluationCounts,
    /// The state of the kill switch.
    pub kill: Kill,
    /// The health of the store.
    pub store: Health,
    /// The state of the source of flags, if there is one.
    pub source: Option<FlagSourceState>,
}

/// The reason why the process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The files, the variables or the arguments have problems.
    #[error("the configuration has problems")]
    Config(#[from] Problems),
    /// The files could not be read in time.
    #[error("the configuration cannot be read")]
    Late(#[from] Late),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored state cannot be read as overrides.
    #[error(
        "the runtime changes have an unknown format; repair them, or move them away to start anew"
    )]
    Overrides(#[from] serde_json::Error),
}

/// The trigger of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// An explicit request: always answered in the log, but the same problems are not listed twice.
    Asked,
    /// The file watch: known problems are not logged again.
    Watched,
}

/// The ownership of the stored state at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tenure {
    /// This process owns it.
    Own,
    /// The process that this one replaces still owns it.
    Awaited,
}
