//! The record of a message on an RPC path: not valid JSON-RPC 2.0, or one of a batch that was sent as one message.

use bytes::Bytes;

use super::Record;
use super::outcome::SMALL;
use crate::domain::jsonrpc::{RequestId, parse_response, parts};
use crate::domain::posted::{Handling, MessageFault};
use crate::domain::side::Side;

/// What is to be told of a message.
#[derive(Debug, Default)]
pub(super) struct MessageNote {
    /// How it differs from valid JSON-RPC 2.0, and what becomes of it.
    pub(super) fault: Option<(MessageFault, Handling)>,
    /// Its id in the batch that it was sent in.
    part: Option<RequestId>,
}

impl Record {
    /// Notes how the message differs from valid JSON-RPC 2.0, and what becomes of it.
    pub(in crate::gateway) fn is_invalid(&mut self, fault: MessageFault, action: Handling) {
        self.message.fault = Some((fault, action));
    }

    /// Notes the id by which the call is answered in the answer to its batch.
    pub(in crate::gateway) fn is_part(&mut self, id: Option<RequestId>) {
        self.message.part = id;
    }

    /// Whether the call was sent in a batch that was one message.
    pub(in crate::gateway) fn has_part(&self) -> bool {
        self.message.part.is_some()
    }

    /// Notes that the call was sent in one message with another one, which was answered now.
    pub(in crate::gateway) fn was_sent_with(&mut self, other: &Record) {
        self.upstream = other.upstream;
        self.head_sent();
    }

    /// A whole answer to a batch passes by. A small one is looked into: the errors and tool errors
    /// in it count as those of their calls.
    pub(in crate::gateway) fn passed_together(&mut self, others: &mut [Record], body: &Bytes) {
        let depth = self.installed.plan.limits.depth;
        if body.len() > SMALL {
            return;
        }
        for part in parts(body, depth).into_iter().flatten() {
            let Ok(response) = parse_response(&part, depth) else {
                continue;
            };
            let Some(id) = response.id else {
                continue;
            };
            let is_asked = |record: &&mut Record| {
                let part = record.message.part.as_ref();
                part.is_some_and(|part| part.as_bytes() == id.as_bytes())
            };
            let records = std::iter::once(&mut *self).chain(others.iter_mut());
            for record in records.filter(is_asked) {
                if let Some(status) = record.ending.status {
                    record.replied(status, &response.reply);
                }
            }
        }
    }

    /// Makes it the record of a REST call: the body that was posted to an RPC path is no JSON-RPC.
    pub(in crate::gateway) fn is_rest(&mut self) {
        self.side = Side::Rest;
    }
}
