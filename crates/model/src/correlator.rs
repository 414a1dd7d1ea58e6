//! Calls on one connection that wait for their answers, for any protocol.
//!
//! [`Correlator`] is the part that JSON-RPC links and legacy sockets share: the bound on calls in flight, their
//! deadlines, and their ends. It is sans-io: times come in as arguments. A protocol decides which key a call gets and
//! which call a message answers: the one with its id, or the oldest one that it may answer.
//!
//! Laws, checked by a seeded simulation:
//!
//! - A call ends exactly once: by its answer, at its deadline, with its caller, or with the connection.
//! - Among the calls that a message may answer, the oldest one gets it.
//! - No two calls have the same id while both wait, and an assigned id is never assigned again.
//! - The calls are bounded, as long as the owner asks [`Correlator::has_capacity`] first, and none is left when no caller
//!   waits.
//!
//! Used by `frame` and `pending`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// A call that waits for its answer.
pub trait PendingCall {
    /// Returns the time at which it ends without an answer; `None` if there is no such time.
    fn ends(&self) -> Option<Duration>;
}

/// The calls of one connection, by keys that ascend with their age: the first is the oldest.
#[derive(Debug)]
pub struct Correlator<K, C> {
    calls: BTreeMap<K, C>,
    limit: usize,
}

impl<K: Copy + Ord, C: PendingCall> Correlator<K, C> {
    /// Creates an empty correlator for at most `limit` calls.
    #[must_use]
    pub fn new(limit: usize) -> Correlator<K, C> {
        Correlator {
            calls: BTreeMap::new(),
            limit,
        }
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns true if no call waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns true if another call may be sent.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        self.calls.len() < self.limit
    }

    /// Returns the calls, oldest first.
    pub fn calls(&self) -> impl Iterator<Item = (K, &C)> {
        self.calls.iter().map(|(key, call)| (*key, call))
    }

    /// Returns the call with this key.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&C> {
        self.calls.get(&key)
    }

    /// Returns the call with this key, for a change.
    pub fn get_mut(&mut self, key: K) -> Option<&mut C> {
        self.calls.get_mut(&key)
    }

    /// Returns the key of the only call; `None` if there are more, or none.
    #[must_use]
    pub fn only(&self) -> Option<K> {
        let mut keys = self.calls.keys();
        let only = keys.next().copied();
        only.filter(|_| keys.next().is_none())
    }

    /// Adds a call that is sent. The owner has asked [`Correlator::has_capacity`], and the key is greater than those of
    /// all calls that wait.
    pub fn begin(&mut self, key: K, call: C) {
        debug_assert!(self.has_capacity());
        debug_assert!(
            self.calls
                .last_key_value()
                .is_none_or(|(last, _)| *last < key)
        );
        self.calls.insert(key, call);
    }

    /// Removes the call with this key: it is answered or has failed, or its caller has gone away.
    pub fn end(&mut self, key: K) -> Option<C> {
        self.calls.remove(&key)
    }

    /// Removes the oldest call for which `find` returns a value.
    pub fn end_first<R>(&mut self, mut find: impl FnMut(&C) -> Option<R>) -> Option<(K, C, R)> {
        let mut calls = self.calls.iter();
        let (key, found) = calls.find_map(|(key, call)| Some((*key, find(call)?)))?;
        let call = self.calls.remove(&key)?;
        Some((key, call, found))
    }

    /// Removes the calls whose time is over, oldest first.
    pub fn end_expired(&mut self, now: Duration) -> Vec<(K, C)> {
        let is_over = |_: &K, call: &mut C| call.ends().is_some_and(|ends| ends <= now);
        self.calls.extract_if(.., is_over).collect()
    }

    /// Removes all calls, oldest first, because the connection is lost.
    pub fn end_all(&mut self) -> impl DoubleEndedIterator<Item = (K, C)> + use<K, C> {
        std::mem::take(&mut self.calls).into_iter()
    }

    /// Returns the earliest time at which a call ends.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        self.calls.values().filter_map(PendingCall::ends).min()
    }
}

/// The ids that were assigned to calls of one connection.
#[derive(Debug)]
pub struct AssignedIds(Range<u64>);

impl AssignedIds {
    /// Creates the ids from `first` upwards.
    #[must_use]
    pub fn from(first: u64) -> AssignedIds {
        AssignedIds(first..first)
    }

    /// Assigns the next id.
    pub fn assign(&mut self) -> u64 {
        let id = self.0.end;
        self.0.end += 1;
        id
    }

    /// Assigns the next id that is not in use by a client that chooses its own.
    pub fn assign_unused(&mut self, is_used: impl Fn(u64) -> bool) -> u64 {
        loop {
            let id = self.assign();
            if !is_used(id) {
                return id;
            }
        }
    }

    /// Returns true if this id was assigned, or passed over because a client used it.
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.0.contains(&id)
    }
}

#[cfg(test)]
mod tests;
