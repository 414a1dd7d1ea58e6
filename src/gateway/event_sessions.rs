//! Sessions of clients over HTTP with SSE (MCP 2024-11-05, "Transports"): an event stream, and POSTs of messages to it.
//!
//! A POST comes over another connection than the stream, and so perhaps to another worker; the registry is shared by all
//! workers. Laws: a message reaches only the session whose id it names, and only from the caller that opened it; an entry
//! lives as long as its stream; the numbers of sessions and of messages that wait in one are bounded.
//!
//! Used by `rpc`, `shared_state` and `worker`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use dualgauge_model::rollout::Caller;

/// The maximum number of sessions of the process.
const MOST: usize = 4096;
/// The maximum number of messages that wait in a session.
const WAITING: usize = 64;

/// Hashes of the caller that opened a session.
type Owner = [u64; 2];
/// The open sessions by id, each with its owner and the queue of its messages.
type OpenSessions = HashMap<String, (Owner, mpsc::Sender<Bytes>)>;

/// The open sessions.
#[derive(Debug)]
pub struct EventSessions {
    /// Two hashers, so that an id has 128 bits that cannot be guessed.
    hashers: [RandomState; 2],
    next: AtomicU64,
    open: Mutex<OpenSessions>,
}

impl Default for EventSessions {
    fn default() -> EventSessions {
        EventSessions {
            hashers: [RandomState::new(), RandomState::new()],
            next: AtomicU64::new(0),
            open: Mutex::default(),
        }
    }
}

/// An open session; dropping it closes the session.
#[derive(Debug)]
pub(super) struct EventSession {
    registry: Arc<EventSessions>,
    /// The id, which only the client knows.
    pub(super) id: String,
    /// The messages that the client has posted.
    pub(super) messages: mpsc::Receiver<Bytes>,
}

impl Drop for EventSession {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.id);
    }
}

/// The reason why a message does not reach a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undeliverable {
    /// The caller has no such session.
    Unknown,
    /// Too many messages wait in it.
    Full,
}

impl EventSessions {
    /// Opens a session of a caller. Returns `None` if too many are open.
    pub(super) fn open(self: &Arc<Self>, caller: Caller<'_>) -> Option<EventSession> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [one, two] = self
            .hashers
            .each_ref()
            .map(|hasher| hasher.hash_one(number));
        let id = format!("{one:016x}{two:016x}");
        let (sender, messages) = mpsc::channel(WAITING);
        let mut open = self.lock();
        if open.len() >= MOST {
            return None;
        }
        open.insert(id.clone(), (self.owner(caller), sender));
        drop(open);
        Some(EventSession {
            registry: self.clone(),
            id,
            messages,
        })
    }

    /// Hands a message to a session of a caller. The id alone does not suffice: it is in URLs, which are logged.
    pub(super) fn deliver(
        &self,
        caller: Caller<'_>,
        id: &str,
        message: Bytes,
    ) -> Result<(), Undeliverable> {
        let session = self.lock().get(id).cloned();
        let own = session.filter(|(owner, _)| *owner == self.owner(caller));
        let (_, session) = own.ok_or(Undeliverable::Unknown)?;
        session.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => Undeliverable::Full,
            TrySendError::Closed(_) => Undeliverable::Unknown,
        })
    }

    fn owner(&self, caller: Caller<'_>) -> Owner {
        self.hashers
            .each_ref()
            .map(|hasher| hasher.hash_one((caller.name, caller.key)))
    }

    fn lock(&self) -> MutexGuard<'_, OpenSessions> {
        // The map is consistent even after a panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualgauge_model::rollout::Proof;

    fn caller(name: &str) -> Caller<'_> {
        Caller {
            client: None,
            name,
            key: None,
            proof: Proof::Declared,
        }
    }

    #[test]
    fn a_message_of_another_caller_reaches_no_session() {
        let sessions = Arc::<EventSessions>::default();
        let mut one = sessions.open(caller("one")).unwrap();
        let refused = sessions.deliver(caller("other"), &one.id, Bytes::new());
        assert_eq!(refused, Err(Undeliverable::Unknown));
        assert!(one.messages.try_recv().is_err());
    }

    #[test]
    fn a_message_reaches_the_session_that_it_names() {
        let sessions = Arc::<EventSessions>::default();
        let mut one = sessions.open(caller("one")).unwrap();
        let mut two = sessions.open(caller("one")).unwrap();
        assert_ne!(one.id, two.id);
        sessions
            .deliver(caller("one"), &two.id, Bytes::from_static(b"2"))
            .unwrap();
        assert_eq!(two.messages.try_recv().unwrap(), "2");
        assert!(one.messages.try_recv().is_err());
        let id = one.id.clone();
        drop(one);
        let lost = sessions.deliver(caller("one"), &id, Bytes::new());
        assert_eq!(lost, Err(Undeliverable::Unknown));
    }

    #[test]
    fn sessions_and_their_messages_are_bounded() {
        let sessions = Arc::<EventSessions>::default();
        let open: Vec<_> = (0..MOST)
            .map(|_| sessions.open(caller("one")).unwrap())
            .collect();
        assert!(sessions.open(caller("one")).is_none());
        for _ in 0..WAITING {
            sessions
                .deliver(caller("one"), &open[0].id, Bytes::new())
                .unwrap();
        }
        let full = sessions.deliver(caller("one"), &open[0].id, Bytes::new());
        assert_eq!(full, Err(Undeliverable::Full));
        drop(open);
        assert!(sessions.open(caller("one")).is_some());
    }
}
