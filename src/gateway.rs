//! The path of one call: side → identify → admit → route → decide → send → shadow → respond.
//!
//! The listener calls [`handle`] for each HTTP request. A REST request is one call. An RPC request is one call per
//! message, and the same function serves a single message and each message of a batch. Each call has one record, which
//! logs and counts it exactly once. Each failure is rendered in one place, `response`.
//!
//! Used by `app` and `server`.

mod cancellation;
mod cors;
mod event_stream;
mod exchange;
mod guard_recorder;
mod header_map_pool;
mod headers;
mod identity;
mod labels;
mod legacy_socket;
mod link_call;
mod local_reply;
mod max_forwards;
mod offload;
mod offloaded_parsing;
mod passthrough;
mod peers;
mod record;
mod request_body;
mod request_ids;
mod response;
mod response_annotations;
mod response_body;
mod rest;
mod rpc;
mod runtime_plan;
mod sessions;
mod shadow;
mod stream_end;
mod translate;
mod tunnel;
mod upstream_stream;
mod worker;

use std::cell::RefCell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, Request, Response, Uri, request};

use crate::upstream::link::ClientLinks;
use crate::upstream::{ClientConnections, IncomingBody, Interims, ReusableTimer, boxed, pinned};
use dualgauge_model::client_ip::Peer;
use dualgauge_model::failure::Failure;
use dualgauge_model::forwarding::HeaderCache;
use dualgauge_model::hosts::{ConnectionEntry, Reach};
use dualgauge_model::rollout::Subject;
use dualgauge_model::routing::{RequestHead, RequestTarget, classify_request};
use dualgauge_model::stream::StreamMatch;
use dualgauge_model::wire::{HeaderCase, RefusedLine, SentTarget, Violation};
use dualgauge_patterns::side::Side;

pub use cancellation::CancellationRegistry;
pub use offload::Offload;
pub use peers::Peer as CountedPeer;
pub use request_ids::RequestIdAllocator;
pub use response_body::ResponseBody;
pub use runtime_plan::RuntimePlan;
pub use sessions::Sessions;
pub use shadow::{ComparePool, CompareThread};
pub use worker::{ConnectionGuard, Shared, Worker};

use max_forwards::ForwardDecision;
use record::{Record, RequestLine};

/// Time from the first byte of a request head to its last; an extension of requests whose head took several reads.
#[derive(Debug, Clone, Copy)]
pub struct HeaderReadTime(pub Duration);

/// Facts that the listener knows about a request and its connection.
#[derive(Debug, Clone)]
pub struct RequestOrigin {
    /// Shared by all requests of a connection.
    connection: Rc<ConnectionContext>,
    /// The violation for which the wire inspector rejected this request, if it did.
    violation: Option<Violation>,
    /// The case of the header names, unless they are in lower case.
    header_case: Option<HeaderCase>,
    /// The target as the client sent it, if the parsed head has another one.
    target: Option<Rc<SentTarget>>,
    /// Peer whose in-progress limit the request counts towards; unset if a trusted hop names no client.
    peer_in_limits: Option<Rc<CountedPeer>>,
}

/// The state of one client connection.
#[derive(Debug)]
struct ConnectionContext {
    peer: Peer,
    /// The reach of the listener that accepted the connection.
    reach: Reach,
    /// The scheme of its requests.
    scheme: &'static str,
    /// The `Forwarded` value sent last, cached for reuse.
    header_cache: HeaderCache,
    /// The subject of its verified client certificate.
    subject: Option<Subject>,
    /// The upstream links of this connection.
    links: Rc<ClientLinks>,
    /// Its WebSocket connections to servers that use the legacy frame protocol.
    sockets: ClientConnections,
    /// The timer of the call's upstream waits.
    timer: RefCell<ReusableTimer>,
    /// The sender of interim responses, if the client can receive them.
    interims: Option<Interims>,
}

impl RequestOrigin {
    /// Creates the origin of a plaintext connection.
    #[must_use]
    pub fn from_peer(peer: IpAddr, reach: Reach) -> RequestOrigin {
        RequestOrigin::new((peer, reach), "http", None)
    }

    /// Creates the origin of a TLS connection, with the subject of the client certificate, if any.
    #[must_use]
    pub fn from_tls_peer(peer: IpAddr, reach: Reach, subject: Option<Subject>) -> RequestOrigin {
        RequestOrigin::new((peer, reach), "https", subject)
    }

    fn new(
        (peer, reach): (IpAddr, Reach),
        scheme: &'static str,
        subject: Option<Subject>,
    ) -> RequestOrigin {
        let connection = ConnectionContext {
            peer: Peer::at(peer),
            reach,
            scheme,
            header_cache: HeaderCache::default(),
            subject,
            links: Rc::default(),
            sockets: ClientConnections::default(),
            timer: RefCell::default(),
            interims: None,
        };
        RequestOrigin {
            connection: Rc::new(connection),
            violation: None,
            header_case: None,
            target: None,
            peer_in_limits: None,
        }
    }

    /// Sets the peer whose in-progress limit the requests count towards.
    #[must_use]
    pub fn with_peer(self, peer: Option<Rc<CountedPeer>>) -> RequestOrigin {
        RequestOrigin {
            peer_in_limits: peer,
            ..self
        }
    }

