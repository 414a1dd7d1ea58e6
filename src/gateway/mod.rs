//! The whole story of one call: parse → select → decide → forward or translate → answer.
//!
//! [`handle`] is what a listener calls for each HTTP request. A REST request is one call; an RPC request is
//! one call for each of its messages, served by the same function alone or in a batch. Each call has one
//! record, which logs and counts it exactly once, however it ends; each failure is rendered in
//! one place, `render`.

mod answer;
mod ask;
mod call_ids;
mod caller;
mod candidate;
mod closing;
mod content;
mod cors;
mod forward;
mod framed;
mod guarded;
mod headers;
mod hops;
mod installed;
mod intake;
mod labels;
mod linked;
mod local;
mod long_texts;
mod marks;
mod offload;
mod peers;
mod recalls;
mod record;
mod render;
mod rest;
mod rooms;
mod rpc;
mod sessions;
mod silence;
mod stream;
mod translated;
mod tunnel;
mod worker;

use std::cell::RefCell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, Request, Response, Uri, request};

use crate::domain::claim::{Facing, Head, facing};
use crate::domain::failure::Failure;
use crate::domain::forwarding::LastTold;
use crate::domain::hops::Peer;
use crate::domain::hosts::{Entry, Reach};
use crate::domain::rollout::Subject;
use crate::domain::side::Side;
use crate::domain::stream::Followed;
use crate::domain::wire::{RefusedLine, SentTarget, Spelling, Violation};
use crate::upstream::link::OwnLinks;
use crate::upstream::{Alarm, Inflow, Interims, pinned, placed};

pub use answer::AnswerBody;
pub use call_ids::CallIds;
pub use candidate::{Clerk, Desk};
pub use installed::Installed;
pub use offload::Offload;
pub use peers::Peer as CountedPeer;
pub use recalls::Recalls;
pub use sessions::Sessions;
pub use worker::{Common, Connected, Worker};

use framed::OwnSockets;
use hops::Hop;
use record::{Record, RequestLine};

/// How long the head of a request took, from its first byte; an extension of one that did not come at once.
#[derive(Debug, Clone, Copy)]
pub struct HeadTook(pub Duration);

/// What the listener knows of a request besides the request.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The same for all requests of a connection.
    origin: Rc<Origin>,
    /// What the wire inspector has refused, if this request stands for it.
    refused: Option<Violation>,
    /// How the names of its head are written, unless in lower case.
    spelling: Option<Spelling>,
    /// Its target, where that of its head is another one.
    target: Option<Rc<SentTarget>>,
    /// With whose calls it counts, unless a trusted hop sends it that names nobody.
    counted: Option<Rc<CountedPeer>>,
}

/// Where a connection comes from.
#[derive(Debug)]
struct Origin {
    peer: Peer,
    /// The reach of the listener that it came by.
    reach: Reach,
    /// The scheme of its requests.
    scheme: &'static str,
    /// What servers were told of it last.
    told: LastTold,
    /// What its verified certificate says.
    subject: Option<Subject>,
    /// The links to servers that it has for itself.
    links: Rc<OwnLinks>,
    /// Its sockets at servers that speak in frames.
    sockets: OwnSockets,
    /// Bounds what is waited for at servers.
    alarm: RefCell<Alarm>,
    /// Interim responses to the call that is served, where the client can get them.
    interims: Option<Interims>,
}

impl Arrival {
    /// The arrivals of a connection, none of them refused.
    #[must_use]
    pub fn from_peer(peer: IpAddr, reach: Reach) -> Arrival {
        Arrival::of((peer, reach), "http", None)
    }

    /// The arrivals of a connection behind TLS, with what the peer's certificate says, if it has sent one.
    #[must_use]
    pub fn secured(peer: IpAddr, reach: Reach, subject: Option<Subject>) -> Arrival {
        Arrival::of((peer, reach), "https", subject)
    }

    fn of(
        (peer, reach): (IpAddr, Reach),
        scheme: &'static str,
        subject: Option<Subject>,
    ) -> Arrival {
        let origin = Origin {
            peer: Peer::at(peer),
            reach,
            scheme,
            told: LastTold::default(),
            subject,
            links: Rc::default(),
            sockets: OwnSockets::default(),
            alarm: RefCell::default(),
            interims: None,
        };
        Arrival {
            origin: Rc::new(origin),
            refused: None,
            spelling: None,
            target: None,
            counted: None,
        }
    }

