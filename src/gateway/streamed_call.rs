//! Translated calls whose response streams: the head for the client, and the translation of the body.
//!
//! Used by `translate`.

use std::rc::Rc;

use http::{StatusCode, Version};

use super::access_record::AccessRecord;
use super::call_response::{
    BodyTranslation, ReceivedStream, ResponseTranslation, StreamingResponse,
};
use super::runtime_plan::RuntimePlan;
use super::stream_headers;
use dualgauge_model::plan::UpstreamPlan;
use dualgauge_model::response_stream::{ResponseStream, StreamedCall};

/// Returns the response for the client of a call whose upstream streams.
pub(super) fn respond(
    record: &AccessRecord,
    upstream: &UpstreamPlan,
    received: ReceivedStream,
    call: StreamedCall,
    route: usize,
) -> StreamingResponse {
    let runtime_plan: &Rc<RuntimePlan> = record.context.runtime_plan();
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
        lease,
        idle_timeout: upstream.idle_timeout,
        translation: BodyTranslation::Response(Box::new(ResponseTranslation {
            stream,
            route,
            time_limit: plan.routes.route(route).stream_timeout,
        })),
        max_age: None,
    }
}
