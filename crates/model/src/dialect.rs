//! The dialect of a body posted to an RPC path: JSON-RPC 2.0, or that of an old RPC server.
//!
//! Laws: a message with `jsonrpc: "2.0"` is old only if an old route reads all of it; any other object is old if it has
//! the literals of an old route, or if an old server takes messages without a route. Serving and `explain` use the same
//! function.
//!
//! Used by `explain`, `routing` and `gateway`.

use std::slice;

use bytes::Bytes;

use super::failure::{Failure, FailureCodes, Reason};
use super::jsonrpc::ResponseReply;
use super::outcome::{RestAnswer, error_object};
use super::plan::{Plan, Unrouted};
use super::rollout::{Stage, Way};
use super::route::{
    OverlapGroup, Query, Route, Segments, has_version, message_in, read_headers, read_url,
};
use super::routing::{self, RequestHead};
use super::translate::{RestHead, TranslateContext};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::{Bindings, BoundValue, PatternReader};
use dualgauge_patterns::side::Side;

/// The transport of a message of an old dialect, as log and metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OldTransport {
    /// An HTTP request with one message.
    Http,
    /// An HTTP request with several messages.
    Batch,
    /// A message on a WebSocket.
    Socket,
}

impl OldTransport {
    /// Every transport.
    pub const ALL: [OldTransport; 3] = [
        OldTransport::Http,
        OldTransport::Batch,
        OldTransport::Socket,
    ];

    /// Returns the word used in log and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            OldTransport::Http => "http",
            OldTransport::Batch => "batch",
            OldTransport::Socket => "websocket",
        }
    }
}

/// Returns true when a path has old routes, so that the messages posted to it may be old.
#[must_use]
pub fn may_be_old(plan: &Plan, head: RequestHead<'_>) -> bool {
    // Few tables have old routes, so that is checked before the path.
    plan.routes.old().any && {
        let segments = Segments::split(head.uri.path());
        plan.routes.old_at(head.method, &segments).is_some()
    }
}

/// Returns true when a body posted to an RPC path is a message of an old dialect, or a batch of such messages.
#[must_use]
pub fn is_old(plan: &Plan, head: RequestHead<'_>, json: &Json) -> bool {
    let segments = Segments::split(head.uri.path());
    let Some(group) = plan.routes.old_at(head.method, &segments) else {
        return false;
    };
    let is_old = |message: &Json| {
        let routes = &plan.routes;
        message.kind() == JsonKind::Object
            && (routes.is_old(group, head.rest(&segments), message)
                || !has_version(message) && unrouted_server(plan, head).is_some())
    };
    match json.kind() {
        JsonKind::Object => is_old(json),
        JsonKind::Array => {
            let mut elements = json.elements().map(|place| json.piece(place));
            batch_size(plan, json) == BatchSize::Allowed && elements.all(|element| is_old(&element))
        }
        JsonKind::String | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => false,
    }
}

/// Returns the message of an old dialect in the query of a request, if a route at its path has its messages there.
#[must_use]
pub fn message_in_query(plan: &Plan, head: RequestHead<'_>) -> Option<Bytes> {
    let query = head.uri.query()?;
    let segments = Segments::split(head.uri.path());
    let group = plan.routes.old_at(head.method, &segments)?;
    let mut routes = group.routes().iter().map(|route| plan.routes.route(*route));
    routes.find_map(|route| message_in(query, route.rest_call.message_parameter.as_ref()?))
}

/// Returns the old route at a path whose server takes messages without a route, if one does.
#[must_use]
pub fn unrouted_server(plan: &Plan, head: RequestHead<'_>) -> Option<usize> {
    if !plan.routes.old().any || plan.unrouted != Unrouted::Passthrough {
        return None;
    }
    let segments = Segments::split(head.uri.path());
    let group = plan.routes.old_at(head.method, &segments)?;
    let is_served = |route: &usize| {
        plan.routes.route(*route).is_old() && plan.upstream_for(Some(*route), Side::Rest).is_some()
    };
    group.routes().iter().copied().find(is_served)
}

/// A request with several messages of an old dialect.
#[derive(Debug)]
pub enum OldBatch {
    /// All messages pass, and to the same server.
    Whole(WholeBatch),
    /// Each message is a call of its own.
    Split(Vec<Json>),
}

/// A batch that passes as one message.
#[derive(Debug)]
pub struct WholeBatch {
    /// The route whose server gets the batch.
    pub server: Option<usize>,
    /// The number of messages.
    pub messages: usize,
    /// The routes of the messages that would have a candidate if they came alone.
    pub shadowed: Vec<usize>,
}

