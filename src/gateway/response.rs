//! Rendering: responses and failures become HTTP for the side of the request, and complete the call's record.

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, response};
use hyper::upgrade::OnUpgrade;

use std::time::Duration;

use super::record::Record;
use super::response_body::{ResponseBody, UpstreamBody};
use super::shadow::{Candidate, RecordedResponse};
use super::stream_end::{GracefulStreamEnd, is_event_stream};
use super::tunnel;
use super::upstream_stream::StreamBody;
use crate::domain::compare::Skip;
use crate::domain::failure::{Advice, Failure, FailureCodes};
use crate::domain::headers::JSON;
use crate::domain::jsonrpc::{self, RequestId};
use crate::domain::outcome::{error_object, problem};
use crate::domain::rope::Rope;
use crate::domain::side::Side;
use crate::domain::stream::Rewriter;
use crate::upstream::{IncomingBody, Lease};

/// The response to a call.
pub(super) enum CallResponse {
    /// A complete response.
    Full(Box<FullResponse>),
    /// A response streamed from an upstream.
    Streaming(Box<StreamingResponse>),
    /// The connection changes its protocol (RFC 9110 §7.8).
    Upgrade(Box<UpgradeResponse>),
}

/// A complete response.
#[derive(Debug)]
pub(super) struct FullResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Rope,
}

/// A response streamed from an upstream.
pub(super) struct StreamingResponse {
    pub(super) response: Box<Response<IncomingBody>>,
    pub(super) lease: Lease,
    pub(super) silence: Duration,
    /// Rewrites the stream for the other side.
    pub(super) rewriter: Option<Rewriter>,
    /// Maximum age, after which the stream is ended.
    pub(super) max_age: Option<Duration>,
}

/// Both ends of a connection that changes its protocol.
pub(super) struct UpgradeResponse {
    pub(super) head: response::Parts,
    pub(super) client: OnUpgrade,
    pub(super) upstream: OnUpgrade,
    pub(super) lease: Lease,
    pub(super) silence: Duration,
    /// Maximum age, after which the tunnel is closed.
    pub(super) max_age: Option<Duration>,
}

/// Renders the result of a request.
pub(super) fn render(
    record: Box<Record>,
    came_to: Result<CallResponse, Failure>,
) -> Response<ResponseBody> {
    match came_to {
        Ok(answered) => answer(record, answered),
        Err(failed) => failure(record, failed),
    }
}

/// Renders a response. A streamed body takes the record along and reports it at its end.
pub(super) fn answer(mut record: Box<Record>, answer: CallResponse) -> Response<ResponseBody> {
    match answer {
        CallResponse::Full(whole) => {
            let candidate = attach_shadow(&mut record, || RecordedResponse::whole(&whole));
            respond_to(record, *whole, candidate)
        }
        CallResponse::Streaming(stream) => {
            let StreamingResponse {
                response,
                mut lease,
                silence,
                rewriter,
                max_age,
            } = *stream;
            let (head, body) = response.into_parts();
            let spelling = lease.take_header_case();
            record.answered(head.status.as_u16());
            record.head_sent();
            if let Some(candidate) = record.candidate() {
                candidate.on_head(&head);
            }
            let withheld = withheld(&head);
            let closing = GracefulStreamEnd::new(&head.headers, max_age, &record);
            // An event stream may stay open past the call's deadline.
            let due = record.due().filter(|_| !is_event_stream(&head.headers));
            let coming = UpstreamBody {
                content: StreamBody::new(body, rewriter),
                lease,
                silence,
                closing,
                due,
            };
            let streamed = ResponseBody::streamed(coming, record);
            let body = withheld.map_or(streamed, ResponseBody::withheld);
            Response::from_parts(head, body.with_header_case(spelling))
        }
        CallResponse::Upgrade(tunnel) => {
            let UpgradeResponse {
                head,
                client,
                upstream,
                mut lease,
                silence,
                max_age,
            } = *tunnel;
            let body =
                ResponseBody::written(Rope::default()).with_header_case(lease.take_header_case());
            record.answered(head.status.as_u16());
            if let Some(candidate) = record.take_candidate() {
                candidate.skip(Skip::Stream);
            }
            let tasks = record.worker().tasks().clone();
            let connected = record.worker().connected(record.peer().cloned());
            tasks.start(async move {
                tunnel::run(record, client, upstream, (silence, max_age)).await;
                // Both connections count towards the worker's limits until the tunnel closes.
                drop((lease, connected));
            });
            Response::from_parts(head, body)
        }
    }
}

