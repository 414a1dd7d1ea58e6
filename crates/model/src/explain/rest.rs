//! Explanations of REST calls. Used by `explain::frame` and `explain::rpc`.

use super::case::{Case, ExplainRequest, POST, TranslatedCall, carrier};
use super::local_reply::{self, LocalExplanation};
use super::reply::{answer_rest, passed};
use super::secrets::{HIDDEN, Secrets};
use super::view::{Explanation, RowLine, SentRequest, Value};
use super::{in_front, resource_metadata, response_stream, unknown_members, view};
use crate::agent_card::requested_card;
use crate::dialect::{self, OldBatch};
use crate::failure::Failure;
use crate::headers::{HasBody, credentials, set, translated, withhold_credentials};
use crate::jsonrpc;
use crate::plan::{Transport, UpstreamPlan};
use crate::rejections;
use crate::rollout::Way;
use crate::route::{BodyContent, Route, Segments};
use crate::routing::{self, RouteMatch, by_body, match_route, other_path, pass_near, refused};
use crate::translate::{self, ToRpc};
use dualgauge_patterns::json::{Json, unmarked};
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::side::Side;

/// Returns true when the body of a request to an RPC path is old.
pub(super) fn is_old(case: &Case<'_>) -> bool {
    // RFC 8259 §8.1 lets a reader ignore a byte order mark.
    let text = unmarked(case.request.body.clone());
    let json = Json::parse(text, case.plan.limits.depth);
    json.is_ok_and(|json| dialect::is_old(case.plan, case.request.head, &json))
}

/// Explains a REST request: one call, or several messages of an old dialect.
pub(super) fn explain(case: &Case<'_>) -> Vec<Explanation> {
    let message = match case.request.body.is_empty() {
        true => dialect::message_in_query(case.plan, case.request.head),
        false => None,
    };
    let Some(body) = &message else {
        return explain_content(case);
    };
    let request = ExplainRequest {
        body,
        ..case.request
    };
    explain_content(&Case { request, ..*case })
}

fn explain_content(case: &Case<'_>) -> Vec<Explanation> {
    let messages = match batch(case) {
        Ok(Some(OldBatch::Split(messages))) => messages,
        Ok(Some(OldBatch::Whole(whole))) => {
            let mut explanation = explain_call(case, Some(whole.server));
            explanation.message = Some(format!("{} messages of an old dialect", whole.messages));
            return vec![explanation];
        }
        Ok(None) => return vec![explain_call(case, None)],
        Err(failure) => return vec![case.refuse(case.begin(), failure)],
    };
    let count = messages.len();
    let messages = messages.into_iter().enumerate();
    let explained = messages.map(|(index, message)| {
        let body = message.into_bytes();
        let request = ExplainRequest {
            body: &body,
            ..case.request
        };
        let element = Case {
            request,
            in_old_batch: true,
            ..*case
        };
        let mut explanation = explain_call(&element, None);
        explanation.message = Some(format!("{} of {count}", index + 1));
        explanation
    });
    explained.collect()
}

/// Reads the body as a batch of an old dialect.
fn batch(case: &Case<'_>) -> Result<Option<OldBatch>, Failure> {
    let (plan, head) = (case.plan, case.request.head);
    let segments = Segments::split(head.uri.path());
    let Some(group) = plan.routes.old_at(head.method, &segments) else {
        return Ok(None);
    };
    let Ok(Some(body)) = body(case, BodyContent::OldMessage) else {
        return Ok(None);
    };
    let stage = |route| routing::decide(plan, case.requester(), route, Side::Rest, case.at()).stage;
    dialect::batch(plan, group, head, &body, stage)
}

/// Explains one call. `whole` is the route whose server gets a batch that passes as one message.
fn explain_call(case: &Case<'_>, whole: Option<Option<usize>>) -> Explanation {
    let mut explanation = case.begin();
    match try_explain(case, whole, &mut explanation) {
        Ok(()) => explanation,
        Err(failure) => case.refuse(explanation, failure),
    }
}

