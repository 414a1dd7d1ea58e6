//! Explanations of RPC calls, one for each message of a body.

use http::header::{CONTENT_ENCODING, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue, Method};

use super::case::{Case, TranslatedCall, carrier};
use super::era_bridge;
use super::in_front;
use super::local_reply::{self, LocalExplanation};
use super::reply::{answer_rpc, passed};
use super::rest::{self, outcome_rows, secrets};
use super::secrets::Secrets;
use super::view::{Explanation, SentRequest, Value};
use super::{response_stream, unknown_members};
use crate::batch;
use crate::failure::{Failure, Reason};
use crate::headers::{
    HasBody, accept_values_of, credentials_of, set, translated, withhold_credentials,
};
use crate::jsonrpc::{Call, Incoming, MessageItem, RequestId};
use crate::plan::{Credentials, UpstreamPlan};
use crate::posted::{self, MessageFault, Posted, Poster, classify, rewritten, takes_envelopes};
use crate::rejections;
use crate::rollout::Way;
use crate::route::Route;
use crate::routing::{self, refused};
use crate::translate::{MethodCall, ToRest, encode_body};
use crate::websocket;
use dualgauge_patterns::side::Side;

/// Explains a request to an RPC path.
pub(super) fn explain(case: &Case<'_>) -> Vec<Explanation> {
    if routing::takes_event_stream(case.plan, case.request.head) {
        return vec![event_stream(case)];
    }
    if *case.request.head.method != Method::POST {
        let head = case.request.head;
        let asks = websocket::is_asked(head.method, head.headers);
        return vec![match asks && case.plan.face.sockets.is_some() {
            true => socket(case),
            false => pass(case),
        }];
    }
    let poster = poster(case);
    let one = SendPlan::default();
    let body = match body(case) {
        Ok(body) => body,
        Err(failure) => return vec![case.refuse(case.begin(), failure)],
    };
    match classify(case.plan, poster, body) {
        Posted::Messages(Incoming::Single(item)) => vec![message(case, item, one)],
        Posted::Messages(Incoming::Batch(items)) => batch(case, items, None),
        Posted::Batch(items, fault) => batch(case, items, Some(&fault)),
        Posted::Call(call, fault) => {
            let fault = Some(&fault);
            vec![message(
                case,
                MessageItem::Call(*call),
                SendPlan { fault, ..one },
            )]
        }
        Posted::Unread(fault, place) => vec![unread(case, fault, place)],
        Posted::Refused(_, id, failure) => {
            vec![case.refuse_call(case.begin(), failure, Some(&id))]
        }
        Posted::Rest => {
            let side = Side::Rest;
            rest::explain(&Case { side, ..*case })
        }
    }
}

fn poster<'a>(case: &Case<'a>) -> Poster<'a> {
    Poster {
        caller: case.caller,
        head: case.request.head,
        at: case.at(),
        past: None,
    }
}

/// Explains a batch: one explanation for each item.
fn batch(case: &Case<'_>, items: Vec<MessageItem>, fault: Option<&Failure>) -> Vec<Explanation> {
    if let Err(failure) = routing::check_batch_allowed(case.plan, case.request.head.headers) {
        return vec![case.refuse(case.begin(), failure)];
    }
    let passing = batch::passing(case.plan, poster(case), &items, |_, _| None);
    let is_whole = passing.is_some_and(|passing| {
        let upstream = &case.plan.upstreams.all[passing.upstream_index];
        fault.is_none() || takes_envelopes(case.plan, upstream)
    });
    if let Some(fault) = fault.filter(|_| !is_whole) {
        return vec![case.refuse(case.begin(), fault.clone())];
    }
    let count = items.len();
    let items = items.into_iter().enumerate();
    let explained = items.map(|(index, item)| {
        let sending = SendPlan {
            in_batch: Some((index + 1, count)),
            is_whole,
            fault: None,
        };
        match item {
            MessageItem::Invalid(_) if is_whole => {
                let mut explanation = case.begin();
                explanation.message = Some(format!("{}invalid message", sending.position()));
                let upstream = case.plan.rpc_over_http();
                explanation.sends = upstream.map(|upstream| {
                    let target = target(upstream, case.request.head.uri.query());
                    case.passes(upstream, &target, WHOLE)
                });
                explanation
            }
            MessageItem::Call(_) | MessageItem::Response(_) | MessageItem::Invalid(_) => {
                message(case, item, sending)
            }
        }
    });
    explained.collect()
}

