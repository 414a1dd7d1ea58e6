//! What this process has counted since it began: for guards, and who has called what.

use std::cell::RefCell;
use std::sync::Arc;

use super::control::Counts;
use super::workers::Remote;
use crate::domain::calendar::Moment;
use crate::domain::lifecycle::Usage;
use crate::domain::plan::Plan;
use crate::telemetry::metrics::{Names, tallies, usage};

/// The counts of this process.
#[derive(Debug)]
pub(super) struct Counting {
    remote: Remote,
    names: Arc<Names>,
    /// What this process is called among those that count.
    replica: String,
    began: Moment,
    /// Since when each route is counted; borrowed only between awaits.
    routes: RefCell<Usage>,
}

impl Counting {
    /// Counts that begin with a plan.
    pub(super) fn begin(
        (remote, names): (Remote, Arc<Names>),
        replica: String,
        plan: &Plan,
        at: Moment,
    ) -> Counting {
        let counting = Counting {
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
    pub(super) fn follow(&self, plan: &Plan, at: Moment) {
        let mut routes = self.routes.borrow_mut();
        routes.keep(plan);
        routes.note_routes(plan.routes.routes(), at);
    }

    /// The counts until a moment, by the names of a plan.
    pub(super) async fn counts(&self, plan: &Plan, at: Moment) -> Counts {
        let snapshots = self.remote.snapshots().await;
        let mut counted = usage(&self.names, &snapshots);
        counted.merge(&self.routes.borrow());
        counted.note_watched(&self.replica, self.began, at);
        counted.keep(plan);
        Counts {
            tallies: tallies(&self.names, &snapshots),
            usage: counted,
        }
    }
}
