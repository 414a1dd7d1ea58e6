//! Calls of stateless clients whose servers wait for input, until the clients send them again with it.
//!
//! The retry may come over another connection, and so to another worker; the registry is shared by all workers. Laws: a
//! call is continued only by its owner, and only once per state; the number of calls is bounded; the link
//! ends a call whose client does not come back, and the registry forgets it.
//!
//! Used by `link_call`, `rpc`, `shared_state` and `worker`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use tokio::time::Instant;

use crate::telemetry::clock;
use crate::upstream::link::SuspendedCall;
use dualgauge_model::mcp::{OpenRequest, request_state};
use dualgauge_model::pending::INPUT_TIMEOUT;
use dualgauge_model::rollout::Caller;
use dualgauge_net::random_u64;

/// The maximum number of calls.
const MOST: usize = 4096;

/// The calls that wait for input.
#[derive(Debug)]
pub struct SuspendedCalls {
    /// Two hashers, so that a 128-bit key makes collisions practically impossible.
    hashers: [RandomState; 2],
    waiting: Mutex<HashMap<CallKey, Entry>>,
}

/// The hash of an owner and of the state that it got.
type CallKey = [u64; 2];

/// The client that may continue a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallOwner<'a> {
    pub(super) caller: Caller<'a>,
    /// The `Authorization` of the client, if its caller does not identify it.
    pub(super) authorization: Option<&'a HeaderValue>,
}

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
    /// Adds a call of an owner. Returns the state that continues it, or `None` if too many wait.
    pub(super) fn add(&self, owner: CallOwner<'_>, waiting: WaitingCall) -> Option<String> {
        let [first, second] = [(); 2].map(|()| random_u64());
        let state = request_state(&format!("{first:016x}{second:016x}"));
        let now = clock::now();
        let entry = Entry {
            waiting,
            until: now + INPUT_TIMEOUT,
        };
        let key = self.key(owner, &state);
        let mut all = self.lock();
        all.retain(|_, entry| entry.until > now);
        if all.len() >= MOST {
            return None;
        }
        all.insert(key, entry);
        Some(state)
    }

    /// Takes the call of an owner that a state continues.
    pub(super) fn take(&self, owner: CallOwner<'_>, state: &str) -> Option<WaitingCall> {
        let entry = self.lock().remove(&self.key(owner, state))?;
        (entry.until > clock::now()).then_some(entry.waiting)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallKey, Entry>> {
        // The map is consistent even after a panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, owner: CallOwner<'_>, state: &str) -> CallKey {
        let CallOwner {
            caller,
            authorization,
        } = owner;
        let [one, other] = &self.hashers;
        let authorization = authorization.map(HeaderValue::as_bytes);
        let key = (caller.name, caller.key, authorization, state);
        [one.hash_one(key), other.hash_one(key)]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use tokio::time::advance;

    use super::*;
    use dualgauge_model::jsonrpc::RequestId;
    use dualgauge_model::rollout::Proof;
    use dualgauge_patterns::json::Json;

    fn caller(name: &'static str, key: Option<&'static str>) -> CallOwner<'static> {
        let caller = Caller {
            client: None,
            name,
            key,
            proof: Proof::Declared,
        };
        CallOwner {
            caller,
            authorization: None,
        }
    }

    fn waiting() -> WaitingCall {
        let message = Bytes::from_static(br#"{"method":"roots/list"}"#);
        let id = RequestId::new(Json::literal("7")).unwrap();
        WaitingCall {
            call: SuspendedCall::detached(),
            request: OpenRequest::new(id, message, 8).unwrap(),
        }
    }

    #[test]
    fn a_call_is_continued_once_and_by_its_owner_only() {
        let calls = SuspendedCalls::default();
        let token = HeaderValue::from_static("Bearer a");
        let owner = CallOwner {
            authorization: Some(&token),
            ..caller("a", Some("k"))
        };
        let state = calls.add(owner, waiting()).unwrap();
        let second = calls.add(owner, waiting()).unwrap();
        assert_ne!(state, second);
        let other = HeaderValue::from_static("Bearer b");
        for stranger in [
            caller("a", Some("k")),
            caller("a", None),
            CallOwner {
                authorization: Some(&other),
                ..owner
            },
            CallOwner {
                caller: caller("b", Some("k")).caller,
                ..owner
            },
            CallOwner {
                caller: caller("a", Some("l")).caller,
                ..owner
            },
        ] {
            assert!(calls.take(stranger, &state).is_none(), "{stranger:?}");
        }
        assert!(calls.take(owner, "dualgauge-input-0").is_none());
        assert!(calls.take(owner, &state).is_some());
        assert!(calls.take(owner, &state).is_none());
        assert!(calls.take(owner, &second).is_some());
    }

    #[test]
    fn the_number_of_calls_is_bounded() {
        let calls = SuspendedCalls::default();
        let owner = caller("a", None);
        let states: Vec<_> = (0..MOST).map(|_| calls.add(owner, waiting())).collect();
        assert!(states.iter().all(Option::is_some));
        assert!(calls.add(owner, waiting()).is_none());
        assert!(calls.take(owner, states[0].as_ref().unwrap()).is_some());
        assert!(calls.add(owner, waiting()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_client_does_not_come_back_is_forgotten() {
        let calls = SuspendedCalls::default();
        let owner = caller("a", None);
        let early = calls.add(owner, waiting()).unwrap();
        advance(INPUT_TIMEOUT - Duration::from_secs(1)).await;
        let late = calls.add(owner, waiting()).unwrap();
        advance(Duration::from_secs(1)).await;
        assert!(calls.take(owner, &early).is_none());
        assert!(calls.take(owner, &late).is_some());
        let _ = calls.add(owner, waiting()).unwrap();
        advance(INPUT_TIMEOUT).await;
        let _ = calls.add(owner, waiting()).unwrap();
        assert_eq!(calls.lock().len(), 1);
    }
}
