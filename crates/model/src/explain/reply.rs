//! Replies of an upstream, translated for the caller. Used by `explain::rest` and `explain::rpc`.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::case::Case;
use super::secrets::Secrets;
use super::view::{ExplainedAnswer, RowLine, Value};
use crate::failure::Failure;
use crate::headers::{from_response, set};
use crate::jsonrpc::{self, RequestId, ResponseReply};
use crate::outcome::{RestReply, RpcAnswer, is_rejection_status};
use crate::rejections;
use crate::reply::{check_result, parse_for};
use crate::response_stream::{becomes_event, single_event};
use crate::route::Route;
use crate::sse::EVENT_STREAM;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;

/// Returns the reply of the upstream of the caller's own side.
pub(super) fn passed(case: &Case<'_>) -> Option<ExplainedAnswer> {
    let reply = case.request.reply?;
    Some(ExplainedAnswer {
        row: None,
        status: reply.status,
        headers: case.headers(&reply.headers),
        body: shown(case, &reply.body, &reply.headers),
        dropped: 0,
        note: Some("unchanged".into()),
    })
}

/// Translates the reply of an RPC upstream for a REST client.
pub(super) fn answer_rest(
    case: &Case<'_>,
    route: &Route,
    call: &Bindings,
) -> Result<Option<ExplainedAnswer>, Failure> {
    let Some(reply) = case.request.reply else {
        return Ok(None);
    };
    if route.pass.includes(reply.status) {
        return Ok(Some(passed_as_is(case, route, reply)));
    }
    let answered = if reply.is_event_stream() && !is_rejection_status(reply.status) {
        return Err(rejections::event_stream(reply.status));
    } else if is_rejection_status(reply.status) {
        route.outcomes.refused(reply, call, case.context).answered
    } else {
        let limits = &case.plan.limits;
        let response = parse_for(route, &reply.body, limits.depth)
            .map_err(|fault| rejections::no_response(reply, fault, limits.error_text))?;
        if let ResponseReply::Result(result) = &response.reply {
            check_result(route, result)?;
        }
        route
            .outcomes
            .answer_rest(response.reply, call, case.context)?
    };
    let answer = answered.answer;
    let mut headers = from_response(reply.headers.clone());
    if let Some(kind) = answer.content_type.and_then(|kind| kind.try_into().ok()) {
        headers.insert(CONTENT_TYPE, kind);
    }
    set(&mut headers, answer.headers);
    let mut body = answer.body.into_bytes();
    let status = StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut note = None;
    let client = case.request.head.headers;
    // The messages of a batch are parts of one array.
    if !case.in_old_batch && becomes_event(route, client, status, headers.get(CONTENT_TYPE)) {
        body = single_event(&body).into();
        let kind = const { HeaderValue::from_static(EVENT_STREAM) };
        headers.insert(CONTENT_TYPE, kind);
        let unbuffered = const { HeaderValue::from_static("no") };
        headers.entry("x-accel-buffering").or_insert(unbuffered);
        note = Some("a complete response, as the only event".into());
    }
    Ok(Some(ExplainedAnswer {
        row: row(route, answered.row),
        status: answer.status,
        body: shown(case, &body, &reply.headers),
        headers: case.headers(&headers),
        dropped: answered.dropped,
        note,
    }))
}

/// Translates the reply of a REST upstream for an RPC client.
pub(super) fn answer_rpc(
    case: &Case<'_>,
    route: &Route,
    call: &Bindings,
    id: &RequestId,
) -> Result<Option<ExplainedAnswer>, Failure> {
    let Some(reply) = case.request.reply else {
        return Ok(None);
    };
    if route.pass.includes(reply.status) {
        return Ok(Some(passed_as_is(case, route, reply)));
    }
    if reply.is_event_stream() && !is_rejection_status(reply.status) {
        return Err(rejections::event_stream(reply.status));
    }
    let limits = case.plan.limits.reply();
    let answered = route
        .outcomes
        .rest_to_rpc(reply, call, limits, case.context)?;
    let errors = case.plan.face.error_status;
    let status = route.outcomes.rpc_status(reply, &answered.answer, errors);
    let is_failed_tool = answered.row.is_none() && reply.status >= 400;
    let message = match route.outcomes.completed(answered.answer) {
        RpcAnswer::Result(result) => {
            if route.schema.result.is_some() && !is_failed_tool {
                rejections::unless_valid(route, &Json::sent(result.clone()))?;
            }
            jsonrpc::result(id, result)
        }
        RpcAnswer::Error(error) => jsonrpc::error(id, &error),
    };
    let mut headers = from_response(reply.headers.clone());
    headers.insert(
        CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    Ok(Some(ExplainedAnswer {
        row: row(route, answered.row),
        status,
        headers: case.headers(&headers),
        body: shown(case, &message.into_bytes(), &reply.headers),
        dropped: answered.dropped,
        note: None,
    }))
}

/// Returns a response that means the same to the clients of both dialects.
fn passed_as_is(case: &Case<'_>, route: &Route, reply: &RestReply) -> ExplainedAnswer {
    let headers = route.pass.response_headers(&reply.headers);
    ExplainedAnswer {
        row: None,
        status: reply.status,
        headers: case.headers(&headers),
        body: shown(case, &reply.body, &reply.headers),
        dropped: 0,
        note: Some("this status means the same in both dialects (`old.pass`)".into()),
    }
}

fn row(route: &Route, row: Option<usize>) -> Option<RowLine> {
    row.map(|row| RowLine::new(&route.outcomes.rows()[row]))
}

/// Renders a body without the credentials of the request and those set by the reply.
fn shown(case: &Case<'_>, body: &[u8], headers: &HeaderMap) -> Option<Value> {
    let own = case.secrets().hide_bytes(body);
    let mut set = Secrets::new(headers, |name| case.is_secret(name));
    set.note_members(&case.plan.redaction, body, case.context.depth);
    (!body.is_empty()).then(|| Value::from_text(set.hide(&own)))
}
