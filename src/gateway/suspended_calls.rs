//! Calls of stateless clients whose servers wait for input, until the clients send them again with it.
//!
//! The retry may come over another connection, and so to another worker; the registry is shared by all workers. Laws: a
//! call is continued only by the caller that made it, and only once per state; the number of calls is bounded; the link
//! ends a call whose client does not come back, and the registry forgets it.
//!
//! Used by `rpc`, `shared_state` and `worker`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::telemetry::clock;
use crate::upstream::link::SuspendedCall;
use dualgauge_model::mcp::{OpenRequest, request_state};
use dualgauge_model::pending::INPUT_TIMEOUT;
use dualgauge_model::rollout::Caller;

/// The maximum number of calls.
const MOST: usize = 4096;

/// The calls that wait for input.
#[derive(Debug)]
pub struct SuspendedCalls {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    waiting: Mutex<HashMap<CallKey, Entry>>,
}

/// The hash of a caller and of the state that it got.
type CallKey = [u64; 2];

#[derive(Debug)]
struct Entry {
    waiting: WaitingCall,
    until: Instant,
}

/// A call, and the request of its server that waits for the client.
#[derive(Debug)]
pub(super) struct WaitingCall {
    pub(super) call: SuspendedCall,
    pub(super) request: OpenRequest,
}

impl Default for SuspendedCalls {
    fn default() -> SuspendedCalls {
        SuspendedCalls {
            hashers: [RandomState::new(), RandomState::new()],
            waiting: Mutex::default(),
        }
    }
}

impl SuspendedCalls {
    /// Adds a call of a caller. Returns the state that continues it, or `None` if too many wait.
    pub(super) fn add(&self, caller: Caller<'_>, waiting: WaitingCall) -> Option<String> {
        let [first, second] = [(); 2].map(|()| RandomState::new().hash_one(0));
        let state = request_state(&format!("{first:016x}{second:016x}"));
        let now = clock::now();
        let entry = Entry {
            waiting,
            until: now + INPUT_TIMEOUT,
        };
        let key = self.key(caller, &state);
        let mut all = self.lock();
        all.retain(|_, entry| entry.until > now);
        if all.len() >= MOST {
            return None;
        }
        all.insert(key, entry);
        Some(state)
    }

    /// Takes the call of a caller that a state continues.
    pub(super) fn take(&self, caller: Caller<'_>, state: &str) -> Option<WaitingCall> {
        let entry = self.lock().remove(&self.key(caller, state))?;
        (entry.until > clock::now()).then_some(entry.waiting)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallKey, Entry>> {
        // The map is consistent even after a panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, caller: Caller<'_>, state: &str) -> CallKey {
        let [one, other] = &self.hashers;
        let key = (caller.name, caller.key, state);
        [one.hash_one(key), other.hash_one(key)]
    }
}
