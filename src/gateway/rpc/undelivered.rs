//! The records of answered calls whose client does not have the answers yet.
//!
//! Law: if the client leaves first, the call is recorded as cancelled, whatever its answer, but a failure stays a
//! failure. A call that waits for others to be answered does not count as in progress.

use std::cell::RefCell;

use crate::gateway::record::Record;

/// The records. Dropping them untaken means that the client has left.
#[derive(Debug, Default)]
pub(super) struct UndeliveredRecords {
    records: RefCell<Vec<Record>>,
}

impl UndeliveredRecords {
    /// Adds the record of an answered call.
    pub(super) fn add(&self, mut record: Record) {
        record.is_whole();
        record.worker().ended(record.peer());
        self.records.borrow_mut().push(record);
    }

    /// Takes the records as the client gets the answers: returns those whose delivery will be observed, and writes the
    /// others.
    pub(super) fn given(&self) -> Vec<Record> {
        let mut records = self.go_on();
        records.retain(Record::waits_for_its_client);
        records
    }

    fn go_on(&self) -> Vec<Record> {
        let records = self.records.take();
        for record in &records {
            record.worker().begun(record.peer());
        }
        records
    }

    /// Records that the client has left, with the cause if known.
    pub(super) fn not_delivered(&self, cause: Option<&str>) {
        for record in self.records.borrow_mut().iter_mut() {
            record.not_delivered(cause);
        }
    }
}

impl Drop for UndeliveredRecords {
    fn drop(&mut self) {
        self.not_delivered(None);
        drop(self.go_on());
    }
}
