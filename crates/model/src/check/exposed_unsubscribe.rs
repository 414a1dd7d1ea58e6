//! Subscriptions that JSON-RPC clients can end for others: their calls go over the same link, on which the server knows
//! no clients. Used by `cli::check::verdict`.

use crate::plan::{Plan, Sharing};
use dualgauge_patterns::side::Side;

/// Returns the name of the upstream to which JSON-RPC clients can send the call that ends the subscriptions of a route.
#[must_use]
pub fn exposed_unsubscribe(plan: &Plan, route: usize) -> Option<&str> {
    let rule = plan.routes.route(route).subscription.as_ref()?;
    let index = plan.upstreams.of(Some(route), Side::Rpc)?;
    let is_reached = plan.upstreams.of(None, Side::Rpc) == Some(index);
    let upstream = plan.upstreams.all.get(index)?;
    let link = upstream.transport.link()?;
    let is_shared = upstream.transport.sharing() == Sharing::Shared;
    let is_blocked = link.blocked_methods.contains(&rule.unsubscribe);
    (is_reached && is_shared && !is_blocked).then_some(upstream.name.as_str())
}
