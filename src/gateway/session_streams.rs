//! The event streams of clients with sessions, and the resources that these clients subscribe to.
//!
//! A stream and the subscriptions of its session may come over several connections, so all workers share the registry.
//! Keys are keyed hashes, never the session id itself. Laws: a session has one stream, the one that it opened last; the
//! number of sessions with resources is bounded; a stream is removed when it ends.
//!
//! Used by `rpc`, `shared_state` and `worker`.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::cancellation::CancelScope;
use dualgauge_model::mcp::SessionResources;

/// The maximum number of sessions with resources.
const SESSIONS: usize = 16 * 1024;

/// The streams and the resources of sessions.
#[derive(Debug)]
pub struct SessionStreams {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    state: Mutex<State>,
}

type SessionKey = [u64; 2];

#[derive(Debug)]
struct State {
    resources: SessionResources<SessionKey>,
    /// The open streams, with the signal that something has changed for them.
    streams: HashMap<SessionKey, Arc<Notify>>,
}

impl Default for SessionStreams {
    fn default() -> SessionStreams {
        SessionStreams {
            hashers: [RandomState::new(), RandomState::new()],
            state: Mutex::new(State {
                resources: SessionResources::new(SESSIONS),
                streams: HashMap::new(),
            }),
        }
    }
}

/// The stream of a session, removed from the registry on drop.
#[derive(Debug)]
pub(super) struct SessionStream {
    registry: Arc<SessionStreams>,
    key: SessionKey,
    changed: Arc<Notify>,
}

impl SessionStreams {
    /// Opens the stream of a session. An earlier one ends.
    pub(super) fn open(self: &Arc<Self>, session: CancelScope<'_>) -> SessionStream {
        let key = self.key(session);
        let changed = Arc::<Notify>::default();
        let earlier = self.lock().streams.insert(key, changed.clone());
        if let Some(earlier) = earlier {
            earlier.notify_one();
        }
        SessionStream {
            registry: self.clone(),
            key,
            changed,
        }
    }

    /// Adds a resource to a session. Returns false if it has too many.
    pub(super) fn subscribe(&self, session: CancelScope<'_>, uri: String) -> bool {
        let key = self.key(session);
        let mut state = self.lock();
        let is_taken = state.resources.subscribe(key, uri);
        state.notify(key);
        is_taken
    }

    /// Removes a resource from a session. Returns false if it was not subscribed to.
    pub(super) fn unsubscribe(&self, session: CancelScope<'_>, uri: &str) -> bool {
        let key = self.key(session);
        let mut state = self.lock();
        let was_there = state.resources.unsubscribe(&key, uri);
        state.notify(key);
        was_there
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is whole, so data behind a poisoned lock is valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, session: CancelScope<'_>) -> SessionKey {
        let [one, other] = &self.hashers;
        [one.hash_one(session), other.hash_one(session)]
    }
}

impl State {
    fn notify(&self, key: SessionKey) {
        if let Some(stream) = self.streams.get(&key) {
            stream.notify_one();
        }
    }
}

impl SessionStream {
    /// Returns the resources of the session; `None` once it has opened another stream.
    pub(super) fn resources(&self) -> Option<BTreeSet<String>> {
        let state = self.registry.lock();
        let current = state.streams.get(&self.key);
        let is_current = current.is_some_and(|current| Arc::ptr_eq(current, &self.changed));
        is_current.then(|| state.resources.get(&self.key))
    }

    /// Waits until the resources change or another stream is opened; cancel-safe.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        let current = state.streams.get(&self.key);
        if current.is_some_and(|current| Arc::ptr_eq(current, &self.changed)) {
            state.streams.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_stream_learns_of_its_resources_and_of_its_successor() {
        let registry = Arc::<SessionStreams>::default();
        let (session, other) = (CancelScope::Socket(1), CancelScope::Socket(2));
        assert!(registry.subscribe(session, "a:b".to_owned()));
        let stream = registry.open(session);
        assert_eq!(stream.resources(), Some(BTreeSet::from(["a:b".to_owned()])));
        assert!(registry.subscribe(other, "c:d".to_owned()));
        assert_eq!(stream.changed().now_or_never(), None);
        assert!(registry.unsubscribe(session, "a:b"));
        assert!(!registry.unsubscribe(session, "a:b"));
        assert_eq!(stream.changed().now_or_never(), Some(()));
        assert_eq!(stream.resources(), Some(BTreeSet::new()));
        let next = registry.open(session);
        assert_eq!(stream.changed().now_or_never(), Some(()));
        assert_eq!(stream.resources(), None);
        drop(stream);
        assert!(next.resources().is_some());
        drop(next);
        assert!(registry.lock().streams.is_empty());
    }
}
