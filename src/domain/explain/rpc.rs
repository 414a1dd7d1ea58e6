//! RPC calls, explained: each message of a body on its own.

use http::header::{CONTENT_ENCODING, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue, Method};

use super::own::{self, Own};
use super::reply::{answer_rpc, passed};
use super::rest::{rows, secrets};
use super::{Case, Explanation, Sent, Translated, Value, carrier, strangers};
use crate::domain::claim::{self, refused};
use crate::domain::failure::{Failure, Reason};
use crate::domain::headers::{HasBody, said_credentials, set, translated, withhold_credentials};
use crate::domain::jsonrpc::{self, Call, Incoming, Item, RequestId};
use crate::domain::plan::{CANCELLED, Credentials, UpstreamPlan};
use crate::domain::refusal;
use crate::domain::rollout::Way;
use crate::domain::route::Route;
use crate::domain::side::Side;
use crate::domain::translate::ToRest;
use crate::domain::websocket;

/// Explains what is sent to an RPC path.
pub(super) fn explain(case: &Case<'_>) -> Vec<Explanation> {
    if *case.asked.head.method != Method::POST {
        let head = case.asked.head;
        let asks = websocket::is_asked(head.method, head.headers);
        return vec![match asks && case.plan.face.sockets.is_some() {
            true => socket(case),
            false => pass(case),
        }];
    }
    match read(case) {
        Err(failure) => vec![case.refuse(case.begin(), failure)],
        Ok(Incoming::Single(item)) => vec![message(case, item, None)],
        Ok(Incoming::Batch(items)) => {
            let count = items.len();
            let items = items.into_iter().enumerate();
            items
                .map(|(place, item)| message(case, item, Some((place + 1, count))))
                .collect()
        }
    }
}

/// A request for a WebSocket that the proxy serves itself.
fn socket(case: &Case<'_>) -> Explanation {
    let mut explanation = case.begin();
    let head = case.asked.head;
    let agreed = claim::guard(case.plan, head, case.entry())
        .and_then(|()| websocket::handshake(head.headers));
    let handshake = match agreed {
        Ok(handshake) => handshake,
        Err(failure) => return case.refuse(explanation, failure),
    };
    let mut headers = HeaderMap::new();
    if let Some(protocol) = handshake.protocol {
        let protocol = HeaderValue::from_static(protocol);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    let note = "a WebSocket, which the proxy serves itself; each message as if it were posted here";
    explanation.answer = Some(own::noted(case, (101, &headers), note));
    explanation
}

/// Other methods on an RPC path belong to the RPC upstream.
fn pass(case: &Case<'_>) -> Explanation {
    let mut explanation = case.begin();
    let head = case.asked.head;
    if own::preflight(case, &mut explanation) == Own::Told {
        return explanation;
    }
    let Some(upstream) = over_http(case.plan.upstream(Side::Rpc)) else {
        return case.refuse(explanation, refusal::not_posted(head.method));
    };
    let target = target(upstream, head.uri.query());
    explanation.sends = Some(case.passes(upstream, &target, "as it came, byte for byte"));
    explanation.answer = passed(case);
    explanation
}

/// An upstream that has HTTP requests at all.
fn over_http(upstream: Option<&UpstreamPlan>) -> Option<&UpstreamPlan> {
    upstream.filter(|upstream| upstream.transport.link().is_none())
}

/// The path of the upstream, with the query of the client.
fn target(upstream: &UpstreamPlan, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{}?{query}", upstream.path),
        None => upstream.path.to_string(),
    }
}

fn read(case: &Case<'_>) -> Result<Incoming, Failure> {
    let (headers, body) = (case.asked.head.headers, case.asked.body);
    let limits = &case.plan.limits;
    let coded = |coding: &&http::HeaderValue| {
        !coding.is_empty() && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    };
    if headers.get(CONTENT_ENCODING).as_ref().is_some_and(coded) {
        return Err(refusal::coded_message());
    }
    if !body.is_empty() {
        refusal::media_type(headers)?;
    }
    if body.len() > limits.body {
        return Err(refusal::large_body(limits.body));
    }
    let incoming = jsonrpc::parse(body, limits.message()).map_err(refusal::no_message)?;
    if let Incoming::Batch(_) = &incoming {
        claim::batch(case.plan, headers)?;
    }
    Ok(incoming)
}

