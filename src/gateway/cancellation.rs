//! The registry of calls that clients can cancel with `notifications/cancelled` (MCP, "Cancellation").
//!
//! The notification may arrive on another connection than the call, and so on another worker. The registry is therefore
//! shared by all workers. A client is identified by its session: its `Mcp-Session-Id` together with the caller's
//! identity, or its WebSocket. Laws: a session cannot cancel calls of another session; an entry lives as long as its
//! call; keys are keyed hashes, never the session id itself.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderName, HeaderValue};

use crate::domain::rollout::Caller;
use crate::upstream::link::CancelSignal;

/// Number of locks, high enough that workers rarely contend.
const STRIPES: usize = 64;

/// The header with the MCP session id (MCP 2025-11-25, "Session Management").
pub(super) static MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The calls that can be cancelled.
#[derive(Debug)]
pub struct CancellationRegistry {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    next: AtomicU64,
    shards: [Mutex<CancelShard>; STRIPES],
}

type CancelKey = [u64; 2];
type CancelShard = HashMap<CancelKey, Vec<CancelEntry>>;

/// One registered call.
#[derive(Debug)]
struct CancelEntry {
    number: u64,
    recall: Arc<CancelSignal>,
    /// The id of the call at its server, if the cancelling code must forward the notification with it.
    upstream_id: Option<u64>,
}

/// The session that owns a call.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
pub(super) enum CancelScope<'a> {
    /// The WebSocket with this number.
    Socket(u64),
    /// A caller, by name and key, in the session of this name.
    Session {
        /// Name and key of the caller.
        caller: (&'a str, Option<&'a str>),
        /// The session id.
        name: &'a [u8],
    },
}

impl<'a> CancelScope<'a> {
    /// Returns the scope of a caller's session.
    pub(super) fn session(caller: Caller<'a>, name: &'a HeaderValue) -> CancelScope<'a> {
        CancelScope::Session {
            caller: (caller.name, caller.key),
            name: name.as_bytes(),
        }
    }
}

impl Default for CancellationRegistry {
    fn default() -> CancellationRegistry {
        CancellationRegistry {
            hashers: [RandomState::new(), RandomState::new()],
            next: AtomicU64::new(0),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl CancellationRegistry {
    /// Registers a call until the returned guard is dropped. `minted` is the id of the call at its server, if the
    /// cancelling code must forward the notification with it.
    pub(super) fn begin(
        self: &Arc<Self>,
        scope: CancelScope<'_>,
        id: &[u8],
        minted: Option<u64>,
    ) -> CancellableCall {
        let key = self.key(scope, id);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let recall = Arc::<CancelSignal>::default();
        let mut stripe = self.shard(key);
        let entries = stripe.entry(key).or_default();
        entries.push(CancelEntry {
            number,
            recall: recall.clone(),
            upstream_id: minted,
        });
        drop(stripe);
        CancellableCall {
            recalls: self.clone(),
            key,
            number,
            recall,
        }
    }

    /// Cancels the calls of a session with this id. Returns the server ids that the caller must forward; other calls
    /// notify their servers themselves. Unknown calls are already over, or belong to another session.
    pub(super) fn cancel(&self, scope: CancelScope<'_>, id: &[u8]) -> Vec<u64> {
        let key = self.key(scope, id);
        let stripe = self.shard(key);
        let entries = stripe.get(&key).map_or(&[][..], Vec::as_slice);
        entries.iter().for_each(|entry| entry.recall.cancel());
        entries
            .iter()
            .filter_map(|entry| entry.upstream_id)
            .collect()
    }

    /// Returns a random session id that cannot be guessed.
    pub(super) fn name() -> Option<HeaderValue> {
        let [first, second] = [(); 2].map(|()| RandomState::new().hash_one(0));
        let mut name =
            HeaderValue::try_from(format!("dualgauge-{first:016x}{second:016x}")).ok()?;
        name.set_sensitive(true);
        Some(name)
    }

    fn key(&self, scope: CancelScope<'_>, id: &[u8]) -> CancelKey {
        let [one, other] = &self.hashers;
        [one.hash_one((scope, id)), other.hash_one((scope, id))]
    }

    fn shard(&self, key: CancelKey) -> MutexGuard<'_, CancelShard> {
        let stripe = &self.shards[key[0] as usize % STRIPES];
        // An entry is inserted or removed as a whole, so data behind a poisoned lock is valid.
        stripe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered call, removed from the registry on drop.
#[derive(Debug)]
pub(super) struct CancellableCall {
    recalls: Arc<CancellationRegistry>,
    key: CancelKey,
    number: u64,
    /// Signals that the call is cancelled.
    pub(super) recall: Arc<CancelSignal>,
}

impl Drop for CancellableCall {
    fn drop(&mut self) {
        let mut stripe = self.recalls.shard(self.key);
        if let Some(entries) = stripe.get_mut(&self.key) {
            entries.retain(|entry| entry.number != self.number);
            if entries.is_empty() {
                stripe.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session<'a>(name: &'a str, key: Option<&'a str>, session: &'a str) -> CancelScope<'a> {
        CancelScope::Session {
            caller: (name, key),
            name: session.as_bytes(),
        }
    }

    #[test]
    fn a_call_is_recalled_by_its_own_session_alone_and_leaves_nothing() {
        let recalls = Arc::<CancellationRegistry>::default();
        let own = session("a", Some("k"), "s");
        let calls = [
            recalls.begin(own, b"1", None),
            recalls.begin(own, b"1", None),
        ];
        for other in [
            session("b", Some("k"), "s"),
            session("a", Some("l"), "s"),
            session("a", None, "s"),
            session("a", Some("k"), "t"),
            CancelScope::Socket(0),
        ] {
            recalls.cancel(other, b"1");
        }
        recalls.cancel(own, b"\"1\"");
        assert!(!calls.iter().any(|call| call.recall.is_cancelled()));
        recalls.cancel(own, b"1");
        assert!(calls.iter().all(|call| call.recall.is_cancelled()));
        drop(calls);
        let held = recalls.shards.iter();
        assert!(
            held.map(|stripe| stripe.lock().unwrap().len())
                .sum::<usize>()
                == 0
        );
        recalls.cancel(own, b"1");
    }

    #[test]
    fn whoever_recalls_a_call_learns_what_its_server_calls_it() {
        let recalls = Arc::<CancellationRegistry>::default();
        let own = session("a", None, "s");
        let call = recalls.begin(own, b"1.5", Some(7));
        let linked = recalls.begin(own, b"1.5", None);
        assert_eq!(recalls.cancel(own, b"1.50"), [0; 0]);
        assert_eq!(recalls.cancel(own, b"1.5"), [7]);
        assert!(call.recall.is_cancelled() && linked.recall.is_cancelled());
        drop((call, linked));
        assert_eq!(recalls.cancel(own, b"1.5"), [0; 0]);
    }

    #[test]
    fn no_two_sessions_get_one_name() {
        let names = [(); 100].map(|()| CancellationRegistry::name().unwrap());
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.to_str().unwrap().len() == 42));
    }
}
