//! Which face a request speaks to, and which route claims it: the same words for those who serve a call and
//! for those who explain it.
//!
//! Nothing here reads a body; where the body decides, the claim says among which routes. Law: whoever asks
//! with the same plan and the same head gets the same answer.

mod eras;
mod irregular;
mod near;

use http::{HeaderMap, Method, Uri, request};

use super::cors;
use super::failure::Failure;
use super::hosts::{self, AllowedHosts, ConnectionEntry, Reach};
use super::json::Json;
use super::lifecycle::Window;
use super::local_reply::{LocalMatch, RestLocalReply};
use super::plan::{PathIrregularity, Plan, Unrouted, UpstreamPlan};
use super::proxy_protocol::ProxyProtocolUse;
use super::rejections;
use super::rollout::{self, Caller, Decision, DecisionReason, Kill, Path, SessionStart, Stage};
use super::route::{NearRoutes, OverlapGroup, RestSelection, Segments};
use super::side::Side;
use super::stream::{self, StreamMatch};
use super::time::Timestamp;
use super::translate::RestHead;
use super::websocket;

pub use eras::{batch, linked, mcp, notification_status, rpc_face_status};
pub use near::{NearMiss, pass_near};

/// The head of a request, as far as routes see it.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
}

impl<'a> RequestHead<'a> {
    /// That of a request as it came.
    #[must_use]
    pub fn new(head: &'a request::Parts) -> RequestHead<'a> {
        RequestHead {
            method: &head.method,
            uri: &head.uri,
            headers: &head.headers,
        }
    }

    /// The head as translation reads it.
    #[must_use]
    pub fn rest(self, segments: &'a Segments<'a>) -> RestHead<'a> {
        RestHead {
            segments,
            query: self.uri.query(),
            headers: self.headers,
        }
    }
}

/// The face that a request speaks to.
#[derive(Debug)]
pub struct Endpoint {
    /// JSON-RPC, or everything else.
    pub side: Side,
    /// Why it is not listened to there.
    pub refused: Option<Failure>,
    /// The stream that it asks for, if it does.
    pub stream: Option<StreamMatch>,
}

/// Who claims a REST call.
#[derive(Debug, Clone)]
pub enum RouteMatch<'p> {
    /// This route.
    Route(usize),
    /// One of these; the body decides.
    ByBody(&'p OverlapGroup),
    /// No route, and it passes by all of them.
    Nobody,
    /// No route, but another program may take the path for one: [`pass_near`] says whether it passes.
    Near(NearMiss),
}

/// Tells the face: JSON-RPC is what is posted to an RPC path. Other methods there belong to the RPC upstream,
/// unless a route claims them or the proxy itself answers; so do requests for a WebSocket, which the proxy may
/// serve itself.
#[must_use]
pub fn facing(plan: &Plan, head: RequestHead<'_>) -> Endpoint {
    if let Some(followed) = followed(plan, head).filter(|_| !is_local(plan, head)) {
        return Endpoint {
            side: followed.side,
            refused: None,
            stream: Some(followed),
        };
    }
    let place = plan.face.find(head.uri.path());
    let side = match (*head.method == Method::POST, place) {
        (_, None) => Side::Rest,
        (true, Some(_)) => Side::Rpc,
        (false, Some(place)) => passing(plan, head, place),
    };
    let refused = match place {
        Some(PathIrregularity::By(why)) if side == Side::Rpc => {
            Some(rejections::irregular_rpc_path(why))
        }
        Some(PathIrregularity::By(_) | PathIrregularity::No) | None => None,
    };
    Endpoint {
        side,
        refused,
        stream: None,
    }
}

/// The stream that a request asks for. An RPC path works with a slash at its end as well.
fn followed(plan: &Plan, head: RequestHead<'_>) -> Option<StreamMatch> {
    let path = head.uri.path();
    let found = plan.streams.find(head.method, path);
    if found.is_some() || plan.streams.all().is_empty() {
        return found;
    }
    let slashed = plan.face.slashed(path);
    slashed.and_then(|path| plan.streams.find(head.method, path))
}

