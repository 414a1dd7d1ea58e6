//! Retired routes that the REST server may still serve, at a path that matches no route. Used by `cli::check::verdict`.

use http::{HeaderMap, Uri};

use crate::lenient::{LenientPaths, Target, sample, spellings};
use crate::plan::Plan;
use crate::rollout::Stage;
use crate::route::{Route, Wire};
use crate::routing::{RequestHead, RouteMatch, match_route};
use dualgauge_patterns::side::Side;

/// A call that passes through, and that a lenient server may take for a call of a retired route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bypass {
    /// The index of the route.
    pub route: usize,
    /// The call: `GET /Items`.
    pub call: String,
}

/// Returns one call for each retired route that can be bypassed, in the order of the routes. Each call was tried: it
/// passes as a call of no route.
#[must_use]
pub fn bypasses(plan: &Plan) -> Vec<Bypass> {
    let routes = plan.routes.routes().iter().enumerate();
    let mut retired = routes
        .filter(|(_, route)| is_retired(plan, route))
        .peekable();
    if plan.irregular.is_some() || retired.peek().is_none() {
        return Vec::new();
    }
    let rpc = &plan.face.paths;
    let paths = LenientPaths::new(&plan.routes, &plan.streams, &plan.locals, rpc);
    let found = retired.filter_map(|(index, route)| {
        let path = spellings(&sample(&route.rest_call.path)).into_iter();
        let mut path = path.filter(|path| passes(plan, &paths, index, path));
        let call = format!("{} {}", route.method, path.next()?);
        Some(Bypass { route: index, call })
    });
    found.collect()
}

fn is_retired(plan: &Plan, route: &Route) -> bool {
    let rollout = &plan.rollout;
    let mut flags = rollout.flags.iter().filter(|flag| {
        flag.stage == Stage::Retired && flag.side.is_none_or(|side| side == Side::Rest)
    });
    let is_rest = route.rest_protocol == Wire::Http && route.enters_from(Side::Rest);
    is_rest
        && (rollout.defaults.rest == Stage::Retired
            || flags.any(|flag| flag.route.fits(&route.name)))
}

/// Returns true when a path matches no route, but a lenient server may take it for the path of the route.
fn passes(plan: &Plan, paths: &LenientPaths, index: usize, path: &str) -> bool {
    let method = &plan.routes.route(index).method;
    let Ok(uri) = path.parse::<Uri>() else {
        return false;
    };
    let head = RequestHead {
        method,
        uri: &uri,
        headers: &HeaderMap::new(),
    };
    let is_own = |target| target == Target::Route(index);
    matches!(match_route(plan, head), Ok(RouteMatch::Unrouted))
        && paths.find(method, path, is_own).is_some()
}
