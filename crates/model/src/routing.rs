//! Routing of requests: the endpoint that a request addresses, and the route that matches it. Serving and explaining a
//! call both use this module.
//!
//! Nothing here reads a body; if the body decides, the result names the routes that it decides among. Law: the same
//! plan and the same head always give the same result.
//!
//! Used by `app`, `cli`, `model` and `gateway`.

mod decision;
mod head;
mod mcp_checks;
mod near;
mod resource_metadata;

use http::{HeaderMap, Method};

use super::cors;
use super::failure::Failure;
use super::hosts::{self, AllowedHosts, ConnectionEntry, Reach};
use super::local_reply::{LocalMatch, RestLocalReply};
use super::plan::{PathIrregularity, Plan, Unrouted, UpstreamPlan};
use super::rejections;
use super::rollout::{Caller, DecisionReason, Requester, Way};
use super::route::{NearRoutes, OverlapGroup, RestSelection, Segments};
use super::stream::StreamMatch;
use super::time::Timestamp;
use super::websocket;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;
use dualgauge_transport::proxy_protocol::ProxyProtocolUse;

use near::check_regular;

pub use decision::{browned_out, decide, decide_stream};
pub use head::RequestHead;
pub use mcp_checks::{
    check_batch_allowed, check_call_over_link, check_mcp_headers, notification_status,
    rpc_face_status,
};
pub use near::{NearMiss, pass_near};
pub use resource_metadata::{MetadataRequest, metadata_request, public_rpc_path};

/// The target of a request.
#[derive(Debug)]
pub struct RequestTarget {
    /// The side: RPC for JSON-RPC, REST for everything else.
    pub side: Side,
    /// The reason for rejecting the request there, if any.
    pub refused: Option<Failure>,
    /// The event stream that the request subscribes to, if any.
    pub stream: Option<StreamMatch>,
}

/// The result of matching a REST call against the routes.
#[derive(Debug, Clone)]
pub enum RouteMatch<'p> {
    /// The route with this index matches.
    Route(usize),
    /// One of these routes matches; the body decides which.
    ByBody(&'p OverlapGroup),
    /// No route matches, and the path resembles none.
    Unrouted,
    /// No route matches, but another program may read the path as that of a route: [`pass_near`] decides.
    Near(NearMiss),
}

/// Returns the target of a request. A POST to an RPC path is JSON-RPC. Requests with other methods there belong to
/// the RPC upstream unless a route or a local reply matches them. So do WebSocket handshakes, which the proxy may
/// serve itself.
#[must_use]
pub fn classify_request(plan: &Plan, head: RequestHead<'_>) -> RequestTarget {
    if let Some(followed) = followed(plan, head).filter(|_| !is_local(plan, head)) {
        return RequestTarget {
            side: followed.side,
            refused: None,
            stream: Some(followed),
        };
    }
    if takes_event_stream(plan, head) {
        return RequestTarget {
            side: Side::Rpc,
            refused: None,
            stream: None,
        };
    }
    let rpc_path = plan.face.find(head.uri.path());
    let side = match (*head.method == Method::POST, rpc_path) {
        (_, None) => Side::Rest,
        (true, Some(_)) => Side::Rpc,
        (false, Some(rpc_path)) => passing(plan, head, rpc_path),
    };
    let refused = match rpc_path {
        Some(PathIrregularity::By(why)) if side == Side::Rpc => {
            Some(rejections::irregular_rpc_path(why))
        }
        Some(PathIrregularity::By(_) | PathIrregularity::No) | None => None,
    };
    RequestTarget {
        side,
        refused,
        stream: None,
    }
}

/// Returns true if a request opens an event stream of MCP 2024-11-05, or posts a message to one. Routes and local replies
/// come first.
#[must_use]
pub fn takes_event_stream(plan: &Plan, head: RequestHead<'_>) -> bool {
    plan.face.event_streams_at(head.uri.path()).is_some()
        && matches!(*head.method, Method::GET | Method::POST)
        && !is_local(plan, head)
        && !is_routed(plan, head)
}

