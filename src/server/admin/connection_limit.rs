//! The connection limit of the admin listener, and the choice of the connection that a new one displaces.
//!
//! Laws: a new connection is always admitted, unless the proxy works for every open one. A connection that waits for
//! its client (for a head, a body, or the reading of a response) can be displaced: the oldest one of the peer with
//! most of these. Requests other than probes and the kill switch may use only some of the connections.

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
    all: VecDeque<Taken>,
    busy: Arc<Semaphore>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct Taken {
    peer: IpAddr,
    task: AbortHandle,
    seat: Arc<ConnectionSlot>,
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
    pub(super) fn seat(&self) -> Arc<ConnectionSlot> {
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
    pub(super) fn has_room(&mut self) -> bool {
        self.all.retain(|taken| !taken.task.is_finished());
        self.all.len() < CONNECTIONS || self.all.iter().any(Taken::gives_way)
    }

    /// Adds a connection of a peer. Over the limit, a connection that waits for its client is aborted.
    pub(super) fn add(&mut self, peer: IpAddr, (task, seat): (AbortHandle, Arc<ConnectionSlot>)) {
        if self.all.len() >= CONNECTIONS
            && let Some(taken) = self.last_in_line().and_then(|at| self.all.remove(at))
        {
            taken.task.abort();
        }
        self.all.push_back(Taken { peer, task, seat });
    }

    /// Returns the index of the connection to displace: the oldest of the peer with most displaceable ones.
    fn last_in_line(&self) -> Option<usize> {
        let waiting = || self.all.iter().filter(|taken| taken.gives_way());
        let mut counts = HashMap::<IpAddr, usize>::new();
        for taken in waiting() {
            *counts.entry(taken.peer).or_default() += 1;
        }
        let most = counts.values().max()?;
        let mut all = self.all.iter();
        all.position(|taken| taken.gives_way() && counts.get(&taken.peer) == Some(most))
    }

    /// Waits until a connection may have become displaceable. Cancel-safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Taken {
    fn gives_way(&self) -> bool {
        self.seat.state().waits_for == WaitsFor::Client
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
        if state.busy.is_none() && !has_place_of_its_own(path) {
            let place = self.busy.clone().try_acquire_owned();
            state.busy = Some(place.map_err(|_| LimitReached)?);
        }
        state.waits_for = WaitsFor::Proxy;
        Ok(())
    }

    /// Marks the body as read as far as needed.
    pub(super) fn works(&self) {
        self.state().waits_for = WaitsFor::Proxy;
    }

    /// Marks the connection as waiting for its client: for more of the body, or for the reading of a response.
    pub(super) fn waits(&self) {
        self.state().waits_for = WaitsFor::Client;
        self.changed.notify_one();
    }

    /// Marks the connection as closed.
    pub(super) fn leave(&self) {
        self.state().busy = None;
        self.waits();
    }
}

fn has_place_of_its_own(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/api/v1/kill")
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    /// Connections that never end, by their peers.
    struct Crowd {
        seats: ConnectionLimit,
        tasks: JoinSet<()>,
    }

    impl Crowd {
        fn new() -> Crowd {
            Crowd {
                seats: ConnectionLimit::new(),
                tasks: JoinSet::new(),
            }
        }

        fn comes(&mut self, peer: [u8; 4]) -> Arc<ConnectionSlot> {
            let seat = self.seats.seat();
            let task = self.tasks.spawn(std::future::pending());
            self.seats.add(peer.into(), (task, seat.clone()));
            seat
        }

        fn holds(&self, seat: &Arc<ConnectionSlot>) -> bool {
            self.seats
                .all
                .iter()
                .any(|own| Arc::ptr_eq(&own.seat, seat))
        }
    }

    #[tokio::test]
    async fn a_crowd_of_one_peer_displaces_itself() {
        let mut crowd = Crowd::new();
        let operator = crowd.comes([192, 0, 2, 1]);
        for _ in 0..1_000 {
            crowd.comes([192, 0, 2, 2]);
        }
        assert!(crowd.holds(&operator));
        assert_eq!(crowd.seats.all.len(), CONNECTIONS);
    }

    #[tokio::test]
    async fn a_request_that_is_worked_on_is_not_displaced() {
        let mut crowd = Crowd::new();
        let asks = crowd.comes([192, 0, 2, 1]);
        asks.begin("/api/v1/flags").unwrap();
        let first = crowd.comes([192, 0, 2, 1]);
        for _ in 0..CONNECTIONS {
            crowd.comes([192, 0, 2, 1]);
        }
        assert!(crowd.holds(&asks) && !crowd.holds(&first));
        // The client is slow to send the body.
        asks.waits();
        crowd.comes([192, 0, 2, 1]);
        assert!(!crowd.holds(&asks));
    }

    #[tokio::test]
    async fn the_kill_switch_and_probes_need_no_place_of_the_api() {
        let mut crowd = Crowd::new();
        for _ in 0..BUSY {
            crowd.comes([192, 0, 2, 2]).begin("/metrics").unwrap();
        }
        let other = crowd.comes([192, 0, 2, 1]);
        assert!(other.begin("/api/v1/flags").is_err());
        for path in ["/api/v1/kill", "/healthz", "/readyz"] {
            assert!(other.begin(path).is_ok(), "{path}");
        }
    }
}
