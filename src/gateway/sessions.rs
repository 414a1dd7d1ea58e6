//! Sessions of calls. A session keeps the plan generation that it started with.
//!
//! A session belongs to its caller. Its key is the `Mcp-Session-Id` of an RPC call, or the value of the hole that its
//! route names with `affinity`.
//!
//! Used by the adapters of `gateway`'s protocols.

use http::HeaderMap;

use super::cancellation::MCP_SESSION;
use super::runtime_plan::RuntimePlan;
use super::session_table::Sessions;
use dualgauge_model::headers::first_value;
use dualgauge_model::jsonrpc::Call;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Caller, SessionStart};
use dualgauge_model::route::{Route, Segments};
use dualgauge_model::routing::RequestHead;
use dualgauge_model::translate::{MethodCall, TranslateContext, read_rest, read_rpc};
use dualgauge_patterns::pattern::{Bindings, BoundValue};

/// The sessions of one caller.
#[derive(Clone, Copy)]
pub(super) struct SessionLookup<'r, 'c> {
    pub(super) table: &'c Sessions,
    pub(super) runtime_plan: &'r RuntimePlan,
    pub(super) caller: Caller<'c>,
}

impl<'r> SessionLookup<'r, '_> {
    /// Returns the session of a REST call, if its route has one.
    pub(super) fn for_rest(
        self,
        head: RequestHead<'_>,
        route: Option<usize>,
    ) -> Option<SessionStart<'r>> {
        let plan = &self.runtime_plan.plan;
        let (route, hole) = affinity(plan, route)?;
        let segments = Segments::split(head.uri.path());
        let read = read_rest(route, head.rest(&segments), read_context(plan)).ok()?;
        let name = &route.facts.holes[hole].name;
        let value = bound_value(&read.bindings, hole)?;
        Some(self.start(name, value))
    }

    /// Returns the session of an RPC call, if it has one: that of its route, or else the MCP session.
    pub(super) fn for_rpc(
        self,
        headers: &HeaderMap,
        call: &Call,
        route: Option<usize>,
    ) -> Option<SessionStart<'r>> {
        let plan = &self.runtime_plan.plan;
        let Some((route, hole)) = affinity(plan, route) else {
            let id = first_value(headers, &MCP_SESSION)?.as_bytes();
            return Some(self.start(MCP_SESSION.as_str(), id));
        };
        let rpc_call = MethodCall::new(&call.method, call.params.as_ref()).with_headers(headers);
        let read = read_rpc(route, rpc_call, read_context(plan)).ok()?;
        let name = &route.facts.holes[hole].name;
        let value = bound_value(&read.bindings, hole)?;
        Some(self.start(name, value))
    }

    /// Returns the session of a WebSocket.
    pub(super) fn for_socket(self, number: u64) -> SessionStart<'r> {
        self.start("websocket", &number.to_be_bytes())
    }

    fn start(self, name: &str, value: &[u8]) -> SessionStart<'r> {
        let Caller {
            name: client, key, ..
        } = self.caller;
        let generation = self.runtime_plan.generation();
        SessionStart {
            past: self.runtime_plan.flag_history(),
            began: self
                .table
                .start_generation(((client, key), name, value), generation),
            now: self.table.now(),
        }
    }
}

fn affinity(plan: &Plan, route: Option<usize>) -> Option<(&Route, usize)> {
    let route = plan.routes.route(route?);
    Some((route, route.affinity?))
}

fn bound_value(bindings: &Bindings, hole: usize) -> Option<&[u8]> {
    match bindings.get(hole) {
        BoundValue::Value(json) => Some(json.as_bytes()),
        BoundValue::Unbound | BoundValue::Absent | BoundValue::Members(_) | BoundValue::Each(_) => {
            None
        }
    }
}

/// Returns a context for reading only, without a clock.
fn read_context(plan: &Plan) -> TranslateContext {
    TranslateContext {
        depth: plan.limits.depth,
        now: String::new,
    }
}
