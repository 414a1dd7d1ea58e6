//! Event streams: served at the path of one side from either side's server, rewritten if the sides differ.
//!
//! Used by `gateway`.

use std::mem;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode, Version, request};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{BodyTranslation, CallResponse, StreamingResponse};
use super::exchange::{self, HeadDeadline};
use super::headers::{self, HasBody, IdentityFields, translated_headers};
use super::identity::identify;
use super::passthrough::{PassthroughRequest, forward};
use super::request_origin::ClientRequest;
use super::request_target::target_uri;
use super::response::{self, render_annotated};
use super::response_body::ResponseBody;
use super::runtime_plan::RuntimePlan;
use super::serve::{IdentifiedRequest, IncomingRequest, ProtocolCall, TwoWayCall, serve};
use super::stream_headers;
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Identity, Requester, Stage};
use dualgauge_model::routing;
use dualgauge_model::sse;
use dualgauge_model::stream::{Rewriter, StreamMatch};
use dualgauge_model::stream_format::{StreamFormat, StreamHead};
use dualgauge_net::{
    Body, ConnectionNeed, HeaderCasing, IncomingBody, OutgoingRequest, PassedHead, RetryPolicy,
    SendOptions,
};
use dualgauge_patterns::side::Side;

/// Serves a request for an event stream.
pub(super) async fn serve_request(
    request: IncomingRequest,
    matched: StreamMatch,
) -> Response<ResponseBody> {
    let IncomingRequest {
        record,
        head,
        body,
        origin,
    } = request;
    let plan = &record.context.runtime_plan().plan;
    let mut call = StreamRequest {
        matched,
        stage: Stage::Passthrough,
        body,
        cors_origin: response::cors_origin(plan, &head.headers),
    };
    let origin = &origin;
    serve(record, ClientRequest { head, origin }, &mut call).await
}

/// A request for an event stream in the pipeline.
struct StreamRequest {
    matched: StreamMatch,
    /// The stage, once the caller is identified.
    stage: Stage,
    body: IncomingBody,
    cors_origin: Option<HeaderValue>,
}

impl StreamRequest {
    /// Returns a response that ends at the maximum age of the stream.
    fn limit_age(&self, plan: &Plan, mut answer: CallResponse) -> CallResponse {
        let stream_plan = plan.streams.all().get(self.matched.stream);
        if let CallResponse::Streaming(stream) = &mut answer {
            let max_age = stream_plan.and_then(|plan| plan.max_age);
            stream.max_age = max_age.or(stream.max_age);
        }
        answer
    }
}

impl TwoWayCall for StreamRequest {
    type Head = Box<request::Parts>;
    type Answer = CallResponse;

    async fn translate(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Box<request::Parts>>,
        index: usize,
    ) -> Result<CallResponse, Failure> {
        let runtime_plan = record.context.runtime_plan().clone();
        let plan = &runtime_plan.plan;
        let (matched, uri) = (self.matched, &request.head.uri);
        let stream_plan = plan.streams.all().get(index);
        let path = stream_plan.and_then(|plan| plan.other_path(matched.side, uri.path()));
        let path = path.ok_or_else(|| rejections::no_route(&request.head.method, uri.path()))?;
        let answer = open_translated(record, request.borrowed(), matched, &path).await?;
        Ok(self.limit_age(plan, answer))
    }

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Box<request::Parts>>,
        _: Option<usize>,
    ) -> Result<CallResponse, Failure> {
        let runtime_plan = record.context.runtime_plan().clone();
        let matched = self.matched;
        let upstream = runtime_plan
            .upstream_of_stream(matched.stream, matched.side)
            .ok_or_else(|| rejections::no_upstream(matched.side))?;
        let body = mem::replace(&mut self.body, IncomingBody::empty());
        let passthrough = PassthroughRequest::streamed(request.head, body, None);
        let answer = forward(record, upstream, passthrough, request.origin).await?;
        Ok(self.limit_age(&runtime_plan.plan, answer))
    }
}

impl ProtocolCall for StreamRequest {
    type Response = Response<ResponseBody>;

