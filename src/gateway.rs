//! The path of one call: side → identify → admit → route → decide → send → shadow → respond.
//!
//! The listener calls [`handle`] for each HTTP request. A REST request is one call. An RPC request is one call per
//! message, and the same function serves a single message and each message of a batch. Each call has one record, which
//! logs and counts it exactly once. Each failure is rendered in one place, `response`.
//!
//! Used by `app` and `server`.

mod access_record;
mod agent_card;
mod call_context;
mod call_response;
mod cancellation;
mod client_requests;
mod event_sessions;
mod event_stream;
mod event_translation;
mod exchange;
mod failures;
mod guard_recorder;
mod headers;
mod identity;
mod labels;
mod legacy_socket;
mod link_call;
mod local_reply;
mod log_levels;
mod offload;
mod offloaded_parsing;
mod old_failure;
mod passthrough;
mod peers;
mod progress_stream;
mod recorded_call;
mod recording;
mod replay;
mod request_body;
mod request_ids;
mod request_line;
mod request_origin;
mod request_target;
mod resource_challenges;
mod resource_metadata;
mod response;
mod response_body;
mod response_observer;
mod rest;
mod rpc;
mod rpc_reply;
mod rpc_request;
mod runtime_plan;
mod serve;
mod session_listener;
mod session_streams;
mod session_table;
mod sessions;
mod shadow;
mod shared_state;
mod socket_call;
mod stream_end;
mod stream_headers;
mod streamed_call;
mod subscribed_call;
mod subscription_events;
mod suspended_calls;
mod token_cache;
mod translate;
mod translated_stream;
mod tunnel;
mod undelivered;
mod upstream_stream;
mod worker;

use std::pin::Pin;
use std::rc::Rc;

use http::{Method, Request, Response, request};

use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::rejections;
use dualgauge_model::routing::{RequestHead, RequestTarget, classify_request};
use dualgauge_model::stream::StreamMatch;
use dualgauge_net::{IncomingBody, boxed, pinned};
use dualgauge_patterns::side::Side;

pub use cancellation::CancellationRegistry;
pub use event_sessions::EventSessions;
pub use offload::Offload;
pub use peers::Peer as CountedPeer;
pub use recorded_call::{
    Control, ControlOrigin, HeaderExtent, NotRun, RecordedCall, RecordedControl, ReplayReport,
    ReplayTerms, ReplayedCall, UnsafeCalls,
};
pub use replay::replay;
pub use request_ids::RequestIdAllocator;
pub use request_origin::{HeaderReadTime, RequestOrigin};
pub use response_body::ResponseBody;
pub use runtime_plan::RuntimePlan;
pub use session_table::Sessions;
pub use shadow::{ComparePool, CompareThread};
pub use shared_state::Shared;
pub use worker::{ConnectionGuard, Worker};

use access_record::AccessRecord;
use request_line::RequestLine;
use request_origin::ClientRequest;
use serve::IncomingRequest;

/// Serves one HTTP request. The call starts here: dropping the future before its first poll cancels the call.
///
/// A connection keeps the memory of its service future between calls. Boxing the future keeps that small, and each call
/// allocates only as much as its side needs.
pub fn handle(
    worker: Rc<Worker>,
    request: Request<IncomingBody>,
    mut origin: RequestOrigin,
) -> Pin<Box<dyn Future<Output = Response<ResponseBody>>>> {
    let runtime_plan = worker.runtime_plan();
    let (head, body) = request.into_parts();
    let mut head = boxed(|| head);
    if head.uri.authority().is_some() {
        request_target::origin_form(&mut head);
    }
    let plan = &runtime_plan.plan;
    if origin.peer_in_limits().is_none() {
        let peer = worker.caller(plan, origin.address(), &head.headers);
        origin = origin.with_peer(peer);
    }
    let is_trusted = || plan.rollout.clients.hops().trusts(origin.peer().address());
    plan.identity_headers.clean(&mut head.headers, is_trusted);
    let is_final_recipient = headers::decrement_max_forwards(&mut head);
    let dispatched = dispatch(&worker, &runtime_plan, &head, &origin);
    let side = match &dispatched {
        Ok(Dispatch::Side(side)) | Err((side, _)) => *side,
        Ok(Dispatch::Stream(matched)) => matched.side,
    };
    let request = IncomingRequest {
        record: AccessRecord::begin(
            &worker,
            &runtime_plan,
            side,
            RequestLine::new(&head, &origin),
        ),
        head,
        body,
        origin,
    };
    match dispatched {
        Err((_, failure)) => pinned(|| reject(request, failure)),
        Ok(_) if is_final_recipient => pinned(|| respond_as_recipient(request)),
        Ok(Dispatch::Stream(matched)) => pinned(|| event_stream::serve_request(request, matched)),
        Ok(Dispatch::Side(Side::Rest)) => pinned(|| rest::serve_request(request)),
        Ok(Dispatch::Side(Side::Rpc)) => pinned(|| rpc::serve_request(request)),
    }
}

async fn reject(request: IncomingRequest, failure: Failure) -> Response<ResponseBody> {
    let IncomingRequest { record, head, .. } = request;
    let (side, runtime_plan) = (record.context.side(), record.context.runtime_plan().clone());
    let mut response = response::render_failure(record, failure, None);
    if side == Side::Rpc {
        response::add_cors_headers(&runtime_plan.plan, &head.headers, &mut response);
    }
    response
}

/// Responds to a request whose final recipient is the proxy.
async fn respond_as_recipient(request: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        mut record,
        head,
        origin,
        ..
    } = request;
    identity::identify(&mut record, &head.headers, &origin);
    let request = ClientRequest {
        head: &*head,
        origin: &origin,
    };
    let admitted = record.context.admit();
    let answer = admitted.and_then(|()| local_reply::answer_as_recipient(&mut record, request));
    response::render(record, answer, None)
}

/// The part of the gateway that serves a request.
enum Dispatch {
    Side(Side),
    Stream(StreamMatch),
}

/// Selects the side or stream that serves the request; fails when the request is rejected.
fn dispatch(
    worker: &Worker,
    runtime_plan: &RuntimePlan,
    head: &request::Parts,
    origin: &RequestOrigin,
) -> Result<Dispatch, (Side, Failure)> {
    let RequestTarget {
        side,
        refused,
        stream: matched,
    } = classify_request(&runtime_plan.plan, RequestHead::new(head));
    if let Some(violation) = origin.violation() {
        // A rejected request line is represented by a GET of `/`, which is never JSON-RPC.
        let side = if head.method == Method::POST {
            side
        } else {
            Side::Rest
        };
        return Err((
            side,
            Failure::new(Reason::from(violation), violation.as_str()),
        ));
    }
    let checked = identity::check_credentials(runtime_plan, RequestHead::new(head), origin);
    if let Err(fault) = checked {
        worker.count(|shard| shard.unauthenticated_request(fault));
        let clients = &runtime_plan.plan.rollout.clients;
        return Err((side, rejections::unauthenticated(clients, fault)));
    }
    match (refused, matched) {
        (Some(failure), _) => Err((side, failure)),
        (None, Some(matched)) => Ok(Dispatch::Stream(matched)),
        (None, None) => Ok(Dispatch::Side(side)),
    }
}
