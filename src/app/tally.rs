//! Who has called what, as far as this process has seen it since it began.

use std::cell::RefCell;
use std::sync::Arc;

use super::workers::Remote;
use crate::domain::calendar::Moment;
use crate::domain::lifecycle::Usage;
use crate::domain::plan::Plan;
use crate::telemetry::metrics::{Names, usage};

/// What this process is called among those that count.
const REPLICA: &str = "this process";

/// The counts of this process.
#[derive(Debug)]
pub(super) struct Tally {
    remote: Remote,
    names: Arc<Names>,
    began: Moment,
    /// Since when each route is counted; borrowed only between awaits.
    routes: RefCell<Usage>,
}

impl Tally {
    /// Counts that begin with a plan.
    pub(super) fn begin(remote: Remote, names: Arc<Names>, plan: &Plan, at: Moment) -> Tally {
        let tally = Tally {
            remote,
            names,
            began: at,
            routes: RefCell::default(),
        };
        tally.follow(plan, at);
        tally
    }

    /// Another plan is in force: routes that it does not have are no longer counted, and new ones from now on.
    pub(super) fn follow(&self, plan: &Plan, at: Moment) {
        let mut routes = self.routes.borrow_mut();
        routes.keep(plan);
        routes.note_routes(plan.routes.routes(), at);
    }

    /// The counts until a moment, by the names of a plan.
    pub(super) async fn usage(&self, plan: &Plan, at: Moment) -> Usage {
        let snapshots = self.remote.snapshots().await;
        let mut counted = usage(&self.names, &snapshots);
        counted.merge(&self.routes.borrow());
        counted.note_watched(REPLICA, self.began, at);
        counted.keep(plan);
        counted
    }
}
