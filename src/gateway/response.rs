//! Rendering: responses and failures become HTTP for the side of the request, and complete the call's record. Responses
//! that the proxy wrote get the CORS headers, passed ones do not.
//!
//! Used throughout `gateway`.

use http::header::{CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, response};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{
    BodyTranslation, CallResponse, FullResponse, StreamingResponse, UpgradeResponse, rest_failure,
    rpc_failure, status,
};
use super::response_body::{ResponseBody, UpstreamBody};
use super::response_observer::{Observer, notify_sent};
use super::stream_end::{GracefulStreamEnd, is_event_stream};
use super::tunnel;
use super::upstream_stream::StreamBody;
use super::worker::Worker;
use dualgauge_model::compare::Skip;
use dualgauge_model::cors;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::RequestId;
use dualgauge_model::plan::Plan;
use dualgauge_net::{CloseReason, Lease};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;
use dualgauge_transport::wire::FloodReason;

/// Renders the result of a request.
pub(super) fn render(
    record: Box<AccessRecord>,
    result: Result<CallResponse, Failure>,
    observer: Option<Observer>,
) -> Response<ResponseBody> {
    match result {
        Ok(answer) => render_response(record, answer, observer),
        Err(error) => render_failure(record, error, observer),
    }
}

/// Renders the result of a request, with the annotations of its route and, if the proxy wrote it, the CORS headers.
pub(super) fn render_annotated(
    record: Box<AccessRecord>,
    result: Result<CallResponse, Failure>,
    observer: Option<Observer>,
    cors_origin: Option<&HeaderValue>,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let is_built_by_proxy = record.context.is_built_by_proxy();
    let annotations = ResponseAnnotations::new(&record.context);
    let mut response = render(record, result, observer);
    annotations.write(plan, response.headers_mut());
    if let Some(cors) = plan.cors.as_ref().filter(|_| is_built_by_proxy) {
        cors.mark(cors_origin, response.headers_mut());
    }
    response
}

/// Renders a response. A streamed body owns the record and reports it at its end.
pub(super) fn render_response(
    record: Box<AccessRecord>,
    answer: CallResponse,
    mut observer: Option<Observer>,
) -> Response<ResponseBody> {
    match answer {
        CallResponse::Full(full) => {
            if let Some(observer) = &mut observer {
                observer.on_full(&full, None);
            }
            respond_to(record, *full, observer)
        }
        CallResponse::Streaming(stream) => render_stream(record, *stream, observer),
        CallResponse::Upgrade(tunnel) => render_upgrade(record, *tunnel, observer),
    }
}

/// Renders a response that streams from an upstream.
fn render_stream(
    mut record: Box<AccessRecord>,
    stream: StreamingResponse,
    mut observer: Option<Observer>,
) -> Response<ResponseBody> {
    let StreamingResponse {
        response,
        mut lease,
        idle_timeout,
        translation,
        max_age,
    } = stream;
    let (head, body) = response.into_parts();
    let header_case = lease.as_mut().and_then(Lease::take_header_case);
    record.set_response(head.status.as_u16());
    record.mark_head_sent();
    if let Some(observer) = &mut observer {
        observer.on_head(&head);
    }
    let withheld_length = withheld_length(&head);
    let graceful_end = GracefulStreamEnd::new(&head.headers, max_age, &record.context);
    let deadline = record.context.deadline().filter(|_| {
        // An event stream may stay open past the call's deadline.
        !matches!(translation, BodyTranslation::Response(_)) && !is_event_stream(&head.headers)
    });
    let upstream_body = UpstreamBody {
        content: StreamBody::new(body, translation, &record.context),
        lease,
        idle_timeout,
        graceful_end,
        deadline,
        observer,
    };
    let streamed = ResponseBody::streamed(upstream_body, record);
    let body = withheld_length.map_or(streamed, ResponseBody::withheld);
    Response::from_parts(head, body.with_header_case(header_case))
}

/// Renders the response to an upgrade, and starts the tunnel.
fn render_upgrade(
    mut record: Box<AccessRecord>,
    tunnel: UpgradeResponse,
    observer: Option<Observer>,
) -> Response<ResponseBody> {
    let UpgradeResponse {
        head,
        client,
        upstream,
        mut lease,
        idle_timeout,
        max_age,
    } = tunnel;
    let body = ResponseBody::full(Rope::default()).with_header_case(lease.take_header_case());
    record.set_response(head.status.as_u16());
    if let Some(observer) = observer {
        observer.skip(Skip::Stream);
    }
    let tasks = record.context.worker().tasks().clone();
    let connection_guard = record
        .context
        .worker()
        .count_connection(record.context.peer().cloned());
    tasks.start(async move {
        tunnel::run(record, client, upstream, idle_timeout, max_age).await;
        // Both connections count towards the worker's limits until the tunnel closes.
        drop((lease, connection_guard));
    });
    Response::from_parts(head, body)
}

