//! Identification of callers: matches the evidence of a request against the clients of the plan.
//!
//! Nothing is rejected here. An invalid token is counted and otherwise ignored.

use std::collections::HashMap;
use std::rc::Rc;

use http::HeaderMap;
use sha2::{Digest as _, Sha256};

use super::record::Record;
use super::{RequestOrigin, RuntimePlan};
use crate::domain::rollout::{ClientEvidence, Digest, Identity};
use crate::domain::token::{Claims, TokenFault, Tokens};
use crate::telemetry::clock;

/// Capacity of one generation of [`TokenCache`].
const GENERATION: usize = 512;

/// Identifies the caller of a request and records it.
pub(super) fn identify<'a>(
    record: &mut Record,
    headers: &'a HeaderMap,
    arrival: &'a RequestOrigin,
) -> Identity<'a> {
    record.received_from(arrival);
    record.traces(headers);
    let installed = record.installed().clone();
    let clients = &installed.plan.rollout.clients;
    let claims = |tokens: &Tokens, text: &str| {
        let verified = verify(&installed, tokens, text);
        if let Err(fault) = verified {
            record.worker().count(|shard| shard.unverified_token(fault));
        }
        verified.ok()
    };
    let identity = clients.identify(ClientEvidence {
        headers,
        peer: Some(arrival.peer()),
        subject: arrival.subject(),
        digest,
        claims: &claims,
    });
    record.names_client(identity.caller(clients));
    identity
}

fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Returns the claims of a token that is valid now.
fn verify(installed: &RuntimePlan, tokens: &Tokens, text: &str) -> Result<Rc<Claims>, TokenFault> {
    let claims = installed.signed_claims(digest(text.as_bytes()), || tokens.signed(text))?;
    tokens.accept(&claims, clock::whole_unix_seconds())?;
    Ok(claims)
}

/// A cache of verified claims by the digests of their tokens; the tokens themselves are not stored.
///
/// Two generations evict entries that were not used recently, without a list of uses. Only verified tokens are stored,
/// so an attacker without a key cannot evict entries.
#[derive(Debug, Default)]
pub(super) struct TokenCache {
    young: HashMap<Digest, Rc<Claims>>,
    old: HashMap<Digest, Rc<Claims>>,
}

impl TokenCache {
    /// Returns the cached claims of a token, or calls `read` and caches its result.
    pub(super) fn claims(
        &mut self,
        token: Digest,
        read: impl FnOnce() -> Result<Claims, TokenFault>,
    ) -> Result<Rc<Claims>, TokenFault> {
        if let Some(claims) = self.young.get(&token) {
            return Ok(claims.clone());
        }
        let claims = match self.old.remove(&token) {
            Some(claims) => claims,
            None => Rc::new(read()?),
        };
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(token, claims.clone());
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
    fn a_signature_is_checked_once_while_its_token_is_in_use() {
        let mut remembered = TokenCache::default();
        let checked = Cell::new(0);
        let mut ask = |number: usize| {
            let read = || {
                checked.set(checked.get() + 1);
                Ok(Claims::new(serde_json::Map::new()))
            };
            remembered.claims(token(number), read).unwrap();
            remembered.young.len() + remembered.old.len()
        };
        for number in 1..10_000 {
            ask(0);
            let held = ask(number);
            assert!(held <= 2 * GENERATION, "{held}");
        }
        assert_eq!(checked.get(), 10_000);
    }

    #[test]
    fn what_nobody_has_signed_is_not_remembered() {
        let mut remembered = TokenCache::default();
        for number in 0..10 {
            let read = || Err(TokenFault::Signature);
            let fault = remembered.claims(token(number), read).unwrap_err();
            assert_eq!(fault, TokenFault::Signature);
        }
        assert!(remembered.young.is_empty() && remembered.old.is_empty());
    }
}