/// Returns the stream that a request subscribes to. An RPC path also matches with a trailing slash.
fn followed(plan: &Plan, head: RequestHead<'_>) -> Option<StreamMatch> {
    let path = head.uri.path();
    let found = plan.streams.find(head.method, path);
    if found.is_some() || plan.streams.all().is_empty() {
        return found;
    }
    let slashed = plan.face.slashed(path);
    slashed.and_then(|path| plan.streams.find(head.method, path))
}

/// Returns the side of a request to an RPC path with a method other than POST.
fn passing(plan: &Plan, head: RequestHead<'_>, rpc_path: PathIrregularity) -> Side {
    let is_handshake =
        plan.face.sockets.is_some() && websocket::is_asked(head.method, head.headers);
    if is_handshake && !is_routed(plan, head) {
        return Side::Rpc;
    }
    let takes = match *head.method {
        Method::GET | Method::DELETE => plan.upstream(Side::Rpc).is_some(),
        // A link carries only messages, and a path in an irregular form belongs to the REST upstream.
        _ => rpc_path == PathIrregularity::No && plan.rpc_over_http().is_some(),
    };
    match takes && !is_local(plan, head) && !is_routed(plan, head) {
        true => Side::Rpc,
        false => Side::Rest,
    }
}

/// Returns true if the proxy answers the request with a local reply.
fn is_local(plan: &Plan, head: RequestHead<'_>) -> bool {
    let found = plan.locals.rest(head.method, head.uri.path());
    matches!(found, LocalMatch::Answer(_) | LocalMatch::Irregular(_))
}

/// Returns the local reply to a REST call, if there is one.
///
/// # Errors
///
/// Fails if the origin or host of the call is not allowed, or if programs may read its path in different ways.
pub fn local<'p>(
    plan: &'p Plan,
    head: RequestHead<'_>,
    entry: ConnectionEntry,
) -> Result<Option<&'p RestLocalReply>, Failure> {
    match plan.locals.rest(head.method, head.uri.path()) {
        LocalMatch::Answer(local) => check_origin(plan, head, entry).map(|()| Some(local)),
        LocalMatch::Irregular(_) if is_routed(plan, head) => Ok(None),
        LocalMatch::Irregular(why) => Err(rejections::irregular_local_path(why)),
        LocalMatch::Nothing => Ok(None),
    }
}

/// Checks the origin of a request that is not just passed through: a translated call, a call over a link, a stream of
/// the other side, or a local reply.
///
/// # Errors
///
/// Fails if the `Origin` or the `Host` is not allowed.
pub fn check_origin(
    plan: &Plan,
    head: RequestHead<'_>,
    entry: ConnectionEntry,
) -> Result<(), Failure> {
    let is_hop = || {
        let hops = plan.rollout.clients.hops();
        entry.peer.is_some_and(|peer| hops.trusts(peer))
    };
    let allowed = AllowedHosts {
        hosts: &plan.hosts,
        cors: plan.cors.as_ref(),
        reach: match plan.proxy_protocol {
            ProxyProtocolUse::Off => entry.reach,
            // Every connection comes from a trusted proxy, which reports the peer.
            ProxyProtocolUse::Required => Reach::Network,
        },
    };
    hosts::check(allowed, head.uri, head.headers, is_hop).map_err(rejections::origin_denied)
}

/// Returns the response headers for a CORS preflight if the proxy answers it, that is, if the announced call would not
/// pass through. A preflight contains neither the headers nor the body of that call, nor its credentials.
#[must_use]
pub fn preflight(
    plan: &Plan,
    caller: Caller<'_>,
    at: Timestamp,
    head: RequestHead<'_>,
) -> Option<HeaderMap> {
    let cors = plan.cors.as_ref()?;
    let wanted = cors::requested_method(head.method, head.headers)?;
    let is_ours =
        |method: &Method| is_intercepted(plan, caller, at, RequestHead { method, ..head });
    if !is_ours(&wanted) {
        return None;
    }
    let path = head.uri.path();
    let mut methods = plan.routes.methods(&Segments::split(path));
    methods.extend(plan.locals.methods(path));
    methods.push(wanted);
    methods.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    methods.dedup();
    // Calls that pass through get a preflight of their own, which their upstream answers.
    methods.retain(is_ours);
    Some(cors.preflight(head.headers, &methods))
}

