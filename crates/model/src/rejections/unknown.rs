//! Rejections of RPC calls without a route.

use crate::failure::{Failure, Reason};
use crate::jsonrpc::Call;
use crate::plan::Plan;
use crate::route::{Route, TOOL_CALL};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Pattern;

/// Returns the failure of an RPC call without a route. An unknown tool is an invalid param of a known method (MCP,
/// "Tools").
#[must_use]
pub fn unknown_method(plan: &Plan, call: &Call) -> Failure {
    if let Some(message) = wrong_tool(plan, call) {
        return Failure::new(Reason::InvalidParams, message);
    }
    let method = &*call.method;
    let shown: String = method.chars().take(100).collect();
    let shown = shown.escape_debug();
    let message = if plan.routes.knows_rpc(method) {
        format!(
            "no route matches the method `{shown}` with these params: every route for it requires a literal value that the call does not have"
        )
    } else {
        format!("no route matches the method `{shown}`")
    };
    Failure::new(Reason::RouteNotFound, message)
}

/// Returns the fault of the tool's name, if tools have routes: it is missing, or no route has it.
fn wrong_tool(plan: &Plan, call: &Call) -> Option<String> {
    if &*call.method != TOOL_CALL || !plan.routes.knows_rpc(TOOL_CALL) {
        return None;
    }
    let params = call.params.as_ref();
    let Some(name_value) = params.and_then(|params| params.member("name")) else {
        return Some("params/name: it is required".to_owned());
    };
    let Some(Ok(name)) = name_value.text() else {
        return Some("params/name: it must be the name of a tool, a string".to_owned());
    };
    if plan
        .routes
        .routes()
        .iter()
        .any(|route| has_tool(route, &name_value))
    {
        return None;
    }
    let shown: String = name.chars().take(100).collect();
    Some(format!("unknown tool: {}", shown.escape_debug()))
}

/// Returns whether a route may belong to the tool with this name.
fn has_tool(route: &Route, name: &Json) -> bool {
    let Pattern::Object(params) = &route.rpc_call.params else {
        return false;
    };
    let mut members = params.members.iter();
    let pattern = members.find(|(member, _)| &**member == "name");
    match pattern {
        Some((_, Pattern::Literal(literal))) => literal.text() == name.text(),
        Some(_) => true,
        None => false,
    }
}
