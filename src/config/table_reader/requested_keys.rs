//! The keys that are read, so that a test can compare them with the documentation. Used by `table_reader`.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::config::layer::join;

thread_local! {
    static ASKED: RefCell<BTreeSet<String>> = RefCell::default();
}

/// Records the keys of a table.
pub(super) fn note(table: &str, keys: &[&str]) {
    let keys = keys.iter().map(|key| join(table, key));
    ASKED.with_borrow_mut(|asked| asked.extend(keys));
}

/// Returns all keys read on this thread since the last call.
pub(in crate::config) fn take() -> BTreeSet<String> {
    ASKED.take()
}
