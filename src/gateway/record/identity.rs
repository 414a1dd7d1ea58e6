//! Who calls, as the record keeps it: a place among the clients, never a key.

use super::{HasKey, Record};
use crate::domain::rollout::{Caller, Proof};

impl Record {
    /// Notes who calls.
    pub(in crate::gateway) fn names_client(&mut self, caller: Caller<'_>) {
        self.client = caller.client;
        self.proof = caller.proof;
        self.keyed = match caller.key {
            Some(_) => HasKey::Yes,
            None => HasKey::No,
        };
    }

    /// The place of the client; none for everyone else.
    pub(in crate::gateway) fn client(&self) -> Option<usize> {
        self.client
    }

    /// Whether the client is more than what the caller says.
    pub(in crate::gateway) fn proof(&self) -> Proof {
        self.proof
    }
}
