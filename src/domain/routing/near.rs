//! Calls whose path is that of no route, but that another program may take for a call of one.
//!
//! One rule holds for all of them: the call passes where the calls of those routes pass for this client. Where the client
//! is moved on one of them, or one of them is retired, the call is refused: else it would be a way around the flag.

use http::HeaderMap;

use super::decide;
use crate::domain::failure::Failure;
use crate::domain::plan::Plan;
use crate::domain::rejections;
use crate::domain::rollout::{Caller, Path, Stage};
use crate::domain::route::Likeness;
use crate::domain::side::Side;
use crate::domain::stream::{self, StreamMatch};
use crate::domain::time::Timestamp;

/// The routes and streams that another program may take a path for.
#[derive(Debug, Clone, Default)]
pub struct NearMiss {
    /// The routes, by their place, and how the path is like theirs.
    pub routes: Vec<(usize, Likeness)>,
    /// The streams.
    pub streams: Vec<StreamMatch>,
}

impl NearMiss {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.streams.is_empty()
    }

    /// What the call is refused with where no call of no route passes.
    pub(super) fn first(&self, plan: &Plan) -> Option<Failure> {
        let route = self.routes.first();
        let route = route.map(|(place, likeness)| refused(plan, *place, *likeness));
        let stream = || {
            self.streams
                .first()
                .and_then(|near| near_stream(plan, *near))
        };
        route.or_else(stream)
    }
}

/// Checks that a call passes though its path is near to routes and streams.
///
/// # Errors
/// A [`Failure`] that names the first of them on which the client is moved, or which is retired.
pub fn pass_near(
    plan: &Plan,
    (caller, headers): (Caller<'_>, &HeaderMap),
    nearby: &NearMiss,
    at: Timestamp,
) -> Result<(), Failure> {
    let passes = |stage: Stage| stage.control() == Some(Path::Old);
    for (route, likeness) in &nearby.routes {
        let asked = (Some(*route), Side::Rest);
        let decision = decide(plan, (caller, headers), asked, at, None);
        if !passes(decision.stage) {
            return Err(refused(plan, *route, *likeness));
        }
    }
    for followed in &nearby.streams {
        let decision = stream::decide(plan, (caller, headers), *followed);
        if !passes(decision.stage)
            && let Some(failure) = near_stream(plan, *followed)
        {
            return Err(failure);
        }
    }
    Ok(())
}

fn refused(plan: &Plan, route: usize, likeness: Likeness) -> Failure {
    rejections::near_route(plan.routes.route(route), likeness)
}

fn near_stream(plan: &Plan, followed: StreamMatch) -> Option<Failure> {
    let stream = plan.streams.all().get(followed.stream);
    stream.map(rejections::near_stream)
}
