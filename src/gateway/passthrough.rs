//! Passthrough of calls: the request is forwarded as it arrived, and so is the response. Used throughout `gateway`.

mod message;

use std::future::poll_fn;
use std::mem;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, request};
use http_body::Body as _;
use hyper::upgrade::OnUpgrade;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{BodyTranslation, CallResponse, StreamingResponse, UpgradeResponse};
use super::exchange::{self, HeadDeadline};
use super::headers::{self, IdentityFields, InboundHop};
use super::request_body::RequestBody;
use super::request_origin::RequestOrigin;
use super::resource_challenges;
use super::stream_end::is_event_stream;
use crate::upstream::HttpUpstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::UpstreamPlan;
use dualgauge_model::rejections;
use dualgauge_net::{
    Body, BodyCopy, ConnectionNeed, Exchange, HeaderCasing, IncomingBody, OutgoingRequest,
    PassedHead, RetryPolicy, SendOptions, Upload, UploadProgress, boxed,
};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

pub(super) use message::PassedCall;

/// The handling of a server's interim responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterimResponses {
    /// Forwarded to the client, because the final response comes from this server.
    Forwarded,
    /// Dropped, because the call is one of several in its request, or arrived over a WebSocket.
    Dropped,
}

/// A call that is forwarded as it arrived.
pub(super) struct PassthroughRequest {
    pub(super) head: Box<request::Parts>,
    pub(super) body: Body,
    /// The progress of the client's upload, if the body is streamed.
    pub(super) progress: Option<Rc<UploadProgress>>,
    pub(super) upgrade: Option<OnUpgrade>,
    pub(super) interims: InterimResponses,
}

impl PassthroughRequest {
    /// Creates a call with the body as it came.
    pub(super) fn unchanged(head: Box<request::Parts>, content: RequestBody) -> PassthroughRequest {
        match content {
            RequestBody::Streaming(body, copy) => PassthroughRequest::streamed(head, body, copy),
            RequestBody::Read(body) => PassthroughRequest::from_bytes(head, body),
        }
    }

    /// Creates a call whose body was already read; it is forwarded unchanged.
    pub(super) fn from_bytes(mut head: Box<request::Parts>, body: Bytes) -> PassthroughRequest {
        head.headers.remove(EXPECT);
        head.headers.remove(TRAILER);
        head.headers.insert(CONTENT_LENGTH, body.len().into());
        let upgrade = head.extensions.remove();
        PassthroughRequest {
            head,
            body: Body::from(Rope::from(body)),
            progress: None,
            upgrade,
            interims: InterimResponses::Forwarded,
        }
    }

    /// Creates a call without a body.
    pub(super) fn empty(head: Box<request::Parts>) -> PassthroughRequest {
        PassthroughRequest {
            head,
            body: Body::empty(),
            progress: None,
            upgrade: None,
            interims: InterimResponses::Forwarded,
        }
    }

    /// Creates a call with a streamed body, copied if `copy` is set.
    pub(super) fn streamed(
        mut head: Box<request::Parts>,
        body: IncomingBody,
        copy: Option<BodyCopy>,
    ) -> PassthroughRequest {
        let upgrade = head.extensions.remove();
        let (body, progress) = Upload::begin(body, copy);
        PassthroughRequest {
            head,
            body,
            progress,
            upgrade,
            interims: InterimResponses::Forwarded,
        }
    }
}

/// Sends a call to the upstream of the side that it addresses.
pub(super) async fn forward(
    record: &mut AccessRecord,
    upstream: &Rc<HttpUpstream>,
    call: PassthroughRequest,
    origin: &RequestOrigin,
) -> Result<CallResponse, Failure> {
    let PassthroughRequest {
        mut head,
        body,
        progress,
        upgrade,
        interims,
    } = call;
    // HTTP/1.0 clients do not know interim responses (RFC 9110 §15.2).
    let forwards_interims = interims == InterimResponses::Forwarded
        && head.version == Version::HTTP_11
        && record.context.second_run_budget().is_none();
    let interims = origin.interims().filter(|_| forwards_interims);
    let upgrade_to = agreed_upgrade(&head, &body, upgrade.as_ref());
    let plan = upstream.plan();
    let accepts_trailers = headers::accepts_trailers(&head.headers);
    prepare_request(&mut head, &record.context, plan, origin);
    add_hop_by_hop(
        &mut head.headers,
        &body,
        upgrade_to.as_ref(),
        accepts_trailers,
    );
    let limit = upstream.plan().timeout;
    let retry_policy = retry_policy(&head, &body, upgrade_to.as_ref());
    let mut target = origin.raw_target(&head.uri);
    if let Some(base) = plan.base_path() {
        target = target.map(|raw| [base.as_bytes(), &raw].concat());
        head.uri = plan.uri_with_base(mem::take(&mut head.uri));
    }
    let outgoing = OutgoingRequest { head, body };
    let wait = HeadDeadline {
        limit,
        progress: progress.as_deref(),
        options: SendOptions {
            retry: retry_policy,
            casing: HeaderCasing::Passed(PassedHead {
                header_case: origin.header_case(),
                target: target.as_deref(),
                interims,
            }),
            need: match upgrade_to {
                Some(_) => ConnectionNeed::Upgrade,
                None => ConnectionNeed::Any,
            },
        },
    };
    let exchange = exchange::send_and_wait_head(record, upstream, outgoing, wait).await?;
    if let Some(interims) = interims.filter(|interims| !interims.is_empty()) {
        // The final response follows the interim ones. `limits.write_timeout` bounds this wait.
        poll_fn(|cx| interims.poll_written(cx)).await;
    }
    let progress = progress.as_deref();
    prepare_response(
        &record.context,
        upstream.plan(),
        exchange,
        progress,
        upgrade.zip(upgrade_to),
    )
}