fn try_explain(
    case: &Case<'_>,
    whole: Option<Option<usize>>,
    explanation: &mut Explanation,
) -> Result<(), Failure> {
    let (plan, head) = (case.plan, case.request.head);
    if resource_metadata::explain(case, explanation) {
        return Ok(());
    }
    if local_reply::rest(case, explanation)? == LocalExplanation::Complete {
        return Ok(());
    }
    let route = match whole {
        Some(_) => None,
        None => select_route(case)?,
    };
    let decision = case.decide(explanation, route);
    case.guard(decision.stage)?;
    match (decision.stage.control(), route) {
        (None, Some(index)) => Err(refused(plan, decision.why, index, Side::Rest, case.at())),
        (Some(Way::New), Some(index)) => translate(case, index, explanation),
        (Some(Way::Old), _) | (_, None) => {
            let none = || rejections::unrouted(plan.unrouted, head.method, head.uri.path());
            let server = whole.flatten().or(route);
            let server = server.or_else(|| dialect::unrouted_server(plan, head));
            let upstream = plan.upstream_for(server, Side::Rest);
            let upstream = upstream.or_else(|| other_path(plan, head.uri.path()));
            let upstream = upstream.ok_or_else(none)?;
            let target = head
                .uri
                .path_and_query()
                .map_or("/", |target| target.as_str());
            let note = match requested_card(plan, head) {
                Some(_) => "the agent card; its interfaces become those of the proxy",
                None => "unchanged, byte for byte",
            };
            explanation.sends = Some(case.passes(upstream, target, note));
            explanation.answer = passed(case);
            Ok(())
        }
    }
}

/// Selects the route of a call.
fn select_route(case: &Case<'_>) -> Result<Option<usize>, Failure> {
    let (plan, head) = (case.plan, case.request.head);
    match match_route(plan, head)? {
        RouteMatch::Route(index) => Ok(Some(index)),
        RouteMatch::ByBody(group) => {
            let body = body(case, plan.routes.body_content(group)).ok().flatten();
            by_body(plan, group, head, body.as_ref())
        }
        RouteMatch::Unrouted => Ok(None),
        RouteMatch::Near(nearby) => {
            pass_near(plan, case.requester(), &nearby, case.at())?;
            Ok(None)
        }
    }
}

/// Returns the body, if there is one; fails when it is not JSON, or not the form that the route expects.
fn body(case: &Case<'_>, content: BodyContent) -> Result<Option<Json>, Failure> {
    let (head, body) = (case.request.head, case.request.body);
    let limits = &case.plan.limits;
    if body.is_empty() {
        return Ok(None);
    }
    let form_type = match content {
        BodyContent::Typed(format) => rejections::body_type(head.headers, format)?,
        // Clients of old dialects send JSON with any type.
        BodyContent::OldMessage => None,
    };
    if body.len() > limits.body {
        return Err(rejections::large_body(limits.body));
    }
    rejections::parse_body(body.clone(), form_type.as_ref(), limits.depth)
}

fn translate(case: &Case<'_>, index: usize, explanation: &mut Explanation) -> Result<(), Failure> {
    let head = case.request.head;
    let route = case.plan.routes.route(index);
    let segments = Segments::split(head.uri.path());
    let reading = translate::read_rest_call(route, head.rest(&segments), case.context);
    let reading = reading.map_err(rejections::bind_failure)?;
    if !route.has_request_body() && !case.request.body.is_empty() {
        return Err(rejections::bind_failure(translate::no_body(route)));
    }
    let body = body(case, route.body_content())?;
    explanation.in_front = in_front::of_rest(case, index, body.as_ref());
    let call = translate::rest_to_rpc(route, reading, body.clone(), case.context);
    let call = call.map_err(rejections::bind_failure)?;
    explanation.dropped = unknown_members::in_query(route, head.uri.query());
    if let Some(body) = &body {
        let pattern = route.rest_call.body.as_ref();
        explanation
            .dropped
            .extend(unknown_members::in_value(pattern, body, "body"));
    }
    let (upstream, bindings) = describe_call(case, index, call, explanation)?;
    if route.expects_reply {
        // Over a link, only the events of a subscription stream.
        let streams = match upstream.transport {
            Transport::Http => true,
            Transport::Stdio(_)
            | Transport::Mcp(_)
            | Transport::WebSocket(_)
            | Transport::Frames(_) => route.subscription.is_some(),
        };
        let described = || response_stream::describe(case, route, Side::Rest, !case.in_old_batch);
        explanation.stream = streams.then(described).flatten();
        explanation.answer = answer_rest(case, route, &bindings)?;
    }
    Ok(())
}

