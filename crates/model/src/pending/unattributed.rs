//! Messages without a waiting caller that may still cause a reply: an error without an id may belong to any of them.
//!
//! Used by `pending::inbound`, `pending::link_machine`, `pending::outbound`, `pending::server_requests` and
//! `pending::subscriptions`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{AnswerOrder, LinkClients};

/// The maximum number of entries. A message whose entry is dropped may still cause a reply until the link ends.
const MOST: usize = 1024;

/// The time for which a server may still send requests about a call after the notice of its cancellation, on a link of
/// one client. The server SHOULD stop at once (MCP 2025-11-25, "Cancellation"), but a message or a step of the call may
/// already be under way. On a shared link, no time is long enough: such a request would reach another client.
const CANCEL_GRACE: Duration = Duration::from_secs(60);

/// Selects whether the server is notified of a cancelled request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelNotice {
    Send,
    Silent,
}

/// A written message without a waiting caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnattributedReply {
    /// A notification, which gets no response.
    Notice,
    /// A request whose caller has given up. The server may ask about it until this time.
    Abandoned(Duration),
    /// A request of the link itself.
    Own,
}

/// The written messages without a waiting caller, in the order of writing.
#[derive(Debug, Default)]
pub(super) struct UnattributedReplies {
    all: BTreeMap<u64, UnattributedReply>,
    /// True if some entries were dropped.
    has_gaps: bool,
    /// The latest time of the dropped requests whose callers had given up.
    dropped: Duration,
}

impl UnattributedReply {
    /// A request whose caller gives up now; the server is told of it, or not.
    pub(super) fn abandoned(
        now: Duration,
        notice: CancelNotice,
        clients: LinkClients,
    ) -> UnattributedReply {
        UnattributedReply::Abandoned(match (notice, clients) {
            (CancelNotice::Send, LinkClients::One) => now + CANCEL_GRACE,
            (CancelNotice::Silent, _) | (CancelNotice::Send, LinkClients::Several) => Duration::MAX,
        })
    }
}

impl UnattributedReplies {
    pub(super) fn add(&mut self, id: u64, doubt: UnattributedReply) {
        self.all.insert(id, doubt);
        if self.all.len() > MOST {
            if let Some((_, UnattributedReply::Abandoned(until))) = self.all.pop_first() {
                self.dropped = self.dropped.max(until);
            }
            self.has_gaps = true;
        }
    }

    /// Returns true if only pending requests can still cause a reply.
    pub(super) fn none(&self) -> bool {
        self.all.is_empty() && !self.has_gaps
    }

    /// Returns true if the server may still work on a request whose caller has given up.
    pub(super) fn has_abandoned(&self, now: Duration) -> bool {
        let is_open = |doubt: &UnattributedReply| match *doubt {
            UnattributedReply::Abandoned(until) => now < until,
            UnattributedReply::Notice | UnattributedReply::Own => false,
        };
        now < self.dropped || self.all.values().any(is_open)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Removes a request whose response has arrived. Returns `None` if `id` is no request without a caller.
    pub(super) fn answered(&mut self, id: u64) -> Option<UnattributedReply> {
        let doubt = *self.all.get(&id)?;
        match doubt {
            UnattributedReply::Notice => None,
            UnattributedReply::Abandoned(_) | UnattributedReply::Own => self.all.remove(&id),
        }
    }

    /// Removes a request whose caller has given up, once the server has ended its response stream.
    pub(super) fn ended(&mut self, id: u64) {
        if let Some(UnattributedReply::Abandoned(_)) = self.all.get(&id) {
            self.all.remove(&id);
        }
    }

    /// Drops the entries that were written before `id`, which got a reply. A serial server has finished all of them.
    /// Any server has read them, and would have reported errors in notifications by now.
    pub(super) fn passed(&mut self, id: u64, order: AnswerOrder) {
        self.all.retain(|earlier, doubt| {
            let over = match order {
                AnswerOrder::Serial => true,
                AnswerOrder::Pipelined(_) => *doubt == UnattributedReply::Notice,
            };
            *earlier > id || !over
        });
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.has_gaps = false;
        self.dropped = Duration::ZERO;
    }
}