/// Explains a body from which no method can be read.
fn unread(case: &Case<'_>, fault: MessageFault, place: usize) -> Explanation {
    let mut explanation = case.begin();
    explanation.message = Some(match fault {
        MessageFault::Invalid | MessageFault::Unreadable => "no method can be read".to_owned(),
        MessageFault::Ambiguous => "several methods can be read".to_owned(),
    });
    let upstream = &case.plan.upstreams.all[place];
    let target = target(upstream, case.request.head.uri.query());
    explanation.sends = Some(case.passes(upstream, &target, "unchanged, byte for byte"));
    explanation.answer = passed(case);
    explanation
}

/// Explains the handshake of a WebSocket that the proxy serves itself.
fn socket(case: &Case<'_>) -> Explanation {
    let mut explanation = case.begin();
    let head = case.request.head;
    let agreed = routing::check_origin(case.plan, head, case.entry())
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
    let note = "a WebSocket that the proxy serves; each message is handled like one posted here";
    explanation.answer = Some(local_reply::noted(case, 101, &headers, note));
    explanation
}

/// Explains a request to the path of event streams (MCP 2024-11-05).
fn event_stream(case: &Case<'_>) -> Explanation {
    let mut explanation = case.begin();
    let head = case.request.head;
    if let Err(failure) = routing::check_origin(case.plan, head, case.entry()) {
        return case.refuse(explanation, failure);
    }
    let (status, note) = match *head.method {
        Method::POST => (
            202,
            "the message goes to the session that `session_id` names, and its response to the event stream",
        ),
        _ => (
            200,
            "an event stream that the proxy serves; each message posted to its endpoint is handled like one posted to an RPC path",
        ),
    };
    explanation.answer = Some(local_reply::noted(case, status, &HeaderMap::new(), note));
    explanation
}

/// Explains a request with another method on an RPC path: it passes to the RPC upstream.
fn pass(case: &Case<'_>) -> Explanation {
    let mut explanation = case.begin();
    let head = case.request.head;
    if local_reply::preflight(case, &mut explanation) == LocalExplanation::Complete {
        return explanation;
    }
    if let Some((status, note)) = era_bridge::of_session(case) {
        if let Err(failure) = routing::check_origin(case.plan, head, case.entry()) {
            return case.refuse(explanation, failure);
        }
        explanation.answer = Some(local_reply::noted(case, status, &HeaderMap::new(), note));
        return explanation;
    }
    let Some(upstream) = case.plan.rpc_over_http() else {
        return case.refuse(explanation, rejections::not_posted(head.method));
    };
    let target = target(upstream, head.uri.query());
    explanation.sends = Some(case.passes(upstream, &target, "unchanged, byte for byte"));
    explanation.answer = passed(case);
    explanation
}

/// Returns the path of the upstream with the query of the client.
fn target(upstream: &UpstreamPlan, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{}?{query}", upstream.path),
        None => upstream.path.to_string(),
    }
}

/// Returns the body, without its content coding.
fn body(case: &Case<'_>) -> Result<posted::PostedBody, Failure> {
    let (headers, body) = (case.request.head.headers, case.request.body);
    let coding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    let is = |names: &[&str]| {
        let mut names = names.iter();
        coding.is_some_and(|coding| names.any(|name| coding.eq_ignore_ascii_case(name.as_bytes())))
    };
    let fault = match coding.is_none() || is(&["", "identity"]) {
        false => Some(rejections::coded_message()),
        true if body.is_empty() => None,
        true => rejections::media_type(headers).err(),
    };
    let limit = case.plan.limits.body;
    if body.len() > limit && fault.is_none() {
        return Err(rejections::large_body(limit));
    }
    let is_read = coding.is_none() || is(&["", "identity", "gzip", "x-gzip", "br"]);
    let text = (is_read && body.len() <= limit).then(|| body.clone());
    Ok(posted::PostedBody { text, fault })
}

/// The way in which a message is sent.
#[derive(Clone, Copy, Default)]
struct SendPlan<'a> {
    /// The index in a batch, with the size of the batch.
    in_batch: Option<(usize, usize)>,
    /// Records whether the batch passes as one message.
    is_whole: bool,
    /// The reason why translation refuses the message.
    fault: Option<&'a Failure>,
}

impl SendPlan<'_> {
    fn position(self) -> String {
        let in_batch = self.in_batch;
        in_batch.map_or(String::new(), |(position, count)| {
            format!("{position} of {count}: ")
        })
    }

    /// Fails when translation refuses the message.
    fn check_valid(self) -> Result<(), Failure> {
        self.fault.map_or(Ok(()), |fault| Err(fault.clone()))
    }
}

const WHOLE: &str = "unchanged, in one message with the rest of the batch";

