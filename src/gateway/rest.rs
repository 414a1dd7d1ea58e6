//! The REST face.

use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, request};
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};

use super::forward::{Forwarded, forward, origin_form};
use super::intake::{self, Content};
use super::record::Record;
use super::render::{self, Answer};
use super::{AnswerBody, Arrival, Installed, Worker, translated};
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::plan::{Plan, Unrouted};
use crate::domain::rollout::{Caller, Decision, Stage, Why};
use crate::domain::route::{Group, RestSelection, Route, Segments};
use crate::domain::side::Side;
use crate::domain::translate::RestHead;

/// Serves one REST call.
pub(super) async fn serve(
    worker: &Rc<Worker>,
    installed: &Rc<Installed>,
    request: Request<Incoming>,
    arrival: Arrival,
) -> Response<AnswerBody> {
    let mut record = Record::begin(worker, installed, Side::Rest, &request);
    let answer = call(&mut record, request, &arrival).await;
    render::settled(record, answer)
}

async fn call(
    record: &mut Record,
    request: Request<Incoming>,
    arrival: &Arrival,
) -> Result<Answer, Failure> {
    let installed = record.installed().clone();
    let plan = &installed.plan;
    let (mut head, body) = request.into_parts();
    let caller = identify(record, plan, &head.headers);
    record.admit()?;
    let selected = select(plan, (&head.method, &head.uri, &head.headers))?;
    let (selected, content) = match selected {
        Selected::Route(route) => (Some(route), Content::Coming(body)),
        Selected::Unrouted => (None, Content::Coming(body)),
        Selected::ByBody(group) => {
            let body = intake::raw(body, &plan.limits).await?;
            let index = by_body(plan, group, (&head, &body));
            (Some(index), Content::Read(body))
        }
    };
    let decision = decide(record, plan, caller, selected);
    match (decision.stage, selected) {
        (Stage::Retired, Some(index)) => Err(retired(plan, plan.routes.route(index))),
        (Stage::Translate, Some(index)) => {
            translated::rest_call(record, index, (head, content), arrival).await
        }
        (Stage::Passthrough | Stage::Translate | Stage::Retired, _) => {
            let upstream = installed
                .upstream(selected, Side::Rest)
                .ok_or_else(|| no_route(&head.method, head.uri.path()))?;
            origin_form(&mut head);
            let forwarded = match content {
                Content::Coming(body) => Forwarded::streamed(head, body),
                Content::Read(body) => Forwarded::read(head, body),
            };
            forward(record, upstream, forwarded, arrival).await
        }
    }
}

/// Whether a route claims a request.
pub(super) fn is_routed(plan: &Plan, request: &Request<Incoming>) -> bool {
    let head = (request.method(), request.uri(), request.headers());
    matches!(
        select(plan, head),
        Ok(Selected::Route(_) | Selected::ByBody(_))
    )
}

/// Tells who calls, and notes it.
pub(super) fn identify<'a>(
    record: &mut Record,
    plan: &'a Plan,
    headers: &'a HeaderMap,
) -> Caller<'a> {
    let caller = plan
        .rollout
        .clients
        .identify(headers, |key| Sha256::digest(key).into());
    record.names_client(caller.client);
    caller
}

/// Decides for a call, and notes it. What belongs to no route passes through.
pub(super) fn decide(
    record: &mut Record,
    plan: &Plan,
    caller: Caller<'_>,
    selected: Option<usize>,
) -> Decision {
    let decision = match selected {
        Some(index) => plan
            .rollout
            .decide(caller, &plan.routes.route(index).name, record.side()),
        None => Decision {
            stage: Stage::Passthrough,
            why: Why::Unrouted,
        },
    };
    record.decided(selected, decision);
    decision
}

/// What the head of a call says of its route.
enum Selected<'p> {
    /// It has this one.
    Route(usize),
    /// The body decides among these.
    ByBody(&'p Group),
    /// It passes by all of them.
    Unrouted,
}

/// The route of a call whose body decides. A body that is no JSON fits none of them, and is nobody's fault
/// where the call passes.
fn by_body(plan: &Plan, group: &Group, (head, body): (&request::Parts, &Bytes)) -> usize {
    let json = intake::read_json(&head.headers, body.clone(), &plan.limits);
    let rest_head = RestHead {
        segments: &Segments::split(head.uri.path()),
        query: head.uri.query(),
        headers: &head.headers,
    };
    let json = json.ok().flatten();
    plan.routes.select_by_body(group, rest_head, json.as_ref())
}

fn select<'p>(
    plan: &'p Plan,
    (method, uri, headers): (&Method, &http::Uri, &HeaderMap),
) -> Result<Selected<'p>, Failure> {
    let path = uri.path();
    let may_pass = plan.upstream(Side::Rest).is_some() && plan.unrouted == Unrouted::Passthrough;
    match plan
        .routes
        .select_rest(method, &Segments::split(path), uri.query(), headers)
    {
        RestSelection::Route(index) => Ok(Selected::Route(index)),
        RestSelection::ByBody(group) => Ok(Selected::ByBody(group)),
        RestSelection::Unsafe(found) => {
            let route = &plan.routes.route(found.route).name;
            let message = format!(
                "path: {} is refused, because the path without it is the route `{route}`; send the path in its normal form",
                found.why
            );
            Err(Failure::new(Reason::MalformedTarget, message))
        }
        RestSelection::OtherMethods(_) | RestSelection::Unrouted if may_pass => {
            Ok(Selected::Unrouted)
        }
        RestSelection::OtherMethods(methods) => {
            let allowed: Vec<&str> = methods.iter().map(Method::as_str).collect();
            let allowed = allowed.join(", ");
            let message = format!("{method} is not a method of this path; it has {allowed}");
            Err(Failure::new(Reason::MethodNotAllowed, message).advise(Advice::Allow(allowed)))
        }
        RestSelection::Unrouted => Err(no_route(method, path)),
    }
}

fn no_route(method: &Method, path: &str) -> Failure {
    let path: String = path.chars().take(200).collect();
    Failure::new(
        Reason::RouteNotFound,
        format!("no route takes {method} `{}`", path.escape_default()),
    )
}

fn retired(plan: &Plan, route: &Route) -> Failure {
    let name = route.successor.clone().unwrap_or_else(|| route.rpc.clone());
    let what = match &route.successor {
        Some(successor) => successor.clone(),
        None => format!("the JSON-RPC method `{name}`"),
    };
    let message = format!(
        "the REST way of the route `{}` is retired; use {what}",
        route.name
    );
    let failure = Failure::new(Reason::Retired, message);
    match (&route.successor, plan.face.paths.first()) {
        // The other side is at an RPC path.
        (None, Some(path)) => failure.advise(Advice::Successor {
            name,
            link: Some(path.clone()),
        }),
        (Some(_), _) | (None, None) => failure.advise(successor(route, name)),
    }
}

/// What a route says of its successor; a text that is an address is linked.
pub(super) fn successor(route: &Route, name: String) -> Advice {
    let is_address = |text: &&String| text.starts_with('/') || text.starts_with("http");
    Advice::Successor {
        link: route.successor.as_ref().filter(is_address).cloned(),
        name,
    }
}
