//! The connections of the admin listener, and which of them gives way to a new one.
//!
//! Laws: a new connection always finds a place, unless each one that is open is being answered; the oldest one that is not
//! gives way. Requests other than probes have fewer places than there are, so that slow clients of the API leave some to
//! probes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// How many connections may be open.
pub(super) const CONNECTIONS: usize = 64;
/// How many of them may have sent a request that is no probe.
pub(super) const BUSY: usize = 48;

/// All connections, the oldest first.
#[derive(Debug)]
pub(super) struct Seats {
    all: VecDeque<(AbortHandle, Arc<Seat>)>,
    busy: Arc<Semaphore>,
    changed: Arc<Notify>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Seat {
    state: Mutex<State>,
    busy: Arc<Semaphore>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
enum State {
    /// No request is complete.
    Waits,
    /// A probe is answered.
    Probe,
    /// There was a request that is no probe: its body or its answer may still be on its way.
    Busy { _place: OwnedSemaphorePermit },
}

/// As many requests are answered as may be.
#[derive(Debug)]
pub(super) struct NoPlace;

impl Seats {
    pub(super) fn new() -> Seats {
        Seats {
            all: VecDeque::new(),
            busy: Arc::new(Semaphore::new(BUSY)),
            changed: Arc::default(),
        }
    }

    /// A place for the next connection.
    pub(super) fn seat(&self) -> Arc<Seat> {
        Arc::new(Seat {
            state: Mutex::new(State::Waits),
            busy: self.busy.clone(),
            changed: self.changed.clone(),
        })
    }

    /// Returns whether one more connection can be taken.
    pub(super) fn has_room(&mut self) -> bool {
        self.all.retain(|(task, _)| !task.is_finished());
        self.all.len() < CONNECTIONS || self.all.iter().any(|(_, seat)| seat.gives_way())
    }

    /// Adds a connection. Where there are too many, the oldest one ends that nothing is answered on.
    pub(super) fn add(&mut self, task: AbortHandle, seat: Arc<Seat>) {
        if self.all.len() >= CONNECTIONS {
            let oldest = self.all.iter().position(|(_, seat)| seat.gives_way());
            if let Some((task, _)) = oldest.and_then(|at| self.all.remove(at)) {
                task.abort();
            }
        }
        self.all.push_back((task, seat));
    }

    /// Waits until a connection may give way that might not before; cancel-safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Seat {
    fn gives_way(&self) -> bool {
        matches!(*self.state(), State::Waits)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is complete up to its body.
    ///
    /// # Errors
    /// [`NoPlace`] where it is no probe and as many connections have sent such requests as may.
    pub(super) fn begin(&self, path: &str) -> Result<(), NoPlace> {
        let mut state = self.state();
        match &*state {
            State::Busy { .. } => return Ok(()),
            State::Waits | State::Probe if is_probe(path) => *state = State::Probe,
            State::Waits | State::Probe => {
                let place = self.busy.clone().try_acquire_owned();
                let _place = place.map_err(|_| NoPlace)?;
                *state = State::Busy { _place };
            }
        }
        Ok(())
    }

    /// The answer is made. That of a probe fits into the buffers of a socket.
    pub(super) fn end(&self) {
        let mut state = self.state();
        if let State::Probe = *state {
            *state = State::Waits;
            self.changed.notify_one();
        }
    }

    /// The connection is closed.
    pub(super) fn leave(&self) {
        *self.state() = State::Waits;
        self.changed.notify_one();
    }
}

fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}
