//! Claims of verified tokens, cached so that a token in use is verified once.
//!
//! Used by `runtime_plan`.

use std::collections::HashMap;
use std::rc::Rc;

use dualgauge_model::rollout::Digest;
use dualgauge_model::token::{Claims, TokenFault};

/// Capacity of one generation of [`TokenCache`].
const GENERATION: usize = 512;

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

    use sha2::{Digest as _, Sha256};

    use super::*;

    fn token(number: usize) -> Digest {
        Sha256::digest(number.to_le_bytes()).into()
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
