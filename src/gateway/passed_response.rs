//! Responses that pass to clients of the other dialect as they are: they mean the same to both.
//!
//! Used by `translate`.

use super::access_record::AccessRecord;
use super::call_response::{FullResponse, UpstreamResponse};
use dualgauge_model::route::Route;
use dualgauge_patterns::rope::Rope;

/// Returns a response that means the same to the clients of both dialects.
pub(super) fn passed_response(
    record: &mut AccessRecord,
    route: &Route,
    reply: UpstreamResponse,
) -> Box<FullResponse> {
    record.set_response(reply.status.as_u16());
    Box::new(FullResponse {
        status: reply.status,
        headers: route.pass.response_headers(&reply.headers),
        body: Rope::from(reply.body),
    })
}
