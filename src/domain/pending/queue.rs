//! Questions that wait for their turn: clients first, each rank in the order of asking.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Ask, Rank, Say, Ticket};

/// A question that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) ask: Ask,
    /// Whether a link broke after it was written there.
    pub(super) past: Past,
}

/// What has become of a question before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    /// Nothing of it was written.
    Unsent,
    /// It was written to a link that broke.
    Sent,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    clients: VecDeque<Waiting>,
    candidates: VecDeque<Waiting>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.clients.len() + self.candidates.len()
    }

    /// Whether one more of a rank fits under the limit.
    pub(super) fn takes(&self, rank: Rank, limit: usize) -> bool {
        match rank {
            Rank::Client => self.len() < limit,
            Rank::Candidate => self.len() < limit && self.candidates.len() < limit.div_ceil(2),
        }
    }

    fn of(&mut self, rank: Rank) -> &mut VecDeque<Waiting> {
        match rank {
            Rank::Client => &mut self.clients,
            Rank::Candidate => &mut self.candidates,
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.of(waiting.ask.rank).push_back(waiting);
    }

    /// Puts a question back before all others of its rank.
    pub(super) fn put_back(&mut self, waiting: Waiting) {
        self.of(waiting.ask.rank).push_front(waiting);
    }

    pub(super) fn first(&self) -> Option<&Waiting> {
        self.clients.front().or(self.candidates.front())
    }

    pub(super) fn take_first(&mut self) -> Option<Waiting> {
        let first = self.clients.pop_front();
        first.or_else(|| self.candidates.pop_front())
    }

    /// Takes out the first subscription of a client.
    pub(super) fn take_subscription(&mut self) -> Option<Waiting> {
        let is_one = |waiting: &Waiting| matches!(waiting.ask.say, Say::Subscription(..));
        let place = self.clients.iter().position(is_one)?;
        self.clients.remove(place)
    }

    /// Takes a question out; tells whether it was there.
    pub(super) fn remove(&mut self, ticket: Ticket) -> bool {
        let before = self.len();
        self.clients.retain(|waiting| waiting.ask.ticket != ticket);
        self.candidates
            .retain(|waiting| waiting.ask.ticket != ticket);
        self.len() < before
    }

    /// Takes out what has waited for too long.
    pub(super) fn take_expired(&mut self, now: Duration) -> Vec<Waiting> {
        let mut expired = Vec::new();
        for own in [&mut self.clients, &mut self.candidates] {
            if own.iter().any(|waiting| waiting.ask.start_by <= now) {
                let (over, kept): (VecDeque<_>, VecDeque<_>) = own
                    .drain(..)
                    .partition(|waiting| waiting.ask.start_by <= now);
                expired.extend(over);
                *own = kept;
            }
        }
        expired
    }

    /// When the first of them has waited for too long.
    pub(super) fn alarm(&self) -> Option<Duration> {
        let all = self.clients.iter().chain(&self.candidates);
        all.map(|waiting| waiting.ask.start_by).min()
    }
}
