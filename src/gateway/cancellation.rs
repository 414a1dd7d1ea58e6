//! The registry of calls that clients can cancel with `notifications/cancelled` (MCP, "Cancellation").
//!
//! The notification may arrive on another connection than the call, and so on another worker. The registry is therefore
//! shared by all workers. A client is identified by its session: its `Mcp-Session-Id` together with the caller's
//! identity, or its WebSocket. Laws: a session cannot cancel calls of another session; an entry lives as long as its
//! call; keys are keyed hashes, never the session id itself.
//!
//! Used by `link_call`, `passthrough`, `rpc`, `sessions`, `shared_state` and `worker`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderName, HeaderValue};

use crate::upstream::link::CancelSignal;
use dualgauge_model::failure::Failure;
use dualgauge_model::mcp::SESSION_PREFIX;
use dualgauge_model::rollout::Caller;
use dualgauge_net::random_u64;

/// Number of locks, high enough that workers rarely contend.
const SHARDS: usize = 64;

/// The header with the MCP session id (MCP 2025-11-25, "Session Management").
pub(super) static MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The calls that can be cancelled.
#[derive(Debug)]
pub struct CancellationRegistry {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    next: AtomicU64,
    shards: [Mutex<CancelShard>; SHARDS],
}

type CancelKey = [u64; 2];
type CancelShard = HashMap<CancelKey, Vec<CancelEntry>>;

/// One registered call.
#[derive(Debug)]
struct CancelEntry {
    number: u64,
    cancel_signal: Arc<CancelSignal>,
    /// The id of the call at its server, if the cancelling code must forward the notification with it.
    upstream_id: Option<u64>,
}

/// A caller in the registry, by name and key.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
pub(super) struct CallerId<'a> {
    pub(super) name: &'a str,
    pub(super) key: Option<&'a str>,
}

/// The session that owns a call.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
pub(super) enum CancelScope<'a> {
    /// The WebSocket with this number.
    Socket(u64),
    /// A caller in the session of this name.
    Session {
        /// The caller.
        caller: CallerId<'a>,
        /// The session id.
        name: &'a [u8],
    },
}

