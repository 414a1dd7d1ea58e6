//! The records of calls that are answered, while their client has yet to get the answers.
//!
//! Law: a call whose client leaves before that is cancelled, however it was answered; what has failed besides has failed all
//! the same. One that waits for others to be answered is not in progress: it takes nobody's place.

use std::cell::RefCell;

use crate::gateway::record::Record;

/// The records. Those that nobody takes are of a client that has left.
#[derive(Debug, Default)]
pub(super) struct Kept {
    records: RefCell<Vec<Record>>,
}

impl Kept {
    /// One more call is answered.
    pub(super) fn keep(&self, mut record: Record) {
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
    pub(super) fn untaken(&self, cause: Option<&str>) {
        for record in self.records.borrow_mut().iter_mut() {
            record.untaken(cause);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.untaken(None);
        drop(self.go_on());
    }
}
