//! The event streams of clients with sessions, and the resources that these clients subscribe to.
//!
//! A stream and the subscriptions of its session may come over several connections, so all workers share the registry.
//! Keys are keyed hashes, never the session id itself. With a pair of MCP servers, a session has one stream and one set of
//! resources for each. Laws: a session has one stream for each server, the one that it opened last; the number of sessions
//! with resources is bounded; a stream is removed when it ends.
//!
//! Used by `link_call`, `rpc`, `shared_state` and `worker`.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::cancellation::CancelScope;
use dualgauge_model::mcp::{
    ResourceChange, ResourceId, SessionResources, Settled, SubscriptionAnswer,
};
use dualgauge_model::pending::SUBSCRIPTIONS;
use dualgauge_model::rollout::Way;

/// The maximum number of sessions with resources.
const SESSIONS: usize = 16 * 1024;
/// The maximum number of subscriptions for sessions without a stream. The rest of a link's capacity is for sessions
/// with streams.
const HELD: usize = SUBSCRIPTIONS / 4;
/// The maximum number of such subscriptions of one client.
const HELD_OF_CLIENT: usize = HELD / 4;

/// The streams and the resources of sessions.
#[derive(Debug)]
pub struct SessionStreams {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    state: Mutex<State>,
}

type SessionKey = [u64; 2];

/// A session of a client at one of the servers of a pair. Without a pair, the only server is that of [`Way::Old`].
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct ServedSession<'a> {
    pub(super) session: CancelScope<'a>,
    pub(super) way: Way,
}

#[derive(Debug)]
struct State {
    resources: SessionResources<SessionKey>,
    /// The open streams.
    streams: HashMap<SessionKey, OpenStream>,
    /// The numbers of subscriptions without a stream, by client.
    held: HashMap<ClientKey, usize>,
}

/// The hash of a client.
type ClientKey = u64;

/// An open stream, as the registry knows it.
#[derive(Debug)]
struct OpenStream {
    signals: Arc<StreamSignals>,
    /// The number of the current resources of the session, which grows with each change.
    changes: u64,
    /// True if a call of the session has gone to the server while the stream was open.
    is_used: bool,
}

/// The signals to and from a stream.
#[derive(Debug, Default)]
struct StreamSignals {
    /// The resources have changed, or the stream is to end.
    changed: Notify,
    /// The number of changes that the subscription of the stream includes.
    included: watch::Sender<u64>,
}

impl Default for SessionStreams {
    fn default() -> SessionStreams {
        SessionStreams {
            hashers: [RandomState::new(), RandomState::new()],
            state: Mutex::new(State {
                resources: SessionResources::new(SESSIONS),
                streams: HashMap::new(),
                held: HashMap::new(),
            }),
        }
    }
}

/// The stream of a session, removed from the registry on drop.
#[derive(Debug)]
pub(super) struct SessionStream {
    registry: Arc<SessionStreams>,
    key: SessionKey,
    client: ClientKey,
    signals: Arc<StreamSignals>,
    /// Set for a stream without a client that reads it.
    _permit: Option<HoldPermit>,
}

/// The permission to hold a subscription for a session without a stream.
#[derive(Debug)]
pub(super) struct HoldPermit {
    registry: Arc<SessionStreams>,
    client: ClientKey,
}

impl Drop for HoldPermit {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        if let Some(held) = state.held.get_mut(&self.client) {
            *held -= 1;
            if *held == 0 {
                state.held.remove(&self.client);
            }
        }
    }
}

/// The state of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamState {
    /// It is the stream of its session.
    Current(Wanted),
    /// The session has opened another stream.
    Replaced,
    /// The session has ended.
    Ended,
}

/// The resources that a stream is to deliver updates of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The number of changes so far.
    pub(super) changes: u64,
    pub(super) resources: BTreeSet<String>,
    /// True if the session uses the server: by its calls, or by its resources.
    pub(super) is_used: bool,
}

/// A resource that a session is about to subscribe to. Dropping it without [`NewResource::keep`] means that the server
/// has not accepted the subscription.
#[derive(Debug)]
pub(super) struct NewResource {
    registry: Arc<SessionStreams>,
    key: SessionKey,
    uri: String,
    id: ResourceId,
    answer: SubscriptionAnswer,
}

impl SessionStreams {
    /// Opens the stream of a session. An earlier one ends.
    pub(super) fn open(self: &Arc<Self>, session: ServedSession<'_>) -> SessionStream {
        self.open_in(&mut self.lock(), session, None)
    }

    /// Opens a stream that keeps the resources of a session. Returns `None` if it has a stream or no resources, or if too
    /// many sessions have such streams.
    pub(super) fn hold(self: &Arc<Self>, session: ServedSession<'_>) -> Option<SessionStream> {
        let key = self.key(session);
        let mut state = self.lock();
        if state.streams.contains_key(&key) || state.resources.get(&key).is_empty() {
            return None;
        }
        let permit = self.permit_in(&mut state, self.client(session.session))?;
        Some(self.open_in(&mut state, session, Some(permit)))
    }

    /// Returns the permission to hold a subscription of a client, unless too many are held.
    fn permit_in(self: &Arc<Self>, state: &mut State, client: ClientKey) -> Option<HoldPermit> {
        let own = state.held.get(&client).copied().unwrap_or_default();
        if own >= HELD_OF_CLIENT || state.held.values().sum::<usize>() >= HELD {
            return None;
        }
        state.held.insert(client, own + 1);
        let registry = self.clone();
        Some(HoldPermit { registry, client })
    }

