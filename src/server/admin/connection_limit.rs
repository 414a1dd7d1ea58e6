//! The connection limit of the admin listener, and the choice of the connection that a new one displaces.
//!
//! Laws: a new connection is always admitted, unless the proxy works for every open one. A connection that waits for
//! its client (for a head, a body, or the reading of a response) can be displaced: the oldest one of the peer with
//! most of these. Requests other than probes and the kill switch may use only some of the connections.
//!
//! Used by `admin::serve`.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// The maximum number of open connections.
pub(super) const CONNECTIONS: usize = 64;
/// The maximum number of connections that have sent a request other than a probe or the kill switch.
pub(super) const BUSY: usize = 48;

/// All connections, oldest first.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    all: VecDeque<AdmittedConnection>,
    busy: Arc<Semaphore>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct AdmittedConnection {
    peer: IpAddr,
    task: AbortHandle,
    slot: Arc<ConnectionSlot>,
}

/// The slot of one connection.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    state: Mutex<AdmissionState>,
    busy: Arc<Semaphore>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct AdmissionState {
    waits_for: WaitsFor,
    /// The permit of a connection that sent a request other than a probe or the kill switch; kept while its response
    /// may be in transit.
    busy: Option<OwnedSemaphorePermit>,
}

/// The party that a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    /// The rest of a request, or the reading of a response.
    Client,
    /// The response to a complete request.
    Proxy,
}

/// The error that the limit of ordinary requests is reached.
#[derive(Debug)]
pub(super) struct LimitReached;

impl ConnectionLimit {
    pub(super) fn new() -> ConnectionLimit {
        ConnectionLimit {
            all: VecDeque::new(),
            busy: Arc::new(Semaphore::new(BUSY)),
            changed: Arc::default(),
        }
    }

    /// Returns a slot for the next connection.
    pub(super) fn new_slot(&self) -> Arc<ConnectionSlot> {
        Arc::new(ConnectionSlot {
            state: Mutex::new(AdmissionState {
                waits_for: WaitsFor::Client,
                busy: None,
            }),
            busy: self.busy.clone(),
            changed: self.changed.clone(),
        })
    }

    /// Returns whether one more connection can be accepted.
    pub(super) fn has_capacity(&mut self) -> bool {
        self.all.retain(|admitted| !admitted.task.is_finished());
        self.all.len() < CONNECTIONS || self.all.iter().any(AdmittedConnection::is_displaceable)
    }

    /// Adds a connection of a peer. Over the limit, a connection that waits for its client is aborted.
    pub(super) fn add(&mut self, peer: IpAddr, task: AbortHandle, slot: Arc<ConnectionSlot>) {
        if self.all.len() >= CONNECTIONS
            && let Some(admitted) = self.index_to_displace().and_then(|at| self.all.remove(at))
        {
            admitted.task.abort();
        }
        self.all.push_back(AdmittedConnection { peer, task, slot });
    }

    /// Returns the index of the connection to displace: the oldest of the peer with most displaceable ones.
    fn index_to_displace(&self) -> Option<usize> {
        let waiting = || {
            self.all
                .iter()
                .filter(|admitted| admitted.is_displaceable())
        };
        let mut counts = HashMap::<IpAddr, usize>::new();
        for admitted in waiting() {
            *counts.entry(admitted.peer).or_default() += 1;
        }
        let most = counts.values().max()?;
        let mut all = self.all.iter();
        all.position(|admitted| {
            admitted.is_displaceable() && counts.get(&admitted.peer) == Some(most)
        })
    }

    /// Waits until a connection may have become displaceable. Cancel-safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl AdmittedConnection {
    fn is_displaceable(&self) -> bool {
        self.slot.state().waits_for == WaitsFor::Client
    }
}

impl ConnectionSlot {
    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the arrival of a request head.
    ///
    /// # Errors
    /// [`LimitReached`] if the path is an ordinary one and the limit of ordinary requests is reached.
    pub(super) fn begin(&self, path: &str) -> Result<(), LimitReached> {
        let mut state = self.state();
        if state.busy.is_none() && !is_exempt(path) {
            let permit = self.busy.clone().try_acquire_owned();
            state.busy = Some(permit.map_err(|_| LimitReached)?);
        }
        state.waits_for = WaitsFor::Proxy;
        Ok(())
    }

    /// Marks the body as read as far as needed.
    pub(super) fn set_working(&self) {
        self.state().waits_for = WaitsFor::Proxy;
    }

    /// Marks the connection as waiting for its client: for more of the body, or for the reading of a response.
    pub(super) fn set_waiting(&self) {
        self.state().waits_for = WaitsFor::Client;
        self.changed.notify_one();
    }

    /// Marks the connection as closed.
    pub(super) fn close(&self) {
        self.state().busy = None;
        self.set_waiting();
    }
}

fn is_exempt(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/api/v1/kill")
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    /// Connections that never end, by their peers.
    struct Connections {
        limit: ConnectionLimit,
        tasks: JoinSet<()>,
    }

    impl Connections {
        fn new() -> Connections {
            Connections {
                limit: ConnectionLimit::new(),
                tasks: JoinSet::new(),
            }
        }

        fn connect(&mut self, peer: [u8; 4]) -> Arc<ConnectionSlot> {
            let slot = self.limit.new_slot();
            let task = self.tasks.spawn(std::future::pending());
            self.limit.add(peer.into(), task, slot.clone());
            slot
        }

        fn contains(&self, slot: &Arc<ConnectionSlot>) -> bool {
            self.limit
                .all
                .iter()
                .any(|own| Arc::ptr_eq(&own.slot, slot))
        }
    }

    #[tokio::test]
    async fn connections_of_one_peer_displace_each_other() {
        let mut connections = Connections::new();
        let operator = connections.connect([192, 0, 2, 1]);
        for _ in 0..1_000 {
            connections.connect([192, 0, 2, 2]);
        }
        assert!(connections.contains(&operator));
        assert_eq!(connections.limit.all.len(), CONNECTIONS);
    }

    #[tokio::test]
    async fn a_request_that_is_worked_on_is_not_displaced() {
        let mut connections = Connections::new();
        let asks = connections.connect([192, 0, 2, 1]);
        asks.begin("/api/v1/flags").unwrap();
        let first = connections.connect([192, 0, 2, 1]);
        for _ in 0..CONNECTIONS {
            connections.connect([192, 0, 2, 1]);
        }
        assert!(connections.contains(&asks) && !connections.contains(&first));
        // The client is slow to send the body.
        asks.set_waiting();
        connections.connect([192, 0, 2, 1]);
        assert!(!connections.contains(&asks));
    }

    #[tokio::test]
    async fn the_kill_switch_and_probes_are_exempt_from_the_limit() {
        let mut connections = Connections::new();
        for _ in 0..BUSY {
            connections
                .connect([192, 0, 2, 2])
                .begin("/metrics")
                .unwrap();
        }
        let other = connections.connect([192, 0, 2, 1]);
        assert!(other.begin("/api/v1/flags").is_err());
        for path in ["/api/v1/kill", "/healthz", "/readyz"] {
            assert!(other.begin(path).is_ok(), "{path}");
        }
    }
}
