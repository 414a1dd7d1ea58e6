//! Responses to calls before they are rendered, and those that the proxy writes for its own failures.
//!
//! Used throughout `gateway`.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, LINK, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, response};
use hyper::upgrade::OnUpgrade;

use super::subscription_events::SubscriptionEvents;
use dualgauge_model::failure::{Advice, Failure, FailureCodes};
use dualgauge_model::headers::JSON;
use dualgauge_model::jsonrpc::{self, RequestId};
use dualgauge_model::outcome::{error_object, problem};
use dualgauge_model::response_stream::ResponseStream;
use dualgauge_model::stream::Rewriter;
use dualgauge_model::stream_format::StreamFormats;
use dualgauge_net::{IncomingBody, Lease};
use dualgauge_patterns::rope::Rope;

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
    /// The lease of the connection that the body comes from, if it is one of a pool.
    pub(super) lease: Option<Lease>,
    pub(super) idle_timeout: Duration,
    /// The translation of the body for the other side.
    pub(super) translation: BodyTranslation,
    /// Maximum age, after which the stream is ended.
    pub(super) max_age: Option<Duration>,
}

/// The translation of a body that streams.
#[derive(Debug)]
pub(super) enum BodyTranslation {
    /// The body passes unchanged.
    None,
    /// An event stream, rewritten event by event.
    Events(Box<Rewriter>),
    /// The response to a call, translated event by event.
    Response(Box<ResponseTranslation>),
}

/// The translation of a response that streams.
#[derive(Debug)]
pub(super) struct ResponseTranslation {
    pub(super) stream: ResponseStream,
    /// The index of the route.
    pub(super) route: usize,
    /// The maximum duration of the stream.
    pub(super) time_limit: Option<Duration>,
    /// The subscription whose notifications are the events, in place of the body of the response.
    pub(super) subscription: Option<Box<SubscriptionEvents>>,
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

/// A complete response of an upstream.
#[derive(Clone, Debug)]
pub(super) struct UpstreamResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// A response as it arrives.
pub(super) enum Received {
    /// A complete response.
    Complete(UpstreamResponse),
    /// A response that streams, after its head.
    Stream(Box<ReceivedStream>),
}

/// A response that streams, after its head. Dropped, it closes the upstream connection.
#[derive(Debug)]
pub(super) struct ReceivedStream {
    pub(super) response: Box<Response<IncomingBody>>,
    pub(super) lease: Lease,
    pub(super) formats: StreamFormats,
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

/// Returns a challenge of `WWW-Authenticate` (RFC 9110 §11.6.1).
fn challenge(scheme: &str) -> String {
    // Without the parameter, browsers choose an encoding of their own (RFC 7617 §2.1).
    let charset = if scheme == "Basic" {
        ", charset=\"UTF-8\""
    } else {
        ""
    };
    format!("{scheme} realm=\"dualgauge\"{charset}")
}

fn advice_headers(failure: &Failure) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.append(name, value);
        }
    };
    match failure.advice.as_deref() {
        None | Some(Advice::Versions { .. } | Advice::Capabilities(_)) => {}
        Some(Advice::Allow(methods)) => add(ALLOW, methods.clone()),
        Some(Advice::Authenticate(schemes)) => {
            for scheme in *schemes {
                add(WWW_AUTHENTICATE, challenge(scheme));
            }
        }
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