    /// Decides at once, because the record tells from then on that the request is for an event stream.
    fn identify<'h>(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'h>,
    ) -> Identity<'h>
    where
        Self: 'h,
    {
        let runtime_plan = record.context.runtime_plan().clone();
        let plan = &runtime_plan.plan;
        let headers = &request.head.headers;
        let identity = identify(record, headers, request.origin);
        let caller = identity.caller(&plan.rollout.clients);
        let requester = Requester::new(caller, headers);
        let decision = routing::decide_stream(plan, requester, self.matched);
        self.stage = decision.stage;
        record.set_stream(self.matched.stream, decision);
        identity
    }

    /// Returns the index of the stream, which takes the place of a route.
    async fn select_route(
        &mut self,
        _: &mut CallContext,
        _: &IdentifiedRequest<'_>,
    ) -> Result<Option<usize>, Failure> {
        Ok(Some(self.matched.stream))
    }

    fn decide(
        &mut self,
        _: &mut AccessRecord,
        _: &IdentifiedRequest<'_>,
        _: Option<usize>,
    ) -> Stage {
        self.stage
    }

    fn unserved(&self, _: &CallContext, request: &IdentifiedRequest<'_>, stream: usize) -> Failure {
        match request.plan().streams.all().get(stream) {
            Some(stream) => rejections::retired_stream(stream, self.matched.side),
            None => rejections::no_route(&request.head.method, request.head.uri.path()),
        }
    }

    async fn respond(
        &mut self,
        record: Box<AccessRecord>,
        result: Result<CallResponse, Failure>,
    ) -> Response<ResponseBody> {
        render_annotated(record, result, None, self.cors_origin.as_ref())
    }
}

/// Opens the stream at the upstream of the other side.
async fn open_translated(
    record: &mut AccessRecord,
    request: ClientRequest<'_>,
    matched: StreamMatch,
    path: &str,
) -> Result<CallResponse, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let from = matched.side.other();
    let upstream = runtime_plan
        .upstream_of_stream(matched.stream, from)
        .ok_or_else(|| rejections::no_upstream(from))?;
    let plan = upstream.plan();
    let head = request.head;
    let target = match head.uri.query() {
        Some(query) => target_uri(format!("{path}?{query}"))?,
        None => target_uri(path.to_owned())?,
    };
    let mut headers = translated_headers(&record.context, request, plan, HasBody::No);
    headers.insert(ACCEPT, HeaderValue::from_static(sse::EVENT_STREAM));
    headers::withhold_credentials(&mut headers, plan);
    if let Some(identity_fields) =
        IdentityFields::new(&record.context, &head.headers, request.origin)
    {
        identity_fields.write(&mut headers);
    }
    let target = plan.uri_with_base(target);
    let outgoing = OutgoingRequest::new(Method::GET, target, headers, Body::empty());
    let wait = HeadDeadline {
        limit: plan.timeout,
        progress: None,
        options: SendOptions {
            retry: RetryPolicy::Allowed,
            // A response that is not a stream is passed through.
            casing: HeaderCasing::Passed(PassedHead::default()),
            need: ConnectionNeed::Any,
        },
    };
    let exchange = exchange::send_and_wait_head(record, upstream, outgoing, wait).await?;
    let mut response = exchange.response;
    if response.status().is_informational() {
        return Err(rejections::unrequested_upgrade());
    }
    let rewriter = rewriter(response.status(), response.headers(), from, &runtime_plan)?;
    headers::strip_hop_by_hop(response.headers_mut());
    if rewriter.is_some() {
        *response.headers_mut() = stream_headers::rewritten(response.headers());
    }
    *response.version_mut() = Version::HTTP_11;
    Ok(CallResponse::Streaming(Box::new(StreamingResponse {
        response,
        lease: Some(exchange.lease),
        idle_timeout: plan.idle_timeout,
        translation: rewriter.map_or(BodyTranslation::None, |rewriter| {
            BodyTranslation::Events(Box::new(rewriter))
        }),
        max_age: plan.max_age,
    })))
}

/// Returns the rewriter of a response; `None` if its status is not 200, because such a response suits either side.
fn rewriter(
    status: StatusCode,
    headers: &HeaderMap,
    from: Side,
    runtime_plan: &RuntimePlan,
) -> Result<Option<Rewriter>, Failure> {
    if status != StatusCode::OK {
        return Ok(None);
    }
    let found = StreamFormat::of_head(headers);
    if found.is_some_and(StreamHead::is_plain_event_stream) {
        let limit = runtime_plan.plan.limits.answer;
        return Ok(Some(Rewriter::new(from, limit)));
    }
    let is_coded = found.is_some_and(StreamHead::is_event_stream);
    let wrong = if is_coded {
        CONTENT_ENCODING
    } else {
        CONTENT_TYPE
    };
    let value = headers.get(wrong).map(HeaderValue::as_bytes);
    let value = String::from_utf8_lossy(value.unwrap_or_default());
    Err(rejections::no_stream(&value))
}
