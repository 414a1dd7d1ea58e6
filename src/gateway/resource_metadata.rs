//! Protected resource metadata of the MCP server behind an RPC path (RFC 9728).
//!
//! The proxy asks the server for the metadata of its endpoint, and for those of its origin if it has none. With
//! `listen.public_url` they name the proxy, else they pass unchanged.
//!
//! Used by `agent_card` and `rest`.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, ETAG, HOST, RANGE};
use http::uri::PathAndQuery;
use http::{Method, StatusCode, request};
use tokio::time::timeout;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{CallResponse, FullResponse, StreamingResponse};
use super::failures::{unreadable_response, upstream_timeout};
use super::headers;
use super::passthrough::{PassthroughRequest, forward};
use super::request_origin::ClientRequest;
use super::request_target::upstream_uri;
use crate::upstream::HttpUpstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::mcp::{PublicUrl, ResourceNaming, name_resource};
use dualgauge_model::plan::Transport;
use dualgauge_model::rejections;
use dualgauge_model::routing::MetadataRequest;
use dualgauge_net::{Lease, collect_accounted};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// The maximum size of a document in bytes.
const LIMIT: usize = 64 * 1024;

/// Sends a request for metadata to the server.
pub(super) async fn serve(
    record: &mut AccessRecord,
    request: ClientRequest<'_>,
    metadata: &MetadataRequest<'_>,
) -> Result<CallResponse, Failure> {
    let ClientRequest { head, origin } = request;
    let runtime_plan = record.context.runtime_plan().clone();
    let upstream = runtime_plan.metadata_upstream(metadata.index);
    let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rpc))?;
    let public = runtime_plan.plan.public_url.as_ref();
    let targets = metadata.targets();
    let mut rest = targets.iter();
    while let Some(target) = rest.next() {
        let head = outgoing_head(head, upstream, target, public)?;
        let passed = PassthroughRequest::empty(Box::new(head));
        let answer = forward(record, upstream, passed, origin).await?;
        if is_missing(&answer) && rest.len() > 0 {
            continue;
        }
        return match (answer, public) {
            (CallResponse::Streaming(stream), Some(public))
                if stream.response.status() == StatusCode::OK =>
            {
                let url = public.resource(metadata.resource);
                let depth = runtime_plan.plan.limits.depth;
                let name = |document: &Bytes| name_resource(document, &url, depth);
                let served = rewrite(record, *stream, upstream, LIMIT, name).await?;
                let naming = if served.is_rewritten {
                    ResourceNaming::MetadataRewritten
                } else {
                    ResourceNaming::MetadataUnchanged
                };
                count(&record.context, naming);
                Ok(served.answer)
            }
            (answer, _) => {
                count(&record.context, ResourceNaming::MetadataUnchanged);
                Ok(answer)
            }
        };
    }
    Err(rejections::no_route(&head.method, head.uri.path()))
}

/// Returns the head of the request to the server. The path of the proxy need not be that of the server.
fn outgoing_head(
    head: &request::Parts,
    upstream: &HttpUpstream,
    target: &PathAndQuery,
    public: Option<&PublicUrl>,
) -> Result<request::Parts, Failure> {
    let mut head = head.clone();
    head.uri = upstream_uri(target, head.uri.query())?;
    head.headers.remove(CONTENT_LENGTH);
    if public.is_some() {
        // A part of a document, or an encoded one, cannot be read.
        head.headers.remove(ACCEPT_ENCODING);
        head.headers.remove(RANGE);
    }
    if let (Transport::Mcp(_), Some(host)) =
        (&upstream.plan().transport, upstream.plan().authority.host())
    {
        // A link sends the host of the server with each message.
        head.headers.insert(HOST, host.clone());
    }
    Ok(head)
}

fn is_missing(answer: &CallResponse) -> bool {
    match answer {
        CallResponse::Streaming(stream) => stream.response.status() == StatusCode::NOT_FOUND,
        CallResponse::Full(_) | CallResponse::Upgrade(_) => false,
    }
}

/// A document that [`rewrite`] has read.
pub(super) struct ServedDocument {
    pub(super) answer: CallResponse,
    /// True if the document was rewritten to name the proxy.
    pub(super) is_rewritten: bool,
}

/// Reads a document of at most `max` bytes, and writes another one in its place if `name` returns one.
pub(super) async fn rewrite(
    record: &mut AccessRecord,
    stream: StreamingResponse,
    upstream: &HttpUpstream,
    max: usize,
    name: impl Fn(&Bytes) -> Option<Bytes>,
) -> Result<ServedDocument, Failure> {
    let StreamingResponse {
        response, lease, ..
    } = stream;
    let (mut head, body) = response.into_parts();
    if *record.context.method() == Method::HEAD {
        // The length is that of the server's document.
        head.headers.remove(CONTENT_LENGTH);
    }
    let memory = record.context.worker().memory();
    let limit = upstream.plan().timeout;
    let read = collect_accounted(body, max, memory);
    let read = timeout(limit, read)
        .await
        .map_err(|_| upstream_timeout(limit))?;
    let document = read.map_err(unreadable_response)?;
    lease.into_iter().for_each(Lease::release);
    let (body, is_rewritten) = match name(&document) {
        Some(named) => {
            // The server's tag and length are those of its own document.
            head.headers.remove(ETAG);
            head.headers.remove(CONTENT_LENGTH);
            (named, true)
        }
        None => (document, false),
    };
    headers::strip_hop_by_hop(&mut head.headers);
    record.set_response(head.status.as_u16());
    let answer = CallResponse::Full(Box::new(FullResponse {
        status: head.status,
        headers: head.headers,
        body: Rope::from(body),
    }));
    Ok(ServedDocument {
        answer,
        is_rewritten,
    })
}

fn count(context: &CallContext, naming: ResourceNaming) {
    let worker = context.worker();
    worker.count(|shard| shard.named_resource(naming));
    tracing::debug!(kind = naming.as_str(), "served protected resource metadata");
}