/// Returns the response that opens a WebSocket (RFC 6455 §4.2.2).
pub(super) fn switch_to_websocket(accept: Option<HeaderValue>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(Rope::default()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, const { HeaderValue::from_static("upgrade") });
    headers.insert(UPGRADE, const { HeaderValue::from_static("websocket") });
    if let Some(accept) = accept {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

/// Counts a client's WebSocket that is closed because of the frames that it sent; returns the close reason, if it is.
pub(super) fn flood_reason(worker: &Worker, is_flooded: bool) -> Option<CloseReason> {
    is_flooded.then(|| {
        worker.count(|shard| shard.cut_connection(FloodReason::Chatter));
        CloseReason::from_text("too many control frames or empty fragments")
    })
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
pub(super) fn render_failure(
    mut record: Box<AccessRecord>,
    failure: Failure,
    mut observer: Option<Observer>,
) -> Response<ResponseBody> {
    let codes = &record.context.runtime_plan().plan.face.failure_codes;
    let full = match (record.context.side(), record.context.stream()) {
        // A client of an event stream checks the HTTP status on either side.
        (Side::Rest, _) | (Side::Rpc, Some(_)) => rest_failure(&failure, codes),
        (Side::Rpc, None) => {
            let mut full = rpc_failure(&failure, codes, &RequestId::null());
            if *record.context.method() != Method::POST {
                // The request is not a JSON-RPC call, so its client checks the HTTP status.
                full.status = status(failure.reason.row().status);
            }
            full
        }
    };
    record.set_failure(full.status.as_u16(), &failure);
    if let Some(observer) = &mut observer {
        observer.on_full(&full, Some(&failure));
    }
    respond_to(record, full, observer)
}

fn respond_to(
    record: Box<AccessRecord>,
    full: FullResponse,
    observer: Option<Observer>,
) -> Response<ResponseBody> {
    if *record.context.method() == Method::HEAD {
        // The body of a response to HEAD is not read, so its end would never be observed.
        notify_sent(observer);
        return respond_to_head(full);
    }
    let response = respond_then(full, observer.into_iter().collect());
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
    records: Vec<AccessRecord>,
) -> Response<ResponseBody> {
    response.map(|body| body.holding_records(records))
}

/// Responds with a complete response.
pub(super) fn respond(full: FullResponse) -> Response<ResponseBody> {
    respond_then(full, Vec::new())
}

/// Responds; `observers` learn when the client has the whole body.
pub(super) fn respond_then(full: FullResponse, observers: Vec<Observer>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::observed(full.body, observers));
    *response.status_mut() = full.status;
    *response.headers_mut() = full.headers;
    response
}

/// Returns the origin of a request, if the plan configures CORS.
pub(super) fn cors_origin(plan: &Plan, headers: &HeaderMap) -> Option<HeaderValue> {
    plan.cors.as_ref()?;
    cors::origin(headers).cloned()
}

/// Adds the CORS headers to a response that the proxy wrote for a request with the headers `request_headers`.
pub(super) fn add_cors_headers(
    plan: &Plan,
    request_headers: &HeaderMap,
    answer: &mut Response<ResponseBody>,
) {
    if let Some(cors) = &plan.cors {
        cors.mark(cors::origin(request_headers), answer.headers_mut());
    }
}

/// Headers that the proxy adds to responses: the deprecation of the route and, if configured, the decision that served
/// the call.
pub(super) struct ResponseAnnotations {
    route: Option<usize>,
    side: Side,
    decision: Option<HeaderValue>,
}

impl ResponseAnnotations {
    /// Creates the annotations of a call that was served.
    pub(super) fn new(context: &CallContext) -> ResponseAnnotations {
        let rollout = &context.runtime_plan().plan.rollout;
        let decision = rollout.decision_header.as_ref().map(|_| {
            let stage = context.stage().map_or("none", |stage| stage.as_str());
            format!("{stage}; {}", rollout.describe(context.why()))
        });
        ResponseAnnotations {
            route: context.route(),
            side: context.side(),
            // A flag name may contain characters that a header value cannot.
            decision: decision.and_then(|decision| HeaderValue::try_from(decision).ok()),
        }
    }

    /// Writes the annotations to the response headers.
    pub(super) fn write(self, plan: &Plan, headers: &mut HeaderMap) {
        plan.lifecycle.announce(self.route, self.side, headers);
        if let (Some(name), Some(decision)) = (&plan.rollout.decision_header, self.decision) {
            headers.insert(name.clone(), decision);
        }
    }
}
