//! The whole story of one call: parse → select → decide → forward or translate → answer.
//!
//! [`handle`] is what a listener calls for each HTTP request. A REST request is one call; an RPC request is
//! one call for each of its messages, served by the same function alone or in a batch. Each call has one
//! record, which logs and counts it exactly once, however it ends; each failure is rendered in
//! one place, `response`.

mod cancellation;
mod cors;
mod event_stream;
mod exchange;
mod guard_recorder;
mod header_map_pool;
mod headers;
mod identity;
mod idle_timer;
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

use crate::domain::client_ip::Peer;
use crate::domain::failure::Failure;
use crate::domain::forwarding::HeaderCache;
use crate::domain::hosts::{ConnectionEntry, Reach};
use crate::domain::rollout::Subject;
use crate::domain::routing::{Endpoint, RequestHead, facing};
use crate::domain::side::Side;
use crate::domain::stream::StreamMatch;
use crate::domain::wire::{HeaderCase, RefusedLine, SentTarget, Violation};
use crate::upstream::link::ClientLinks;
use crate::upstream::{IncomingBody, Interims, ReusableTimer, boxed, pinned};

pub use cancellation::CancellationRegistry;
pub use offload::Offload;
pub use peers::Peer as CountedPeer;
pub use request_ids::RequestIdAllocator;
pub use response_body::ResponseBody;
pub use runtime_plan::RuntimePlan;
pub use sessions::Sessions;
pub use shadow::{ComparePool, CompareThread};
pub use worker::{ConnectionGuard, Shared, Worker};

use legacy_socket::ClientConnections;
use max_forwards::ForwardDecision;
use record::{Record, RequestLine};

/// How long the head of a request took, from its first byte; an extension of one that did not come at once.
#[derive(Debug, Clone, Copy)]
pub struct HeaderReadTime(pub Duration);

/// What the listener knows of a request besides the request.
#[derive(Debug, Clone)]
pub struct RequestOrigin {
    /// The same for all requests of a connection.
    origin: Rc<ConnectionContext>,
    /// What the wire inspector has refused, if this request stands for it.
    refused: Option<Violation>,
    /// How the names of its head are written, unless in lower case.
    spelling: Option<HeaderCase>,
    /// Its target, where that of its head is another one.
    target: Option<Rc<SentTarget>>,
    /// With whose calls it counts, unless a trusted hop sends it that names nobody.
    counted: Option<Rc<CountedPeer>>,
}

/// Where a connection comes from.
#[derive(Debug)]
struct ConnectionContext {
    peer: Peer,
    /// The reach of the listener that it came by.
    reach: Reach,
    /// The scheme of its requests.
    scheme: &'static str,
    /// What servers were told of it last.
    told: HeaderCache,
    /// What its verified certificate says.
    subject: Option<Subject>,
    /// The links to servers that it has for itself.
    links: Rc<ClientLinks>,
    /// Its sockets at servers that speak in frames.
    sockets: ClientConnections,
    /// Bounds what is waited for at servers.
    alarm: RefCell<ReusableTimer>,
    /// Interim responses to the call that is served, where the client can get them.
    interims: Option<Interims>,
}

impl RequestOrigin {
    /// The arrivals of a connection, none of them refused.
    #[must_use]
    pub fn from_peer(peer: IpAddr, reach: Reach) -> RequestOrigin {
        RequestOrigin::new((peer, reach), "http", None)
    }

    /// The arrivals of a connection behind TLS, with what the peer's certificate says, if it has sent one.
    #[must_use]
    pub fn secured(peer: IpAddr, reach: Reach, subject: Option<Subject>) -> RequestOrigin {
        RequestOrigin::new((peer, reach), "https", subject)
    }

    fn new(
        (peer, reach): (IpAddr, Reach),
        scheme: &'static str,
        subject: Option<Subject>,
    ) -> RequestOrigin {
        let origin = ConnectionContext {
            peer: Peer::at(peer),
            reach,
            scheme,
            told: HeaderCache::default(),
            subject,
            links: Rc::default(),
            sockets: ClientConnections::default(),
            alarm: RefCell::default(),
            interims: None,
        };
        RequestOrigin {
            origin: Rc::new(origin),
            refused: None,
            spelling: None,
            target: None,
            counted: None,
        }
    }

    /// Counts the calls of the connection as those of a peer.
    #[must_use]
    pub fn counted(self, peer: Option<Rc<CountedPeer>>) -> RequestOrigin {
        RequestOrigin {
            counted: peer,
            ..self
        }
    }

