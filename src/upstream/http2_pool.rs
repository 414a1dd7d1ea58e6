//! The connections of HTTP/2 to one address: as a rule one, and another only while none has room.
//!
//! One is opened at a time, and who comes meanwhile waits for it: for the connection, or for the fault. Where the server has
//! chosen HTTP/1.1 nobody waits, since each call needs a connection of its own.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::connect::{Connector, chain};
use super::error::UpstreamError;
use super::http2::{Http2Connection, Http2Stream};
use crate::domain::plan::UpstreamPlan;
use crate::telemetry::clock;

/// The connections to an address.
#[derive(Debug)]
pub(super) struct Http2Pool {
    /// Offers HTTP/2.
    connector: Connector,
    all: RefCell<Vec<Rc<Http2Connection>>>,
    turn: Semaphore,
    chosen: Cell<NegotiatedVersion>,
    faults: RefCell<OpenFailures>,
}

/// What the server chose last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NegotiatedVersion {
    /// HTTP/2; so it is taken to be before it has said anything.
    Http2,
    /// HTTP/1.1.
    Http1,
}

/// How often no connection came to be, and why the last one did not.
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

    /// A place on a connection that is there.
    pub(super) fn take(&self, plan: &UpstreamPlan) -> Option<Http2Stream> {
        let now = clock::now();
        let is_young = |trunk: &&Rc<Http2Connection>| {
            let is_kept = trunk
                .idle_since()
                .is_none_or(|since| now - since < plan.keep_alive);
            is_kept && plan.max_age.is_none_or(|age| now - trunk.opened() < age)
        };
        let all = self.all.borrow();
        let mut usable = all.iter().filter(is_young);
        usable
            .find(|trunk| trunk.has_capacity())
            .map(Http2Stream::on)
    }

    /// Another connection, for other calls as well.
    pub(super) fn add(&self, trunk: Rc<Http2Connection>) {
        let mut all = self.all.borrow_mut();
        all.retain(|trunk| !trunk.is_over());
        all.push(trunk);
    }

    /// Lets go of those that have no use: the calls on them end in peace.
    pub(super) fn forget_idle(&self, plan: &UpstreamPlan) {
        let now = clock::now();
        self.all.borrow_mut().retain(|trunk| {
            let is_kept = trunk
                .idle_since()
                .is_none_or(|since| now - since < plan.keep_alive);
            let is_young = plan.max_age.is_none_or(|age| now - trunk.opened() < age);
            is_kept && is_young && !trunk.is_over()
        });
    }

    /// Lets go of all.
    pub(super) fn clear(&self) {
        self.all.borrow_mut().clear();
    }

    /// How many have no call on them.
    pub(super) fn idle(&self) -> usize {
        let all = self.all.borrow();
        all.iter().filter(|trunk| trunk.is_idle()).count()
    }

    pub(super) fn negotiated(&self) -> NegotiatedVersion {
        self.chosen.get()
    }

    pub(super) fn set_negotiated(&self, chosen: NegotiatedVersion) {
        self.chosen.set(chosen);
    }

    /// Waits for the turn to open a connection, in the order of asking.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turn.acquire().await.ok()
    }

    /// How many faults there were.
    pub(super) fn faults(&self) -> u64 {
        self.faults.borrow().count
    }

    /// No connection came to be, which others wait for.
    pub(super) fn failed(&self, error: &UpstreamError) {
        let mut faults = self.faults.borrow_mut();
        let last = match error {
            UpstreamError::Unreachable { source, .. } => (source.kind(), chain(source)),
            UpstreamError::Resting { .. }
            | UpstreamError::Busy { .. }
            | UpstreamError::Broken(_)
            | UpstreamError::Malformed(_)
            | UpstreamError::Unframed(_)
            | UpstreamError::Padded => (io::ErrorKind::Other, chain(error)),
        };
        *faults = OpenFailures {
            count: faults.count + 1,
            last: Some(last),
        };
    }

    /// The fault of another call that this one has waited for.
    pub(super) fn fault_since(&self, seen: u64) -> Option<io::Error> {
        let faults = self.faults.borrow();
        let (kind, message) = faults.last.as_ref().filter(|_| faults.count > seen)?;
        Some(io::Error::new(*kind, message.clone()))
    }
}
