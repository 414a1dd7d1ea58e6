//! The records of answered calls whose client does not have the answers yet.
//!
//! Law: if the client leaves first, the call is recorded as cancelled, whatever its answer, but a failure stays a
//! failure. A call that waits for others to be answered does not count as in progress.
//!
//! Used by `progress_stream` and `rpc`.

use std::cell::RefCell;

use super::access_record::AccessRecord;

/// The records. Dropping them untaken means that the client has left.
#[derive(Debug, Default)]
pub(super) struct UndeliveredRecords {
    records: RefCell<Vec<AccessRecord>>,
}

impl UndeliveredRecords {
    /// Adds the record of an answered call.
    pub(super) fn add(&self, mut record: AccessRecord) {
        record.mark_complete();
        record
            .context
            .worker()
            .count_call_end(record.context.peer());
        self.records.borrow_mut().push(record);
    }

    /// Removes all records when the answers are sent. Returns those whose delivery will be observed, and reports the
    /// others.
    pub(super) fn take_records(&self) -> Vec<AccessRecord> {
        let mut records = self.resume();
        records.retain(|record| record.context.observes_delivery());
        records
    }

    fn resume(&self) -> Vec<AccessRecord> {
        let records = self.records.take();
        for record in &records {
            record
                .context
                .worker()
                .count_call_start(record.context.peer());
        }
        records
    }

    /// Records that the client has left, with the cause if known.
    pub(super) fn mark_undelivered(&self, cause: Option<&str>) {
        for record in self.records.borrow_mut().iter_mut() {
            record.mark_undelivered(cause);
        }
    }
}

impl Drop for UndeliveredRecords {
    fn drop(&mut self) {
        self.mark_undelivered(None);
        drop(self.resume());
    }
}
