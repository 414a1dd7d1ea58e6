//! Translated calls whose response streams: the head for the client, and the translation of the body.
//!
//! Used by `translate`.

use std::rc::Rc;
use std::time::Duration;

use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version};

use super::call_context::CallContext;
use super::call_response::{
    BodyTranslation, ReceivedStream, ResponseTranslation, StreamingResponse,
};
use super::runtime_plan::RuntimePlan;
use super::stream_headers;
use super::subscription_events::{KEEP_ALIVE, SubscriptionEvents};
use dualgauge_model::plan::UpstreamPlan;
use dualgauge_model::response_stream::{ResponseStream, StreamedCall};
use dualgauge_model::stream_format::{StreamFormat, StreamFormats};
use dualgauge_net::IncomingBody;

/// The longest silence of a subscription: comments interrupt it.
const SUBSCRIPTION_IDLE: Duration = KEEP_ALIVE.saturating_mul(4);

/// Returns the response for the client of a call whose upstream streams.
pub(super) fn respond(
    context: &CallContext,
    upstream: &UpstreamPlan,
    received: ReceivedStream,
    call: StreamedCall,
    route: usize,
) -> StreamingResponse {
    let runtime_plan: &Rc<RuntimePlan> = context.runtime_plan();
    let plan = &runtime_plan.plan;
    let ReceivedStream {
        mut response,
        lease,
        formats,
    } = received;
    upstream.strip_base(response.headers_mut());
    *response.headers_mut() = stream_headers::translated(response.headers(), formats.client);
    *response.status_mut() = StatusCode::OK;
    *response.version_mut() = Version::HTTP_11;
    let stream = ResponseStream::new(call, formats, plan.limits.answer);
    StreamingResponse {
        response,
        lease: Some(lease),
        idle_timeout: upstream.idle_timeout,
        translation: BodyTranslation::Response(Box::new(ResponseTranslation {
            stream,
            route,
            time_limit: plan.routes.route(route).stream_timeout,
            subscription: None,
        })),
        max_age: None,
    }
}

/// Returns the response for a REST client whose call has opened a subscription.
pub(super) fn subscribed(
    context: &CallContext,
    events: SubscriptionEvents,
    call: StreamedCall,
    route: usize,
) -> StreamingResponse {
    let plan = &context.runtime_plan().plan;
    let formats = StreamFormats {
        upstream: StreamFormat::EventStream,
        client: StreamFormat::EventStream,
    };
    let mut response = Response::new(IncomingBody::empty());
    *response.headers_mut() = stream_headers::translated(&HeaderMap::new(), formats.client);
    let no_cache = const { HeaderValue::from_static("no-cache") };
    response.headers_mut().insert(CACHE_CONTROL, no_cache);
    StreamingResponse {
        response: Box::new(response),
        lease: None,
        idle_timeout: SUBSCRIPTION_IDLE,
        translation: BodyTranslation::Response(Box::new(ResponseTranslation {
            stream: ResponseStream::new(call, formats, plan.limits.answer),
            route,
            time_limit: plan.routes.route(route).stream_timeout,
            subscription: Some(Box::new(events)),
        })),
        max_age: None,
    }
}
