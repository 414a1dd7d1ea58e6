//! Requests to an RPC path with a method other than POST, which go to the RPC upstream if that is an HTTP upstream.
//!
//! Used by `rpc`.

use http::{Method, Response, request};

use super::session_stream;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::CallResponse;
use crate::gateway::cors;
use crate::gateway::identity::identify;
use crate::gateway::passthrough::{PassthroughRequest, forward};
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::request_target::upstream_uri;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::upstream::Upstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::rejections;
use dualgauge_model::routing::RequestHead;
use dualgauge_net::IncomingBody;
use dualgauge_patterns::side::Side;

/// Forwards such a request. Failures that the proxy writes carry CORS headers.
pub(super) async fn forward_other_method(
    mut record: Box<AccessRecord>,
    head: Box<request::Parts>,
    body: IncomingBody,
    origin: RequestOrigin,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    if session_stream::is_about_session(&runtime_plan, &head) {
        return match head.method {
            Method::DELETE => session_stream::end(record, &head, &origin),
            _ => session_stream::serve(record, &head, &origin),
        };
    }
    let cors_origin = cors::origin(&runtime_plan.plan, &head.headers);
    let answer = forward_to_upstream(&mut record, head, body, &origin).await;
    let failed = answer.is_err();
    let mut response = response::render(record, answer, None);
    if let Some(cors) = runtime_plan.plan.cors.as_ref().filter(|_| failed) {
        cors.mark(cors_origin.as_ref(), response.headers_mut());
    }
    response
}

async fn forward_to_upstream(
    record: &mut AccessRecord,
    mut head: Box<request::Parts>,
    body: IncomingBody,
    origin: &RequestOrigin,
) -> Result<CallResponse, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let identity = identify(&mut record.context, &head.headers, origin);
    let caller = identity.caller(&plan.rollout.clients);
    record.context.admit()?;
    if let Some(answer) = cors::answer_preflight(record, plan, caller, RequestHead::new(&head)) {
        return Ok(answer);
    }
    let upstream = runtime_plan
        .upstream(None, Side::Rpc)
        .and_then(Upstream::http)
        .ok_or_else(|| rejections::not_posted(&head.method))?;
    head.uri = upstream_uri(&upstream.plan().path, head.uri.query())?;
    forward(
        record,
        upstream,
        PassthroughRequest::streamed(head, body, None),
        origin,
    )
    .await
}
