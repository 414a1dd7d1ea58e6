//! The stage of a client's subscription to an event stream. Used by `explain::stream`, `routing::near` and
//! `gateway::event_stream`.

use crate::plan::Plan;
use crate::rollout::{Decision, DecisionReason, Kill, Requester, Stage};
use crate::stream::StreamMatch;

/// Decides the side for a client that requests a stream. Streams are never shadowed.
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
