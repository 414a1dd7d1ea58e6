//! The queue of requests: clients before candidates, each in the order of arrival.
//!
//! Used by `pending::link_machine`, `pending::outbound` and `pending::requests`.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Outbound, Priority, Request, Ticket};
use crate::correlator::PendingCall;
use crate::mcp::InputCapabilities;

/// A request that is queued, or in flight.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) request: Request,
    /// True if it was already written to a link that broke.
    pub(super) was_sent: bool,
    /// Set while the caller answers requests of the server.
    pub(super) suspension: Option<Suspension>,
    /// The capabilities that requests of the server during it required, and that its caller does not have.
    pub(super) missing: InputCapabilities,
}

/// The state of a call whose caller answers requests of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspension {
    /// The number of requests without an answer.
    pub(super) open: usize,
    /// The time that the call had left when it was suspended.
    pub(super) rest: Duration,
}

impl PendingCall for QueuedRequest {
    fn ends(&self) -> Option<Duration> {
        Some(self.request.deadline)
    }
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
    pub(super) fn has_capacity(&self, rank: Priority, limit: usize) -> bool {
        match rank {
            Priority::Client => self.len() < limit,
            Priority::Candidate => self.len() < limit && self.candidates.len() < limit.div_ceil(2),
        }
    }

    fn queue_for(&mut self, rank: Priority) -> &mut VecDeque<QueuedRequest> {
        match rank {
            Priority::Client => &mut self.clients,
            Priority::Candidate => &mut self.candidates,
        }
    }

    pub(super) fn push(&mut self, queued: QueuedRequest) {
        self.queue_for(queued.request.rank).push_back(queued);
    }

    /// Puts a request back in front of all others of its rank.
    pub(super) fn put_back(&mut self, queued: QueuedRequest) {
        self.queue_for(queued.request.rank).push_front(queued);
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
            |queued: &QueuedRequest| matches!(queued.request.message, Outbound::Subscription(..));
        let index = self.clients.iter().position(is_one)?;
        self.clients.remove(index)
    }

    /// Removes a request. Returns false if it is not queued.
    pub(super) fn remove(&mut self, ticket: Ticket) -> bool {
        let before = self.len();
        self.clients
            .retain(|queued| queued.request.ticket != ticket);
        self.candidates
            .retain(|queued| queued.request.ticket != ticket);
        self.len() < before
    }

    /// Takes the requests whose time in the queue is over.
    pub(super) fn take_expired(&mut self, now: Duration) -> Vec<QueuedRequest> {
        let mut expired = Vec::new();
        for queue in [&mut self.clients, &mut self.candidates] {
            if queue.iter().any(|queued| queued.request.start_by <= now) {
                let (over, remaining): (VecDeque<_>, VecDeque<_>) = queue
                    .drain(..)
                    .partition(|queued| queued.request.start_by <= now);
                expired.extend(over);
                *queue = remaining;
            }
        }
        expired
    }

    /// Returns the earliest time at which a queued request expires.
    pub(super) fn alarm(&self) -> Option<Duration> {
        let all = self.clients.iter().chain(&self.candidates);
        all.map(|queued| queued.request.start_by).min()
    }
}
