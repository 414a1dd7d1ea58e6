//! Identification of callers: matches the evidence of a request against the clients of the plan.
//!
//! Nothing is rejected here. An invalid token is counted and otherwise ignored.
//!
//! Used throughout `gateway`.

use std::collections::HashMap;
use std::rc::Rc;

use http::HeaderMap;
use sha2::{Digest as _, Sha256};

use super::record::Record;
use super::{RequestOrigin, RuntimePlan};
use crate::telemetry::clock;
use dualgauge_model::rollout::{ClientEvidence, Digest, Identity};
use dualgauge_model::token::{Claims, TokenFault, Tokens};

/// Capacity of one generation of [`TokenCache`].
const GENERATION: usize = 512;

/// Identifies the caller of a request and records it.
pub(super) fn identify<'a>(
    record: &mut Record,
    headers: &'a HeaderMap,
    origin: &'a RequestOrigin,
) -> Identity<'a> {
    record.set_origin(origin);
    record.start_trace(headers);
    let runtime_plan = record.runtime_plan().clone();
    let clients = &runtime_plan.plan.rollout.clients;
    let claims = |tokens: &Tokens, text: &str| {
        let verified = verify(&runtime_plan, tokens, text);
        if let Err(fault) = verified {
            record.worker().count(|shard| shard.unverified_token(fault));
        }
        verified.ok()
    };
    let identity = clients.identify(ClientEvidence {
        headers,
        peer: Some(origin.peer()),
        subject: origin.subject(),
        digest,
        claims: &claims,
    });
    record.set_client(identity.caller(clients));
    identity
}

fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Returns the claims of a token that is valid now.
fn verify(
    runtime_plan: &RuntimePlan,
    tokens: &Tokens,
    text: &str,
) -> Result<Rc<Claims>, TokenFault> {
    let claims = runtime_plan.signed_claims(digest(text.as_bytes()), || tokens.signed(text))?;
    tokens.accept(&claims, clock::whole_unix_seconds())?;
    Ok(claims)
}

/// A cache of verified claims by the digests of their tokens; the tokens themselves are not stored.
///
/// Two generations evict entries that were not used recently, without a list of uses. Only verified tokens are stored,
/// so an attacker without a key cannot evict entries.
#[derive(Debug, Default)]
pub(super) struct TokenCache {
    recent: HashMap<Digest, Rc<Claims>>,
    previous: HashMap<Digest, Rc<Claims>>,
}

impl TokenCache {
    /// Returns the cached claims of a token, or calls `read` and caches its result.
    pub(super) fn claims(
        &mut self,
        token: Digest,
        read: impl FnOnce() -> Result<Claims, TokenFault>,
    ) -> Result<Rc<Claims>, TokenFault> {
        if let Some(claims) = self.recent.get(&token) {
            return Ok(claims.clone());
        }
        let claims = match self.previous.remove(&token) {
            Some(claims) => claims,
            None => Rc::new(read()?),
        };
        if self.recent.len() >= GENERATION {
            self.previous = std::mem::take(&mut self.recent);
        }
        self.recent.insert(token, claims.clone());
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn token(number: usize) -> Digest {
        digest(&number.to_le_bytes())
    }

    #[test]
    fn a_token_in_use_is_verified_once() {
        let mut cache = TokenCache::default();
        let checked = Cell::new(0);
        let mut look_up = |number: usize| {
            let read = || {
                checked.set(checked.get() + 1);
                Ok(Claims::new(serde_json::Map::new()))
            };
            cache.claims(token(number), read).unwrap();
            cache.recent.len() + cache.previous.len()
        };
        for number in 1..10_000 {
            look_up(0);
            let stored = look_up(number);
            assert!(stored <= 2 * GENERATION, "{stored}");
        }
        assert_eq!(checked.get(), 10_000);
    }

    #[test]
    fn an_unverified_token_is_not_cached() {
        let mut cache = TokenCache::default();
        for number in 0..10 {
            let read = || Err(TokenFault::Signature);
            let fault = cache.claims(token(number), read).unwrap_err();
            assert_eq!(fault, TokenFault::Signature);
        }
        assert!(cache.recent.is_empty() && cache.previous.is_empty());
    }
}
