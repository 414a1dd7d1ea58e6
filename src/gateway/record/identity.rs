//! The caller in the record: an index among the configured clients, never a key.

use super::{HasKey, Record};
use dualgauge_model::rollout::{Caller, Proof};

impl Record {
    /// Sets the caller.
    pub(in crate::gateway) fn set_client(&mut self, caller: Caller<'_>) {
        self.client = caller.client;
        self.proof = caller.proof;
        self.has_key = match caller.key {
            Some(_) => HasKey::Yes,
            None => HasKey::No,
        };
    }

    /// Returns the index of the client; `None` for unknown callers.
    pub(in crate::gateway) fn client(&self) -> Option<usize> {
        self.client
    }

    /// Returns how far the caller's identity is proven.
    pub(in crate::gateway) fn proof(&self) -> Proof {
        self.proof
    }
}
