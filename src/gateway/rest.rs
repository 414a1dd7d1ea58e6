//! The REST face.

use std::rc::Rc;

use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};

use super::forward::{Forwarded, forward, origin_form};
use super::record::Record;
use super::render::{self, Answer};
use super::{AnswerBody, Arrival, Installed, Worker, translated};
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::plan::{Plan, Unrouted};
use crate::domain::rollout::{Caller, Decision, Stage, Why};
use crate::domain::route::{RestSelection, Route, Segments};
use crate::domain::side::Side;

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
    let decision = decide(record, plan, caller, selected);
    match (decision.stage, selected) {
        (Stage::Retired, Some(index)) => Err(retired(plan, plan.routes.route(index))),
        (Stage::Translate, Some(index)) => {
            translated::rest_call(record, plan.routes.route(index), (head, body), arrival).await
        }
        (Stage::Passthrough | Stage::Translate | Stage::Retired, _) => {
            let upstream = installed
                .upstream(Side::Rest)
                .ok_or_else(|| no_route(&head.method, head.uri.path()))?;
            origin_form(&mut head);
            forward(record, upstream, Forwarded::streamed(head, body), arrival).await
        }
    }
}

/// Whether a route claims a request.
pub(super) fn is_routed(plan: &Plan, request: &Request<Incoming>) -> bool {
    let head = (request.method(), request.uri(), request.headers());
    matches!(select(plan, head), Ok(Some(_)))
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

/// The route of a call; none where it passes by all of them.
fn select(
    plan: &Plan,
    (method, uri, headers): (&Method, &http::Uri, &HeaderMap),
) -> Result<Option<usize>, Failure> {
    let path = uri.path();
    let may_pass = plan.rest.is_some() && plan.unrouted == Unrouted::Passthrough;
    match plan
        .routes
        .select_rest(method, &Segments::split(path), uri.query(), headers)
    {
        RestSelection::Route(index) => Ok(Some(index)),
        RestSelection::ByBody(group) => Ok(group.routes().first().copied()),
        RestSelection::Unsafe(found) => {
            let route = &plan.routes.route(found.route).name;
            let message = format!(
                "path: {} is refused, because the path without it is the route `{route}`; send the path in its normal form",
                found.why
            );
            Err(Failure::new(Reason::MalformedTarget, message))
        }
        RestSelection::OtherMethods(_) | RestSelection::Unrouted if may_pass => Ok(None),
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