/// Prepares a response for the client. `upgrade` is the client's connection, if it asked to change its protocol.
fn prepare_response(
    context: &CallContext,
    plan: &UpstreamPlan,
    exchange: Exchange,
    progress: Option<&UploadProgress>,
    upgrade: Option<(OnUpgrade, HeaderValue)>,
) -> Result<CallResponse, Failure> {
    let (idle_timeout, max_age) = (plan.idle_timeout, plan.max_age);
    let mut response = exchange.response;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let Some((client, _)) = upgrade else {
            return Err(rejections::unrequested_upgrade());
        };
        let upstream = hyper::upgrade::on(&mut *response);
        return Ok(CallResponse::Upgrade(Box::new(UpgradeResponse {
            head: response.into_parts().0,
            client,
            upstream,
            lease: exchange.lease,
            idle_timeout,
            max_age,
        })));
    }
    headers::strip_hop_by_hop(response.headers_mut());
    plan.strip_base(response.headers_mut());
    if plan.side == Side::Rpc {
        let status = response.status();
        resource_challenges::name_proxy(context, status, response.headers_mut());
    }
    if response.status() == StatusCode::NO_CONTENT {
        // A 204 has no Content-Length (RFC 9110 §8.6). HTTP/2 clients treat one that has it as malformed.
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    let is_endless = || *context.method() == Method::GET && is_event_stream(response.headers());
    let max_age = max_age.filter(|_| is_endless());
    // The HTTP version applies to one connection only (RFC 9110 §2.5).
    *response.version_mut() = Version::HTTP_11;
    let mut lease = exchange.lease;
    if progress.is_some_and(UploadProgress::is_running) {
        // The server responded before the whole request was sent, so the connection cannot be reused.
        lease.mark_unusable();
    }
    Ok(CallResponse::Streaming(boxed(|| StreamingResponse {
        response,
        lease: Some(lease),
        idle_timeout,
        translation: BodyTranslation::None,
        max_age,
    })))
}

/// Returns the protocol that the client asks for, if the request may be forwarded as an upgrade request. `client` is
/// the connection that would change its protocol.
///
/// A request with content is not forwarded as one. A server that ignores content before an upgrade would parse it as
/// the next request, and its responses would reach other clients of the pool. Empty chunked content counts as content,
/// because its last chunk is sent. Without `Upgrade`, the request is an ordinary one (RFC 9110 §7.8).
fn agreed_upgrade(
    head: &request::Parts,
    body: &Body,
    client: Option<&OnUpgrade>,
) -> Option<HeaderValue> {
    client?;
    let upgrade_to = headers::wanted_upgrade(&head.headers)?;
    (body.size_hint().exact() == Some(0)).then_some(upgrade_to)
}

/// Prepares a request head for the upstream connection.
fn prepare_request(
    head: &mut request::Parts,
    context: &CallContext,
    upstream: &UpstreamPlan,
    origin: &RequestOrigin,
) {
    let identity_fields = IdentityFields::new(context, &head.headers, origin);
    headers::strip_hop_by_hop(&mut head.headers);
    let host = headers::first_value(&head.headers, &HOST).cloned();
    headers::add_forwarding_headers(
        context,
        &mut head.headers,
        InboundHop {
            version: head.version,
            host: host.as_ref(),
            origin,
        },
    );
    if host.is_none() {
        headers::require_host(&mut head.headers, upstream);
    }
    headers::withhold_credentials(&mut head.headers, upstream);
    if let Some(identity_fields) = identity_fields {
        identity_fields.write(&mut head.headers);
    }
    head.version = Version::HTTP_11;
}

/// Adds the hop-by-hop fields of the upstream connection.
fn add_hop_by_hop(
    headers: &mut HeaderMap,
    body: &Body,
    upgrade_to: Option<&HeaderValue>,
    accepts_trailers: bool,
) {
    if body.size_hint().exact().is_none() {
        // Set explicitly, because the HTTP client sends a body of unknown length only with some methods, not with GET.
        headers.insert(
            TRANSFER_ENCODING,
            const { HeaderValue::from_static("chunked") },
        );
    }
    if let Some(protocol) = upgrade_to {
        headers.insert(UPGRADE, protocol.clone());
        headers.insert(CONNECTION, const { HeaderValue::from_static("upgrade") });
    } else if accepts_trailers {
        headers::announce_trailers(headers);
    }
}

/// Allows retries on a fresh connection for calls without content whose method is idempotent.
fn retry_policy(
    head: &request::Parts,
    body: &Body,
    upgrade_to: Option<&HeaderValue>,
) -> RetryPolicy {
    if !body.is_empty() || !head.method.is_idempotent() || upgrade_to.is_some() {
        return RetryPolicy::Unprocessed;
    }
    RetryPolicy::Allowed
}
