//! Batches of an old dialect: one message if the whole batch passes to one server, else each message is a call of its own,
//! with its own record, decision and candidate, and the proxy assembles the responses.
//!
//! Laws: responses keep the order of the messages; a response without content has no place among them.
//!
//! Used by `rest`.

use std::cell::Cell;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, Response, StatusCode, request};
use http_body_util::BodyExt;

use super::{RestCall, requester, serve_content};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::{CallContext, CallStart};
use crate::gateway::call_response::{acknowledgement, rpc_message};
use crate::gateway::offloaded_parsing;
use crate::gateway::request_body::{self, BodyHead, RequestBody};
use crate::gateway::request_line::RequestLine;
use crate::gateway::request_origin::ClientRequest;
use crate::gateway::response;
use crate::gateway::response_body::{ResponseBody, ResponseBodyError};
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::serve::IdentifiedRequest;
use crate::gateway::worker::Worker;
use dualgauge_model::compare::Skip;
use dualgauge_model::dialect::{self, OldBatch, OldTransport, WholeBatch};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::{BodyContent, Segments};
use dualgauge_model::routing;
use dualgauge_net::pinned;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

impl RestCall<'_> {
    /// Reads the body of a call that may be a batch; returns the batch, if it is one.
    pub(super) async fn read_batch(
        &mut self,
        context: &mut CallContext,
        request: &IdentifiedRequest<'_>,
    ) -> Result<Option<OldBatch>, Failure> {
        let (plan, request_head) = (request.plan(), request.head());
        let segments = Segments::split(request_head.uri.path());
        let Some(group) = plan.routes.old_at(request_head.method, &segments) else {
            return Ok(None);
        };
        let mut routes = group.routes().iter();
        if !routes.any(|route| plan.routes.route(*route).has_request_body()) {
            return Ok(None);
        }
        let body = self.read_body(context).await?;
        let headers = &request.head.headers;
        if !may_be_array(headers, &body) {
            return Ok(None);
        }
        let head = BodyHead {
            headers,
            content: BodyContent::OldMessage,
        };
        let json = request_body::read_json(head, body, &plan.limits, context.worker(), None).await;
        let Ok(Some(json)) = json else {
            return Ok(None);
        };
        let stage = |route| {
            let requester = requester(context, request, route);
            routing::decide(plan, requester, route, Side::Rest, context.wall_time()).stage
        };
        let batch = dialect::batch(plan, group, request_head, &json, stage)?;
        match batch {
            Some(OldBatch::Split(_)) if self.passed.is_some() => Err(unsplit_query()),
            batch => Ok(batch),
        }
    }
}

/// Notes a batch that passes as one message. None of its messages has a candidate.
pub(super) fn note_whole(record: &mut AccessRecord, batch: &WholeBatch) {
    record.set_old(OldTransport::Batch, batch.messages as u64);
    let context = &record.context;
    for route in &batch.shadowed {
        let route = context.runtime_plan().route_label(Some(*route));
        let skip = Skip::BatchLimit;
        context.worker().count(|shard| shard.skipped(route, skip));
    }
}

/// Returns the failure of a batch in the query: each message that passes would take the whole query with it.
fn unsplit_query() -> Failure {
    let message = "not all messages of this batch pass to one server, and the query has all of them; send each alone, or post the batch";
    Failure::new(Reason::InvalidRequest, message)
}

/// Returns false if a body is certainly no JSON array.
fn may_be_array(headers: &HeaderMap, body: &Bytes) -> bool {
    let mut start = body.iter().filter(|byte| !byte.is_ascii_whitespace());
    // A byte order mark or a content coding may be in front of it.
    start.next().is_some_and(|byte| matches!(byte, b'[' | 0xef))
        || headers.contains_key(CONTENT_ENCODING)
}

/// Serves the messages of a batch as single calls; the record of the request ends without a report, so that the request
/// takes no place in `limits.in_flight` besides its messages.
pub(super) async fn serve(
    request_record: Box<AccessRecord>,
    client: ClientRequest<'_>,
    messages: Vec<Json>,
) -> Response<ResponseBody> {
    let runtime_plan = request_record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let batch = Batch {
        worker: request_record.context.worker().clone(),
        runtime_plan: runtime_plan.clone(),
        since: request_record.context.call_start(),
        remaining: Cell::new(plan.limits.answer),
        client,
    };
    request_record.discard();
    let calls = stream::iter(messages).map(|message| batch.serve(message));
    let replies: Vec<Result<Reply, Failure>> =
        calls.buffered(plan.face.batch_concurrency).collect().await;
    let replies: Result<Vec<Reply>, Failure> = replies.into_iter().collect();
    let mut response = match replies {
        Ok(replies) => assemble(replies),
        Err(failure) => {
            let record = batch.begin_record();
            response::render_failure(record, failure, None)
        }
    };
    response::add_cors_headers(plan, &client.head.headers, &mut response);
    response
}

