//! Facts that the listener knows about a request and the connection that it arrived on.
//!
//! Used throughout `gateway`, and by `server`.

use std::cell::{OnceCell, RefCell};
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use http::{Uri, request};

use super::peers::Peer as CountedPeer;
use crate::upstream::ClientConnections;
use crate::upstream::link::ClientLinks;
use dualgauge_model::client_ip::Peer;
use dualgauge_model::forwarding::HeaderCache;
use dualgauge_model::hosts::{ConnectionEntry, Reach};
use dualgauge_model::rollout::Subject;
use dualgauge_net::{Interims, ReusableTimer};
use dualgauge_transport::wire::{HeaderCase, RefusedLine, SentTarget, Violation};

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
    /// The context of second runs with upstream connections of their own.
    second_runs: OnceCell<Rc<ConnectionContext>>,
}

impl ConnectionContext {
    /// Creates the context of a client that has no upstream connections yet.
    fn new(
        peer: Peer,
        reach: Reach,
        scheme: &'static str,
        subject: Option<Subject>,
    ) -> ConnectionContext {
        ConnectionContext {
            peer,
            reach,
            scheme,
            header_cache: HeaderCache::default(),
            subject,
            links: Rc::default(),
            sockets: ClientConnections::default(),
            timer: RefCell::default(),
            interims: None,
            second_runs: OnceCell::new(),
        }
    }

    /// Creates the context of the same client with upstream connections of its own.
    fn apart(&self) -> Rc<ConnectionContext> {
        let (peer, subject) = (self.peer.clone(), self.subject.clone());
        Rc::new(ConnectionContext::new(
            peer,
            self.reach,
            self.scheme,
            subject,
        ))
    }
}

impl RequestOrigin {
    /// Creates the origin of a plaintext connection.
    #[must_use]
    pub fn from_peer(peer: IpAddr, reach: Reach) -> RequestOrigin {
        RequestOrigin::new(peer, reach, "http", None)
    }

    /// Creates the origin of a TLS connection, with the subject of the client certificate, if any.
    #[must_use]
    pub fn from_tls_peer(peer: IpAddr, reach: Reach, subject: Option<Subject>) -> RequestOrigin {
        RequestOrigin::new(peer, reach, "https", subject)
    }

    fn new(
        peer: IpAddr,
        reach: Reach,
        scheme: &'static str,
        subject: Option<Subject>,
    ) -> RequestOrigin {
        let connection = ConnectionContext::new(Peer::at(peer), reach, scheme, subject);
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
    pub(super) fn interims(&self) -> Option<&Interims> {
        self.connection.interims.as_ref()
    }

    /// Returns the peer of the connection.
    pub(super) fn peer(&self) -> &Peer {
        &self.connection.peer
    }

    /// Returns the reach and the peer of the connection, which host matching uses.
    pub(super) fn entry(&self) -> ConnectionEntry {
        ConnectionEntry {
            reach: self.connection.reach,
            peer: Some(self.peer().address()),
        }
    }

    /// Returns the scheme of the connection's requests.
    pub(super) fn scheme(&self) -> &'static str {
        self.connection.scheme
    }

    /// Returns the cache of the `Forwarded` value sent last.
    pub(super) fn header_cache(&self) -> &HeaderCache {
        &self.connection.header_cache
    }

    /// Returns the violation for which the wire inspector rejected this request, if it did.
    pub(super) fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// Returns the peer whose in-progress limit the request counts towards.
    pub(super) fn peer_in_limits(&self) -> Option<&Rc<CountedPeer>> {
        self.peer_in_limits.as_ref()
    }

    /// Returns the timer of the connection, which serves one call at a time.
    pub(super) fn timer(&self) -> &RefCell<ReusableTimer> {
        &self.connection.timer
    }

    /// Returns the upstream links of the connection.
    pub(super) fn links(&self) -> &Rc<ClientLinks> {
        &self.connection.links
    }

    /// Returns the connection's WebSocket connections to legacy servers.
    pub(super) fn sockets(&self) -> &ClientConnections {
        &self.connection.sockets
    }

    /// Returns true when server state kept for this WebSocket client is lost or about to be lost. The connection will
    /// close, and no further calls are sent for it.
    pub(super) fn has_lost(&self) -> bool {
        self.links().has_lost() || self.sockets().has_lost()
    }

    /// Returns the subject of the verified client certificate.
    pub(super) fn subject(&self) -> Option<&Subject> {
        self.connection.subject.as_ref()
    }

    /// Returns the origin of one request, with the violation that rejects it, if any.
    #[must_use]
    pub fn with_violation(&self, violation: Option<Violation>) -> RequestOrigin {
        RequestOrigin {
            violation,
            ..self.with_connection(self.connection.clone())
        }
    }

    /// Returns the origin of a session that shares its connection with other requests: it has upstream links of its own.
    pub(super) fn for_session(&self) -> RequestOrigin {
        self.with_connection(self.connection.apart())
    }

    /// Returns the origin of second runs, whose upstream links and sockets are their own: no message of a server on them
    /// reaches the client, and their loss does not end its connection. The second runs of a connection share them.
    pub(super) fn for_second_runs(&self) -> RequestOrigin {
        let context = &self.connection;
        let apart = context.second_runs.get_or_init(|| context.apart());
        self.with_connection(apart.clone())
    }

    fn with_connection(&self, connection: Rc<ConnectionContext>) -> RequestOrigin {
        RequestOrigin {
            connection,
            violation: None,
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
    pub(super) fn raw_target(&self, target: &Uri) -> Option<Vec<u8>> {
        match self.target.as_deref() {
            Some(SentTarget::Raw(raw)) => raw.restore(target.path_and_query()?.as_str()),
            Some(SentTarget::Refused(_)) | None => None,
        }
    }

    /// Returns the request line that the wire inspector rejected, if the head stands for one.
    pub(super) fn rejected_line(&self) -> Option<&RefusedLine> {
        match self.target.as_deref() {
            Some(SentTarget::Refused(line)) => Some(line),
            Some(SentTarget::Raw(_)) | None => None,
        }
    }

    /// Returns the case of the header names, unless they are in lower case.
    pub(super) fn header_case(&self) -> Option<&HeaderCase> {
        self.header_case.as_ref()
    }
}

/// The head of a client's request, owned or borrowed, and where it came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientRequest<'a, H = &'a request::Parts> {
    pub(super) head: H,
    pub(super) origin: &'a RequestOrigin,
}

impl<H: Deref<Target = request::Parts>> ClientRequest<'_, H> {
    /// Returns the request with a borrowed head.
    pub(super) fn borrowed(&self) -> ClientRequest<'_> {
        ClientRequest {
            head: &self.head,
            origin: self.origin,
        }
    }
}