fn message(case: &Case<'_>, item: MessageItem, sending: SendPlan<'_>) -> Explanation {
    let mut explanation = case.begin();
    let position = sending.position();
    match item {
        MessageItem::Invalid(invalid) => {
            explanation.message = Some(format!("{position}invalid message"));
            let failure = Failure::new(Reason::InvalidRequest, invalid.why);
            case.refuse_call(explanation, failure, Some(&invalid.id))
        }
        MessageItem::Response(_) => {
            explanation.message = Some(format!("{position}a response from the client"));
            client_response(case, explanation)
        }
        MessageItem::Call(call) => {
            let method: String = call.method.chars().take(100).collect();
            let method = method.escape_debug();
            let id = call.id.as_ref().map(RequestId::as_bytes);
            let id = id.map_or("a notification".to_owned(), |id| {
                format!("id {}", String::from_utf8_lossy(id))
            });
            let line = format!("{position}{method}, {id}");
            explanation.message = Some(case.secrets().hide(&line));
            match explain_call(case, &call, sending, &mut explanation) {
                Ok(()) => explanation,
                Err(failure) => {
                    let null = RequestId::null();
                    let gets_reply = failure.reason.answers_notifications();
                    let gets_reply = gets_reply && sending.in_batch.is_none();
                    let id = call.id.as_ref().or(gets_reply.then_some(&null));
                    case.refuse_call(explanation, failure, id)
                }
            }
        }
    }
}

/// Explains a response from the client to a request of the server; it is sent to the server.
fn client_response(case: &Case<'_>, mut explanation: Explanation) -> Explanation {
    let Some(upstream) = case.plan.rpc_over_http() else {
        return case.refuse(explanation, rejections::unexpected_response());
    };
    let target = target(upstream, case.request.head.uri.query());
    explanation.sends = Some(case.passes(upstream, &target, "unchanged"));
    explanation
}

fn explain_call(
    case: &Case<'_>,
    call: &Call,
    sending: SendPlan<'_>,
    explanation: &mut Explanation,
) -> Result<(), Failure> {
    let plan = case.plan;
    rejections::ambiguous_credentials(plan, call)?;
    routing::check_mcp_headers(plan, case.request.head.headers, call)?;
    if plan.locals.rpc(&call.method).is_some() {
        sending.check_valid()?;
    }
    if local_reply::rpc(case, call, explanation)? == LocalExplanation::Complete {
        return Ok(());
    }
    let selected = plan.select_rpc(&call.method, call.params.as_ref());
    let decision = case.decide(explanation, selected);
    case.guard(decision.stage)?;
    match (decision.stage.control(), selected) {
        (None, Some(index)) => {
            sending.check_valid()?;
            Err(refused(plan, decision.why, index, Side::Rpc, case.at()))
        }
        (Some(Way::New), Some(index)) => {
            sending.check_valid()?;
            if let Some(candidate) = plan.candidate_for(selected) {
                return pass_call(case, candidate, call, sending, explanation);
            }
            translate(case, index, call, explanation)?;
            let (route, is_alone) = (plan.routes.route(index), sending.in_batch.is_none());
            explanation.stream = response_stream::describe(case, route, Side::Rpc, is_alone);
            Ok(())
        }
        (Some(Way::Old), _) | (_, None) => {
            let Some(upstream) = plan.upstream_for(selected, Side::Rpc) else {
                sending.check_valid()?;
                return Err(rejections::unknown_method(plan, call));
            };
            pass_call(case, upstream, call, sending, explanation)
        }
    }
}

const REWRITTEN: &str = "without the credential members that this server does not accept; they become headers if it gets credentials over HTTP";

/// Explains a call that passes through.
fn pass_call(
    case: &Case<'_>,
    upstream: &UpstreamPlan,
    call: &Call,
    sending: SendPlan<'_>,
    explanation: &mut Explanation,
) -> Result<(), Failure> {
    let plan = case.plan;
    let shared = upstream.transport.link().is_some();
    if shared || !takes_envelopes(plan, upstream) {
        sending.check_valid()?;
    }
    if shared {
        routing::check_origin(plan, case.request.head, case.entry())?;
    }
    routing::check_call_over_link(plan, upstream, Some(case.request.head.headers), call)?;
    explanation.bridge = era_bridge::describe(case, upstream, call);
    if let Some(note) = era_bridge::link_note(upstream, call) {
        let status = match call.id {
            Some(_) => 200,
            None => routing::notification_status(plan, case.request.head.headers).as_u16(),
        };
        explanation.answer = Some(local_reply::noted(case, status, &HeaderMap::new(), note));
        return Ok(());
    }
    let target = match shared {
        false => target(upstream, case.request.head.uri.query()),
        true => String::new(),
    };
    let rewritten = rewritten(plan, upstream, call)?;
    let note = match (&call.id, sending.in_batch) {
        _ if rewritten.is_some() => REWRITTEN,
        _ if sending.is_whole => WHOLE,
        _ if sending.fault.is_some() => "unchanged, byte for byte; translation would refuse it",
        (None, _) if shared => "unchanged",
        (None, _) => "unchanged; the server's answer to a notification is dropped",
        (Some(id), None) if id.is_portable() && !shared => "unchanged, byte for byte",
        (Some(_), _) => "with an id that the proxy assigns; the answer gets the client's id back",
    };
    let mut sent = case.passes(upstream, &target, note);
    if let Some(rewritten) = rewritten {
        sent.headers = case.headers(&rewritten.headers);
    }
    explanation.sends = Some(sent);
    explanation.answer = passed(case).filter(|_| call.id.is_some());
    Ok(())
}

