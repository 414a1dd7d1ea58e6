//! The decision of a call: the stage that its flags choose. Used by the adapters of `gateway`'s protocols.

use super::call_context::CallContext;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Requester, Stage};
use dualgauge_model::routing;

/// Decides the stage of a call and records it. Unrouted calls pass through.
pub(super) fn decide(
    context: &mut CallContext,
    plan: &Plan,
    requester: Requester<'_>,
    selected: Option<usize>,
) -> Stage {
    let decision = routing::decide(
        plan,
        requester,
        selected,
        context.side(),
        context.wall_time(),
    );
    let stage = decision.stage;
    context.set_decision(selected, decision);
    stage
}