/// Describes a translated call. Returns its upstream and the values of its holes.
pub(super) fn describe_call<'a>(
    case: &Case<'a>,
    index: usize,
    call: ToRpc<'_>,
    explanation: &mut Explanation,
) -> Result<(&'a UpstreamPlan, Bindings), Failure> {
    let route = case.plan.routes.route(index);
    let translated_call = TranslatedCall {
        route,
        call: &call.bindings,
    };
    let secrets = secrets(case, &translated_call);
    explanation.holes = translated_call.holes(&secrets, &case.plan.redaction);
    let upstream = case.plan.upstream_for(Some(index), Side::Rpc);
    let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rpc))?;
    let bindings = call.bindings.clone();
    explanation.sends = Some(render_sent_request(case, route, upstream, call, &secrets));
    if route.expects_reply {
        explanation.outcomes = outcome_rows(route, Side::Rpc);
    }
    Ok((upstream, bindings))
}

/// Describes the request to the RPC upstream.
fn render_sent_request(
    case: &Case<'_>,
    route: &Route,
    upstream: &UpstreamPlan,
    mut call: ToRpc<'_>,
    secrets: &Secrets,
) -> SentRequest {
    let (method, headers) = match upstream.transport.link() {
        None => {
            let mut headers = translated(case.request.head.headers, upstream, HasBody::Yes);
            response_stream::ask(case, route, Side::Rest, &mut headers);
            route.pass.copy(case.request.head.headers, &mut headers);
            set(&mut headers, std::mem::take(&mut call.headers));
            withhold_credentials(&mut headers, upstream);
            (POST.as_str(), case.headers(&headers))
        }
        Some(_) => (carrier(upstream), Vec::new()),
    };
    let depth = case.context.depth;
    let members = credentials(upstream, case.request.head.headers, depth).into_iter();
    let members: Vec<_> = members
        .map(|(member, _)| (member, Json::string(HIDDEN)))
        .collect();
    let (message, note) = if route.expects_reply {
        (
            jsonrpc::request(1, &call.method, call.params, &members),
            "the proxy assigns the id",
        )
    } else {
        (
            jsonrpc::notification(&call.method, call.params, &members),
            "a notification; the caller gets 202 at once",
        )
    };
    let message = message.into_bytes();
    SentRequest {
        upstream: upstream.name.clone(),
        authority: upstream.authority.as_str().to_owned(),
        method: method.to_owned(),
        target: match upstream.transport {
            // A line has no target.
            Transport::Stdio(_) => String::new(),
            Transport::Http
            | Transport::Mcp(_)
            | Transport::WebSocket(_)
            | Transport::Frames(_) => upstream.path.to_string(),
        },
        headers,
        body: Some(Value::from_text(secrets.hide_bytes(&message))),
        note: Some(note.into()),
    }
}

/// Collects the credentials of the head, and the values of holes in headers with credentials.
pub(super) fn secrets(case: &Case<'_>, translated_call: &TranslatedCall<'_>) -> Secrets {
    let mut secrets = case.secrets();
    let route = translated_call.route;
    let headers = route.rest_call.headers.iter();
    let slots = headers
        .chain(&route.rpc_call.headers)
        .filter(|item| case.is_secret(&item.name))
        .flat_map(|item| item.words.slots());
    for hole in slots.filter_map(|slot| slot.binds()) {
        secrets.note(&view::plain_text_of(translated_call.call.get(hole)));
    }
    secrets
}

/// Returns the rows that may match an answer of a side's server.
pub(super) fn outcome_rows(route: &Route, side: Side) -> Vec<RowLine> {
    let outcomes = &route.outcomes;
    let order = outcomes.order(side).iter();
    let usable = order.filter(|row| outcomes.hides(**row, side).is_none());
    usable
        .map(|row| RowLine::new(&outcomes.rows()[*row]))
        .collect()
}
