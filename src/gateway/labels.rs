//! Label handles of a plan, resolved once at installation, so that no call looks up a name. Used by `runtime_plan`.

use crate::telemetry::metrics::{LabelId, LabelNames};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::OTHER;

/// The label handles of a plan, each list in the order of the plan.
#[derive(Debug, Clone)]
pub(super) struct PlanLabels {
    pub(super) routes: Vec<LabelId>,
    pub(super) streams: Vec<LabelId>,
    pub(super) clients: Vec<LabelId>,
    pub(super) flags: Vec<LabelId>,
    pub(super) prefixes: Vec<LabelId>,
    pub(super) upstreams: Vec<LabelId>,
    pub(super) unrouted: LabelId,
    pub(super) other: LabelId,
}

impl PlanLabels {
    pub(super) fn new(plan: &Plan, names: &LabelNames) -> PlanLabels {
        let routes = plan.routes.routes().iter();
        let streams = plan.streams.all().iter();
        let clients = plan.rollout.clients.all().iter();
        let flags = plan.rollout.flags.iter();
        let upstreams = plan.upstreams.all.iter();
        let prefixes = plan.lifecycle.prefixes.all().iter();
        PlanLabels {
            routes: routes.map(|route| names.intern(&route.name)).collect(),
            streams: streams.map(|stream| names.intern(&stream.name)).collect(),
            clients: clients.map(|client| names.intern(&client.name)).collect(),
            flags: flags.map(|flag| names.intern(&flag.name)).collect(),
            prefixes: prefixes.map(|prefix| names.intern(prefix)).collect(),
            upstreams: upstreams.map(|own| names.intern(&own.name)).collect(),
            unrouted: names.intern("unrouted"),
            other: names.intern(OTHER),
        }
    }
}