/// Returns true if the proxy serves a REST call in any way other than passing it through.
fn is_intercepted(plan: &Plan, caller: Caller<'_>, at: Timestamp, head: RequestHead<'_>) -> bool {
    let requester = Requester::new(caller, head.headers);
    let target = classify_request(plan, head);
    if let (Some(followed), None) = (target.stream, &target.refused) {
        let decision = decide_stream(plan, requester, followed);
        return decision.stage.control() != Some(Way::Old);
    }
    if target.refused.is_some() {
        return false;
    }
    if target.side == Side::Rpc {
        return *head.method == Method::POST && may_serve_rpc(plan, requester);
    }
    if is_local(plan, head) {
        return true;
    }
    let serves = |route: usize| {
        let decision = decide(plan, requester, Some(route), Side::Rest, at);
        decision.stage.control() != Some(Way::Old)
    };
    match match_route(plan, head) {
        Ok(RouteMatch::Route(route)) => serves(route),
        Ok(RouteMatch::ByBody(group)) => group.routes().iter().any(|route| serves(*route)),
        Ok(RouteMatch::Unrouted | RouteMatch::Near(_)) | Err(_) => false,
    }
}

/// Returns true if the proxy may serve a POST to an RPC path itself, for any client: a preflight contains neither the
/// message nor the credentials. If the origin is not in `cors.origins`, only the rules for this caller count, so that
/// the RPC upstream answers the preflights of its own pages.
fn may_serve_rpc(plan: &Plan, requester: Requester<'_>) -> bool {
    if plan.rpc_over_http().is_none() {
        return true;
    }
    let page = cors::origin(requester.headers);
    let admits = |cors: &cors::Cors| page.is_some_and(|page| cors.admits(page));
    let is_admitted = plan.cors.as_ref().is_some_and(admits);
    let requester = (!is_admitted).then_some(requester);
    may_move(plan, requester) || (is_admitted && plan.locals.answers_rpc())
}

/// Returns true if an RPC call of this requester, or of any without one, may get a stage other than passthrough and
/// shadow.
#[must_use]
pub fn may_move(plan: &Plan, requester: Option<Requester<'_>>) -> bool {
    !plan.routes.routes().is_empty() && plan.rollout.may_move(Side::Rpc, requester)
}

/// Returns true if a route matches the request.
fn is_routed(plan: &Plan, head: RequestHead<'_>) -> bool {
    matches!(
        match_route(plan, head),
        Ok(RouteMatch::Route(_) | RouteMatch::ByBody(_))
    )
}

/// Matches a REST call against the routes.
///
/// # Errors
///
/// Fails if no route matches and the call may not pass, or if programs may read its path in different ways.
pub fn match_route<'p>(plan: &'p Plan, head: RequestHead<'_>) -> Result<RouteMatch<'p>, Failure> {
    let path = head.uri.path();
    let segments = Segments::split(path);
    let selected = plan
        .routes
        .select_rest(head.method, &segments, head.uri.query(), head.headers);
    let near = match selected {
        RestSelection::Route(index) => return Ok(RouteMatch::Route(index)),
        RestSelection::ByBody(group) => return Ok(RouteMatch::ByBody(group)),
        RestSelection::OtherLiterals if may_pass(plan) => return Ok(RouteMatch::Unrouted),
        RestSelection::OtherLiterals => return Err(rejections::other_literals(head.method, path)),
        RestSelection::Near(near) => near,
        RestSelection::OtherMethods(methods) => NearRoutes {
            methods,
            ..NearRoutes::default()
        },
        RestSelection::Unrouted => NearRoutes::default(),
    };
    let nearby = NearMiss {
        routes: near.routes,
        streams: plan.streams.near(head.method, path),
    };
    if may_pass(plan) {
        check_regular(plan, head, &nearby)?;
        return Ok(match nearby.is_empty() {
            true => RouteMatch::Unrouted,
            false => RouteMatch::Near(nearby),
        });
    }
    let is_free = near.methods.is_empty() && nearby.is_empty();
    if is_free && other_path(plan, path).is_some() {
        check_regular(plan, head, &nearby)?;
        return Ok(RouteMatch::Unrouted);
    }
    match nearby.first(plan).filter(|_| near.methods.is_empty()) {
        Some(refused) => Err(refused),
        None => Err(other_methods(plan, head, near.methods)),
    }
}

