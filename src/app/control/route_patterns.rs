//! The patterns of a route in the notation of explanations, for the admin API.

use crate::server::admin::{OutcomePatterns, PatternPart, RoutePatterns};
use dualgauge_model::form::BodyFormat;
use dualgauge_model::outcome::{BodyPattern, OutcomeRow, RpcReplyPattern, ToolValue};
use dualgauge_model::plan::Plan;
use dualgauge_model::redact::HIDDEN;
use dualgauge_model::route::{HeaderItem, Route, Wire};
use dualgauge_patterns::pattern::as_key;

/// Returns the patterns of both sides. Those that a short form implies are written out.
pub(super) fn patterns(plan: &Plan, route: &Route) -> RoutePatterns {
    let rows = route.outcomes.rows().iter();
    RoutePatterns {
        holes: route.hole_notations(),
        rest: rest(plan, route),
        rpc: rpc(plan, route),
        outcomes: rows
            .map(|row| outcome(plan, route.rest_protocol, row))
            .collect(),
    }
}

fn rest(plan: &Plan, route: &Route) -> Vec<PatternPart> {
    let (call, wire) = (&route.rest_call, route.rest_protocol);
    let mut parts = Parts::of(plan, wire);
    match wire {
        Wire::Http => parts.add("rest", route.rest.clone()),
        Wire::Old => parts.add("path", route.rest.clone()),
        Wire::Frame => {}
    }
    for path in call.other_paths.iter().filter_map(|path| path.literal()) {
        parts.add("path", path);
    }
    for item in &call.query {
        parts.add_member("query", &item.key, item.words.to_notation());
    }
    if let Some(slot) = &call.other_query {
        parts.add_member("query", "...", slot.to_reference());
    }
    parts.add_headers("headers", &call.headers);
    for prefix in &call.header_prefixes {
        let name = format!("{}...", prefix.prefix);
        parts.add_member("headers", &name, prefix.slot.to_reference());
    }
    if let Some(parameter) = &call.message_parameter {
        parts.add("parameter", parameter.clone());
    }
    if call.format != BodyFormat::Json {
        parts.add("body_format", call.format.as_str().to_owned());
    }
    if let Some(body) = &call.body {
        parts.add("body", body.to_notation());
    }
    parts.list
}

fn rpc(plan: &Plan, route: &Route) -> Vec<PatternPart> {
    let mut parts = Parts::of(plan, Wire::Http);
    parts.add("rpc", route.rpc.clone());
    parts.add_headers("rpc_headers", &route.rpc_call.headers);
    parts.add("params", route.rpc_call.params.to_notation());
    if route.outcomes.tool_value() != ToolValue::Whole {
        parts.add("result", "tool".to_owned());
    }
    parts.list
}

fn outcome(plan: &Plan, wire: Wire, row: &OutcomeRow) -> OutcomePatterns {
    let mut rest = Parts::of(plan, wire);
    if wire != Wire::Frame {
        rest.add("status", row.rest.status.to_notation());
    }
    rest.add_headers("headers", &row.rest.headers);
    match &row.rest.body {
        BodyPattern::Nothing => {}
        BodyPattern::Anything => rest.add("body", "any".to_owned()),
        BodyPattern::Json(body) => rest.add("body", body.to_notation()),
        BodyPattern::Text(text) => rest.add("text", text.to_notation()),
    }
    let mut rpc = Parts::of(plan, Wire::Http);
    match &row.rpc {
        RpcReplyPattern::Result(result) => rpc.add("result", result.to_notation()),
        RpcReplyPattern::Error {
            code,
            message,
            data,
        } => {
            rpc.add("error.code", code.to_notation());
            for (name, pattern) in [("error.message", message), ("error.data", data)] {
                if let Some(pattern) = pattern {
                    rpc.add(name, pattern.to_notation());
                }
            }
        }
    }
    OutcomePatterns {
        key: row.key.clone(),
        name: row.order.name.clone(),
        after: row.order.after.clone(),
        holes: row.hole_notations(),
        rest: rest.list,
        rpc: rpc.list,
        lossy: row.lossy.clone(),
    }
}

/// The parts of one side, named by the keys of the configuration.
struct Parts<'p> {
    plan: &'p Plan,
    wire: Wire,
    list: Vec<PatternPart>,
}

impl<'p> Parts<'p> {
    fn of(plan: &'p Plan, wire: Wire) -> Parts<'p> {
        Parts {
            plan,
            wire,
            list: Vec::new(),
        }
    }

    /// Adds a part. An old dialect has its parts in its own table, and a frame is only a body.
    fn add(&mut self, key: &str, pattern: String) {
        let name = match self.wire {
            Wire::Http => key.to_owned(),
            Wire::Old => format!("old.{key}"),
            Wire::Frame => Wire::Frame.as_str().to_owned(),
        };
        self.list.push(PatternPart { name, pattern });
    }

    fn add_member(&mut self, key: &str, member: &str, pattern: String) {
        self.add(&format!("{key}.{}", as_key(member)), pattern);
    }

    /// Adds headers. Patterns of secret headers may have secrets in their literals, and are hidden.
    fn add_headers(&mut self, key: &str, headers: &[HeaderItem]) {
        for header in headers {
            let pattern = if self.plan.is_secret(&header.name) {
                HIDDEN.to_owned()
            } else {
                header.words.to_notation()
            };
            self.add_member(key, header.name.as_str(), pattern);
        }
    }
}