/// The response to one message.
enum Reply {
    /// JSON; nothing if the response has no content.
    Json(Bytes),
    /// A response that cannot be part of an array, such as a challenge of the server.
    Other(Response<ResponseBody>),
}

/// Assembles the responses. One that is not JSON is the response to the whole batch.
fn assemble(replies: Vec<Reply>) -> Response<ResponseBody> {
    let mut messages = Vec::new();
    for reply in replies {
        match reply {
            Reply::Json(body) if body.is_empty() => {}
            Reply::Json(body) => messages.push(Rope::from(body)),
            Reply::Other(response) => return response,
        }
    }
    match messages.is_empty() {
        true => response::respond(acknowledgement(StatusCode::NO_CONTENT)),
        false => response::respond(rpc_message(jsonrpc::batch(messages))),
    }
}

/// The messages of one request.
struct Batch<'a> {
    worker: Rc<Worker>,
    runtime_plan: Rc<RuntimePlan>,
    since: CallStart,
    /// The number of bytes left for the responses.
    remaining: Cell<usize>,
    client: ClientRequest<'a>,
}

impl Batch<'_> {
    /// Begins the record of a message, or of the request if its responses cannot be assembled.
    fn begin_record(&self) -> Box<AccessRecord> {
        let ClientRequest { head, origin } = self.client;
        let (worker, runtime_plan) = (&self.worker, &self.runtime_plan);
        let line = RequestLine::for_call(head, origin);
        let mut record = AccessRecord::begin(worker, runtime_plan, Side::Rest, line);
        // The request had to be read before the messages were known.
        record.context.start = self.since;
        record.context.set_origin(origin);
        record.context.start_trace(&head.headers);
        record
    }

    /// Serves one message, and reads its response.
    async fn serve(&self, message: Json) -> Result<Reply, Failure> {
        let ClientRequest { head, origin } = self.client;
        let (worker, runtime_plan) = (&self.worker, &self.runtime_plan);
        let mut record = self.begin_record();
        record.set_old(OldTransport::Batch, 1);
        let content = RequestBody::Read(message.into_bytes());
        let (head, origin) = (message_head(head), origin.clone());
        let response = pinned(|| serve_content(record, head, content, origin)).await;
        let (parts, mut body) = response.into_parts();
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(cut)?;
            if let Some(chunk) = frame.data_ref() {
                let left = self.remaining.get().checked_sub(chunk.len());
                self.remaining.set(left.unwrap_or(0));
                left.ok_or_else(|| too_large(&runtime_plan.plan))?;
                read.extend_from_slice(chunk);
            }
        }
        let read = read.freeze();
        let depth = runtime_plan.plan.limits.depth;
        let is_json = read.is_empty()
            || offloaded_parsing::parse_text(worker, &read, depth)
                .await?
                .is_some();
        Ok(
            match is_json && !parts.headers.contains_key(CONTENT_ENCODING) {
                true => Reply::Json(read),
                false => Reply::Other(Response::from_parts(
                    parts,
                    ResponseBody::full(Rope::from(read)),
                )),
            },
        )
    }
}

/// Returns the head of a message: its body has another length and coding than that of the request, and its response must
/// be JSON without a coding.
fn message_head(head: &request::Parts) -> Box<request::Parts> {
    let mut head = Box::new(head.clone());
    head.extensions = http::Extensions::new();
    for name in [CONTENT_LENGTH, CONTENT_ENCODING, ACCEPT_ENCODING] {
        head.headers.remove(name);
    }
    head
}

fn cut(error: ResponseBodyError) -> Failure {
    let message = "the response to a message of the batch broke off";
    Failure::new(Reason::UpstreamCut, message).because(error)
}

fn too_large(plan: &Plan) -> Failure {
    let limit = plan.limits.answer;
    let message = format!(
        "the responses of this batch exceed {limit} bytes in total; send fewer messages per batch"
    );
    Failure::new(Reason::BatchTooLarge, message)
}
