//! Checks of the upstreams of a route.
//!
//! Used by `compile::upstreams`.

use crate::config::problem::Problem;
use crate::config::raw::{RawConfig, RawRoute, RawServer};
use dualgauge_model::plan::Upstreams;
use dualgauge_patterns::side::Side;

/// Checks that the upstreams of a route serve its calls.
pub(super) fn check(
    raw: &RawConfig,
    upstreams: &Upstreams,
    route: &RawRoute,
    found: [Option<usize>; 2],
    problems: &mut Vec<Problem>,
) {
    check_stage(route, found, problems);
    check_subscription(raw, route, found, problems);
    check_rpc_headers(raw, upstreams, route, found[1], problems);
}

/// Checks that a subscription has a connection on which its notifications come.
fn check_subscription(
    raw: &RawConfig,
    route: &RawRoute,
    [_, rpc]: [Option<usize>; 2],
    problems: &mut Vec<Problem>,
) {
    let Some(subscription) = &route.subscription else {
        return;
    };
    let upstream = rpc.and_then(|index| raw.upstreams.get(index));
    let has_link = upstream.is_some_and(|upstream| match &upstream.server {
        RawServer::Socket(_) | RawServer::Command(_) => true,
        RawServer::Url(_) | RawServer::Mcp(_) => false,
    });
    if !has_link {
        let message = "its notifications come over a WebSocket or from a child process, and the RPC upstream of the route is neither";
        let hint =
            "name an upstream with a `ws://` or `wss://` URL, or with `command`, in `upstream`";
        problems.push(subscription.problem(message).hint(hint));
    }
}

/// Checks that the RPC upstream of a route with `rpc_headers` gets headers with each call.
fn check_rpc_headers(
    raw: &RawConfig,
    upstreams: &Upstreams,
    route: &RawRoute,
    rpc: Option<usize>,
    problems: &mut Vec<Problem>,
) {
    let upstream = rpc.and_then(|rpc| upstreams.all.get(rpc));
    let Some(upstream) = upstream.filter(|upstream| upstream.transport.link().is_some()) else {
        return;
    };
    if route.rpc_headers.is_empty() {
        return;
    }
    let message = format!(
        "`rpc_headers` cannot reach the upstream `{}`: calls over a link have no headers",
        upstream.name
    );
    let hint = "remove `rpc_headers`, or name an upstream with an `http://` url";
    let key = format!("{}.rpc_headers", route.key);
    problems.push(raw.places.problem(&key, message).hint(hint));
}

/// Checks that calls of a route with `stage = "passthrough"` have a server to pass to.
fn check_stage(route: &RawRoute, found: [Option<usize>; 2], problems: &mut Vec<Problem>) {
    let Some(stage) = &route.stage else { return };
    let from = route.from.as_ref().map(|from| from.value);
    for (side, upstream) in Side::ALL.into_iter().zip(found) {
        if upstream.is_none() && from.is_none_or(|from| from == side) {
            let message = format!("no upstream is on the `{side}` side, so its calls cannot pass");
            let hint = "add an `[upstream.NAME]` of this side, or remove `stage`";
            problems.push(stage.problem(message).hint(hint));
        }
    }
}