/// Returns the length that a 304 announces for the body it omits.
fn withheld(head: &response::Parts) -> Option<u64> {
    if head.status != StatusCode::NOT_MODIFIED {
        return None;
    }
    head.headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Renders a failure of a whole request for the side of its record.
pub(super) fn failure(mut record: Box<Record>, failure: Failure) -> Response<ResponseBody> {
    let codes = &record.installed().plan.face.failure_codes;
    let whole = match (record.side(), record.stream()) {
        // A client of an event stream checks the HTTP status on either side.
        (Side::Rest, _) | (Side::Rpc, Some(_)) => rest_failure(&failure, codes),
        (Side::Rpc, None) => {
            let mut whole = rpc_failure(&failure, codes, &RequestId::null());
            if *record.method() != Method::POST {
                // The request is not a JSON-RPC call, so its client checks the HTTP status.
                whole.status = status(failure.reason.row().status);
            }
            whole
        }
    };
    record.failed(whole.status.as_u16(), &failure);
    let candidate = attach_shadow(&mut record, || RecordedResponse::failure(&whole, &failure));
    respond_to(record, whole, candidate)
}

fn respond_to(
    record: Box<Record>,
    whole: FullResponse,
    candidate: Option<Candidate>,
) -> Response<ResponseBody> {
    if *record.method() == Method::HEAD {
        // The body of a response to HEAD is not read, so the candidate would never start at its end.
        candidate.into_iter().for_each(Candidate::start);
        return respond_to_head(whole);
    }
    let response = respond_then(whole, candidate.into_iter().collect());
    holding(response, record.held().into_iter().collect())
}

/// Responds to HEAD with the length of the body, but no body. hyper omits bodies only over HTTP/1.1.
fn respond_to_head(whole: FullResponse) -> Response<ResponseBody> {
    let body = match whole.body.len() {
        0 => ResponseBody::written(Rope::default()),
        length => ResponseBody::withheld(length as u64),
    };
    let mut response = Response::new(body);
    *response.status_mut() = whole.status;
    *response.headers_mut() = whole.headers;
    response
}

/// Keeps the records of calls until the client has received the response.
pub(super) fn holding(
    response: Response<ResponseBody>,
    records: Vec<Record>,
) -> Response<ResponseBody> {
    response.map(|body| body.holding_records(records))
}

/// Returns the candidate of a call, with the response that the client receives.
pub(super) fn attach_shadow(
    record: &mut Record,
    control: impl FnOnce() -> RecordedResponse,
) -> Option<Candidate> {
    let candidate = record.take_candidate()?;
    Some(candidate.with_control(control()))
}

/// Renders a failure as a problem document.
pub(super) fn rest_failure(failure: &Failure, codes: &FailureCodes) -> FullResponse {
    let answer = problem(failure, codes);
    let mut headers = advice(failure);
    headers.insert(
        CACHE_CONTROL,
        const { HeaderValue::from_static("no-store") },
    );
    if let Some(kind) = answer
        .content_type
        .and_then(|kind| HeaderValue::try_from(kind).ok())
    {
        headers.insert(CONTENT_TYPE, kind);
    }
    FullResponse {
        status: status(answer.status),
        headers,
        body: answer.body,
    }
}

/// Renders a failure as an RPC error for the call with `id`.
pub(super) fn rpc_failure(failure: &Failure, codes: &FailureCodes, id: &RequestId) -> FullResponse {
    let body = jsonrpc::error(id, &error_object(failure, codes));
    let mut whole = rpc_message(body);
    whole.headers.extend(advice(failure));
    whole.status = status(failure.reason.rpc_face_status());
    whole
}

/// Renders a JSON-RPC response.
pub(super) fn rpc_message(body: Rope) -> FullResponse {
    rpc_message_with_shadow(HeaderMap::new(), body)
}

/// Renders a JSON-RPC response with headers taken over from a server's response.
pub(super) fn rpc_message_with_shadow(mut headers: HeaderMap, body: Rope) -> FullResponse {
    headers.insert(CONTENT_TYPE, JSON);
    FullResponse {
        status: StatusCode::OK,
        headers,
        body,
    }
}

/// Renders the response to a notification, which has no body.
pub(super) fn acknowledged(status: StatusCode) -> FullResponse {
    FullResponse {
        status,
        headers: HeaderMap::new(),
        body: Rope::default(),
    }
}

fn advice(failure: &Failure) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    match failure.advice.as_deref() {
        None | Some(Advice::Versions { .. }) => {}
        Some(Advice::Allow(methods)) => add(ALLOW, methods.clone()),
        Some(Advice::RetryAfter(seconds)) => add(RETRY_AFTER, seconds.to_string()),
        Some(Advice::Successor { link, pause, .. }) => {
            if let Some(link) = link {
                add(LINK, format!("<{link}>; rel=\"successor-version\""));
            }
            if let Some(pause) = pause {
                add(RETRY_AFTER, pause.seconds.to_string());
            }
        }
    }
    headers
}

/// Returns the status for a code of the domain; all of these are valid in HTTP.
pub(super) fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(super) fn respond(whole: FullResponse) -> Response<ResponseBody> {
    respond_then(whole, Vec::new())
}

/// Responds, and starts candidates when the client has the whole body.
pub(super) fn respond_then(
    whole: FullResponse,
    followed_by: Vec<Candidate>,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::followed(whole.body, followed_by));
    *response.status_mut() = whole.status;
    *response.headers_mut() = whole.headers;
    response
}
