//! The callers that wait for replies on one connection.
//!
//! Used by `legacy_socket::connection` and `link::task`.

use std::collections::BTreeMap;

use dualgauge_model::pending::Ticket;

/// A caller, as the task of a connection knows it.
pub(super) trait Caller {
    /// Returns true if the caller no longer waits.
    fn is_gone(&self) -> bool;
}

/// The callers, by ticket.
#[derive(Debug)]
pub(super) struct Callers<C> {
    waiting: BTreeMap<Ticket, C>,
    next: u64,
}

impl<C> Default for Callers<C> {
    fn default() -> Callers<C> {
        Callers {
            waiting: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<C: Caller> Callers<C> {
    /// Adds a caller under a new ticket.
    pub(super) fn add(&mut self, caller: C) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.insert(ticket, caller);
        ticket
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&C> {
        self.waiting.get(&ticket)
    }

    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut C> {
        self.waiting.get_mut(&ticket)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &C> {
        self.waiting.values()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Removes a caller that gets its reply now.
    pub(super) fn take(&mut self, ticket: Ticket) -> Option<C> {
        self.waiting.remove(&ticket)
    }

    /// Returns the tickets of all callers.
    pub(super) fn tickets(&self) -> Vec<Ticket> {
        self.waiting.keys().copied().collect()
    }

    /// Removes the callers that no longer wait.
    pub(super) fn take_gone(&mut self) -> Vec<(Ticket, C)> {
        let gone = self.waiting.extract_if(.., |_, caller| caller.is_gone());
        gone.collect()
    }
}
