//! Record entries of JSON-RPC messages: invalid messages, and calls of a batch that is forwarded as one message.
//!
//! Used by `access_record`.

use bytes::Bytes;

use super::AccessRecord;
use super::facts::OldNote;
use super::outcome::SMALL;
use dualgauge_model::dialect::OldTransport;
use dualgauge_model::jsonrpc::{RequestId, parse_response, split_batch};
use dualgauge_model::posted::{Handling, MessageFault};

impl AccessRecord {
    /// Records how the message deviates from JSON-RPC 2.0, and how the proxy handled it.
    pub(in crate::gateway) fn set_fault(&mut self, fault: MessageFault, action: Handling) {
        self.message.fault = Some((fault, action));
    }

    /// Records that the call is a message of an old dialect, or several in one request.
    pub(in crate::gateway) fn set_old(&mut self, transport: OldTransport, messages: u64) {
        self.message.old = Some(OldNote {
            transport,
            messages,
        });
    }

    /// Returns true when the call is a message of a batch of an old dialect.
    pub(in crate::gateway) fn is_in_old_batch(&self) -> bool {
        let old = self.message.old;
        old.is_some_and(|old| old.transport == OldTransport::Batch)
    }

    /// Returns true when the call is noted as a message of an old dialect.
    pub(in crate::gateway) fn is_old(&self) -> bool {
        self.message.old.is_some()
    }

    /// Sets the id that matches the call with its response in the batch.
    pub(in crate::gateway) fn set_batch_id(&mut self, id: Option<RequestId>) {
        self.message.part = id;
    }

    /// Returns true when the call is part of a batch that was forwarded as one message.
    pub(in crate::gateway) fn is_batch_part(&self) -> bool {
        self.message.part.is_some()
    }

    /// Copies the upstream time of another call of the same batch, whose response was just sent.
    pub(in crate::gateway) fn copy_upstream_time(&mut self, other: &AccessRecord) {
        self.upstream = other.upstream;
        self.mark_head_sent();
    }

    /// Reads a complete batch response that passes through, up to [`SMALL`] bytes. Errors and tool errors in it count
    /// for their calls.
    pub(in crate::gateway) fn inspect_batch_response(
        &mut self,
        others: &mut [AccessRecord],
        body: &Bytes,
    ) {
        let depth = self.context.runtime_plan.plan.limits.depth;
        if body.len() > SMALL {
            return;
        }
        for part in split_batch(body, depth).into_iter().flatten() {
            let Ok(response) = parse_response(&part, depth) else {
                continue;
            };
            let Some(id) = response.id else {
                continue;
            };
            let matches_id = |record: &&mut AccessRecord| {
                let part = record.message.part.as_ref();
                part.is_some_and(|part| part.as_bytes() == id.as_bytes())
            };
            let records = std::iter::once(&mut *self).chain(others.iter_mut());
            for record in records.filter(matches_id) {
                if let Some(status) = record.outcome.status {
                    record.set_reply(status, &response.reply);
                }
            }
        }
    }
}
