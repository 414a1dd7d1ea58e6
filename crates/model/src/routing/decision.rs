//! The stage of a call that begins now, and of a subscription to an event stream.
//!
//! Used by `model` and `gateway`.

use crate::lifecycle::Window;
use crate::plan::Plan;
use crate::rollout::{Decision, DecisionReason, Kill, Requester, Stage, Way};
use crate::stream::StreamMatch;
use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

/// Returns the decision for a call that begins now. A call without a route passes through.
#[must_use]
pub fn decide(
    plan: &Plan,
    requester: Requester<'_>,
    route: Option<usize>,
    side: Side,
    at: Timestamp,
) -> Decision {
    let Some(index) = route else {
        return Decision::plain(Stage::Passthrough, DecisionReason::Unrouted);
    };
    if plan.rollout.kill == Kill::On {
        // Without an upstream on the old way, only the new way remains.
        let stage = match plan.upstream_for(route, side) {
            Some(_) => Stage::Passthrough,
            None => Stage::Translate,
        };
        return Decision::plain(stage, DecisionReason::Killed);
    }
    if browned_out(plan, route, side, at).is_some() {
        return Decision::plain(Stage::Retired, DecisionReason::Brownout);
    }
    let route = plan.routes.route(index);
    if route.always_passes {
        return Decision::plain(Stage::Passthrough, DecisionReason::Route);
    }
    let decision = plan.rollout.decide(&requester.call(&route.name, side));
    served(plan, decision, index, side)
}

/// Decides the side for a client that requests a stream. Streams are never shadowed, and the requester has no session.
#[must_use]
pub fn decide_stream(plan: &Plan, requester: Requester<'_>, followed: StreamMatch) -> Decision {
    let side = followed.side;
    if plan.rollout.kill == Kill::On {
        let stage = match plan.upstream_of_stream(followed.stream, side) {
            Some(_) => Stage::Passthrough,
            None => Stage::Translate,
        };
        return Decision::plain(stage, DecisionReason::Killed);
    }
    let name = plan.streams.all().get(followed.stream);
    let name = name.map_or("", |stream| &stream.name);
    plan.rollout.decide(&requester.call(name, side))
}

/// Replaces the old way with the new one if no upstream serves it, also for a comparison. This happens on a REST side whose upstream accepts
/// only HTTP or only frames, for calls of the other kind.
fn served(plan: &Plan, decision: Decision, route: usize, side: Side) -> Decision {
    let ways = [decision.stage.control(), decision.stage.candidate()];
    let old = ways.contains(&Some(Way::Old));
    let alone = side == Side::Rest && plan.upstream_for(Some(route), side).is_none();
    let stage = match old && alone {
        true => Stage::Translate,
        false => decision.stage,
    };
    Decision { stage, ..decision }
}

/// Returns the brownout window in which calls of a side of a route are rejected now, if any.
#[must_use]
pub fn browned_out(plan: &Plan, route: Option<usize>, side: Side, at: Timestamp) -> Option<Window> {
    let window = plan.lifecycle.of(route, side)?.browned_out(at)?;
    let name = &plan.routes.route(route?).name;
    plan.rollout.brownouts.hold(name).then_some(window)
}
