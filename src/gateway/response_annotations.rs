//! Headers that the proxy adds to responses: the deprecation of the route and, if configured, the decision that served
//! the call.
//!
//! Used by `rest` and `rpc`.

use http::{HeaderMap, HeaderValue};

use super::call_context::CallContext;
use dualgauge_model::plan::Plan;
use dualgauge_patterns::side::Side;

/// The annotations of one response.
pub(super) struct ResponseAnnotations {
    route: Option<usize>,
    side: Side,
    decision: Option<HeaderValue>,
}

impl ResponseAnnotations {
    /// Creates the annotations of a call that was served.
    pub(super) fn new(context: &CallContext) -> ResponseAnnotations {
        let rollout = &context.runtime_plan().plan.rollout;
        let decision = rollout.decision_header.as_ref().map(|_| {
            let stage = context.stage().map_or("none", |stage| stage.as_str());
            format!("{stage}; {}", rollout.describe(context.why()))
        });
        ResponseAnnotations {
            route: context.route(),
            side: context.side(),
            // A flag name may contain characters that a header value cannot.
            decision: decision.and_then(|decision| HeaderValue::try_from(decision).ok()),
        }
    }

    /// Writes the annotations to the response headers.
    pub(super) fn write(self, plan: &Plan, headers: &mut HeaderMap) {
        plan.lifecycle.announce(self.route, self.side, headers);
        if let (Some(name), Some(decision)) = (&plan.rollout.decision_header, self.decision) {
            headers.insert(name.clone(), decision);
        }
    }
}
