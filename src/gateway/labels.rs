//! The names of a plan as labels, resolved once when it is installed.

use crate::domain::plan::Plan;
use crate::telemetry::metrics::{LabelId, Names};

/// The label handles of a plan, resolved once.
#[derive(Debug)]
pub(super) struct PlanLabels {
    pub(super) routes: Vec<LabelId>,
    pub(super) streams: Vec<LabelId>,
    pub(super) clients: Vec<LabelId>,
    pub(super) flags: Vec<LabelId>,
    pub(super) prefixes: Vec<LabelId>,
    pub(super) unrouted: LabelId,
    pub(super) other: LabelId,
}

impl PlanLabels {
    pub(super) fn of(plan: &Plan, names: &Names) -> PlanLabels {
        PlanLabels {
            routes: plan
                .routes
                .routes()
                .iter()
                .map(|route| names.intern(&route.name))
                .collect(),
            streams: plan
                .streams
                .all()
                .iter()
                .map(|stream| names.intern(&stream.name))
                .collect(),
            clients: plan
                .rollout
                .clients
                .all()
                .iter()
                .map(|client| names.intern(&client.name))
                .collect(),
            flags: plan
                .rollout
                .flags
                .iter()
                .map(|flag| names.intern(&flag.name))
                .collect(),
            prefixes: plan
                .lifecycle
                .prefixes
                .all()
                .iter()
                .map(|prefix| names.intern(prefix))
                .collect(),
            unrouted: names.intern("unrouted"),
            other: names.intern(crate::domain::rollout::OTHER),
        }
    }
}
