//! Event streams: served at the path of one side from either side's server, rewritten if the sides differ.
//!
//! Used by `gateway`.

use std::convert::Infallible;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode, Version, request};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{BodyTranslation, CallResponse, StreamingResponse};
use super::cors;
use super::exchange::{self, HeadDeadline};
use super::headers::{self, HasBody, IdentityFields, translated_headers};
use super::identity::identify;
use super::passthrough::{PassthroughRequest, forward};
use super::protocol_call::ProtocolCall;
use super::request_origin::{ClientRequest, RequestOrigin};
use super::request_target::target_uri;
use super::response_body::ResponseBody;
use super::rest::respond;
use super::runtime_plan::RuntimePlan;
use super::serve::{ChosenWay, IncomingRequest, choose_way};
use super::stream_headers;
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Requester, Stage};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::sse;
use dualgauge_model::stream::{Rewriter, StreamMatch};
use dualgauge_model::stream_format::{StreamFormat, StreamHead};
use dualgauge_net::{
    Body, ConnectionNeed, HeaderCasing, IncomingBody, OutgoingRequest, PassedHead, RetryPolicy,
    SendOptions,
};
use dualgauge_patterns::side::Side;

/// Serves a request for an event stream.
pub(super) async fn serve(
    request: IncomingRequest,
    matched: StreamMatch,
) -> Response<ResponseBody> {
    let IncomingRequest {
        mut record,
        head,
        body,
        origin,
    } = request;
    let runtime_plan = record.context.runtime_plan().clone();
    let cors_origin = cors::origin(&runtime_plan.plan, &head.headers);
    let answer = open_stream(&mut record, head, body, &origin, matched).await;
    respond(record, answer, None, cors_origin.as_ref())
}

async fn open_stream(
    record: &mut AccessRecord,
    head: Box<request::Parts>,
    body: IncomingBody,
    origin: &RequestOrigin,
    matched: StreamMatch,
) -> Result<CallResponse, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let identity = identify(&mut record.context, &head.headers, origin);
    let caller = identity.caller(&plan.rollout.clients);
    let decision = routing::decide_stream(plan, Requester::new(caller, &head.headers), matched);
    let mut request = StreamRequest {
        plan,
        head: RequestHead::new(&head),
        origin,
        stage: decision.stage,
        matched,
    };
    record.context.set_stream(matched.stream, decision);
    let way = choose_way(record, &mut request).await?;
    let Some(stream_plan) = plan.streams.all().get(matched.stream) else {
        return Err(rejections::no_route(&head.method, head.uri.path()));
    };
    let mut answer = match way {
        ChosenWay::Local(never) => match never {},
        ChosenWay::PassThrough(_) => {
            let upstream = runtime_plan
                .upstream_of_stream(matched.stream, matched.side)
                .ok_or_else(|| rejections::no_upstream(matched.side))?;
            let passthrough = PassthroughRequest::streamed(head, body, None);
            forward(record, upstream, passthrough, origin).await?
        }
        ChosenWay::Translate(_) => {
            let path = stream_plan.other_path(matched.side, head.uri.path());
            let path = path.ok_or_else(|| rejections::no_route(&head.method, head.uri.path()))?;
            let request = ClientRequest {
                head: &head,
                origin,
            };
            open_translated(record, request, matched, &path).await?
        }
    };
    if let CallResponse::Streaming(stream) = &mut answer {
        stream.max_age = stream_plan.max_age.or(stream.max_age);
    }
    Ok(answer)
}

/// A request for an event stream in the pipeline.
struct StreamRequest<'a> {
    plan: &'a Plan,
    head: RequestHead<'a>,
    origin: &'a RequestOrigin,
    /// The stage, which was decided before admission.
    stage: Stage,
    matched: StreamMatch,
}

impl ProtocolCall for StreamRequest<'_> {
    /// The proxy itself serves no event stream.
    type Reply = Infallible;

    fn answer_locally(&mut self, _: &mut AccessRecord) -> Result<Option<Infallible>, Failure> {
        Ok(None)
    }

    /// Returns the index of the stream, which takes the place of a route.
    async fn select_route(&mut self, _: &mut CallContext) -> Result<Option<usize>, Failure> {
        Ok(Some(self.matched.stream))
    }

    fn decide(&mut self, _: &mut CallContext, _: Option<usize>) -> Stage {
        self.stage
    }

    fn check_origin(&self) -> Result<(), Failure> {
        routing::check_origin(self.plan, self.head, self.origin.entry())
    }

    /// An event stream has no end that could be compared.
    fn attach_shadow(&mut self, _: &AccessRecord, _: Stage) {}

    fn unserved(&self, _: &CallContext, stream: usize) -> Failure {
        match self.plan.streams.all().get(stream) {
            Some(stream) => rejections::retired_stream(stream, self.matched.side),
            None => rejections::no_route(self.head.method, self.head.uri.path()),
        }
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
