//! Explanations of frames: messages that are not JSON-RPC, on a WebSocket for both protocols.

use super::case::{Case, carrier};
use super::local_reply::record_decision;
use super::rest::describe_call;
use super::unknown_members;
use super::view::{ExplainedAnswer, Explanation, RowLine, SentRequest, Value};
use crate::dialect::{self, OldRequest};
use crate::failure::{Failure, Reason};
use crate::frame::{FrameReply, SocketMessage, answer_to_frame, command_to_rpc};
use crate::jsonrpc::ResponseReply;
use crate::plan::{Plan, SocketProtocol, Unrouted, UpstreamPlan};
use crate::rejections;
use crate::reply::parse_for;
use crate::rollout::{DecisionReason, Way};
use crate::route::Route;
use crate::routing::{self, refused};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::side::Side;

/// Returns the body as a frame, where clients may speak in frames.
pub(super) fn parse(case: &Case<'_>) -> Option<Json> {
    let plan = case.plan;
    let sockets = plan
        .face
        .sockets
        .filter(|_| !case.request.body.is_empty())?;
    match SocketMessage::of_client(case.request.body, plan.limits.depth, &plan.routes) {
        SocketMessage::Frame(frame) if sockets.protocol == SocketProtocol::Both => Some(frame),
        SocketMessage::Frame(_) | SocketMessage::Rpc(_) | SocketMessage::Unrecognized(_) => None,
    }
}

/// Explains a frame.
pub(super) fn explain(case: &Case<'_>, frame: &Json) -> Explanation {
    let mut explanation = case.begin();
    explanation.message = Some(case.secrets().hide(&rejections::frame_in_short(frame)));
    let failure = match try_explain(case, frame, &mut explanation) {
        Ok(()) => return explanation,
        Err(failure) => failure,
    };
    let mut explanation = case.refuse(explanation, failure.clone());
    let route = case.plan.routes.select_frame(frame);
    let answer = route.and_then(|index| {
        let route = case.plan.routes.route(index);
        let codes = &case.plan.face.failure_codes;
        dialect::failure(
            route,
            OldRequest::of_frame(frame),
            &failure,
            codes,
            case.context,
        )
    });
    if let Some(refused) = &mut explanation.refused {
        // A failure is sent as a frame or not at all.
        let text = answer.map(|answer| case.secrets().hide_bytes(&answer.body.into_bytes()));
        refused.document = Value::from_text(text.unwrap_or_default());
    }
    explanation
}

fn try_explain(
    case: &Case<'_>,
    frame: &Json,
    explanation: &mut Explanation,
) -> Result<(), Failure> {
    let plan = case.plan;
    // A foreign Origin or Host would have failed at the WebSocket handshake.
    routing::check_origin(plan, case.request.head, case.entry())?;
    if let Some(reply) = plan.locals.frame(frame, case.context) {
        record_decision(case, DecisionReason::Local, explanation);
        explanation.answer = Some(ExplainedAnswer {
            row: None,
            status: 200,
            headers: Vec::new(),
            body: shown(case, Some(reply)),
            dropped: 0,
            note: Some("by the proxy itself".into()),
        });
        return Ok(());
    }
    let route = plan.routes.select_frame(frame);
    let decision = case.decide(explanation, route);
    match (decision.stage.control(), route) {
        (None, Some(index)) => Err(refused(plan, decision.why, index, Side::Rest, case.at())),
        (Some(Way::New), Some(index)) => translate(case, index, frame, explanation),
        (Some(Way::Old), _) | (_, None) => {
            let upstream =
                passthrough_upstream(plan, route).ok_or_else(|| rejections::no_frame(frame))?;
            explanation.sends = Some(SentRequest {
                upstream: upstream.name.clone(),
                authority: upstream.authority.as_str().to_owned(),
                method: carrier(upstream).to_owned(),
                body: Some(Value::from_text(
                    case.secrets().hide_bytes(case.request.body),
                )),
                note: Some("unchanged, over this client's own connection".into()),
                ..SentRequest::default()
            });
            Ok(())
        }
    }
}

/// Returns the server to which a frame is passed through.
fn passthrough_upstream(plan: &Plan, route: Option<usize>) -> Option<&UpstreamPlan> {
    match route {
        Some(_) => plan.upstream_for(route, Side::Rest),
        None if plan.unrouted == Unrouted::Passthrough => {
            plan.upstreams.all.get(plan.upstreams.frames?)
        }
        None => None,
    }
}

fn translate(
    case: &Case<'_>,
    index: usize,
    frame: &Json,
    explanation: &mut Explanation,
) -> Result<(), Failure> {
    let route = case.plan.routes.route(index);
    let translated =
        command_to_rpc(route, frame.clone(), case.context).map_err(rejections::bind_failure)?;
    let pattern = route.rest_call.body.as_ref();
    explanation.dropped = unknown_members::in_value(pattern, frame, "frame");
    let (_, bindings) = describe_call(case, index, translated, explanation)?;
    if route.expects_reply {
        explanation.answer = answer(case, route, &bindings)?;
    }
    Ok(())
}

/// Translates the answer of an RPC server for the client.
fn answer(
    case: &Case<'_>,
    route: &Route,
    call: &Bindings,
) -> Result<Option<ExplainedAnswer>, Failure> {
    let Some(reply) = case.request.reply else {
        return Ok(None);
    };
    let limits = &case.plan.limits;
    let response = parse_for(route, &reply.body, limits.depth)
        .map_err(|fault| rejections::no_response(reply, fault, limits.error_text))?;
    if let ResponseReply::Result(result) = &response.reply {
        rejections::unless_valid(route, result)?;
    }
    let answered = answer_to_frame(route, response.reply, call, case.context);
    if answered.answer == FrameReply::NoRow {
        let message = "no outcome of the route maps the server's answer to a frame";
        return Err(Failure::new(Reason::UpstreamNotProtocol, message));
    }
    let row = answered
        .row
        .map(|row| RowLine::new(&route.outcomes.rows()[row]));
    let note = match answered.answer {
        FrameReply::Frame(_) => "a frame",
        FrameReply::Silence | FrameReply::NoRow => "no frame is sent",
    };
    Ok(Some(ExplainedAnswer {
        row,
        status: 200,
        headers: Vec::new(),
        body: shown(case, Some(answered.answer)),
        dropped: answered.dropped,
        note: Some(note.into()),
    }))
}

fn shown(case: &Case<'_>, reply: Option<FrameReply>) -> Option<Value> {
    match reply? {
        FrameReply::Frame(frame) => Some(Value::from_text(
            case.secrets().hide_bytes(&frame.into_bytes()),
        )),
        FrameReply::Silence | FrameReply::NoRow => None,
    }
}
