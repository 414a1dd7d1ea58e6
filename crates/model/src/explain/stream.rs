//! Explanations of requests for a stream of events.

use super::case::Case;
use super::view::{Decided, Explanation, NamedRoute, SentRequest};
use crate::failure::Failure;
use crate::rejections;
use crate::rollout::Way;
use crate::routing::decide_stream;
use crate::stream::StreamMatch;
use dualgauge_patterns::side::Side;

/// Explains a request for a stream.
pub(super) fn explain(case: &Case<'_>, followed: StreamMatch) -> Explanation {
    let mut explanation = case.begin();
    let Some(declared) = case.plan.streams.all().get(followed.stream) else {
        return explanation;
    };
    let decision = decide_stream(case.plan, case.requester(), followed);
    let line = |side: Side| format!("GET {}", declared.path(side).as_str());
    explanation.route = Some(NamedRoute {
        name: declared.name.clone(),
        rest: line(Side::Rest),
        rpc: line(Side::Rpc),
    });
    explanation.decision = Some(Decided {
        stage: decision.stage.as_str().into(),
        why: case.plan.rollout.describe(decision.why).into_owned(),
        flag: case.flag(decision.why),
        changed: None,
        candidate: decision
            .stage
            .candidate()
            .map(|_| "none: streams are not opened twice to be compared".into()),
        passed_over: case.passed_over(&declared.name),
    });
    let way = decision.stage.control();
    let sends = match way {
        None => Err(rejections::retired_stream(declared, followed.side)),
        Some(way) => case
            .guard(decision.stage)
            .and_then(|()| sends(case, followed, way)),
    };
    match sends {
        Ok(sends) => {
            explanation.sends = Some(sends);
            explanation
        }
        Err(failure) => case.refuse(explanation, failure),
    }
}

fn sends(case: &Case<'_>, followed: StreamMatch, way: Way) -> Result<SentRequest, Failure> {
    let plan = case.plan;
    let uri = case.request.head.uri;
    let declared = plan.streams.all().get(followed.stream);
    let (side, path, note) = match way {
        Way::Old => {
            let path = Some(uri.path().to_owned());
            (followed.side, path, "unchanged, byte for byte")
        }
        Way::New => {
            let side = followed.side.other();
            let path = declared.and_then(|declared| declared.other_path(followed.side, uri.path()));
            (side, path, "each event is translated")
        }
    };
    let path = path.unwrap_or_else(|| "/".to_owned());
    let upstream = plan.upstream_of_stream(followed.stream, side);
    let upstream = upstream.ok_or_else(|| rejections::no_upstream(side))?;
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    Ok(case.passes(upstream, &target, note))
}