/// Whether a message is alone, else its place among how many.
type Company = Option<(usize, usize)>;

fn message(case: &Case<'_>, item: Item, company: Company) -> Explanation {
    let mut explanation = case.begin();
    let place = company.map_or(String::new(), |(place, of)| format!("{place} of {of}: "));
    match item {
        Item::Invalid(invalid) => {
            explanation.message = Some(format!("{place}no message"));
            let failure = Failure::new(Reason::InvalidRequest, invalid.why);
            case.refuse_call(explanation, failure, Some(&invalid.id))
        }
        Item::Response(_) => {
            explanation.message = Some(format!("{place}a response of the client"));
            client_response(case, explanation)
        }
        Item::Call(call) => {
            let method: String = call.method.chars().take(100).collect();
            let method = method.escape_debug();
            let id = call.id.as_ref().map(RequestId::as_bytes);
            let id = id.map_or("a notification".to_owned(), |id| {
                format!("id {}", String::from_utf8_lossy(id))
            });
            let told = format!("{place}{method}, {id}");
            explanation.message = Some(case.secrets().hide(&told));
            match tell(case, &call, (company, &mut explanation)) {
                Ok(()) => explanation,
                Err(failure) => case.refuse_call(explanation, failure, call.id.as_ref()),
            }
        }
    }
}

/// A response of the client to a request of the server goes to the server.
fn client_response(case: &Case<'_>, mut explanation: Explanation) -> Explanation {
    let Some(upstream) = over_http(case.plan.upstream(Side::Rpc)) else {
        return case.refuse(explanation, refusal::response_to_nothing());
    };
    let target = target(upstream, case.asked.head.uri.query());
    explanation.sends = Some(case.passes(upstream, &target, "as it came"));
    explanation
}

fn tell(
    case: &Case<'_>,
    call: &Call,
    (company, explanation): (Company, &mut Explanation),
) -> Result<(), Failure> {
    let plan = case.plan;
    refusal::ambiguous_credentials(plan, call)?;
    claim::mcp(plan, case.asked.head.headers, call)?;
    if own::rpc(case, call, explanation)? == Own::Told {
        return Ok(());
    }
    let selected = plan.select_rpc(&call.method, call.params.as_ref());
    let decision = case.decide(explanation, selected);
    case.guard(decision.stage)?;
    match (decision.stage.control(), selected) {
        (None, Some(index)) => {
            let called = (index, Side::Rpc);
            Err(refused(plan, decision.why, called, case.at()))
        }
        (Some(Way::New), Some(index)) => translate(case, (index, call), explanation),
        (Some(Way::Old), _) | (_, None) => {
            let unknown = || refusal::unknown_method(plan, call);
            let upstream = plan.upstream_for(selected, Side::Rpc).ok_or_else(unknown)?;
            if upstream.transport.link().is_some() {
                claim::guard(plan, case.asked.head, case.entry())?;
            }
            refusal::withheld(upstream, &call.method)?;
            if let Some(note) = kept(upstream, call) {
                let status = match call.id {
                    Some(_) => 200,
                    None => plan.face.notification_status.as_u16(),
                };
                explanation.answer = Some(own::noted(case, (status, &HeaderMap::new()), note));
                return Ok(());
            }
            let shared = upstream.transport.link().is_some();
            let target = match shared {
                false => target(upstream, case.asked.head.uri.query()),
                true => String::new(),
            };
            let note = match (&call.id, company) {
                (None, _) if shared => "as it came",
                (None, _) => "as it came; what the server says to a notification is dropped",
                (Some(id), None) if id.travels() && !shared => "as it came, byte for byte",
                (Some(_), _) => {
                    "as it came, with an id of the proxy's own; the client's is put back"
                }
            };
            explanation.sends = Some(case.passes(upstream, &target, note));
            explanation.answer = passed(case).filter(|_| call.id.is_some());
            Ok(())
        }
    }
}

