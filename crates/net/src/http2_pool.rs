//! The HTTP/2 connections to one endpoint: usually one, and another only while none has capacity.
//!
//! One is opened at a time; calls that arrive meanwhile wait for the connection, or share its error. If the server
//! chose HTTP/1.1, calls do not wait, since each needs a connection of its own.
//!
//! Used by `endpoints`, `connection_pool` and `open`.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::connect::{Connector, chain};
use super::error::UpstreamError;
use super::http2::{Http2Connection, Http2Stream};
use super::pool_settings::PoolSettings;
use crate::clock;

/// The HTTP/2 connections to one endpoint.
#[derive(Debug)]
pub(super) struct Http2Pool {
    /// The connector that offers HTTP/2.
    connector: Connector,
    all: RefCell<Vec<Rc<Http2Connection>>>,
    turn: Semaphore,
    chosen: Cell<NegotiatedVersion>,
    faults: RefCell<OpenFailures>,
}

/// The version that the server chose last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NegotiatedVersion {
    /// HTTP/2, also assumed before the first connection.
    Http2,
    /// HTTP/1.1.
    Http1,
}

/// The number of failures to open a connection, and the last error.
#[derive(Debug, Default)]
struct OpenFailures {
    count: u64,
    last: Option<(io::ErrorKind, String)>,
}

impl Http2Pool {
    pub(super) fn new(connector: Connector) -> Http2Pool {
        Http2Pool {
            connector,
            all: RefCell::default(),
            turn: Semaphore::new(1),
            chosen: Cell::new(NegotiatedVersion::Http2),
            faults: RefCell::default(),
        }
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Returns a stream on an open connection that has capacity.
    pub(super) fn take(&self, settings: &PoolSettings) -> Option<Http2Stream> {
        let now = clock::now();
        let is_young = |connection: &&Rc<Http2Connection>| {
            let is_kept = connection
                .idle_since()
                .is_none_or(|since| now - since < settings.keep_alive);
            is_kept
                && settings
                    .max_age
                    .is_none_or(|age| now - connection.opened() < age)
        };
        let all = self.all.borrow();
        let mut usable = all.iter().filter(is_young);
        usable
            .find(|connection| connection.has_capacity())
            .map(Http2Stream::open_on)
    }

    /// Adds a connection for other calls to share.
    pub(super) fn add(&self, connection: Rc<Http2Connection>) {
        let mut all = self.all.borrow_mut();
        all.retain(|connection| !connection.is_over());
        all.push(connection);
    }

    /// Drops connections that are closed, too old, or idle for too long. Calls in progress on them complete.
    pub(super) fn forget_idle(&self, settings: &PoolSettings) {
        let now = clock::now();
        self.all.borrow_mut().retain(|connection| {
            let is_kept = connection
                .idle_since()
                .is_none_or(|since| now - since < settings.keep_alive);
            let is_young = settings
                .max_age
                .is_none_or(|age| now - connection.opened() < age);
            is_kept && is_young && !connection.is_over()
        });
    }

    /// Drops all connections. Calls in progress on them complete.
    pub(super) fn clear(&self) {
        self.all.borrow_mut().clear();
    }

    /// Returns the number of connections without calls.
    pub(super) fn idle(&self) -> usize {
        let all = self.all.borrow();
        all.iter().filter(|connection| connection.is_idle()).count()
    }

    pub(super) fn negotiated(&self) -> NegotiatedVersion {
        self.chosen.get()
    }

    pub(super) fn set_negotiated(&self, chosen: NegotiatedVersion) {
        self.chosen.set(chosen);
    }

    /// Waits for the permit to open a connection, in the order of asking.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.turn.acquire().await.ok()
    }

    /// Returns the number of failures so far.
    pub(super) fn faults(&self) -> u64 {
        self.faults.borrow().count
    }

    /// Records a failure to open a connection, for the calls that wait for it.
    pub(super) fn failed(&self, error: &UpstreamError) {
        let mut faults = self.faults.borrow_mut();
        let last = match error {
            UpstreamError::Unreachable { source, .. } => (source.kind(), chain(source)),
            UpstreamError::CircuitOpen { .. }
            | UpstreamError::Busy { .. }
            | UpstreamError::Broken(_)
            | UpstreamError::Malformed(_)
            | UpstreamError::InvalidFraming(_)
            | UpstreamError::PaddedHeaderValue => (io::ErrorKind::Other, chain(error)),
        };
        *faults = OpenFailures {
            count: faults.count + 1,
            last: Some(last),
        };
    }

    /// Returns the last error if there was a failure since `seen`: the one that this call waited for.
    pub(super) fn fault_since(&self, seen: u64) -> Option<io::Error> {
        let faults = self.faults.borrow();
        let (kind, message) = faults.last.as_ref().filter(|_| faults.count > seen)?;
        Some(io::Error::new(*kind, message.clone()))
    }
}