    /// The address of the other end.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.peer().address()
    }

    /// The arrivals of a connection that serves one call at a time, and writes interim responses to it.
    #[must_use]
    pub fn with_interims(mut self, interims: Interims) -> RequestOrigin {
        if let Some(origin) = Rc::get_mut(&mut self.origin) {
            origin.interims = Some(interims);
        }
        self
    }

    /// Where interim responses go.
    fn interims(&self) -> Option<&Interims> {
        self.origin.interims.as_ref()
    }

    /// Whom the connection comes from.
    fn peer(&self) -> &Peer {
        &self.origin.peer
    }

    /// By which connection its requests come.
    fn entry(&self) -> ConnectionEntry {
        ConnectionEntry {
            reach: self.origin.reach,
            peer: Some(self.peer().address()),
        }
    }

    /// What bounds the time of one call at a time.
    fn alarm(&self) -> &RefCell<ReusableTimer> {
        &self.origin.alarm
    }

    /// The links to servers that the connection has for itself.
    fn links(&self) -> &Rc<ClientLinks> {
        &self.origin.links
    }

    /// The sockets that the connection has at servers that speak in frames.
    fn sockets(&self) -> &ClientConnections {
        &self.origin.sockets
    }

    /// Whether a client on a socket has lost what a server has kept for it, or is about to: it is let go, and nobody is
    /// asked for it till then.
    fn has_lost(&self) -> bool {
        self.links().has_lost() || self.sockets().has_lost()
    }

    /// What the verified certificate of the connection says.
    fn subject(&self) -> Option<&Subject> {
        self.origin.subject.as_ref()
    }

    /// The arrival of one request.
    #[must_use]
    pub fn refused(&self, refused: Option<Violation>) -> RequestOrigin {
        RequestOrigin {
            origin: self.origin.clone(),
            refused,
            spelling: None,
            target: None,
            counted: self.counted.clone(),
        }
    }

    /// The arrival of a request whose names are written so.
    #[must_use]
    pub fn with_header_case(self, spelling: Option<HeaderCase>) -> RequestOrigin {
        RequestOrigin { spelling, ..self }
    }

    /// The arrival of a request whose target came so.
    #[must_use]
    pub fn sent(self, target: Option<Rc<SentTarget>>) -> RequestOrigin {
        RequestOrigin { target, ..self }
    }

    /// The target that is sent in place of this one, where the client sent raw characters.
    fn raw_target(&self, target: &Uri) -> Option<Vec<u8>> {
        match self.target.as_deref() {
            Some(SentTarget::Raw(raw)) => raw.restore(target.path_and_query()?.as_str()),
            Some(SentTarget::Refused(_)) | None => None,
        }
    }

    /// The request line that was refused, where the head stands for it.
    fn refused_line(&self) -> Option<&RefusedLine> {
        match self.target.as_deref() {
            Some(SentTarget::Refused(line)) => Some(line),
            Some(SentTarget::Raw(_)) | None => None,
        }
    }

    /// How the names of the request's head are written, unless in lower case.
    fn spelling(&self) -> Option<&HeaderCase> {
        self.spelling.as_ref()
    }
}

/// Serves one HTTP request. It is a call from here on: whoever drops the answer before it is first asked for has
/// cancelled it.
///
/// A connection keeps the room of a future between its calls, so the room of a call is in a box: as much as the face needs
/// that it speaks to.
pub fn handle(
    worker: Rc<Worker>,
    request: Request<IncomingBody>,
    mut arrival: RequestOrigin,
) -> Pin<Box<dyn Future<Output = Response<ResponseBody>>>> {
    let installed = worker.installed();
    let (head, body) = request.into_parts();
    let mut head = boxed(|| head);
    if head.uri.authority().is_some() {
        passthrough::origin_form(&mut head);
    }
    let plan = &installed.plan;
    if arrival.counted.is_none() {
        arrival.counted = worker.caller(plan, (arrival.address(), &head.headers));
    }
    let is_trusted = || plan.rollout.clients.hops().trusts(arrival.peer().address());
    plan.identity_headers.clean(&mut head.headers, is_trusted);
    let hop = max_forwards::step(&mut head);
    let faced = dispatch(&installed, &head, &arrival);
    let side = match &faced {
        Ok(Dispatch::Side(side)) | Err((side, _)) => *side,
        Ok(Dispatch::Stream(followed)) => followed.side,
    };
    let delivery = IncomingRequest {
        record: Record::begin(&worker, &installed, side, RequestLine::new(&head, &arrival)),
        head,
        body,
        arrival,
    };
    match faced {
        Err((_, failure)) => pinned(|| refused(delivery, failure)),
        Ok(_) if hop == ForwardDecision::Last => pinned(|| max_forwards::respond(delivery)),
        Ok(Dispatch::Stream(followed)) => pinned(|| event_stream::serve(delivery, followed)),
        Ok(Dispatch::Side(Side::Rest)) => pinned(|| rest::serve(delivery)),
        Ok(Dispatch::Side(Side::Rpc)) => pinned(|| rpc::serve(delivery)),
    }
}

/// One HTTP request, which nobody has looked at yet. A client may be gone by then, together with its connection.
struct IncomingRequest {
    /// Of the side that it speaks to.
    record: Box<Record>,
    /// It passes through several hands.
    head: Box<request::Parts>,
    body: IncomingBody,
    arrival: RequestOrigin,
}

async fn refused(delivery: IncomingRequest, failure: Failure) -> Response<ResponseBody> {
    let IncomingRequest { record, head, .. } = delivery;
    let (side, installed) = (record.side(), record.installed().clone());
    let mut response = response::failure(record, failure);
    if side == Side::Rpc {
        cors::mark(&installed.plan, &head.headers, &mut response);
    }
    response
}

/// What a request speaks to.
enum Dispatch {
    Side(Side),
    Stream(StreamMatch),
}

/// Which face a request speaks to, if it may speak at all.
fn dispatch(
    installed: &RuntimePlan,
    head: &request::Parts,
    arrival: &RequestOrigin,
) -> Result<Dispatch, (Side, Failure)> {
    let Endpoint {
        side,
        refused,
        stream: followed,
    } = facing(&installed.plan, RequestHead::new(head));
    if let Some(violation) = arrival.refused {
        // What stands for a refused request line looks like a GET of `/`, which is nobody's JSON-RPC.
        let side = if head.method == Method::POST {
            side
        } else {
            Side::Rest
        };
        return Err((side, Failure::new(violation.reason(), violation.as_str())));
    }
    match (refused, followed) {
        (Some(failure), _) => Err((side, failure)),
        (None, Some(followed)) => Ok(Dispatch::Stream(followed)),
        (None, None) => Ok(Dispatch::Side(side)),
    }
}
