//! Failures of calls in an old RPC dialect: the outcomes of the route write them, where a row describes them.
//!
//! Used by `rest`.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Uri, request};

use super::access_record::AccessRecord;
use super::call_response::{CallResponse, FullResponse, rest_failure, status};
use super::headers;
use super::request_body::RequestBody;
use super::rpc_reply::context;
use dualgauge_model::dialect::{self, OldRequest};
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::Segments;
use dualgauge_model::translate::RestHead;

/// The message of a client in an old dialect.
pub(super) struct OldMessage {
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl OldMessage {
    /// Copies a message from its request; `None` if no old route has its path.
    pub(super) fn new(
        plan: &Plan,
        head: &request::Parts,
        content: &RequestBody,
    ) -> Option<OldMessage> {
        let segments = Segments::split(head.uri.path());
        plan.routes.old_at(&head.method, &segments)?;
        let body = match content {
            RequestBody::Read(body) => body.clone(),
            RequestBody::Streaming(..) => Bytes::new(),
        };
        Some(OldMessage {
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body,
        })
    }

    /// Renders the failure of a call in its dialect.
    ///
    /// # Errors
    ///
    /// Returns the failure if no row of the route describes it.
    pub(super) fn render(
        &self,
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
        let request = OldRequest {
            head,
            body: &self.body,
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
        Ok(CallResponse::Full(Box::new(FullResponse {
            status: status(answer.status),
            headers,
            body: answer.body,
        })))
    }
}