impl<'a> CancelScope<'a> {
    /// Returns the scope of a caller's session.
    pub(super) fn session(caller: Caller<'a>, name: &'a HeaderValue) -> CancelScope<'a> {
        CancelScope::Session {
            caller: CallerId {
                name: caller.name,
                key: caller.key,
            },
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
    /// Registers a call until the returned guard is dropped. `upstream_id` is the id of the call at its server, if the
    /// cancelling code must forward the notification with it.
    pub(super) fn register(
        self: &Arc<Self>,
        scope: CancelScope<'_>,
        id: &[u8],
        upstream_id: Option<u64>,
    ) -> CancellableCall {
        let key = self.key(scope, id);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let cancel_signal = Arc::<CancelSignal>::default();
        let mut shard = self.shard(key);
        let entries = shard.entry(key).or_default();
        entries.push(CancelEntry {
            number,
            cancel_signal: cancel_signal.clone(),
            upstream_id,
        });
        drop(shard);
        CancellableCall {
            registry: self.clone(),
            key,
            number,
            cancel_signal,
        }
    }

    /// Cancels the calls of a session with this id. Returns the server ids that the caller must forward; other calls
    /// notify their servers themselves. Unknown calls are already over, or belong to another session.
    pub(super) fn cancel(&self, scope: CancelScope<'_>, id: &[u8]) -> Vec<u64> {
        let key = self.key(scope, id);
        let shard = self.shard(key);
        let entries = shard.get(&key).map_or(&[][..], Vec::as_slice);
        entries
            .iter()
            .for_each(|entry| entry.cancel_signal.cancel());
        entries
            .iter()
            .filter_map(|entry| entry.upstream_id)
            .collect()
    }

    /// Returns a random session id that cannot be guessed, with a suffix.
    pub(super) fn new_session_id(suffix: &str) -> Option<HeaderValue> {
        let [first, second] = [(); 2].map(|()| random_u64());
        let mut name =
            HeaderValue::try_from(format!("{SESSION_PREFIX}{first:016x}{second:016x}{suffix}"))
                .ok()?;
        name.set_sensitive(true);
        Some(name)
    }

    fn key(&self, scope: CancelScope<'_>, id: &[u8]) -> CancelKey {
        let [one, other] = &self.hashers;
        [one.hash_one((scope, id)), other.hash_one((scope, id))]
    }

    fn shard(&self, key: CancelKey) -> MutexGuard<'_, CancelShard> {
        let shard = &self.shards[key[0] as usize % SHARDS];
        // An entry is inserted or removed as a whole, so data behind a poisoned lock is valid.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered call, removed from the registry on drop.
#[derive(Debug)]
pub(super) struct CancellableCall {
    registry: Arc<CancellationRegistry>,
    key: CancelKey,
    number: u64,
    /// Signals that the call is cancelled.
    pub(super) cancel_signal: Arc<CancelSignal>,
}

impl Drop for CancellableCall {
    fn drop(&mut self) {
        let mut shard = self.registry.shard(self.key);
        if let Some(entries) = shard.get_mut(&self.key) {
            entries.retain(|entry| entry.number != self.number);
            if entries.is_empty() {
                shard.remove(&self.key);
            }
        }
    }
}

/// Awaits a call; returns `None` if the client cancels it first.
///
/// The caller pins the future: passing it by value would store it twice in the caller's own future.
pub(super) async fn unless_cancelled<T>(
    call: Option<&CancellableCall>,
    call_future: Pin<&mut impl Future<Output = Result<T, Failure>>>,
) -> Result<Option<T>, Failure> {
    let Some(call) = call else {
        return call_future.await.map(Some);
    };
    // Both branches may be dropped: a link request is then withdrawn, and the connection of an HTTP exchange is
    // closed.
    tokio::select! {
        biased;
        () = call.cancel_signal.cancelled() => Ok(None),
        reply = call_future => reply.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session<'a>(name: &'a str, key: Option<&'a str>, session: &'a str) -> CancelScope<'a> {
        CancelScope::Session {
            caller: CallerId { name, key },
            name: session.as_bytes(),
        }
    }

    #[test]
    fn only_the_own_session_cancels_a_call_and_no_entry_remains() {
        let registry = Arc::<CancellationRegistry>::default();
        let scope = session("a", Some("k"), "s");
        let calls = [
            registry.register(scope, b"1", None),
            registry.register(scope, b"1", None),
        ];
        for other in [
            session("b", Some("k"), "s"),
            session("a", Some("l"), "s"),
            session("a", None, "s"),
            session("a", Some("k"), "t"),
            CancelScope::Socket(0),
        ] {
            registry.cancel(other, b"1");
        }
        registry.cancel(scope, b"\"1\"");
        assert!(!calls.iter().any(|call| call.cancel_signal.is_cancelled()));
        registry.cancel(scope, b"1");
        assert!(calls.iter().all(|call| call.cancel_signal.is_cancelled()));
        drop(calls);
        let entries_left = registry.shards.iter();
        assert!(
            entries_left
                .map(|shard| shard.lock().unwrap().len())
                .sum::<usize>()
                == 0
        );
        registry.cancel(scope, b"1");
    }

    #[test]
    fn cancelling_a_call_returns_its_upstream_ids() {
        let registry = Arc::<CancellationRegistry>::default();
        let scope = session("a", None, "s");
        let call = registry.register(scope, b"1.5", Some(7));
        let linked = registry.register(scope, b"1.5", None);
        assert_eq!(registry.cancel(scope, b"1.50"), [0; 0]);
        assert_eq!(registry.cancel(scope, b"1.5"), [7]);
        assert!(call.cancel_signal.is_cancelled() && linked.cancel_signal.is_cancelled());
        drop((call, linked));
        assert_eq!(registry.cancel(scope, b"1.5"), [0; 0]);
    }

    #[test]
    fn session_ids_are_unique() {
        let names = [(); 100].map(|()| CancellationRegistry::new_session_id("").unwrap());
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.to_str().unwrap().len() == 42));
    }
}
