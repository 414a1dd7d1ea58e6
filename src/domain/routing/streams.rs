//! The stage of a client's subscription to an event stream. Used by `explain::stream`, `routing::near` and
//! `gateway::event_stream`.

use http::HeaderMap;

use crate::domain::plan::Plan;
use crate::domain::rollout::{CallFacts, Caller, Decision, DecisionReason, Kill, Stage};
use crate::domain::stream::StreamMatch;

/// Decides the side for a client that requests a stream. Streams are never shadowed.
#[must_use]
pub fn decide_stream(
    plan: &Plan,
    (caller, headers): (Caller<'_>, &HeaderMap),
    followed: StreamMatch,
) -> Decision {
    let side = followed.side;
    if plan.rollout.kill == Kill::On {
        let stage = match plan.upstream_of_stream(followed.stream, side) {
            Some(_) => Stage::Passthrough,
            None => Stage::Translate,
        };
        return Decision::plain(stage, DecisionReason::Killed);
    }
    let name = plan.streams.all().get(followed.stream);
    plan.rollout.decide(&CallFacts {
        caller,
        route: name.map_or("", |stream| &stream.name),
        side,
        headers,
        session: None,
    })
}
