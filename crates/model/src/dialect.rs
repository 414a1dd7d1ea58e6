//! The dialect of a body posted to an RPC path: JSON-RPC 2.0, or that of an old RPC server.
//!
//! Laws: a message with `jsonrpc: "2.0"` is old only if an old route reads all of it; any other object is old if it has
//! the literals of an old route, or if an old server takes messages without a route. Serving and `explain` use the same
//! function.
//!
//! Used by `explain`, `routing` and `gateway`.

use bytes::Bytes;

use super::failure::{Failure, FailureCodes, Reason};
use super::jsonrpc::ResponseReply;
use super::outcome::{RestAnswer, error_object};
use super::plan::{Plan, Unrouted};
use super::rollout::{Requester, Way};
use super::route::{OverlapGroup, Route, Segments};
use super::routing::{self, RequestHead};
use super::time::Timestamp;
use super::translate::{RestHead, TranslateContext, read_body, read_rest};
use dualgauge_patterns::json::{Json, JsonKind, unmarked};
use dualgauge_patterns::side::Side;

/// Returns true when a body posted to an RPC path is a message of an old dialect, or a batch of such messages.
#[must_use]
pub fn is_old(plan: &Plan, head: RequestHead<'_>, text: &Bytes) -> bool {
    let segments = Segments::split(head.uri.path());
    let Some(group) = plan.routes.old_at(head.method, &segments) else {
        return false;
    };
    // RFC 8259 §8.1 lets a reader ignore a byte order mark.
    let Ok(json) = Json::parse(unmarked(text.clone()), plan.limits.depth) else {
        return false;
    };
    let reader = DialectReader { plan, head, group };
    match json.kind() {
        JsonKind::Object => reader.is_old(&json),
        JsonKind::Array => {
            let mut elements = json.elements().map(|place| json.piece(place)).peekable();
            elements.peek().is_some() && elements.all(|element| reader.is_old(&element))
        }
        JsonKind::String | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => false,
    }
}

/// Returns the old route at a path whose server takes messages without a route, if one does.
#[must_use]
pub fn unrouted_server(plan: &Plan, head: RequestHead<'_>) -> Option<usize> {
    if !plan.routes.old().any || plan.unrouted == Unrouted::Reject {
        return None;
    }
    let segments = Segments::split(head.uri.path());
    let group = plan.routes.old_at(head.method, &segments)?;
    let is_served = |route: &usize| {
        plan.routes.route(*route).is_old() && plan.upstream_for(Some(*route), Side::Rest).is_some()
    };
    group.routes().iter().copied().find(is_served)
}

/// Selects the route of a call by its body. A batch of old messages has none.
///
/// # Errors
///
/// Fails if no route matches and the call may not pass, and for a batch with a message that may not pass.
pub fn by_body(
    plan: &Plan,
    group: &OverlapGroup,
    sender: OldSender<'_>,
    body: Option<&Json>,
) -> Result<Option<usize>, Failure> {
    let is_old = || {
        let mut routes = group.routes().iter();
        plan.routes.old().any && routes.any(|route| plan.routes.route(*route).is_old())
    };
    let OldSender { head, .. } = sender;
    let batch = body.filter(|body| body.kind() == JsonKind::Array && is_old());
    let Some(batch) = batch else {
        return routing::by_body(plan, group, head, body);
    };
    for place in batch.elements() {
        let message = batch.piece(place);
        let route = routing::by_body(plan, group, head, Some(&message))?;
        let decision = routing::decide(plan, sender.requester, route, Side::Rest, sender.at);
        if decision.stage.control() != Some(Way::Old) {
            let message = "a batch of an old dialect is not translated; send each message alone";
            return Err(Failure::new(Reason::InvalidRequest, message));
        }
    }
    Ok(None)
}

/// Returns the response with a failure of the proxy in the dialect of an old call; `None` if no row describes it.
#[must_use]
pub fn failure(
    route: &Route,
    message: OldRequest<'_>,
    failure: &Failure,
    codes: &FailureCodes,
    context: TranslateContext,
) -> Option<RestAnswer> {
    if !route.is_old() {
        return None;
    }
    let body = Json::parse(unmarked(message.body.clone()), context.depth).ok();
    let read = || {
        let mut reading = read_rest(route, message.head, context).ok()?;
        read_body(route, body.as_ref(), &mut reading).ok()?;
        reading.settle().ok()?;
        Some(reading.bindings)
    };
    let call = read().unwrap_or_else(|| {
        let body = body.clone().unwrap_or(Json::literal("null"));
        route.bindings_with_id_only(&body)
    });
    let error = ResponseReply::Error(error_object(failure, codes));
    let translated = route.outcomes.rpc_to_rest(error, &call, context);
    translated.row.map(|_| translated.answer)
}

/// A request with an old message.
#[derive(Debug, Clone, Copy)]
pub struct OldRequest<'a> {
    /// The head.
    pub head: RestHead<'a>,
    /// The body, decoded; empty if there is none.
    pub body: &'a Bytes,
}

/// The sender of an old message.
#[derive(Debug, Clone, Copy)]
pub struct OldSender<'a> {
    /// The sender.
    pub requester: Requester<'a>,
    /// The head of the request.
    pub head: RequestHead<'a>,
    /// The time at which the request began.
    pub at: Timestamp,
}

struct DialectReader<'a> {
    plan: &'a Plan,
    head: RequestHead<'a>,
    group: &'a OverlapGroup,
}

impl DialectReader<'_> {
    fn is_old(&self, message: &Json) -> bool {
        if message.kind() != JsonKind::Object {
            return false;
        }
        let routes = &self.plan.routes;
        let segments = Segments::split(self.head.uri.path());
        if has_version(message) {
            let reads = || routes.reads_old(self.group, self.head.rest(&segments), message);
            return routes.old().with_version && reads();
        }
        routes.resembles_old(self.group, message) || unrouted_server(self.plan, self.head).is_some()
    }
}

/// Returns true when a message has the version of JSON-RPC 2.0.
fn has_version(message: &Json) -> bool {
    let version = message.member("jsonrpc");
    version.is_some_and(|version| version.as_bytes() == b"\"2.0\"")
}
