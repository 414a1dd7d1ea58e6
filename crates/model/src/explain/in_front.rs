//! The routes that `after` puts before the route of a call, each with the reason why it did not take the call. Used by
//! `explain::rest` and `explain::rpc`.

use super::case::Case;
use crate::route::{MatchError, Route, Segments};
use crate::translate::{MethodCall, read_body, read_rest, read_rpc};
use dualgauge_patterns::json::Json;

/// Returns the routes before the route of a REST call that have its method and path.
pub(super) fn of_rest(case: &Case<'_>, index: usize, body: Option<&Json>) -> Vec<String> {
    let (routes, head) = (&case.plan.routes, case.request.head);
    let segments = Segments::split(head.uri.path());
    let shares_path = |front: &Route| {
        front.method == routes.route(index).method && front.rest_call.path.fits(&segments)
    };
    let misfit = |front: &Route| {
        let read = read_rest(front, head.rest(&segments), case.context);
        read.and_then(|mut reading| read_body(front, body, &mut reading))
            .err()
    };
    let fronts = routes
        .fronts(index)
        .iter()
        .map(|front| routes.route(*front));
    let fronts = fronts.filter(|front| shares_path(front));
    lines(case, fronts, misfit)
}

/// Returns the routes before the route of an RPC call that have its method.
pub(super) fn of_rpc(case: &Case<'_>, index: usize, call: MethodCall<'_>) -> Vec<String> {
    let routes = &case.plan.routes;
    let fronts = routes
        .fronts(index)
        .iter()
        .map(|front| routes.route(*front));
    let fronts = fronts.filter(|front| front.has_rpc_method(call.method));
    lines(case, fronts, |front| {
        read_rpc(front, call, case.context).err()
    })
}

fn lines<'r>(
    case: &Case<'_>,
    fronts: impl Iterator<Item = &'r Route>,
    misfit: impl Fn(&Route) -> Option<MatchError>,
) -> Vec<String> {
    let secrets = case.secrets();
    let lines = fronts.filter_map(|front| {
        let why = misfit(front)?;
        Some(secrets.hide(&format!("`{}` does not fit: {why}", front.name)))
    });
    lines.collect()
}