/// The side of a request with another method than POST to an RPC path.
fn passing(plan: &Plan, head: RequestHead<'_>, place: PathIrregularity) -> Side {
    let asks = plan.face.sockets.is_some() && websocket::is_asked(head.method, head.headers);
    if asks && !is_routed(plan, head) {
        return Side::Rpc;
    }
    let takes = match *head.method {
        Method::GET | Method::DELETE => plan.upstream(Side::Rpc).is_some(),
        // A link carries messages only, and a path in another form is the REST upstream's.
        _ => place == PathIrregularity::No && plan.rpc_over_http().is_some(),
    };
    match takes && !is_local(plan, head) && !is_routed(plan, head) {
        true => Side::Rpc,
        false => Side::Rest,
    }
}

/// Whether the proxy itself answers a request.
fn is_local(plan: &Plan, head: RequestHead<'_>) -> bool {
    let found = plan.locals.rest(head.method, head.uri.path());
    matches!(found, LocalMatch::Answer(_) | LocalMatch::Irregular(_))
}

/// The proxy's own answer to a REST call, if there is one.
///
/// # Errors
/// A [`Failure`] where the call may not have it, or where two programs may read its path in two ways.
pub fn local<'p>(
    plan: &'p Plan,
    head: RequestHead<'_>,
    entry: ConnectionEntry,
) -> Result<Option<&'p RestLocalReply>, Failure> {
    match plan.locals.rest(head.method, head.uri.path()) {
        LocalMatch::Answer(local) => guard(plan, head, entry).map(|()| Some(local)),
        LocalMatch::Irregular(_) if is_routed(plan, head) => Ok(None),
        LocalMatch::Irregular(why) => Err(rejections::irregular_local_path(why)),
        LocalMatch::Nothing => Ok(None),
    }
}

/// Checks that a request may ask for what is not passed through: a translated call, a call over a link, a stream of the
/// other side, an answer of the proxy's own.
///
/// # Errors
/// A [`Failure`] where its `Origin` or its `Host` is not allowed.
pub fn guard(plan: &Plan, head: RequestHead<'_>, entry: ConnectionEntry) -> Result<(), Failure> {
    let is_hop = || {
        let hops = plan.rollout.clients.hops();
        entry.peer.is_some_and(|peer| hops.trusts(peer))
    };
    let allowed = AllowedHosts {
        hosts: &plan.hosts,
        cors: plan.cors.as_ref(),
        reach: match plan.preface {
            ProxyProtocolUse::Off => entry.reach,
            // Every connection comes from a trusted hop, which tells of the peer.
            ProxyProtocolUse::Required => Reach::Network,
        },
    };
    hosts::check(allowed, (head.uri, head.headers), is_hop).map_err(rejections::origin_denied)
}

