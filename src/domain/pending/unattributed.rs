//! What was written and may still bring something: an error without an id may be due to any of it.

use std::collections::BTreeMap;

use super::AnswerOrder;

/// More than this is not kept; what is forgotten may still bring something until the link ends.
const MOST: usize = 1024;

/// Something that was written, for which nobody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnattributedReply {
    /// It is never answered.
    Notice,
    /// Whoever asked it has given up.
    Abandoned,
}

/// The doubts of a link, in the order of writing.
#[derive(Debug, Default)]
pub(super) struct UnattributedReplies {
    all: BTreeMap<u64, UnattributedReply>,
    memory: ReplyMemory,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReplyMemory {
    #[default]
    Whole,
    /// Some were forgotten.
    Gaps,
}

impl UnattributedReplies {
    pub(super) fn add(&mut self, id: u64, doubt: UnattributedReply) {
        self.all.insert(id, doubt);
        if self.all.len() > MOST {
            self.all.pop_first();
            self.memory = ReplyMemory::Gaps;
        }
    }

    /// Whether nothing that was written may bring anything but those who wait.
    pub(super) fn none(&self) -> bool {
        self.all.is_empty() && self.memory == ReplyMemory::Whole
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a question was given up; if so, its answer is here now.
    pub(super) fn answered(&mut self, id: u64) -> bool {
        let abandoned = self.all.get(&id) == Some(&UnattributedReply::Abandoned);
        if abandoned {
            self.all.remove(&id);
        }
        abandoned
    }

    /// Something is answered that was written after others. A server that answers one after another is through with
    /// all of those; any server has read them, and would have complained of notices by now.
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
        self.memory = ReplyMemory::Whole;
    }
}
