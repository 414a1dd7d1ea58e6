//! Sessions and the plan generation that each started with, as far as this process has seen.
//!
//! The calls of a session arrive on any connection and so on any worker, which is why the table is shared. Only calls
//! with a session use it, under one of many short locks. The table is bounded: an evicted session starts anew. Keys are
//! keyed hashes, never the session id itself.
//!
//! Used by `app` and `gateway`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::telemetry::clock;
use crate::telemetry::metrics::SessionCounts;
use dualgauge_model::rollout::{Generation, ProcessTime};

/// Number of locks, high enough that workers rarely contend.
const SHARDS: usize = 64;

/// Capacity of one generation of a shard; there are two.
const GENERATION: usize = 1_024;

/// The session table.
#[derive(Debug)]
pub struct Sessions {
    started: Instant,
    sockets: AtomicU64,
    hasher: RandomState,
    shards: [Mutex<SessionShard>; SHARDS],
}

/// Two generations, which evict entries that were not used recently without a list of uses.
#[derive(Debug, Default)]
struct SessionShard {
    recent: HashMap<u64, Generation>,
    previous: HashMap<u64, Generation>,
    begun: u64,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions {
            started: clock::now(),
            sockets: AtomicU64::new(0),
            hasher: RandomState::new(),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

/// The key of a session: client name and key of the caller, the hole or header, and its value.
type SessionKey<'a> = ((&'a str, Option<&'a str>), &'a str, &'a [u8]);

impl Sessions {
    /// Returns the time since the process started.
    pub(super) fn now(&self) -> ProcessTime {
        clock::now() - self.started
    }

    /// Returns the number of started and of stored sessions.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        let mut counts = SessionCounts::default();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            counts.started += shard.begun;
            counts.remembered += (shard.recent.len() + shard.previous.len()) as u64;
        }
        counts
    }

    /// Returns a unique number for a WebSocket.
    pub(super) fn next_socket_number(&self) -> u64 {
        self.sockets.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the generation that a session started with; `current` for a new session.
    pub(super) fn start_generation(&self, name: SessionKey<'_>, current: Generation) -> Generation {
        let key = self.hasher.hash_one(name);
        let shard = &self.shards[key as usize % SHARDS];
        // An entry is inserted or removed as a whole, so data behind a poisoned lock is valid.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        shard.start_generation(key, current)
    }
}

impl SessionShard {
    fn start_generation(&mut self, key: u64, current: Generation) -> Generation {
        if let Some(generation) = self.recent.get(&key) {
            return *generation;
        }
        let generation = self.previous.remove(&key).unwrap_or_else(|| {
            self.begun += 1;
            current
        });
        if self.recent.len() >= GENERATION {
            self.previous = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, generation);
        generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_the_plan_that_first_saw_it() {
        let sessions = Sessions::default();
        assert_eq!(
            sessions.start_generation((("a", Some("k")), "id", b"7"), Generation(5)),
            Generation(5)
        );
        assert_eq!(
            sessions.start_generation((("a", Some("k")), "id", b"7"), Generation(9)),
            Generation(5)
        );
        for other in [
            (("b", Some("k")), "id", &b"7"[..]),
            (("a", Some("l")), "id", b"7"),
            (("a", None), "id", b"7"),
            (("a", Some("k")), "other", b"7"),
            (("a", Some("k")), "id", b"8"),
        ] {
            assert_eq!(
                sessions.start_generation(other, Generation(9)),
                Generation(9),
                "{other:?}"
            );
        }
        let counts = sessions.counts();
        assert_eq!((counts.started, counts.remembered), (6, 6));
    }

    #[test]
    fn a_flood_evicts_idle_sessions_only() {
        let mut shard = SessionShard::default();
        for key in 1..10_000 {
            assert_eq!(shard.start_generation(0, Generation(key)), Generation(1));
            shard.start_generation(key, Generation(key));
            let stored = shard.recent.len() + shard.previous.len();
            assert!(stored <= 2 * GENERATION, "{stored}");
        }
    }
}
