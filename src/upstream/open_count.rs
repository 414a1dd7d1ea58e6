//! The number of open connections to an upstream. Used by `http`, `http1`, `http2` and `monitored_socket`.

use std::cell::Cell;
use std::rc::Rc;

/// Counts an open connection until it is dropped.
#[derive(Debug)]
pub(super) struct OpenCount(Rc<Cell<usize>>);

impl OpenCount {
    pub(super) fn count(open: Rc<Cell<usize>>) -> OpenCount {
        open.set(open.get() + 1);
        OpenCount(open)
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