    /// Returns the IP address of the peer.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.peer().address()
    }

    /// Sets the sender of interim responses, on a connection that serves one call at a time.
    #[must_use]
    pub fn with_interims(mut self, interims: Interims) -> RequestOrigin {
        if let Some(connection) = Rc::get_mut(&mut self.connection) {
            connection.interims = Some(interims);
        }
        self
    }

    /// Returns the sender of interim responses.
    fn interims(&self) -> Option<&Interims> {
        self.connection.interims.as_ref()
    }

    /// Returns the peer of the connection.
    fn peer(&self) -> &Peer {
        &self.connection.peer
    }

    /// Returns the reach and the peer of the connection, which host matching uses.
    fn entry(&self) -> ConnectionEntry {
        ConnectionEntry {
            reach: self.connection.reach,
            peer: Some(self.peer().address()),
        }
    }

    /// Returns the timer of the connection, which serves one call at a time.
    fn timer(&self) -> &RefCell<ReusableTimer> {
        &self.connection.timer
    }

    /// Returns the upstream links of the connection.
    fn links(&self) -> &Rc<ClientLinks> {
        &self.connection.links
    }

    /// Returns the connection's WebSocket connections to legacy servers.
    fn sockets(&self) -> &ClientConnections {
        &self.connection.sockets
    }

    /// Returns true when server state kept for this WebSocket client is lost or about to be lost. The connection will
    /// close, and no further calls are sent for it.
    fn has_lost(&self) -> bool {
        self.links().has_lost() || self.sockets().has_lost()
    }

    /// Returns the subject of the verified client certificate.
    fn subject(&self) -> Option<&Subject> {
        self.connection.subject.as_ref()
    }

    /// Returns the origin of one request, with the violation that rejects it, if any.
    #[must_use]
    pub fn with_violation(&self, violation: Option<Violation>) -> RequestOrigin {
        RequestOrigin {
            connection: self.connection.clone(),
            violation,
            header_case: None,
            target: None,
            peer_in_limits: self.peer_in_limits.clone(),
        }
    }

    /// Sets the case of the request's header names.
    #[must_use]
    pub fn with_header_case(self, header_case: Option<HeaderCase>) -> RequestOrigin {
        RequestOrigin {
            header_case,
            ..self
        }
    }

    /// Sets the target as the client sent it.
    #[must_use]
    pub fn with_sent_target(self, target: Option<Rc<SentTarget>>) -> RequestOrigin {
        RequestOrigin { target, ..self }
    }

    /// Returns the target with the client's raw characters restored, if it sent any.
    fn raw_target(&self, target: &Uri) -> Option<Vec<u8>> {
        match self.target.as_deref() {
            Some(SentTarget::Raw(raw)) => raw.restore(target.path_and_query()?.as_str()),
            Some(SentTarget::Refused(_)) | None => None,
        }
    }

    /// Returns the request line that the wire inspector rejected, if the head stands for one.
    fn rejected_line(&self) -> Option<&RefusedLine> {
        match self.target.as_deref() {
            Some(SentTarget::Refused(line)) => Some(line),
            Some(SentTarget::Raw(_)) | None => None,
        }
    }

    /// Returns the case of the header names, unless they are in lower case.
    fn header_case(&self) -> Option<&HeaderCase> {
        self.header_case.as_ref()
    }
}

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
        passthrough::origin_form(&mut head);
    }
    let plan = &runtime_plan.plan;
    if origin.peer_in_limits.is_none() {
        origin.peer_in_limits = worker.caller(plan, (origin.address(), &head.headers));
    }
    let is_trusted = || plan.rollout.clients.hops().trusts(origin.peer().address());
    plan.identity_headers.clean(&mut head.headers, is_trusted);
    let forward_decision = max_forwards::next_step(&mut head);
    let dispatched = dispatch(&runtime_plan, &head, &origin);
    let side = match &dispatched {
        Ok(Dispatch::Side(side)) | Err((side, _)) => *side,
        Ok(Dispatch::Stream(matched)) => matched.side,
    };
    let request = IncomingRequest {
        record: Record::begin(
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
        Ok(_) if forward_decision == ForwardDecision::Last => {
            pinned(|| max_forwards::respond(request))
        }
        Ok(Dispatch::Stream(matched)) => pinned(|| event_stream::serve(request, matched)),
        Ok(Dispatch::Side(Side::Rest)) => pinned(|| rest::serve(request)),
        Ok(Dispatch::Side(Side::Rpc)) => pinned(|| rpc::serve(request)),
    }
}

/// One HTTP request before dispatch. The client and its connection may already be gone.
struct IncomingRequest {
    /// Belongs to the side that the request addresses.
    record: Box<Record>,
    /// Boxed, because it is passed through several functions.
    head: Box<request::Parts>,
    body: IncomingBody,
    origin: RequestOrigin,
}

async fn reject(request: IncomingRequest, failure: Failure) -> Response<ResponseBody> {
    let IncomingRequest { record, head, .. } = request;
    let (side, runtime_plan) = (record.side(), record.runtime_plan().clone());
    let mut response = response::render_failure(record, failure);
    if side == Side::Rpc {
        cors::add_headers(&runtime_plan.plan, &head.headers, &mut response);
    }
    response
}

/// The part of the gateway that serves a request.
enum Dispatch {
    Side(Side),
    Stream(StreamMatch),
}

/// Selects the side or stream that serves the request; fails when the request is rejected.
fn dispatch(
    runtime_plan: &RuntimePlan,
    head: &request::Parts,
    origin: &RequestOrigin,
) -> Result<Dispatch, (Side, Failure)> {
    let RequestTarget {
        side,
        refused,
        stream: matched,
    } = classify_request(&runtime_plan.plan, RequestHead::new(head));
    if let Some(violation) = origin.violation {
        // A rejected request line is represented by a GET of `/`, which is never JSON-RPC.
        let side = if head.method == Method::POST {
            side
        } else {
            Side::Rest
        };
        return Err((side, Failure::new(violation.reason(), violation.as_str())));
    }
    match (refused, matched) {
        (Some(failure), _) => Err((side, failure)),
        (None, Some(matched)) => Ok(Dispatch::Stream(matched)),
        (None, None) => Ok(Dispatch::Side(side)),
    }
}