/// Reads a body posted to a path with old routes as a batch; `None` if it is none. `stage` decides the stage of a message
/// with this route.
///
/// # Errors
///
/// Fails if the batch has more messages than `limits.batch`.
pub fn batch(
    plan: &Plan,
    group: &OverlapGroup,
    head: RequestHead<'_>,
    body: &Json,
    mut stage: impl FnMut(Option<usize>) -> Stage,
) -> Result<Option<OldBatch>, Failure> {
    let mut routes = group.routes().iter();
    if body.kind() != JsonKind::Array || !routes.any(|route| plan.routes.route(*route).is_old()) {
        return Ok(None);
    }
    match batch_size(plan, body) {
        BatchSize::Allowed => {}
        BatchSize::Empty => return Ok(None),
        BatchSize::TooLarge => {
            let message = "a batch of an old dialect has more messages than `limits.batch` allows; send fewer at once";
            return Err(Failure::new(Reason::InvalidRequest, message));
        }
    }
    let upstream = |server| plan.upstreams.of(server, Side::Rest);
    let messages: Vec<Json> = body.elements().map(|place| body.piece(place)).collect();
    let mut shadowed = Vec::new();
    let mut chosen = None;
    for message in &messages {
        // A message that no route takes and that may not pass gets its own failure.
        let Ok(route) = routing::by_body(plan, group, head, Some(message)) else {
            return Ok(Some(OldBatch::Split(messages)));
        };
        let stage = stage(route);
        let server = route.or_else(|| unrouted_server(plan, head));
        let is_apart = upstream(*chosen.get_or_insert(server)) != upstream(server);
        if stage.control() != Some(Way::Old) || is_apart {
            return Ok(Some(OldBatch::Split(messages)));
        }
        shadowed.extend(route.filter(|_| stage.candidate().is_some()));
    }
    Ok(Some(OldBatch::Whole(WholeBatch {
        server: chosen.flatten(),
        messages: messages.len(),
        shadowed,
    })))
}

/// The number of messages in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchSize {
    /// The array is no batch.
    Empty,
    Allowed,
    /// The array has more messages than `limits.batch`.
    TooLarge,
}

/// Counts the messages of an array, at most up to the limit.
fn batch_size(plan: &Plan, array: &Json) -> BatchSize {
    let limit = plan.limits.batch;
    match array.elements().take(limit.saturating_add(1)).count() {
        0 => BatchSize::Empty,
        found if found <= limit => BatchSize::Allowed,
        _ => BatchSize::TooLarge,
    }
}

/// Returns the response with a failure of the proxy in the dialect of an old call, over HTTP or on a socket; `None` if no
/// row describes it. A response without a body is no message on a socket.
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
    let read = route.read_message(message.head, message.body, context);
    let call = match read {
        Some(reading) => reading.bindings,
        None => only_id(route, message, context),
    };
    let error = ResponseReply::Error(error_object(failure, codes));
    let translated = route.outcomes.rpc_to_rest(error, &call, context);
    translated.row.map(|_| translated.answer)
}

/// Returns the bindings of a call that does not fit its route: only its id. An id in the path is lost if a hole before it
/// does not fit, and one in the query if the query is malformed.
fn only_id(route: &Route, message: OldRequest<'_>, context: TranslateContext) -> Bindings {
    let null = Json::literal("null");
    let mut call = route.bindings_with_id_only(message.body.unwrap_or(&null));
    let Some(id) = route.id.filter(|id| *call.get(*id) == BoundValue::Absent) else {
        return call;
    };
    let RestHead {
        segments,
        query,
        headers,
    } = message.head;
    let holes = route.facts.holes.len();
    let mut reading = PatternReader::new(holes, route.extra.unknown_members(), context.depth);
    // Each part is read alone, because the fault may be in any other.
    let _ = read_url(route, segments, &Query::default(), &mut reading);
    let query = Query::parse(query).unwrap_or_default();
    for item in &route.rest_call.query {
        let _ = query.read(item, &mut reading);
    }
    for item in &route.rest_call.headers {
        let _ = read_headers(slice::from_ref(item), headers, &mut reading);
    }
    if let BoundValue::Value(value) = reading.bindings.get(id) {
        call.set(id, BoundValue::Value(value.clone()));
    }
    call
}

/// An old message, with the request that has it.
#[derive(Debug, Clone, Copy)]
pub struct OldRequest<'a> {
    /// The head.
    pub head: RestHead<'a>,
    /// The body, if there is one and it is JSON.
    pub body: Option<&'a Json>,
}

impl<'a> OldRequest<'a> {
    /// Returns a message on a socket.
    #[must_use]
    pub fn of_frame(frame: &'a Json) -> OldRequest<'a> {
        OldRequest {
            head: RestHead::of_frame(),
            body: Some(frame),
        }
    }
}
