//! The queue of requests: clients before candidates, each in the order of arrival.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Outbound, Priority, Request, Ticket};

/// A queued request.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) ask: Request,
    /// Tells whether it was already written to a link that broke.
    pub(super) past: Attempted,
}

/// The history of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempted {
    /// Nothing of it was written.
    Unsent,
    /// It was written to a link that broke.
    Sent,
}

#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    clients: VecDeque<QueuedRequest>,
    candidates: VecDeque<QueuedRequest>,
}

impl RequestQueue {
    pub(super) fn len(&self) -> usize {
        self.clients.len() + self.candidates.len()
    }

    /// Returns true if another request of this rank fits within the limit.
    pub(super) fn takes(&self, rank: Priority, limit: usize) -> bool {
        match rank {
            Priority::Client => self.len() < limit,
            Priority::Candidate => self.len() < limit && self.candidates.len() < limit.div_ceil(2),
        }
    }

    fn of(&mut self, rank: Priority) -> &mut VecDeque<QueuedRequest> {
        match rank {
            Priority::Client => &mut self.clients,
            Priority::Candidate => &mut self.candidates,
        }
    }

    pub(super) fn push(&mut self, waiting: QueuedRequest) {
        self.of(waiting.ask.rank).push_back(waiting);
    }

    /// Puts a request back in front of all others of its rank.
    pub(super) fn put_back(&mut self, waiting: QueuedRequest) {
        self.of(waiting.ask.rank).push_front(waiting);
    }

    pub(super) fn first(&self) -> Option<&QueuedRequest> {
        self.clients.front().or(self.candidates.front())
    }

    pub(super) fn pop_first(&mut self) -> Option<QueuedRequest> {
        let first = self.clients.pop_front();
        first.or_else(|| self.candidates.pop_front())
    }

    /// Takes the first subscription of a client.
    pub(super) fn take_subscription(&mut self) -> Option<QueuedRequest> {
        let is_one =
            |waiting: &QueuedRequest| matches!(waiting.ask.say, Outbound::Subscription(..));
        let place = self.clients.iter().position(is_one)?;
        self.clients.remove(place)
    }

    /// Removes a request. Returns false if it is not queued.
    pub(super) fn remove(&mut self, ticket: Ticket) -> bool {
        let before = self.len();
        self.clients.retain(|waiting| waiting.ask.ticket != ticket);
        self.candidates
            .retain(|waiting| waiting.ask.ticket != ticket);
        self.len() < before
    }

    /// Takes the requests whose time in the queue is over.
    pub(super) fn take_expired(&mut self, now: Duration) -> Vec<QueuedRequest> {
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

    /// Returns the earliest time at which a queued request expires.
    pub(super) fn alarm(&self) -> Option<Duration> {
        let all = self.clients.iter().chain(&self.candidates);
        all.map(|waiting| waiting.ask.start_by).min()
    }
}
