//! Responses that pass to clients of the other dialect as they are: they mean the same to both.
//!
//! Used by `translate`.

use http::header::CONTENT_TYPE;

use super::access_record::AccessRecord;
use super::call_response::{FullResponse, UpstreamResponse};
use super::headers;
use dualgauge_model::route::Route;
use dualgauge_patterns::rope::Rope;

/// Returns a response that means the same to the clients of both dialects.
pub(super) fn passed_response(
    record: &mut AccessRecord,
    route: &Route,
    reply: UpstreamResponse,
) -> Box<FullResponse> {
    record.set_response(reply.status.as_u16());
    let mut headers = headers::from_response(reply.headers.clone());
    route.pass.copy(&reply.headers, &mut headers);
    if let Some(kind) = reply.headers.get(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, kind.clone());
    }
    Box::new(FullResponse {
        status: reply.status,
        headers,
        body: Rope::from(reply.body),
    })
}
