//! Calls that match no route, but whose path another program may read as that of a route.
//!
//! Rule: such a call passes if calls of those routes pass through for this client. If one of them is translated or
//! retired for the client, the call is rejected, because it would otherwise bypass the flag.
//!
//! Used by `explain::rest`, `routing` and `gateway::rest`.

use super::decision::{decide, decide_stream};
use super::head::RequestHead;
use crate::failure::Failure;
use crate::lenient::Target;
use crate::plan::Plan;
use crate::rejections;
use crate::rollout::{Requester, Stage, Way};
use crate::route::{Likeness, Segments};
use crate::stream::StreamMatch;
use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

/// The routes and streams that another program may read a path as.
#[derive(Debug, Clone, Default)]
pub struct NearMiss {
    /// The indexes of the routes, and how the path resembles theirs.
    pub routes: Vec<(usize, Likeness)>,
    /// The streams.
    pub streams: Vec<StreamMatch>,
}

impl NearMiss {
    /// Returns true if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.streams.is_empty()
    }

    /// Returns the failure for the call where unrouted calls do not pass.
    pub(super) fn first(&self, plan: &Plan) -> Option<Failure> {
        let route = self.routes.first();
        let route = route.map(|(index, likeness)| refused(plan, *index, *likeness));
        let stream = || {
            self.streams
                .first()
                .and_then(|near| near_stream(plan, *near))
        };
        route.or_else(stream)
    }
}

/// Checks that a call may pass although its path resembles those of routes and streams. The requester has no session.
///
/// # Errors
///
/// Fails with the name of the first one that is translated or retired for the client.
pub fn pass_near(
    plan: &Plan,
    requester: Requester<'_>,
    nearby: &NearMiss,
    at: Timestamp,
) -> Result<(), Failure> {
    let passes = |stage: Stage| stage.control() == Some(Way::Old);
    for (route, likeness) in &nearby.routes {
        let decision = decide(plan, requester, Some(*route), Side::Rest, at);
        if !passes(decision.stage) {
            return Err(refused(plan, *route, *likeness));
        }
    }
    for followed in &nearby.streams {
        let decision = decide_stream(plan, requester, *followed);
        if !passes(decision.stage)
            && let Some(failure) = near_stream(plan, *followed)
        {
            return Err(failure);
        }
    }
    Ok(())
}

/// Checks that an unrouted call may pass by its path. With `unrouted_irregular = "pass"`, every path passes.
///
/// # Errors
///
/// Fails with the name of the route that the path may address.
pub(super) fn check_regular(
    plan: &Plan,
    head: RequestHead<'_>,
    nearby: &NearMiss,
) -> Result<(), Failure> {
    let Some(paths) = &plan.irregular else {
        return Ok(());
    };
    let path = head.uri.path();
    // A trailing slash is no irregularity: `pass_near` decides for the routes that differ only in it.
    let is_tidy = Segments::split(path).irregular().is_none();
    let counts = |target: Target| match target {
        Target::Route(index) => {
            let mut near = nearby.routes.iter();
            !(is_tidy && near.any(|(route, _)| *route == index))
        }
        Target::Stream(index) => {
            let mut near = nearby.streams.iter();
            !(is_tidy && near.any(|followed| followed.stream == index))
        }
        Target::Rpc => plan.face.find(path).is_none(),
        Target::Local => true,
    };
    match paths.find(head.method, path, counts) {
        Some(target) => Err(rejections::irregular_path(plan, target)),
        None => Ok(()),
    }
}

fn refused(plan: &Plan, route: usize, likeness: Likeness) -> Failure {
    rejections::near_route(plan.routes.route(route), likeness)
}

fn near_stream(plan: &Plan, followed: StreamMatch) -> Option<Failure> {
    let stream = plan.streams.all().get(followed.stream);
    stream.map(rejections::near_stream)
}
