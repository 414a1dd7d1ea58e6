//! The records of calls that are answered, while their client has yet to get the answers.
//!
//! Law: a call whose client leaves before that is cancelled, however it was answered; what has failed besides has failed all
//! the same. One that waits for others to be answered is not in progress: it takes nobody's place.

use std::cell::RefCell;

use crate::gateway::record::Record;

/// The records. Those that nobody takes are of a client that has left.
#[derive(Debug, Default)]
pub(super) struct UndeliveredRecords {
    records: RefCell<Vec<Record>>,
}

impl UndeliveredRecords {
    /// One more call is answered.
    pub(super) fn add(&self, mut record: Record) {
        record.is_whole();
        record.worker().ended(record.peer());
        self.records.borrow_mut().push(record);
    }

    /// The client gets the answers now: gives the records of those of which it will be known whether it takes them, and
    /// writes the others.
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

    /// The client has left, for this cause if it is known.
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
