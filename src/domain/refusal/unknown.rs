//! RPC calls that no route takes.

use crate::domain::failure::{Failure, Reason};
use crate::domain::json::Json;
use crate::domain::jsonrpc::Call;
use crate::domain::pattern::Pattern;
use crate::domain::plan::Plan;
use crate::domain::route::{Route, TOOL_CALL};

/// No route takes an RPC call. A tool that is not there is a wrong param of a method that is (MCP, "Tools").
#[must_use]
pub fn unknown_method(plan: &Plan, call: &Call) -> Failure {
    if let Some(tool) = unknown_tool(plan, call) {
        return Failure::new(Reason::InvalidParams, format!("unknown tool: {tool}"));
    }
    let method = &*call.method;
    let shown: String = method.chars().take(100).collect();
    let shown = shown.escape_debug();
    let message = if plan.routes.knows_rpc(method) {
        format!(
            "no route takes the method `{shown}` with these params: each that has it wants a certain value in them, which the call does not have"
        )
    } else {
        format!("no route takes the method `{shown}`")
    };
    Failure::new(Reason::RouteNotFound, message)
}

/// The name of the tool that no route has, where other tools have routes.
fn unknown_tool(plan: &Plan, call: &Call) -> Option<String> {
    if &*call.method != TOOL_CALL || !plan.routes.knows_rpc(TOOL_CALL) {
        return None;
    }
    let said = call.params.as_ref()?.member("name")?;
    let name = said.text()?.ok()?;
    if plan
        .routes
        .routes()
        .iter()
        .any(|route| has_tool(route, &said))
    {
        return None;
    }
    let shown: String = name.chars().take(100).collect();
    Some(shown.escape_debug().to_string())
}

/// Whether a route may be of the tool with this name.
fn has_tool(route: &Route, name: &Json) -> bool {
    let Pattern::Object(params) = &route.rpc_call.params else {
        return false;
    };
    let mut members = params.members.iter();
    let said = members.find(|(member, _)| &**member == "name");
    match said {
        Some((_, Pattern::Literal(literal))) => literal.text() == name.text(),
        Some(_) => true,
        None => false,
    }
}