/// The headers by which the proxy itself answers a preflight: where the call that it asks for would not pass
/// through. A preflight says neither the headers nor the body of that call, nor who will send it.
#[must_use]
pub fn preflight(
    plan: &Plan,
    (caller, at): (Caller<'_>, Timestamp),
    head: RequestHead<'_>,
) -> Option<HeaderMap> {
    let cors = plan.cors.as_ref()?;
    let wanted = cors::asked_method(head.method, head.headers)?;
    let is_ours = |method: &Method| is_own(plan, (caller, at), RequestHead { method, ..head });
    if !is_ours(&wanted) {
        return None;
    }
    let path = head.uri.path();
    let mut methods = plan.routes.methods(&Segments::split(path));
    methods.extend(plan.locals.methods(path));
    methods.push(wanted);
    methods.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    methods.dedup();
    // What passes through is for the server behind to allow, at a preflight of its own.
    methods.retain(is_ours);
    Some(cors.preflight(head.headers, &methods))
}

/// Whether the proxy serves a REST call in another way than by passing it through.
fn is_own(plan: &Plan, (caller, at): (Caller<'_>, Timestamp), head: RequestHead<'_>) -> bool {
    let facing = facing(plan, head);
    if let (Some(followed), None) = (facing.stream, &facing.refused) {
        let decision = stream::decide(plan, (caller, head.headers), followed);
        return decision.stage.control() != Some(Path::Old);
    }
    if facing.refused.is_some() {
        return false;
    }
    if facing.side == Side::Rpc {
        return *head.method == Method::POST && may_serve_rpc(plan, caller, head.headers);
    }
    if is_local(plan, head) {
        return true;
    }
    let serves = |route: usize| {
        let decision = decide(
            plan,
            (caller, head.headers),
            (Some(route), Side::Rest),
            at,
            None,
        );
        decision.stage.control() != Some(Path::Old)
    };
    match match_route(plan, head) {
        Ok(RouteMatch::Route(route)) => serves(route),
        Ok(RouteMatch::ByBody(group)) => group.routes().iter().any(|route| serves(*route)),
        Ok(RouteMatch::Nobody | RouteMatch::Near(_)) | Err(_) => false,
    }
}

/// Whether the proxy may serve a POST to an RPC path itself, for one client or another: a preflight has neither the
/// message nor the credentials. Where the page is not one of `cors.origins`, only what holds for this caller counts, so
/// that the RPC upstream answers the preflights of its own pages.
fn may_serve_rpc(plan: &Plan, caller: Caller<'_>, headers: &HeaderMap) -> bool {
    if plan.rpc_over_http().is_none() {
        return true;
    }
    let admits = |cors: &cors::Cors| cors::origin(headers).is_some_and(|page| cors.admits(page));
    let is_admitted = plan.cors.as_ref().is_some_and(admits);
    let caller = (!is_admitted).then_some((caller, headers));
    may_move(plan, caller) || (is_admitted && plan.locals.answers_rpc())
}

/// Whether a call of the RPC side may get another stage than passthrough and shadow: of this caller, or of anybody.
#[must_use]
pub fn may_move(plan: &Plan, caller: Option<(Caller<'_>, &HeaderMap)>) -> bool {
    !plan.routes.routes().is_empty() && plan.rollout.may_move(Side::Rpc, caller)
}

/// Whether a route claims a request.
fn is_routed(plan: &Plan, head: RequestHead<'_>) -> bool {
    matches!(
        match_route(plan, head),
        Ok(RouteMatch::Route(_) | RouteMatch::ByBody(_))
    )
}

/// Tells whose a REST call is.
///
/// # Errors
/// A [`Failure`] where it is nobody's and may not pass, or where two programs may read its path in two ways.
pub fn match_route<'p>(plan: &'p Plan, head: RequestHead<'_>) -> Result<RouteMatch<'p>, Failure> {
    let path = head.uri.path();
    let segments = Segments::split(path);
    let selected = plan
        .routes
        .select_rest(head.method, &segments, head.uri.query(), head.headers);
    let near = match selected {
        RestSelection::Route(index) => return Ok(RouteMatch::Route(index)),
        RestSelection::ByBody(group) => return Ok(RouteMatch::ByBody(group)),
        RestSelection::OtherLiterals if may_pass(plan) => return Ok(RouteMatch::Nobody),
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
        irregular::check(plan, head, &nearby)?;
        return Ok(match nearby.is_empty() {
            true => RouteMatch::Nobody,
            false => RouteMatch::Near(nearby),
        });
    }
    let is_free = near.methods.is_empty() && nearby.is_empty();
    if is_free && other_path(plan, path).is_some() {
        irregular::check(plan, head, &nearby)?;
        return Ok(RouteMatch::Nobody);
    }
    match nearby.first(plan).filter(|_| near.methods.is_empty()) {
        Some(refused) => Err(refused),
        None => Err(other_methods(plan, head, near.methods)),
    }
}

/// Nobody takes a call; the methods that routes and local answers have at its path are told.
fn other_methods(plan: &Plan, head: RequestHead<'_>, mut methods: Vec<Method>) -> Failure {
    let path = head.uri.path();
    methods.extend(plan.locals.methods(path));
    if methods.is_empty() {
        return rejections::no_route(head.method, path);
    }
    methods.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    methods.dedup();
    rejections::other_methods(head.method, &methods)
}

/// Tells whose a REST call is among the routes that its head leaves. A body that is no JSON has none of their
/// literals, and is nobody's fault where the call passes.
///
/// # Errors
/// A [`Failure`] where it is nobody's and may not pass.
pub fn by_body(
    plan: &Plan,
    (group, head): (&OverlapGroup, RequestHead<'_>),
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

/// The RPC upstream, for a path of no route where there is no REST upstream: the server may have more than JSON-RPC
/// there (an agent card, `/.well-known/`). Its RPC path is none of these: messages go there by `rpc.paths`.
#[must_use]
pub fn other_path<'p>(plan: &'p Plan, path: &str) -> Option<&'p UpstreamPlan> {
    let mut all = plan.upstreams.all.iter();
    if plan.unrouted == Unrouted::Reject || all.any(|upstream| upstream.side == Side::Rest) {
        return None;
    }
    let upstream = plan.rpc_over_http()?;
    let tidied = Segments::split(path).tidied();
    let own = upstream.path.path().trim_end_matches('/');
    (tidied.trim_end_matches('/') != own).then_some(upstream)
}

/// Whether calls of no route go on as they came.
fn may_pass(plan: &Plan) -> bool {
    plan.upstream(Side::Rest).is_some() && plan.unrouted == Unrouted::Passthrough
}

/// Decides for a call of a side that begins now. What belongs to no route passes through.
#[must_use]
pub fn decide(
    plan: &Plan,
    (caller, headers): (Caller<'_>, &HeaderMap),
    (route, side): (Option<usize>, Side),
    at: Timestamp,
    session: Option<SessionStart<'_>>,
) -> Decision {
    let Some(index) = route else {
        return Decision::plain(Stage::Passthrough, DecisionReason::Unrouted);
    };
    if plan.rollout.kill == Kill::On {
        // Where nobody serves the old way, the new one is all that there is.
        let stage = match plan.upstream_for(route, side) {
            Some(_) => Stage::Passthrough,
            None => Stage::Translate,
        };
        return Decision::plain(stage, DecisionReason::Killed);
    }
    if browned_out(plan, (route, side), at).is_some() {
        return Decision::plain(Stage::Retired, DecisionReason::Brownout);
    }
    let decision = plan.rollout.decide(&rollout::CallFacts {
        caller,
        route: &plan.routes.route(index).name,
        side,
        headers,
        session,
    });
    served(plan, decision, (index, side))
}

/// A REST side that has a server for calls of HTTP only, or for frames only, serves those of the other kind on the one
/// way that there is.
fn served(plan: &Plan, decision: Decision, (route, side): (usize, Side)) -> Decision {
    let old = decision.stage.control() == Some(Path::Old);
    let alone = side == Side::Rest && plan.upstream_for(Some(route), side).is_none();
    let stage = match old && alone {
        true => Stage::Translate,
        false => decision.stage,
    };
    Decision { stage, ..decision }
}

/// The window in which calls of a side of a route are refused now, if they are.
#[must_use]
pub fn browned_out(
    plan: &Plan,
    (route, side): (Option<usize>, Side),
    at: Timestamp,
) -> Option<Window> {
    let window = plan.lifecycle.of(route, side)?.browned_out(at)?;
    let name = &plan.routes.route(route?).name;
    plan.rollout.brownouts.hold(name).then_some(window)
}

/// What a call of a route is refused with whose decision leads nowhere.
#[must_use]
pub fn refused(
    plan: &Plan,
    why: DecisionReason,
    (route, side): (usize, Side),
    at: Timestamp,
) -> Failure {
    let window = match why {
        DecisionReason::Brownout => browned_out(plan, (Some(route), side), at),
        DecisionReason::Flag(_)
        | DecisionReason::Share(..)
        | DecisionReason::Keyless(_)
        | DecisionReason::Session(_)
        | DecisionReason::Default
        | DecisionReason::Killed
        | DecisionReason::Unrouted
        | DecisionReason::Local
        | DecisionReason::Preflight => None,
    };
    match window {
        Some(window) => rejections::browned_out(plan, (route, side), (window, at)),
        None => rejections::retired(plan, plan.routes.route(route), side),
    }
}
