//! Messages without a waiting caller that may still cause a reply: an error without an id may belong to any of them.
//!
//! Used by `pending::inbound`, `pending::link_machine`, `pending::outbound` and `pending::server_requests`.

use std::collections::BTreeMap;

use super::AnswerOrder;

/// The maximum number of entries. A message whose entry is dropped may still cause a reply until the link ends.
const MOST: usize = 1024;

/// A written message without a waiting caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnattributedReply {
    /// A notification, which gets no response.
    Notice,
    /// A request whose caller has given up.
    Abandoned,
    /// A request of the link itself.
    Own,
}

/// The written messages without a waiting caller, in the order of writing.
#[derive(Debug, Default)]
pub(super) struct UnattributedReplies {
    all: BTreeMap<u64, UnattributedReply>,
    /// True if some entries were dropped.
    has_gaps: bool,
}

impl UnattributedReplies {
    pub(super) fn add(&mut self, id: u64, doubt: UnattributedReply) {
        self.all.insert(id, doubt);
        if self.all.len() > MOST {
            self.all.pop_first();
            self.has_gaps = true;
        }
    }

    /// Returns true if only pending requests can still cause a reply.
    pub(super) fn none(&self) -> bool {
        self.all.is_empty() && !self.has_gaps
    }

    /// Returns true if the server may still work on a request whose caller has given up.
    pub(super) fn has_abandoned(&self) -> bool {
        let is_abandoned = |doubt: &UnattributedReply| *doubt == UnattributedReply::Abandoned;
        self.has_gaps || self.all.values().any(is_abandoned)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Removes a request whose response has arrived. Returns `None` if `id` is no request without a caller.
    pub(super) fn answered(&mut self, id: u64) -> Option<UnattributedReply> {
        let doubt = *self.all.get(&id)?;
        match doubt {
            UnattributedReply::Notice => None,
            UnattributedReply::Abandoned | UnattributedReply::Own => self.all.remove(&id),
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
    }
}
