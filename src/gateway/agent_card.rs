//! Agent cards of A2A servers that name the proxy. Used by `rest`.

use std::rc::Rc;

use http::header::{ACCEPT_ENCODING, RANGE};
use http::{StatusCode, request};

use super::access_record::AccessRecord;
use super::call_response::CallResponse;
use super::passthrough::{PassthroughRequest, forward};
use super::request_origin::RequestOrigin;
use super::resource_metadata::rewrite;
use crate::upstream::HttpUpstream;
use dualgauge_model::agent_card::{CardNaming, ProxyInterfaces};
use dualgauge_model::failure::Failure;

/// The maximum size of a card in bytes.
const LIMIT: usize = 256 * 1024;

/// Prepares a request for a card, so that the response is the whole document, not encoded.
pub(super) fn ask_for_whole(head: &mut request::Parts) {
    head.headers.remove(ACCEPT_ENCODING);
    head.headers.remove(RANGE);
}

/// Sends a request for a card to its server, and names the proxy in the card.
pub(super) async fn pass_through(
    record: &mut AccessRecord,
    upstream: &Rc<HttpUpstream>,
    call: PassthroughRequest,
    origin: &RequestOrigin,
    interfaces: ProxyInterfaces,
) -> Result<CallResponse, Failure> {
    let answer = forward(record, upstream, call, origin).await?;
    name_proxy(record, answer, upstream, &interfaces).await
}

/// Returns a response with the interfaces of the proxy in its card. Responses other than 200 stay as they are.
async fn name_proxy(
    record: &mut AccessRecord,
    answer: CallResponse,
    upstream: &HttpUpstream,
    interfaces: &ProxyInterfaces,
) -> Result<CallResponse, Failure> {
    let stream = match answer {
        CallResponse::Streaming(stream) if stream.response.status() == StatusCode::OK => *stream,
        other @ (CallResponse::Streaming(_) | CallResponse::Full(_) | CallResponse::Upgrade(_)) => {
            return Ok(other);
        }
    };
    let depth = record.context.runtime_plan().plan.limits.depth;
    let name = |document: &_| interfaces.name_in(document, depth);
    let served = rewrite(record, stream, upstream, LIMIT, name).await?;
    let naming = if served.is_rewritten {
        CardNaming::Rewritten
    } else {
        CardNaming::Unchanged
    };
    let worker = record.context.worker();
    worker.count(|shard| shard.agent_card(naming));
    tracing::debug!(kind = naming.as_str(), "served an agent card");
    Ok(served.answer)
}