/// What concerns the link to a server that all share, and stays here.
fn kept(upstream: &UpstreamPlan, call: &Call) -> Option<&'static str> {
    match (&call.id, &*call.method) {
        (Some(_), "initialize") if upstream.greets() => Some(
            "by the link to the server: what the server has answered to the proxy's own handshake",
        ),
        (None, method) if upstream.keeps(method) && method == CANCELLED => Some(
            "nothing; the call that it names is ended, where it is of the same session, and the server hears of it by \
             the id that the call has there",
        ),
        (None, method) if upstream.keeps(method) => {
            Some("nothing, and nothing is sent: the link to the server has a handshake of its own")
        }
        _ => None,
    }
}

fn translate(
    case: &Case<'_>,
    (index, call): (usize, &Call),
    explanation: &mut Explanation,
) -> Result<(), Failure> {
    let (limits, routes) = (&case.plan.limits, &case.plan.routes);
    let route = routes.route(index);
    let called = (&*call.method, call.params.as_ref());
    let made = routes
        .write_rest_of(index, (called, route.id_for(1)), case.terms)
        .map_err(refusal::bind)?;
    if let Some(params) = &call.params {
        let pattern = Some(&route.rpc_call.params);
        let named = strangers::of_value(pattern, params, "params");
        // `_meta` belongs to the protocol, whatever the route is.
        explanation.dropped = named
            .into_iter()
            .filter(|name| name != "params/_meta")
            .collect();
    }
    let told = Translated {
        route,
        call: &made.call,
    };
    let secrets = secrets(case, &told);
    explanation.holes = told.holes((&secrets, &case.plan.redaction));
    if made.target.len() > limits.target {
        return Err(refusal::long_url(limits.target));
    }
    let upstream = case.plan.upstream_for(Some(index), Side::Rest);
    let upstream = upstream.ok_or_else(|| refusal::no_upstream(Side::Rest))?;
    if route.is_frame() {
        explanation.sends = Some(framed((upstream, &made), &secrets));
        if call.id.is_some() {
            explanation.outcomes = rows(route, Side::Rest);
        }
        return Ok(());
    }
    let said = said(case, upstream, call)?;
    explanation.sends = Some(sent(case, route, (upstream, &made, said), &secrets));
    if let Some(id) = &call.id {
        explanation.outcomes = rows(route, Side::Rest);
        explanation.answer = answer_rpc(case, (route, &made.call), id)?;
    }
    Ok(())
}

/// What a frame is, to a server that speaks in them.
fn framed((upstream, made): (&UpstreamPlan, &ToRest), secrets: &super::Secrets) -> Sent {
    let body = made.body.clone().map(|body| body.into_bytes());
    Sent {
        upstream: upstream.name.clone(),
        authority: upstream.authority.as_str().to_owned(),
        method: carrier(upstream).to_owned(),
        target: String::new(),
        headers: Vec::new(),
        body: body.map(|body| Value::of(secrets.hide_bytes(&body))),
        note: Some("over the client's own socket; an id there is one of the proxy's own"),
    }
}

/// The headers of the credentials that the envelope bears, for an upstream that gets them.
fn said(case: &Case<'_>, upstream: &UpstreamPlan, call: &Call) -> Result<HeaderMap, Failure> {
    match upstream.credentials {
        Credentials::Forward => said_credentials(&case.plan.face, call, case.terms.depth),
        Credentials::Drop => Ok(HeaderMap::new()),
    }
}

/// What a request to the REST upstream is.
fn sent(
    case: &Case<'_>,
    route: &Route,
    (upstream, made, said): (&UpstreamPlan, &ToRest, HeaderMap),
    secrets: &super::Secrets,
) -> Sent {
    let has_body = HasBody::of(&made.body);
    let mut headers = translated(case.asked.head.headers, upstream, has_body);
    headers.extend(said);
    set(&mut headers, made.headers.clone());
    withhold_credentials(&mut headers, upstream);
    let body = made.body.clone().map(|body| body.into_bytes());
    Sent {
        upstream: upstream.name.clone(),
        authority: upstream.authority.as_str().to_owned(),
        method: route.method.as_str().to_owned(),
        target: secrets.hide(&made.target),
        headers: case.headers(&headers),
        body: body.map(|body| Value::of(secrets.hide_bytes(&body))),
        note: None,
    }
}
