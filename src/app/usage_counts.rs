//! What this process has counted since it began: for guards, and who has called what.

use std::cell::RefCell;
use std::sync::Arc;

use super::control::ReportCounts;
use super::workers::WorkersHandle;
use crate::domain::lifecycle::Usage;
use crate::domain::plan::Plan;
use crate::domain::time::Timestamp;
use crate::telemetry::metrics::{LabelNames, tallies, usage};

/// The counts of this process.
#[derive(Debug)]
pub(super) struct UsageCounts {
    remote: WorkersHandle,
    names: Arc<LabelNames>,
    /// What this process is called among those that count.
    replica: String,
    began: Timestamp,
    /// Since when each route is counted; borrowed only between awaits.
    routes: RefCell<Usage>,
}

impl UsageCounts {
    /// Counts that begin with a plan.
    pub(super) fn begin(
        (remote, names): (WorkersHandle, Arc<LabelNames>),
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

    /// Another plan is in force: routes that it does not have are no longer counted, and new ones from now on.
    pub(super) fn follow(&self, plan: &Plan, at: Timestamp) {
        let mut routes = self.routes.borrow_mut();
        routes.keep(plan);
        routes.note_routes(plan.routes.routes(), at);
    }

    /// The counts until a moment, by the names of a plan.
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