fn translate(
    case: &Case<'_>,
    index: usize,
    call: &Call,
    explanation: &mut Explanation,
) -> Result<(), Failure> {
    let (limits, routes) = (&case.plan.limits, &case.plan.routes);
    let route = routes.route(index);
    let called = MethodCall::new(&call.method, call.params.as_ref());
    let called = called.with_headers(case.request.head.headers);
    explanation.in_front = in_front::of_rpc(case, index, called);
    let made = routes
        .write_rest_of(index, called, route.id_for(1), case.context)
        .and_then(|made| encode_body(route, made))
        .map_err(rejections::bind_failure)?;
    if let Some(params) = &call.params {
        let pattern = Some(&route.rpc_call.params);
        let named = unknown_members::in_value(pattern, params, "params");
        // `_meta` belongs to the protocol, on every route.
        explanation.dropped = named
            .into_iter()
            .filter(|name| name != "params/_meta")
            .collect();
    }
    let translated_call = TranslatedCall {
        route,
        call: &made.bindings,
    };
    let secrets = secrets(case, &translated_call);
    explanation.holes = translated_call.holes(&secrets, &case.plan.redaction);
    if made.target.len() > limits.target {
        return Err(rejections::long_url(limits.target));
    }
    let upstream = case.plan.upstream_for(Some(index), Side::Rest);
    let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
    if route.is_frame() {
        explanation.sends = Some(frame_request(upstream, &made, &secrets));
        if call.id.is_some() {
            explanation.outcomes = outcome_rows(route, Side::Rest);
        }
        return Ok(());
    }
    let headers = request_headers(case, upstream, route, call, &made)?;
    explanation.sends = Some(SentRequest {
        upstream: upstream.name.clone(),
        authority: upstream.authority.as_str().to_owned(),
        method: route.method.as_str().to_owned(),
        target: secrets.hide(&upstream.with_base(&made.target)),
        headers: case.headers(&headers),
        body: body_of(&made, &secrets),
        note: None,
    });
    if let Some(id) = &call.id {
        explanation.outcomes = outcome_rows(route, Side::Rest);
        explanation.answer = answer_rpc(case, route, &made.bindings, id)?;
    }
    Ok(())
}

/// Describes a frame to a server that speaks in frames.
fn frame_request(upstream: &UpstreamPlan, made: &ToRest, secrets: &Secrets) -> SentRequest {
    SentRequest {
        upstream: upstream.name.clone(),
        authority: upstream.authority.as_str().to_owned(),
        method: carrier(upstream).to_owned(),
        target: String::new(),
        headers: Vec::new(),
        body: body_of(made, secrets),
        note: Some(
            "over this client's own connection; the proxy assigns the id, if it has one".into(),
        ),
    }
}

/// Returns the body of a translated request, without credentials.
fn body_of(made: &ToRest, secrets: &Secrets) -> Option<Value> {
    let body = made.body.clone().map(|body| body.into_bytes());
    body.map(|body| Value::from_text(secrets.hide_bytes(&body)))
}

/// Returns the headers of the request to the REST upstream.
fn request_headers(
    case: &Case<'_>,
    upstream: &UpstreamPlan,
    route: &Route,
    call: &Call,
    made: &ToRest,
) -> Result<HeaderMap, Failure> {
    let credentials = match upstream.credentials {
        Credentials::Forward => credentials_of(&case.plan.face.envelope, call, case.context.depth)?,
        Credentials::Drop => HeaderMap::new(),
    };
    let has_body = HasBody::new(&made.body);
    let mut headers = translated(case.request.head.headers, upstream, has_body);
    headers.extend(credentials);
    accept_values_of(&mut headers, route);
    response_stream::ask(case, route, Side::Rpc, &mut headers);
    set(&mut headers, made.headers.clone());
    withhold_credentials(&mut headers, upstream);
    Ok(headers)
}
