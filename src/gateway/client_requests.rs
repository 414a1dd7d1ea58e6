//! Requests of the proxy to clients with sessions, and their responses.
//!
//! The client posts a response over another connection than its call, and so perhaps to another worker; the registry is
//! shared by all workers. Laws: a response is taken only from the session that was asked, and only once; an entry lives
//! as long as its call waits; the number of entries is bounded.
//!
//! Used by `link_call`, `rpc`, `shared_state` and `worker`.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::cancellation::CancelScope;

/// The maximum number of requests that wait for a response.
const MOST: usize = 4096;

/// The requests that wait for a response.
#[derive(Debug)]
pub struct ClientRequests {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    next: AtomicU64,
    waiting: Mutex<HashMap<RequestKey, Waiting>>,
}

/// The hash of a session and the id of a request.
type RequestKey = [u64; 2];

/// The hash of a session.
type SessionKey = [u64; 2];

/// A call that waits for a response.
#[derive(Debug)]
struct Waiting {
    session: SessionKey,
    response: oneshot::Sender<Bytes>,
}

impl Default for ClientRequests {
    fn default() -> ClientRequests {
        ClientRequests {
            hashers: [RandomState::new(), RandomState::new()],
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
        }
    }
}

/// A request that waits for a response; dropping it withdraws the request.
#[derive(Debug)]
pub(super) struct ClientRequest {
    registry: Arc<ClientRequests>,
    key: RequestKey,
    /// The id of the request.
    pub(super) id: String,
    /// The response, once the client has sent it.
    pub(super) response: oneshot::Receiver<Bytes>,
}

impl Drop for ClientRequest {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.key);
    }
}

impl ClientRequests {
    /// Registers a request to the client of a session. Returns `None` if too many wait.
    pub(super) fn register(self: &Arc<Self>, session: CancelScope<'_>) -> Option<ClientRequest> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let guess = RandomState::new().hash_one(number);
        let id = format!("dualgauge-{number}-{guess:016x}");
        let key = self.key(session, &id);
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.len() >= MOST {
            return None;
        }
        let session = self.hash(session);
        let response = sender;
        waiting.insert(key, Waiting { session, response });
        drop(waiting);
        Some(ClientRequest {
            registry: self.clone(),
            key,
            id,
            response: receiver,
        })
    }

    /// Hands a response to the call that waits for it. Returns false if none does.
    pub(super) fn respond(&self, session: CancelScope<'_>, id: &str, response: Bytes) -> bool {
        let waiting = self.lock().remove(&self.key(session, id));
        waiting.is_some_and(|waiting| waiting.response.send(response).is_ok())
    }

    /// Returns true if a call waits for a response of this session. Takes time that grows with the number of waiting
    /// calls.
    pub(super) fn is_asked(&self, session: CancelScope<'_>) -> bool {
        let session = self.hash(session);
        let waiting = self.lock();
        waiting.values().any(|waiting| waiting.session == session)
    }

    /// Withdraws all requests to a session: their calls go on without a response.
    pub(super) fn withdraw(&self, session: CancelScope<'_>) {
        let session = self.hash(session);
        self.lock().retain(|_, waiting| waiting.session != session);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, Waiting>> {
        // The map is consistent even after a panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, session: CancelScope<'_>, id: &str) -> RequestKey {
        self.hash((session, id))
    }

    fn hash(&self, value: impl Hash) -> [u64; 2] {
        let [one, other] = &self.hashers;
        [one.hash_one(&value), other.hash_one(&value)]
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    #[test]
    fn a_response_is_taken_once_from_the_session_that_was_asked() {
        let requests = Arc::<ClientRequests>::default();
        let (asked, other) = (CancelScope::Socket(1), CancelScope::Socket(2));
        let mut request = requests.register(asked).unwrap();
        let text = Bytes::from_static(b"{}");
        assert!(!requests.respond(other, &request.id, text.clone()));
        assert!(!requests.respond(asked, "x", text.clone()));
        assert!(requests.respond(asked, &request.id, text.clone()));
        assert!(!requests.respond(asked, &request.id, text.clone()));
        assert_eq!(request.response.try_recv(), Ok(text));
    }

    #[test]
    fn requests_to_a_session_are_withdrawn_together() {
        let requests = Arc::<ClientRequests>::default();
        let (asked, other) = (CancelScope::Socket(1), CancelScope::Socket(2));
        assert!(!requests.is_asked(asked));
        let mut first = requests.register(asked).unwrap();
        let mut others = requests.register(other).unwrap();
        assert!(requests.is_asked(asked));
        requests.withdraw(asked);
        assert!(!requests.is_asked(asked) && requests.is_asked(other));
        assert_eq!(first.response.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(others.response.try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn the_number_of_waiting_requests_is_bounded() {
        let requests = Arc::<ClientRequests>::default();
        let asked = CancelScope::Socket(1);
        let all: Vec<_> = (0..MOST).map(|_| requests.register(asked)).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(requests.register(asked).is_none());
        drop(all);
        assert!(requests.register(asked).is_some());
        assert!(requests.lock().is_empty());
    }
}
