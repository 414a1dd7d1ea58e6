//! Failures of calls in an old RPC dialect: the outcomes of the route write them, where a row describes them.
//!
//! Used by `rest`.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Uri, request};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{CallResponse, FullResponse, rest_failure, status};
use super::headers;
use super::request_body::{self, BodyHead, RequestBody};
use super::rpc_reply::context;
use super::stream_headers;
use dualgauge_model::dialect::{self, OldRequest};
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::{BodyContent, Segments};
use dualgauge_model::routing::RequestHead;
use dualgauge_model::translate::RestHead;

/// The message of a client in an old dialect.
pub(super) struct OldMessage {
    uri: Uri,
    headers: HeaderMap,
    /// The body as it came; empty until it is read.
    body: Bytes,
}

impl OldMessage {
    /// Copies the head of a message; `None` if no old route has its path.
    pub(super) fn new(plan: &Plan, head: &request::Parts) -> Option<OldMessage> {
        dialect::may_be_old(plan, RequestHead::new(head)).then(|| OldMessage {
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body: Bytes::new(),
        })
    }

    /// Keeps the body, which has the id that each failure repeats. Reads it first if the call may fail by an old route:
    /// it is translated by `route`, or `route` has refused it. The body of another call may have to stream.
    pub(super) async fn keep_body(
        &mut self,
        context: &mut CallContext,
        content: RequestBody,
        route: Option<usize>,
    ) -> Result<RequestBody, Failure> {
        let routes = &context.runtime_plan().plan.routes;
        let is_needed = route.is_some_and(|route| routes.route(route).is_old());
        let body = match content {
            RequestBody::Streaming(..) if !is_needed => return Ok(content),
            RequestBody::Streaming(body, copy) => {
                let body = request_body::read_timed(context, body).await?;
                if let Some(copy) = copy {
                    copy.store_complete(&body);
                }
                body
            }
            RequestBody::Read(body) => body,
        };
        self.body = body.clone();
        Ok(RequestBody::Read(body))
    }

    /// Renders the failure of a call in its dialect.
    ///
    /// # Errors
    ///
    /// Returns the failure if no row of the route describes it.
    pub(super) async fn render(
        self,
        record: &mut AccessRecord,
        failure: Failure,
    ) -> Result<CallResponse, Failure> {
        let runtime_plan = record.context.runtime_plan().clone();
        let plan = &runtime_plan.plan;
        let Some(route) = record.context.route() else {
            return Err(failure);
        };
        let route = plan.routes.route(route);
        let segments = Segments::split(self.uri.path());
        let head = RestHead {
            segments: &segments,
            query: self.uri.query(),
            headers: &self.headers,
        };
        let body_head = BodyHead {
            headers: &self.headers,
            content: BodyContent::OldMessage,
        };
        let (limits, worker) = (&plan.limits, record.context.worker());
        // A body that cannot be decoded or parsed has no id.
        let body = request_body::read_json(body_head, self.body, limits, worker, None).await;
        let body = body.ok().flatten();
        let request = OldRequest {
            head,
            body: body.as_ref(),
        };
        let codes = &plan.face.failure_codes;
        let context = context(&plan.limits);
        let Some(answer) = dialect::failure(route, request, &failure, codes, context) else {
            return Err(failure);
        };
        let mut headers = rest_failure(&failure, codes).headers;
        headers.remove(CONTENT_TYPE);
        if let Some(kind) = answer.content_type.map(HeaderValue::try_from) {
            headers.extend(kind.ok().map(|kind| (CONTENT_TYPE, kind)));
        }
        headers::set(&mut headers, answer.headers);
        record.set_failure(answer.status, &failure);
        let mut response = Box::new(FullResponse {
            status: status(answer.status),
            headers,
            body: answer.body,
        });
        stream_headers::complete_as_event(record, route, &self.headers, &mut response);
        Ok(CallResponse::Full(response))
    }
}