    fn open_in(
        self: &Arc<Self>,
        state: &mut State,
        session: ServedSession<'_>,
        permit: Option<HoldPermit>,
    ) -> SessionStream {
        let key = self.key(session);
        let signals = Arc::<StreamSignals>::default();
        let stream = OpenStream {
            signals: signals.clone(),
            changes: 1,
            is_used: session.way == Way::Old,
        };
        if let Some(earlier) = state.streams.insert(key, stream) {
            earlier.signals.changed.notify_one();
        }
        SessionStream {
            registry: self.clone(),
            key,
            client: self.client(session.session),
            signals,
            _permit: permit,
        }
    }

    /// Adds a resource to a session. Returns `None` if it has too many.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        session: ServedSession<'_>,
        uri: String,
    ) -> Option<NewResource> {
        let key = self.key(session);
        let mut state = self.lock();
        let id = match state.resources.subscribe(key, uri.clone()) {
            ResourceChange::Added(id) => {
                state.notify(key);
                id
            }
            ResourceChange::Known(id) => id,
            ResourceChange::Refused => return None,
        };
        drop(state);
        Some(NewResource {
            registry: self.clone(),
            key,
            uri,
            id,
            answer: SubscriptionAnswer::Refused,
        })
    }

    /// Removes a resource from a session, at any server: a flag may have moved the client since. Returns false if it was
    /// not subscribed to.
    pub(super) fn unsubscribe(&self, session: CancelScope<'_>, uri: &str) -> bool {
        let mut state = self.lock();
        let mut was_there = false;
        for key in self.keys(session) {
            was_there |= state.resources.unsubscribe(&key, uri);
            state.notify(key);
        }
        was_there
    }

    /// Records that a call of a session goes to a server, so that its stream has the changes of this server's lists.
    pub(super) fn note_use(&self, session: ServedSession<'_>) {
        let key = self.key(session);
        let mut state = self.lock();
        if let Some(stream) = state.streams.get_mut(&key)
            && !stream.is_used
        {
            stream.is_used = true;
            state.notify(key);
        }
    }

    /// Ends a session: its streams, and its resources. Returns false if it has neither.
    pub(super) fn end(&self, session: CancelScope<'_>) -> bool {
        let mut state = self.lock();
        let mut was_there = false;
        for key in self.keys(session) {
            let stream = state.streams.remove(&key);
            if let Some(stream) = &stream {
                stream.signals.changed.notify_one();
            }
            was_there |= state.resources.end(&key) || stream.is_some();
        }
        was_there
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is whole, so data behind a poisoned lock is valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, session: ServedSession<'_>) -> SessionKey {
        let [one, other] = &self.hashers;
        [one.hash_one(session), other.hash_one(session)]
    }

    /// Returns the keys of a session at each server.
    fn keys(&self, session: CancelScope<'_>) -> [SessionKey; 2] {
        [Way::Old, Way::New].map(|way| self.key(ServedSession { session, way }))
    }

    fn client(&self, session: CancelScope<'_>) -> ClientKey {
        let [hasher, _] = &self.hashers;
        match session {
            CancelScope::Session { caller, .. } => hasher.hash_one(caller),
            CancelScope::Socket(number) => hasher.hash_one(number),
        }
    }
}

impl State {
    /// Tells the stream of a session that the resources have changed.
    fn notify(&mut self, key: SessionKey) {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.changes += 1;
            stream.signals.changed.notify_one();
        }
    }
}

impl NewResource {
    /// Waits until the subscription of the session's stream includes the resource, if there is a stream. Cancel-safe.
    pub(super) async fn is_included(&self) {
        let stream = self.registry.lock().streams.get(&self.key).map(|stream| {
            let included = stream.signals.included.subscribe();
            (included, stream.changes)
        });
        if let Some((mut included, changes)) = stream {
            // An error means that the stream has ended.
            let _ = included.wait_for(|included| *included >= changes).await;
        }
    }

    /// Keeps the resource: the server has accepted the subscription.
    pub(super) fn keep(mut self) {
        self.answer = SubscriptionAnswer::Accepted;
    }
}

impl Drop for NewResource {
    fn drop(&mut self) {
        let (key, id) = (self.key, self.id);
        let mut state = self.registry.lock();
        match state.resources.settle(key, &self.uri, id, self.answer) {
            Settled::Unchanged => {}
            Settled::Removed => state.notify(key),
            Settled::Forgotten(other) => state.notify(other),
        }
    }
}

impl SessionStream {
    /// Returns the state of the stream.
    pub(super) fn state(&self) -> StreamState {
        let state = self.registry.lock();
        match state.streams.get(&self.key) {
            None => StreamState::Ended,
            Some(stream) if Arc::ptr_eq(&stream.signals, &self.signals) => {
                let resources = state.resources.get(&self.key);
                StreamState::Current(Wanted {
                    changes: stream.changes,
                    is_used: stream.is_used || !resources.is_empty(),
                    resources,
                })
            }
            Some(_) => StreamState::Replaced,
        }
    }

    /// Returns the permission to hold a subscription of the session, unless too many are held.
    pub(super) fn permit_to_hold(&self) -> Option<HoldPermit> {
        let mut state = self.registry.lock();
        self.registry.permit_in(&mut state, self.client)
    }

    /// Records that the subscription of the stream includes so many changes.
    pub(super) fn include(&self, changes: u64) {
        self.signals.included.send_replace(changes);
    }

    /// Waits until the resources change or the stream is to end; cancel-safe.
    pub(super) async fn changed(&self) {
        self.signals.changed.notified().await;
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        let current = state.streams.get(&self.key);
        if current.is_some_and(|current| Arc::ptr_eq(&current.signals, &self.signals)) {
            state.streams.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests;