/// Returns the failure of a call that no route matches; it names the methods that exist at the path.
fn other_methods(plan: &Plan, head: RequestHead<'_>, mut methods: Vec<Method>) -> Failure {
    let path = head.uri.path();
    methods.extend(plan.locals.methods(path));
    if methods.is_empty() {
        return rejections::unrouted(plan.unrouted, head.method, path);
    }
    methods.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    methods.dedup();
    rejections::other_methods(head.method, &methods)
}

/// Selects the route of a REST call by its body, among the routes that match its head. A body that is not JSON matches
/// no literal; that is no error if unrouted calls may pass.
///
/// # Errors
///
/// Fails if no route matches and the call may not pass.
pub fn by_body(
    plan: &Plan,
    group: &OverlapGroup,
    head: RequestHead<'_>,
    body: Option<&Json>,
) -> Result<Option<usize>, Failure> {
    let segments = Segments::split(head.uri.path());
    match plan
        .routes
        .select_by_body(group, head.rest(&segments), body)
    {
        None if !may_pass(plan) => Err(rejections::other_literals(head.method, head.uri.path())),
        index => Ok(index),
    }
}

/// Returns the RPC upstream for a path without a route, if there is no REST upstream: the server may offer more than
/// JSON-RPC (an agent card, `/.well-known/`). The RPC path of the upstream is excluded: messages reach it by
/// `rpc.paths`.
#[must_use]
pub fn other_path<'p>(plan: &'p Plan, path: &str) -> Option<&'p UpstreamPlan> {
    let mut all = plan.upstreams.all.iter();
    if plan.unrouted != Unrouted::Passthrough || all.any(|upstream| upstream.side == Side::Rest) {
        return None;
    }
    let upstream = plan.rpc_over_http()?;
    let tidied = Segments::split(path).tidied();
    let upstream_path = upstream.path.path().trim_end_matches('/');
    (tidied.trim_end_matches('/') != upstream_path).then_some(upstream)
}

/// Returns true if unrouted calls pass through.
fn may_pass(plan: &Plan) -> bool {
    plan.upstream(Side::Rest).is_some() && plan.unrouted == Unrouted::Passthrough
}

/// Returns the failure for a call whose decision is to reject it.
#[must_use]
pub fn refused(
    plan: &Plan,
    why: DecisionReason,
    route: usize,
    side: Side,
    at: Timestamp,
) -> Failure {
    let window = match why {
        DecisionReason::Brownout => browned_out(plan, Some(route), side, at),
        DecisionReason::Flag(_)
        | DecisionReason::Share(..)
        | DecisionReason::Keyless(_)
        | DecisionReason::Session(_)
        | DecisionReason::Default
        | DecisionReason::Killed
        | DecisionReason::Route
        | DecisionReason::Unrouted
        | DecisionReason::Local
        | DecisionReason::Preflight
        | DecisionReason::ResourceMetadata => None,
    };
    match window {
        Some(window) => rejections::browned_out(plan, route, side, window, at),
        None => rejections::retired(plan, plan.routes.route(route), side),
    }
}