    /// Counts the calls of the connection as those of a peer.
    #[must_use]
    pub fn counted(self, peer: Option<Rc<CountedPeer>>) -> Arrival {
        Arrival {
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
    pub fn with_interims(mut self, interims: Interims) -> Arrival {
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
    fn entry(&self) -> Entry {
        Entry {
            reach: self.origin.reach,
            peer: Some(self.peer().address()),
        }
    }

    /// What bounds the time of one call at a time.
    fn alarm(&self) -> &RefCell<Alarm> {
        &self.origin.alarm
    }

    /// The links to servers that the connection has for itself.
    fn links(&self) -> &Rc<OwnLinks> {
        &self.origin.links
    }

    /// The sockets that the connection has at servers that speak in frames.
    fn sockets(&self) -> &OwnSockets {
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
    pub fn refused(&self, refused: Option<Violation>) -> Arrival {
        Arrival {
            origin: self.origin.clone(),
            refused,
            spelling: None,
            target: None,
            counted: self.counted.clone(),
        }
    }

    /// The arrival of a request whose names are written so.
    #[must_use]
    pub fn spelled(self, spelling: Option<Spelling>) -> Arrival {
        Arrival { spelling, ..self }
    }

    /// The arrival of a request whose target came so.
    #[must_use]
    pub fn sent(self, target: Option<Rc<SentTarget>>) -> Arrival {
        Arrival { target, ..self }
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
    fn spelling(&self) -> Option<&Spelling> {
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
    request: Request<Inflow>,
    mut arrival: Arrival,
) -> Pin<Box<dyn Future<Output = Response<AnswerBody>>>> {
    let installed = worker.installed();
    let (head, body) = request.into_parts();
    let mut head = placed(|| head);
    if head.uri.authority().is_some() {
        forward::origin_form(&mut head);
    }
    let plan = &installed.plan;
    if arrival.counted.is_none() {
        arrival.counted = worker.caller(plan, (arrival.address(), &head.headers));
    }
    let is_trusted = || plan.rollout.clients.hops().trusts(arrival.peer().address());
    plan.identity_headers.clean(&mut head.headers, is_trusted);
    let hop = hops::step(&mut head);
    let faced = face(&installed, &head, &arrival);
    let side = match &faced {
        Ok(Faced::Side(side)) | Err((side, _)) => *side,
        Ok(Faced::Stream(followed)) => followed.side,
    };
    let delivery = Delivery {
        record: Record::begin(&worker, &installed, side, RequestLine::of(&head, &arrival)),
        head,
        body,
        arrival,
    };
    match faced {
        Err((_, failure)) => pinned(|| refused(delivery, failure)),
        Ok(_) if hop == Hop::Last => pinned(|| hops::respond(delivery)),
        Ok(Faced::Stream(followed)) => pinned(|| stream::serve(delivery, followed)),
        Ok(Faced::Side(Side::Rest)) => pinned(|| rest::serve(delivery)),
        Ok(Faced::Side(Side::Rpc)) => pinned(|| rpc::serve(delivery)),
    }
}

/// One HTTP request, which nobody has looked at yet. A client may be gone by then, together with its connection.
struct Delivery {
    /// Of the side that it speaks to.
    record: Box<Record>,
    /// It passes through several hands.
    head: Box<request::Parts>,
    body: Inflow,
    arrival: Arrival,
}

async fn refused(delivery: Delivery, failure: Failure) -> Response<AnswerBody> {
    let Delivery { record, head, .. } = delivery;
    let (side, installed) = (record.side(), record.installed().clone());
    let mut response = render::failure(record, failure);
    if side == Side::Rpc {
        cors::mark(&installed.plan, &head.headers, &mut response);
    }
    response
}

/// What a request speaks to.
enum Faced {
    Side(Side),
    Stream(Followed),
}

/// Which face a request speaks to, if it may speak at all.
fn face(
    installed: &Installed,
    head: &request::Parts,
    arrival: &Arrival,
) -> Result<Faced, (Side, Failure)> {
    let Facing {
        side,
        refused,
        followed,
    } = facing(&installed.plan, Head::of(head));
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
        (None, Some(followed)) => Ok(Faced::Stream(followed)),
        (None, None) => Ok(Faced::Side(side)),
    }
}
