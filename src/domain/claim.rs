//! Which face a request speaks to, and which route claims it: the same words for those who serve a call and
//! for those who explain it.
//!
//! Nothing here reads a body; where the body decides, the claim says among which routes. Law: whoever asks
//! with the same plan and the same head gets the same answer.

use http::{HeaderMap, Method, Uri};

use super::failure::{Failure, Reason};
use super::json::Json;
use super::plan::{Irregular, Plan, Unrouted};
use super::refusal;
use super::rollout::{Caller, Decision, Stage, Why};
use super::route::{Group, RestSelection, Segments};
use super::side::Side;
use super::translate::RestHead;

/// The head of a request, as far as routes see it.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
}

impl<'a> Head<'a> {
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
pub struct Facing {
    /// JSON-RPC, or everything else.
    pub side: Side,
    /// Why it is not listened to there.
    pub refused: Option<Failure>,
}

/// Who claims a REST call.
#[derive(Debug, Clone, Copy)]
pub enum Claim<'p> {
    /// This route.
    Route(usize),
    /// One of these; the body decides.
    ByBody(&'p Group),
    /// No route, and it passes by all of them.
    Nobody,
}

/// Tells the face: JSON-RPC is what is posted to an RPC path. GET and DELETE there belong to the RPC
/// upstream, unless a route claims them.
#[must_use]
pub fn facing(plan: &Plan, head: Head<'_>) -> Facing {
    let place = plan.face.find(head.uri.path());
    let side = match (*head.method == Method::POST, place) {
        (_, None) => Side::Rest,
        (true, Some(_)) => Side::Rpc,
        (false, Some(_)) => passing(plan, head),
    };
    let refused = match place {
        Some(Irregular::By(why)) if side == Side::Rpc => Some(refusal::irregular_rpc_path(why)),
        Some(Irregular::By(_) | Irregular::No) | None => None,
    };
    Facing { side, refused }
}

/// What is not posted to an RPC path.
fn passing(plan: &Plan, head: Head<'_>) -> Side {
    match *head.method {
        Method::GET | Method::DELETE
            if plan.upstream(Side::Rpc).is_some() && !is_routed(plan, head) =>
        {
            Side::Rpc
        }
        _ => Side::Rest,
    }
}

/// Whether a route claims a request.
fn is_routed(plan: &Plan, head: Head<'_>) -> bool {
    matches!(claim(plan, head), Ok(Claim::Route(_) | Claim::ByBody(_)))
}

/// Tells whose a REST call is.
///
/// # Errors
/// A [`Failure`] where it is nobody's and may not pass, or where two programs may read its path in two ways.
pub fn claim<'p>(plan: &'p Plan, head: Head<'_>) -> Result<Claim<'p>, Failure> {
    let path = head.uri.path();
    let segments = Segments::split(path);
    let may_pass = may_pass(plan);
    let selected = plan
        .routes
        .select_rest(head.method, &segments, head.uri.query(), head.headers);
    match selected {
        RestSelection::Route(index) => Ok(Claim::Route(index)),
        RestSelection::ByBody(group) => Ok(Claim::ByBody(group)),
        RestSelection::Unsafe(found) => {
            let route = &plan.routes.route(found.route).name;
            let message = format!(
                "path: {} is refused, because the path without it is the route `{route}`; send the path in its normal form",
                found.why
            );
            Err(Failure::new(Reason::MalformedTarget, message))
        }
        RestSelection::OtherMethods(_) | RestSelection::Unrouted if may_pass => Ok(Claim::Nobody),
        RestSelection::OtherMethods(methods) => Err(refusal::other_methods(head.method, &methods)),
        RestSelection::Unrouted => Err(refusal::no_route(head.method, path)),
    }
}

/// Tells whose a REST call is among the routes that its head leaves. A body that is no JSON has none of their
/// literals, and is nobody's fault where the call passes.
///
/// # Errors
/// A [`Failure`] where it is nobody's and may not pass.
pub fn by_body(
    plan: &Plan,
    (group, head): (&Group, Head<'_>),
    body: Option<&Json>,
) -> Result<Option<usize>, Failure> {
    let segments = Segments::split(head.uri.path());
    match plan
        .routes
        .select_by_body(group, head.rest(&segments), body)
    {
        None if !may_pass(plan) => Err(refusal::no_route(head.method, head.uri.path())),
        index => Ok(index),
    }
}

/// Whether calls of no route go on as they came.
fn may_pass(plan: &Plan) -> bool {
    plan.upstream(Side::Rest).is_some() && plan.unrouted == Unrouted::Passthrough
}

/// Decides for a call of a side. What belongs to no route passes through.
#[must_use]
pub fn decide(plan: &Plan, caller: Caller<'_>, (route, side): (Option<usize>, Side)) -> Decision {
    match route {
        Some(index) => plan
            .rollout
            .decide(caller, &plan.routes.route(index).name, side),
        None => Decision {
            stage: Stage::Passthrough,
            why: Why::Unrouted,
        },
    }
}
