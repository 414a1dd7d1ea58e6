//! Rendering: responses and failures become HTTP for the side of the request, and complete the call's record.
//!
//! Used throughout `gateway`.

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
use crate::upstream::{IncomingBody, Lease};
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::{Advice, Failure, FailureCodes};
use dualgauge_model::headers::JSON;
use dualgauge_model::jsonrpc::{self, RequestId};
use dualgauge_model::outcome::{error_object, problem};
use dualgauge_model::stream::Rewriter;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

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
    pub(super) idle_timeout: Duration,
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
    pub(super) idle_timeout: Duration,
    /// Maximum age, after which the tunnel is closed.
    pub(super) max_age: Option<Duration>,
}

/// Renders the result of a request.
pub(super) fn render(
    record: Box<Record>,
    result: Result<CallResponse, Failure>,
) -> Response<ResponseBody> {
    match result {
        Ok(answer) => render_response(record, answer),
        Err(error) => render_failure(record, error),
    }
}

/// Renders a response. A streamed body owns the record and reports it at its end.
pub(super) fn render_response(
    mut record: Box<Record>,
    answer: CallResponse,
) -> Response<ResponseBody> {
    match answer {
        CallResponse::Full(full) => {
            let candidate = attach_shadow(&mut record, || RecordedResponse::from_full(&full));
            respond_to(record, *full, candidate)
        }
        CallResponse::Streaming(stream) => {
            let StreamingResponse {
                response,
                mut lease,
                idle_timeout,
                rewriter,
                max_age,
            } = *stream;
            let (head, body) = response.into_parts();
            let header_case = lease.take_header_case();
            record.set_response(head.status.as_u16());
            record.mark_head_sent();
            if let Some(candidate) = record.candidate() {
                candidate.on_head(&head);
            }
            let withheld_length = withheld_length(&head);
            let graceful_end = GracefulStreamEnd::new(&head.headers, max_age, &record);
            // An event stream may stay open past the call's deadline.
            let deadline = record
                .deadline()
                .filter(|_| !is_event_stream(&head.headers));
            let upstream_body = UpstreamBody {
                content: StreamBody::new(body, rewriter),
                lease,
                idle_timeout,
                graceful_end,
                deadline,
            };
            let streamed = ResponseBody::streamed(upstream_body, record);
            let body = withheld_length.map_or(streamed, ResponseBody::withheld);
            Response::from_parts(head, body.with_header_case(header_case))
        }
        CallResponse::Upgrade(tunnel) => {
            let UpgradeResponse {
                head,
                client,
                upstream,
                mut lease,
                idle_timeout,
                max_age,
            } = *tunnel;
            let body =
                ResponseBody::full(Rope::default()).with_header_case(lease.take_header_case());
            record.set_response(head.status.as_u16());
            if let Some(candidate) = record.take_candidate() {
                candidate.skip(Skip::Stream);
            }
            let tasks = record.worker().tasks().clone();
            let connection_guard = record.worker().count_connection(record.peer().cloned());
            tasks.start(async move {
                tunnel::run(record, client, upstream, (idle_timeout, max_age)).await;
                // Both connections count towards the worker's limits until the tunnel closes.
                drop((lease, connection_guard));
            });
            Response::from_parts(head, body)
        }
    }
}

/// Returns the length that a 304 announces for the body it omits.
fn withheld_length(head: &response::Parts) -> Option<u64> {
    if head.status != StatusCode::NOT_MODIFIED {
        return None;
    }
    head.headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Renders a failure of a whole request for the side of its record.
pub(super) fn render_failure(mut record: Box<Record>, failure: Failure) -> Response<ResponseBody> {
    let codes = &record.runtime_plan().plan.face.failure_codes;
    let full = match (record.side(), record.stream()) {
        // A client of an event stream checks the HTTP status on either side.
        (Side::Rest, _) | (Side::Rpc, Some(_)) => rest_failure(&failure, codes),
        (Side::Rpc, None) => {
            let mut full = rpc_failure(&failure, codes, &RequestId::null());
            if *record.method() != Method::POST {
                // The request is not a JSON-RPC call, so its client checks the HTTP status.
                full.status = status(failure.reason.row().status);
            }
            full
        }
    };
    record.set_failure(full.status.as_u16(), &failure);
    let candidate = attach_shadow(&mut record, || RecordedResponse::failure(&full, &failure));
    respond_to(record, full, candidate)
}

fn respond_to(
    record: Box<Record>,
    full: FullResponse,
    candidate: Option<Candidate>,
) -> Response<ResponseBody> {
    if *record.method() == Method::HEAD {
        // The body of a response to HEAD is not read, so the candidate would never start at its end.
        candidate.into_iter().for_each(Candidate::start);
        return respond_to_head(full);
    }
    let response = respond_then(full, candidate.into_iter().collect());
    hold_records(response, record.hold_for_delivery().into_iter().collect())
}

/// Responds to HEAD with the length of the body, but no body. hyper omits bodies only over HTTP/1.1.
fn respond_to_head(full: FullResponse) -> Response<ResponseBody> {
    let body = match full.body.len() {
        0 => ResponseBody::full(Rope::default()),
        length => ResponseBody::withheld(length as u64),
    };
    let mut response = Response::new(body);
    *response.status_mut() = full.status;
    *response.headers_mut() = full.headers;
    response
}

/// Keeps the records of calls until the client has received the response.
pub(super) fn hold_records(
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
    let mut headers = advice_headers(failure);
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
    let mut full = rpc_message(body);
    full.headers.extend(advice_headers(failure));
    full.status = status(failure.reason.rpc_face_status());
    full
}

/// Renders a JSON-RPC response.
pub(super) fn rpc_message(body: Rope) -> FullResponse {
    rpc_message_with_headers(HeaderMap::new(), body)
}

/// Renders a JSON-RPC response with headers taken over from a server's response.
pub(super) fn rpc_message_with_headers(mut headers: HeaderMap, body: Rope) -> FullResponse {
    headers.insert(CONTENT_TYPE, JSON);
    FullResponse {
        status: StatusCode::OK,
        headers,
        body,
    }
}

/// Renders the response to a notification, which has no body.
pub(super) fn acknowledgement(status: StatusCode) -> FullResponse {
    FullResponse {
        status,
        headers: HeaderMap::new(),
        body: Rope::default(),
    }
}

fn advice_headers(failure: &Failure) -> HeaderMap {
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

/// Returns the status for a code of the model; all of these are valid in HTTP.
pub(super) fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(super) fn respond(full: FullResponse) -> Response<ResponseBody> {
    respond_then(full, Vec::new())
}

/// Responds, and starts candidates when the client has the whole body.
pub(super) fn respond_then(
    full: FullResponse,
    candidates: Vec<Candidate>,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::with_candidates(full.body, candidates));
    *response.status_mut() = full.status;
    *response.headers_mut() = full.headers;
    response
}
