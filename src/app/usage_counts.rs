//! The counts of this process since its start, for guards and for usage by client. Used by `run`.

use std::cell::RefCell;
use std::sync::Arc;

use super::control::ReportCounts;
use super::workers::WorkersHandle;
use crate::telemetry::metrics::{LabelNames, tallies, usage};
use dualgauge_model::lifecycle::Usage;
use dualgauge_model::plan::Plan;
use dualgauge_model::time::Timestamp;

/// The counts of this process.
#[derive(Debug)]
pub(super) struct UsageCounts {
    remote: WorkersHandle,
    names: Arc<LabelNames>,
    /// The name of this replica.
    replica: String,
    began: Timestamp,
    /// The start of counting for each route; borrowed only between awaits.
    routes: RefCell<Usage>,
}

impl UsageCounts {
    /// Starts counting with a plan.
    pub(super) fn begin(
        remote: WorkersHandle,
        names: Arc<LabelNames>,
        replica: String,
        plan: &Plan,
        at: Timestamp,
    ) -> UsageCounts {
        let counting = UsageCounts {
            remote,
            names,
            replica,
            began: at,
            routes: RefCell::default(),
        };
        counting.follow(plan, at);
        counting
    }

    /// Follows a new plan: removed routes are no longer counted, and new ones are counted from `at`.
    pub(super) fn follow(&self, plan: &Plan, at: Timestamp) {
        let mut routes = self.routes.borrow_mut();
        routes.keep(plan);
        routes.note_routes(plan.routes.routes(), at);
    }

    /// Returns the counts until `at`, limited to the names of a plan.
    pub(super) async fn counts(&self, plan: &Plan, at: Timestamp) -> ReportCounts {
        let snapshots = self.remote.snapshots().await;
        let mut counted = usage(&self.names, &snapshots);
        counted.merge(&self.routes.borrow());
        counted.note_observed(&self.replica, self.began, at);
        counted.keep(plan);
        ReportCounts {
            tallies: tallies(&self.names, &snapshots),
            usage: counted,
        }
    }
}
